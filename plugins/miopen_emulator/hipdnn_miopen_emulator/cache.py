"""The folder that everything goes to, and the lock that lets one process at a time build there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import EmulatorError

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE_VARIABLE = "MIOPEN_EMULATOR_CACHE"
LOADER = "ld-linux-x86-64.so.2"


def cache_folder() -> Path:
    """Return where packages, toolchain, trees and kernels are kept.

    MIOPEN_EMULATOR_CACHE names it; a process inside a tree has that tree's; else it is in the
    user's cache folder. Nothing else on the machine is written to.
    """
    if override := os.environ.get(CACHE_VARIABLE):
        return Path(override).absolute()
    if inside := current_tree():
        return inside.parents[1]
    from platformdirs import user_cache_path

    return user_cache_path("hipdnn-registry") / "emulator"


def current_tree() -> Path | None:
    """Return the tree that this process runs inside, if it does."""
    above = Path(sys.executable).parents  # <tree>/pythons/<digest>/bin/python
    if len(above) > 3 and (above[3] / "lib" / LOADER).exists():
        return above[3]
    return None


@contextmanager
def locked() -> Iterator[Path]:
    """Hold the cache for as long as the block lasts; gives the folder, which then exists.

    Raises:
        EmulatorError: The folder can't be made or written to.
    """
    from filelock import FileLock

    cache = cache_folder()
    if ":" in str(cache):
        raise EmulatorError(
            f"the cache folder {cache} has a ':' in its name, which separates folders on library "
            f"paths; {CACHE_VARIABLE} can name another"
        )
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = FileLock(cache / "lock")
        lock.acquire()
    except OSError as error:
        raise EmulatorError(
            f"the cache folder {cache} can't be written to ({error.strerror}); "
            f"{CACHE_VARIABLE} can name another"
        ) from error
    try:
        yield cache
    finally:
        lock.release()


@contextmanager
def assembled(folder: Path) -> Iterator[Path]:
    """Give an empty folder beside `folder`, which takes that name if the block ends well."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix="partial-", dir=folder.parent))
    try:
        yield partial
        partial.chmod(0o755)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def unpack(debs: list[Path], folder: Path) -> None:
    """Unpack packages into a folder, without their documentation."""
    for deb in debs:
        output_of("dpkg-deb", "-x", str(deb), str(folder))
    shutil.rmtree(folder / "usr/share", ignore_errors=True)


def output_of(*command: str) -> str:
    """Return what a command prints.

    Raises:
        EmulatorError: It fails; with what it said.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EmulatorError(f"{' '.join(command)} failed:\n{done.stderr or done.stdout}")
    return done.stdout
