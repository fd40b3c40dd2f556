"""Compiles the stand-ins: the libraries below libMIOpen that a GPU's machine would have.

Libraries are named after what they stand in for; which soname libMIOpen asks for is the tree's
affair (`packages.toml`). What is preloaded has a name of its own.
"""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
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
    """Compile what a tree needs into its `library` folder, on all cores.

    Args:
        toolchain: The compiler.
        sonames: Library -> the name under which libMIOpen asks for it.
        headers: HIP's own, of the version that the tree's libMIOpen was built with.
        library: Where they go.

    Raises:
        EmulatorError: One doesn't compile; with the compiler's message.
    """
    clang = str(toolchain / "bin/clang++-19")
    wanted = {soname: LIBRARIES[name] for name, soname in sonames.items()} | PRELOADED
    files = {soname: _files(patterns) for soname, patterns in wanted.items()}
    sources = sorted({p for paths in files.values() for p in paths if p.suffix != ".map"})
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = {path: Path(folder, f"{path.stem}.{n}.o") for n, path in enumerate(sources)}

        def compile_one(source: Path) -> None:
            options = ("-O2", "-std=gnu++17", "-fPIC", "-isystem", str(headers))
            output_of(clang, *options, "-c", str(source), "-o", str(objects[source]))

        def link_one(soname: str) -> None:
            inputs = [
                str(objects[path]) if path in objects else f"-Wl,--version-script={path}"
                for path in files[soname]
            ]
            options = ("-shared", f"-Wl,-soname,{soname}", "-lpthread", "-ldl")
            output_of(clang, *inputs, *options, "-o", str(library / soname))

        for work, parts in ((compile_one, sources), (link_one, files)):
            list(pool.map(work, parts))  # raises what one of them raised


def _files(patterns: Iterable[str]) -> list[Path]:
    return [path for pattern in patterns for path in sorted(SOURCES.glob(pattern))]
