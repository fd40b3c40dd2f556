"""The C compiler that kernels are compiled with, and what of their runtime is compiled once."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CLANG = "clang-19"
PACKAGE = Path(__file__).parents[1]
RUNTIME_SOURCES = PACKAGE / "src" / "kernel"
LINKED = ("libamdhip64.so", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2")
"""Libraries of the tree that a code object may take symbols from; the process has them already."""

OPENCL = ("-x", "cl", "-Xclang", "-finclude-default-header", "-Xclang", "-fdeclare-opencl-builtins")


class CompileError(Exception):
    """A program doesn't compile, or can't be compiled here; the text is for the program's log."""


@dataclass(frozen=True)
class Toolchain:
    """A compiler for one tree and one kind of machine.

    Attributes:
        clang: The compiler's path.
        tree: The tree that the code objects will run in.
        machine: Instruction set level, as in -march.
    """

    clang: str
    tree: Path
    machine: str

    @classmethod
    def prepare(cls, tree: Path, machine: str) -> Toolchain:
        """Finds the compiler and, the first time in a tree, compiles the runtime.

        Raises:
            CompileError: There is no compiler, or it refuses the runtime.
        """
        pinned = tree / "toolchain" / "bin" / CLANG
        clang = str(pinned) if pinned.exists() else shutil.which(CLANG)
        if clang is None:
            raise CompileError(
                f"error: no compiler for kernels: there is no {pinned}, and no {CLANG} in PATH"
            )
        toolchain = cls(clang, tree, machine)
        if not (toolchain.runtime / "fingerprint").exists():
            toolchain._compile_runtime()
        return toolchain

    @property
    def runtime(self) -> Path:
        """Folder of the compiled runtime."""
        return self.tree / "kernel-runtime" / self.machine

    @property
    def code_generation(self) -> tuple[str, ...]:
        """Options that decide what the machine code computes and how fast.

        No contraction: a * b + c rounds twice on every machine. Vectors may lie at any float, as
        on AMD GPUs, and MIOpen's kernels make use of it. Each function has a section, so that what
        no kernel reaches is dropped with the GPU intrinsics that it names.
        """
        return (
            *("-target", "x86_64-linux-gnu", f"-march={self.machine}", "-O2", "-fPIC"),
            *("-ffp-contract=off", "-fmax-type-align=4", "-fno-math-errno"),
            *("-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"),
        )

    def run(self, *arguments: str) -> str:
        """Runs the compiler and returns its standard output.

        Raises:
            CompileError: It fails; the text is what it said.
        """
        done = subprocess.run([self.clang, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(done.stderr or f"error: {self.clang} ended with {done.returncode}")
        return done.stdout

    def link(self, compiled: Path, code_object: Path) -> None:
        """Links one object file to a shared object that the stand-in libamdhip64 can load.

        Raises:
            CompileError: The program uses a function that nothing defines.
        """
        self.run(
            *("-target", "x86_64-linux-gnu", "-shared", "-nostdlib"),
            *("-Wl,-z,defs", "-Wl,-s", "-Wl,--gc-sections"),
            *("-o", str(code_object), str(compiled)),
            *(str(self.tree / "lib" / name) for name in LINKED),
        )

    def _compile_runtime(self) -> None:
        self.runtime.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self.runtime.parent / "lock"):
            if self.runtime.exists():
                return
            partial = Path(tempfile.mkdtemp(dir=self.runtime.parent))
            try:
                self._compile_bitcode(partial)
                (partial / "fingerprint").write_text(self._fingerprint())
                partial.chmod(0o755)
                partial.rename(self.runtime)
            finally:
                shutil.rmtree(partial, ignore_errors=True)

    def _compile_bitcode(self, folder: Path) -> None:
        bitcode = (*self.code_generation, "-emit-llvm", "-c")
        self.run(
            *(*OPENCL, "-cl-std=CL2.0", *bitcode, str(RUNTIME_SOURCES / "opencl_builtins.cl")),
            *("-o", str(folder / "opencl_builtins.bc")),
        )
        self.run(
            *(
                *("-x", "c++", "-std=c++17"),
                *bitcode,
                str(RUNTIME_SOURCES / "opencl_work_items.cpp"),
            ),
            *("-o", str(folder / "opencl_work_items.bc")),
        )

    def _fingerprint(self) -> str:
        digest = hashlib.sha256(self.run("--version").encode())
        digest.update(self.machine.encode())
        sources = [*RUNTIME_SOURCES.rglob("*"), *Path(__file__).parent.glob("*.py")]
        for path in sorted(path for path in sources if path.is_file()):
            digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()[:16]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
