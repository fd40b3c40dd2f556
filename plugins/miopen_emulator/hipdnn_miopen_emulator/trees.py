"""Builds a tree: the real libMIOpen, stand-ins for the libraries below it, and a compiler.

    <cache>/trees/miopen-3.5.1-<digest>/
        lib/                 the packaged libraries, among them a C library; the stand-ins
        toolchain/           a link to the compiler that all trees share
        bin/compile-kernel   what the stand-ins start to compile a kernel
        pythons/             interpreters that run inside, see `pythons`

A tree is named by a digest of all it is made of, so a changed source or pin makes a new one.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from . import archive
from .cache import LOADER, assembled, cache_folder, locked, output_of, unpack
from .errors import EmulatorError, EmulatorUnavailableError, UnknownTreeError
from .pins import tree_pins
from .pythons import base_interpreter
from .standins import compile_standins, source_files
from .steps import Steps
from .toolchain import OPENBLAS, build_toolchain

if TYPE_CHECKING:
    from .pins import TreePins

DEFAULT = "3.5.1"
PACKAGE = Path(__file__).parent

_COMPILE_KERNEL = """\
#!/bin/sh
# What the stand-ins start inside a tree; the compiler is one of the host's processes.
unset LD_LIBRARY_PATH LD_PRELOAD PYTHONHOME
PYTHONPATH="{packages}" exec "{python}" -S -m hipdnn_miopen_emulator.compiler "$@"
"""


def tree_folder(miopen: str = DEFAULT) -> Path:
    """Return where the tree of one MIOpen version is, or will be once it is built.

    Raises:
        UnknownTreeError: There is no tree for that version.
    """
    pins = tree_pins()
    if miopen not in pins:
        raise UnknownTreeError(f"no tree for MIOpen {miopen}; there are {', '.join(pins)}")
    return cache_folder() / "trees" / f"miopen-{miopen}-{_digest(pins[miopen])}"


def build_tree(miopen: str = DEFAULT, steps: Steps | None = None) -> Path:
    """Return the tree of one MIOpen version (`"3.5.1"`, `"3.4.0"`), building it if needed.

    Args:
        miopen: The version.
        steps: Takes what is done; stays empty where everything was there.

    Raises:
        UnknownTreeError: There is no tree for that version.
        EmulatorUnavailableError: This machine can't fetch it.
        EmulatorError: A pinned version has gone, a checksum differs, or a stand-in doesn't compile.
    """
    tree = tree_folder(miopen)
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise EmulatorUnavailableError(
            f"the packages are for Linux on x86-64, this is {sys.platform} on {platform.machine()}"
        )
    steps = steps or Steps()
    if not tree.exists():
        with locked() as cache:
            if not tree.exists():
                toolchain = build_toolchain(cache, steps)
                _build(tree_pins()[miopen], cache, toolchain, tree, steps)
    _write_compile_kernel(tree)
    return tree


def _digest(pins: TreePins) -> str:
    digest = hashlib.sha256(repr(pins).encode())
    modules = [PACKAGE / f"{name}.py" for name in ("standins", "toolchain", "trees")]
    # the compile driver too: MIOpen keeps what it compiled in a folder named like the tree
    for path in (*modules, *source_files(), *sorted((PACKAGE / "compiler").rglob("*.py"))):
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _build(pins: TreePins, cache: Path, toolchain: Path, tree: Path, steps: Steps) -> None:
    debs = archive.fetch(pins.packages, cache / "packages", steps)
    with assembled(tree) as partial, tempfile.TemporaryDirectory() as folder:
        library, unpacked = partial / "lib", Path(folder)
        library.mkdir()
        (partial / "preload").write_text(pins.preload)
        (partial / "toolchain").symlink_to(os.path.relpath(toolchain, tree))
        with steps.step("unpack libMIOpen") as step:
            unpack(debs, unpacked)
            for path in sorted((unpacked / "usr/lib/x86_64-linux-gnu").glob("*.so.*")):
                shutil.copy2(path, library / path.name, follow_symlinks=False)
            for name in OPENBLAS:
                found = os.path.relpath((toolchain / name).resolve(), tree / "lib")
                (library / Path(name).name).symlink_to(found)
            step.size = archive.size_of([library])
        with steps.step("compile the stand-ins") as step:
            before = archive.size_of([library])
            compile_standins(toolchain, pins.sonames, unpacked / "usr/include", library)
            step.size = archive.size_of([library]) - before
        # the names without a version, which hip-python and a library search by name ask for
        (library / "libamdhip64.so").symlink_to(pins.sonames["hip"])
        (library / "libMIOpen.so").symlink_to("libMIOpen.so.1")
        _check_completeness(library)


def _check_completeness(library: Path) -> None:
    listed = output_of(
        *(str(library / LOADER), "--library-path", str(library), "--list"),
        str(library / "libMIOpen.so.1"),
    )
    missing = [line.split()[0] for line in listed.splitlines() if "not found" in line]
    if missing:
        raise EmulatorError(f"libMIOpen.so.1 asks for {', '.join(missing)}, which the tree lacks")


def _write_compile_kernel(tree: Path) -> None:
    """Write the script; again where the Python or the package that it starts has moved."""
    script = tree / "bin" / "compile-kernel"
    text = _COMPILE_KERNEL.format(packages=PACKAGE.parent, python=base_interpreter())
    if script.exists() and script.read_text() == text:
        return
    script.parent.mkdir(exist_ok=True)
    partial = script.with_name(f"compile-kernel.{os.getpid()}")
    partial.write_text(text)
    partial.chmod(0o755)
    partial.rename(script)
