"""Builds a tree (real libMIOpen, stand-in ROCm libraries) and a Python that runs inside it.

A tree's ``lib`` folder holds the packaged libraries, among them a newer C library than the host's.
The host's Python is started by that C library's own loader, so nothing is exported that would reach
other programs: LD_LIBRARY_PATH on such a folder breaks every command of the host.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hipdnn_miopen_emulator import archive
from hipdnn_miopen_emulator.archive import EmulatorError, EmulatorUnavailableError, Pins

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE_VARIABLE = "MIOPEN_EMULATOR_CACHE"
SOURCES = Path(__file__).with_name("src")
LOADER = "ld-linux-x86-64.so.2"


def cache_folder() -> Path:
    """Where packages and trees are kept: outside the source tree, MIOPEN_EMULATOR_CACHE wins."""
    if override := os.environ.get(CACHE_VARIABLE):
        return Path(override).absolute()
    if inside := current_tree():
        return inside.parents[1]
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hipdnn-registry" / "emulator"


def build_tree(miopen: str) -> Path:
    """Returns the tree of one MIOpen version (``"3.5.1"``, ``"3.4.0"``), building it if needed.

    A tree is named by a digest of all it is made of, so a changed source or pin makes a new one.

    Raises:
        EmulatorUnavailableError: This machine can't fetch or build it.
        EmulatorError: A pinned version has gone, a checksum differs, or a stand-in doesn't compile.
    """
    all_pins = archive.read_pins()
    if miopen not in all_pins:
        raise EmulatorError(f"no tree for MIOpen {miopen}; there are {', '.join(all_pins)}")
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise EmulatorUnavailableError(
            f"the packages are for Linux on x86-64, this is {sys.platform} on {platform.machine()}"
        )
    if shutil.which("gcc") is None:
        raise EmulatorUnavailableError("gcc is not installed; the stand-ins are written in C")
    pins = all_pins[miopen]
    cache = cache_folder()
    tree = cache / "trees" / f"miopen-{miopen}-{_digest(pins)}"
    tree.parent.mkdir(parents=True, exist_ok=True)
    with _locked(cache / "lock"):
        if not tree.exists():
            partial = Path(tempfile.mkdtemp(dir=tree.parent))
            try:
                _assemble(pins, archive.fetch(pins.packages, cache / "packages"), partial)
                partial.chmod(0o755)
                partial.rename(tree)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return tree


def current_tree() -> Path | None:
    """The tree that this process runs inside, if it does."""
    tree = Path(sys.executable).parents[3] if len(Path(sys.executable).parents) > 3 else None
    return tree if tree is not None and (tree / "lib" / LOADER).exists() else None


def make_python(tree: Path) -> Path:
    """Returns an interpreter like this one (same packages) whose processes run inside ``tree``.

    It is a virtual environment whose ``bin/python`` is a two-line script around the tree's loader.
    As Python takes ``sys.executable`` from argv[0], children started by that name (subprocess,
    multiprocessing's spawn, pytest-xdist) run inside the tree too.
    """
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    digest = hashlib.sha256(f"{sys.prefix}\n{base}".encode()).hexdigest()[:12]
    environment = tree / "pythons" / digest
    executable = environment / "bin" / "python"
    if executable.exists():
        return executable
    in_venv = sys.prefix != sys.base_prefix
    partial = Path(tempfile.mkdtemp(dir=tree))
    (partial / "bin").mkdir()
    site_packages = "false" if in_venv else "true"
    (partial / "pyvenv.cfg").write_text(
        f"home = {base.parent}\ninclude-system-site-packages = {site_packages}\n"
    )
    if in_venv:
        (partial / "lib").symlink_to(Path(sys.prefix) / "lib")
    script = partial / "bin" / "python"
    library = tree / "lib"
    always = (tree / "preload").read_text()
    preload = f"{library / always} " if always else ""
    script.write_text(
        "#!/bin/sh\n"
        f'exec "{library / LOADER}" --argv0 "$0" '
        f'--preload "{preload}${{MIOPEN_EMULATOR_ASM:+{library}/kernel_source.so}}" '
        f'--library-path "{library}" "{base}" "$@"\n'
    )
    script.chmod(0o755)
    partial.chmod(0o755)
    environment.parent.mkdir(exist_ok=True)
    try:
        partial.rename(environment)
    except OSError:  # another process was faster
        shutil.rmtree(partial)
    return executable


def _digest(pins: Pins) -> str:
    digest = hashlib.sha256(repr(pins).encode())
    for path in (Path(__file__), *sorted(SOURCES.iterdir())):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _assemble(pins: Pins, debs: list[Path], tree: Path) -> None:
    library = tree / "lib"
    library.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder)
        for deb in debs:
            _run("dpkg-deb", "-x", str(deb), folder)
        for path in sorted((unpacked / "usr/lib/x86_64-linux-gnu").glob("*.so.*")):
            shutil.copy2(path, library / path.name, follow_symlinks=False)
        _compile(pins.sonames, library, unpacked / "usr/include")
    (tree / "preload").write_text(pins.preload)
    missing = [
        line.split()[0]
        for line in _run(
            str(library / LOADER),
            "--library-path",
            str(library),
            "--list",
            str(library / "libMIOpen.so.1"),
        ).splitlines()
        if "not found" in line
    ]
    if missing:
        raise EmulatorError(f"libMIOpen.so.1 asks for {', '.join(missing)}, which the tree lacks")


def _compile(sonames: dict[str, str], library: Path, headers: Path) -> None:
    sources = {
        "hip": [*sorted(SOURCES.glob("hip_*.c")), SOURCES / "hip.map"],
        "rocblas": [SOURCES / "rocblas.c"],
        "hiprtc": [SOURCES / "hiprtc.c"],
        "comgr": [SOURCES / "comgr.c", SOURCES / "comgr.map"],
    }
    for name, soname in sonames.items():
        _gcc(soname, sources[name], library, headers)
    for preloaded in ("kernel_source", "offline_compiler"):
        _gcc(f"{preloaded}.so", [SOURCES / f"{preloaded}.c"], library, headers)
    # the names without a version, which hip-python and a library search by name ask for
    (library / "libamdhip64.so").symlink_to(sonames["hip"])
    (library / "libMIOpen.so").symlink_to("libMIOpen.so.1")


def _gcc(soname: str, sources: list[Path], library: Path, headers: Path) -> None:
    arguments = [f"-Wl,--version-script={p}" if p.suffix == ".map" else str(p) for p in sources]
    _run(
        *("gcc", "-O2", "-std=gnu17", "-shared", "-fPIC", "-isystem", str(headers)),
        *(f"-Wl,-soname,{soname}", "-o", str(library / soname)),
        *(*arguments, "-lpthread", "-ldl"),
    )


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EmulatorError(f"{' '.join(command)} failed:\n{done.stderr or done.stdout}")
    return done.stdout
