"""HIP programs: clang's C++ with a prelude in place of hiprtc's built-in declarations.

The program is preprocessed first. ``__global__`` and ``__shared__`` are no macros then, so that its
kernels can be found and what the host's compiler has no notion of rewritten.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hipdnn_miopen_emulator.compiler.toolchain import RUNTIME_SOURCES

if TYPE_CHECKING:
    from pathlib import Path

    from hipdnn_miopen_emulator.compiler.request import Request
    from hipdnn_miopen_emulator.compiler.toolchain import Toolchain

PORTABLE_PATHS = {
    "CK_USE_AMD_XDLOPS_EMULATE": 1,
    "CK_USE_AMD_BUFFER_ADDRESSING": 0,
    "CK_USE_AMD_BUFFER_PTR_TYPE": 0,
    "CK_USE_AMD_INLINE_ASM": 0,
    "CK_USE_AMD_V_FMAC_F32": 0,
    "CK_USE_AMD_V_MAC_F32": 0,
    "CK_USE_AMD_INNER_PRODUCT_INLINE_ASM": 0,
    "CK_THREADWISE_GEMM_USE_AMD_INLINE_ASM": 0,
    "CK_BLOCK_SYNC_LDS_WITHOUT_SYNC_VMEM": 0,
}
"""MIOpen's own switches between GPU instructions and C++ (its kernels' config.hpp), set to C++."""

ATTRIBUTES = r"(?:__attribute__\s*\(\([^;{]*?\)\)\s*)*"
KERNEL = re.compile(rf"__global__\s+{ATTRIBUTES}void\s+{ATTRIBUTES}(\w+)\s*\(")
LINE_MARKER = re.compile(r"^#.*\n", re.MULTILINE)
TEMPLATE = re.compile(r"template\s*<[^;{}]*$")
ASSEMBLY = re.compile(r"\b(?:__)?asm(?:__)?\s+(?:__)?volatile(?:__)?\s*\(")
DYNAMIC_SHARED = re.compile(r"extern\s+__shared__\s+([\w\s]+?)\s*\b(\w+)\s*\[\s*\]\s*;")


def compile_program(request: Request, toolchain: Toolchain) -> Path:
    """Returns the object file of a HIP program, with an entry for each of its kernels.

    Raises:
        CompileError: The program doesn't compile.
    """
    language = [
        *("-x", "c++", _standard(request), "-nostdinc++", "-w"),
        f"-DEMULATOR_WAVEFRONT={request.wavefront}",
    ]
    text = toolchain.run(
        *("-E", *language, *request.portable_options()),
        *(f"-D{name}={value}" for name, value in PORTABLE_PATHS.items()),
        *("-I", str(request.include), "-I", str(RUNTIME_SOURCES / "include")),
        *("-include", str(RUNTIME_SOURCES / "hip.hpp"), str(request.source)),
    )
    kernels = find_kernels(text)
    rewritten = request.folder / "preprocessed.cpp"
    rewritten.write_text(
        for_the_host(text) + "".join(f"EMULATOR_KERNEL({name})\n" for name in kernels)
    )
    compiled = request.folder / "kernel.o"
    toolchain.run(
        *(*language, *toolchain.code_generation, "-fno-exceptions", "-fno-rtti"),
        *("-D__global__=", "-D__shared__=thread_local"),
        *("-include", str(RUNTIME_SOURCES / "rewritten.hpp")),
        *("-c", str(rewritten), "-o", str(compiled)),
    )
    return compiled


def find_kernels(text: str) -> list[str]:
    """Names of the kernels in a preprocessed program, templates excepted."""
    text = LINE_MARKER.sub("", text)
    return list(
        dict.fromkeys(
            match[1]
            for match in KERNEL.finditer(text)
            if not TEMPLATE.search(text[max(0, match.start() - 2000) : match.start()])
        )
    )


def for_the_host(text: str) -> str:
    """Rewrites what has no counterpart on the host.

    GPU assembly becomes a trap, GPU intrinsics that are only declared get names that LLVM doesn't
    know, and ``extern __shared__`` arrays become pointers to the launch's shared memory.
    """
    text = ASSEMBLY.sub("EMULATOR_GPU_ASSEMBLY(", text)
    text = text.replace('"llvm.amdgcn.', '"emulator.unsupported.')
    return DYNAMIC_SHARED.sub(
        r"\1 *const \2 = reinterpret_cast<\1 *>(emulator_item_1.dynamic_shared);", text
    )


def _standard(request: Request) -> str:
    standards = [option for option in request.options if option.startswith("-std=")]
    return standards[-1] if standards else "-std=c++17"
