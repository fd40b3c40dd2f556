"""Compiles the stand-ins: the libraries below libMIOpen that a GPU's machine would have.

Libraries are named after what they stand in for; which soname libMIOpen asks for is the tree's
affair (`packages.toml`). What is preloaded has a name of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .cache import output_of

if TYPE_CHECKING:
    from collections.abc import Iterable

SOURCES = Path(__file__).with_name("src")

LIBRARIES = {
    "hip": ("hip/*.cpp", "hip/hip.map"),
    "rocblas": ("blas/*.cpp",),
    "hiprtc": ("compilers/hiprtc.cpp", "compilers/kernel_compiler.cpp", "common/*.cpp"),
    "comgr": (
        *("compilers/comgr.cpp", "compilers/kernel_compiler.cpp", "common/*.cpp"),
        "compilers/comgr.map",
    ),
}
"""Library -> patterns of its sources and of its linker's version script, below `src`."""

PRELOADED = {
    "kernel_source.so": ("preload/kernel_source.cpp",),
    "offline_compiler.so": ("preload/offline_compiler.cpp",),
}


def source_files() -> list[Path]:
    """Return all that the stand-ins are made of."""
    return sorted(path for path in SOURCES.rglob("*") if path.is_file())


def compile_standins(
    toolchain: Path, sonames: dict[str, str], headers: Path, library: Path
) -> None:
    """Compile what a tree needs into its `library` folder.

    Args:
        toolchain: The compiler.
        sonames: Library -> the name under which libMIOpen asks for it.
        headers: HIP's own, of the version that the tree's libMIOpen was built with.
        library: Where they go.

    Raises:
        EmulatorError: One doesn't compile; with the compiler's message.
    """
    for name, soname in sonames.items():
        _compile(toolchain, soname, LIBRARIES[name], headers, library)
    for soname, patterns in PRELOADED.items():
        _compile(toolchain, soname, patterns, headers, library)


def _compile(
    toolchain: Path, soname: str, patterns: Iterable[str], headers: Path, library: Path
) -> None:
    files = [path for pattern in patterns for path in sorted(SOURCES.glob(pattern))]
    maps = [f"-Wl,--version-script={path}" for path in files if path.suffix == ".map"]
    sources = [str(path) for path in files if path.suffix != ".map"]
    output_of(
        *(str(toolchain / "bin/clang++-19"), "-O2", "-std=gnu++17", "-shared", "-fPIC"),
        *("-isystem", str(headers), f"-Wl,-soname,{soname}", "-o", str(library / soname)),
        *(*maps, *sources, "-lpthread", "-ldl"),
    )
