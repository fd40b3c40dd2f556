"""OpenCL programs: clang's OpenCL C for x86-64, with the kernels' entries added as LLVM IR.

The front end's unoptimized IR shows each kernel's parameters as they are passed. What is added to
it is what ``EMULATOR_KERNEL`` (src/kernel/rewritten.hpp) makes for HIP; the optimizer then inlines
kernel and built-in functions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hipdnn_miopen_emulator.compiler.toolchain import OPENCL, CompileError

if TYPE_CHECKING:
    from pathlib import Path

    from hipdnn_miopen_emulator.compiler.request import Request
    from hipdnn_miopen_emulator.compiler.toolchain import Toolchain

DEFINITION = re.compile(
    r"^define .*?spir_kernel void @(\w+)\((.*)\) (?:local_unnamed_addr )?(#\d+)", re.MULTILINE
)
BY_VALUE = re.compile(r"byval\(([^)]*)\)")
TYPE = re.compile(r"<[^>]*>|%?[\w.]+")
LOCAL_VARIABLE = re.compile(r"^(@(\w+)\.[\w.]+ = internal )(global )", re.MULTILINE)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel in LLVM IR.

    Attributes:
        type: What lies in the argument buffer.
        passed: Type and attributes as a call has to give them.
        by_address: Whether the call passes the argument's address.
    """

    type: str
    passed: str
    by_address: bool


def compile_program(request: Request, toolchain: Toolchain) -> Path:
    """Returns the object file of an OpenCL program, with an entry for each of its kernels.

    Raises:
        CompileError: The program doesn't compile.
    """
    text = toolchain.run(
        *(*OPENCL, *toolchain.code_generation, "-w", *request.portable_options()),
        *("-I", str(request.include), "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm"),
        *(str(request.source), "-o", "-"),
    )
    rewritten = request.folder / "kernel.ll"
    rewritten.write_text(with_entries(text))
    compiled = request.folder / "kernel.o"
    libraries = [toolchain.runtime / f"opencl_{part}.bc" for part in ("work_items", "builtins")]
    toolchain.run(
        *("-x", "ir", *toolchain.code_generation, "-w"),
        *(
            o
            for path in libraries
            for o in ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(path))
        ),
        *("-c", str(rewritten), "-o", str(compiled)),
    )
    return compiled


def with_entries(text: str) -> str:
    """Adds an entry for each kernel and gives each thread of the host its own local memory."""
    kernels = {match[1]: match for match in DEFINITION.finditer(text)}
    text = LOCAL_VARIABLE.sub(
        lambda match: match[1] + ("thread_local " if match[2] in kernels else "") + match[3], text
    )
    return text + "".join(
        entry(name, [_parameter(p) for p in _split(match[2])], match[3])
        for name, match in kernels.items()
    )


def entry(name: str, parameters: list[Parameter], attributes: str) -> str:
    """LLVM IR of ``emulator_kernel_NAME``: a function to call by a buffer, and the buffer's layout.

    The buffer is an LLVM structure, so LLVM computes sizes and offsets. ``attributes`` are the
    kernel's own: with others it couldn't be inlined.
    """
    buffer = f"%arguments.{name}"
    loads, passed, layout = [], [], []
    for i, parameter in enumerate(parameters):
        loads.append(f"  %p{i} = getelementptr {buffer}, ptr %buffer, i32 0, i32 {i}")
        if not parameter.by_address:
            loads.append(f"  %a{i} = load {parameter.type}, ptr %p{i}")
        passed.append(f"{parameter.passed} %{'p' if parameter.by_address else 'a'}{i}")
        offset = f"ptrtoint (ptr getelementptr ({buffer}, ptr null, i32 0, i32 {i}) to i32)"
        size = f"ptrtoint (ptr getelementptr ({parameter.type}, ptr null, i32 1) to i32)"
        layout.append(f"{{ i32, i32 }} {{ i32 {offset}, i32 {size} }}")
    count = len(parameters)
    record = f"{{ ptr @call.{name}, i32 {count}, ptr @layout.{name} }}"
    return "\n".join(
        [
            "",
            f"{buffer} = type {{ {', '.join(p.type for p in parameters)} }}",
            f"define internal void @call.{name}(ptr %buffer) {attributes} {{",
            *loads,
            f"  call spir_kernel void @{name}({', '.join(passed)})",
            "  ret void",
            "}",
            f"@layout.{name} = internal constant [{count} x {{ i32, i32 }}] [{', '.join(layout)}]",
            f"@emulator_kernel_{name} = constant {{ ptr, i32, ptr }} {record}",
            "",
        ]
    )


def _parameter(text: str) -> Parameter:
    passed = text.rpartition("%")[0].strip()
    by_value = BY_VALUE.search(passed)
    if by_value:
        return Parameter(by_value[1], passed, by_address=True)
    scalar_or_vector = TYPE.match(passed)
    if scalar_or_vector is None:
        raise CompileError(f"error: kernel parameter not understood: {text}")
    return Parameter(scalar_or_vector[0], passed, by_address=False)


def _split(parameters: str) -> list[str]:
    """Splits at the commas that are in no brackets."""
    parts, depth = [""], 0
    for character in parameters:
        depth += (character in "(<{[") - (character in ")>}]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
