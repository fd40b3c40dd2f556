"""Pythons that run inside a tree.

A tree's `lib` folder has a newer C library than the host. The host's Python is started by that
library's own loader, so nothing is exported that would reach other programs: LD_LIBRARY_PATH on
such a folder breaks every command of the host.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .cache import LOADER, assembled, current_tree
from .errors import EmulatorError

_ASK = "import json, sys; print(json.dumps([sys._base_executable, sys.prefix, sys.base_prefix]))"

# sys.executable is argv[0], so children that are started by it (subprocess, multiprocessing's
# spawn, pytest-xdist) are inside, too
_SCRIPT = """\
#!/bin/sh
exec "{library}/{loader}" --argv0 "$0" \\
  --preload "{preload} ${{MIOPEN_EMULATOR_ASM:+kernel_source.so}}" \\
  --library-path "{library}" "{base}" "$@"
"""
_COMMAND = """\
#!/bin/sh
exec "${0%/*}/python" -P -m hipdnn_registry "$@"
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python of the host.

    Attributes:
        base: The program itself, outside any virtual environment.
        prefix: Its virtual environment, or its installation.
        virtual: Whether it is in a virtual environment.
    """

    base: Path
    prefix: Path
    virtual: bool


def base_interpreter() -> Path:
    """Return the program that runs this process, without virtual environment and tree."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def this_interpreter() -> Interpreter:
    """Return the Python of this process; inside a tree the one that it was made from."""
    prefix = Path(sys.prefix)
    virtual = sys.prefix != sys.base_prefix
    if current_tree():
        prefix, virtual = (prefix / "host").readlink(), (prefix / "lib").exists()
    return Interpreter(base_interpreter(), prefix, virtual)


def interpreter_of(program: Path) -> Interpreter:
    """Return what a Python program says of itself.

    Raises:
        EmulatorError: It doesn't run.
    """
    done = subprocess.run([program, "-I", "-c", _ASK], capture_output=True, text=True, check=False)
    try:
        base, prefix, base_prefix = json.loads(done.stdout)
    except ValueError:
        raise EmulatorError(
            f"{program} does not work as a Python: {done.stderr.strip() or done.stdout.strip()}"
        ) from None
    return Interpreter(Path(base).resolve(), Path(prefix), prefix != base_prefix)


def make_python(tree: Path, like: Interpreter | None = None) -> Path:
    """Return an interpreter whose processes run inside `tree`, making it if needed.

    It is a virtual environment whose `bin/python` is a script around the tree's loader, with the
    packages of the Python that it is like. `bin/hipdnn` is the command, for shell scripts that
    find it on PATH.

    Args:
        tree: The tree.
        like: A Python of the host; by default this process's own.
    """
    like = like or this_interpreter()
    what = f"{like.prefix}\n{like.base}\n{_SCRIPT}{_COMMAND}"
    digest = hashlib.sha256(what.encode()).hexdigest()[:12]
    environment = tree / "pythons" / digest
    executable = environment / "bin" / "python"
    if executable.exists():
        return executable
    try:
        with assembled(environment) as partial:
            _write_environment(partial, like, tree)
    except OSError:
        if not executable.exists():  # no other process was faster
            raise
    return executable


def _write_environment(folder: Path, like: Interpreter, tree: Path) -> None:
    scripts = folder / "bin"
    scripts.mkdir()
    (folder / "pyvenv.cfg").write_text(
        f"home = {like.base.parent}\n"
        f"include-system-site-packages = {'false' if like.virtual else 'true'}\n"
    )
    (folder / "host").symlink_to(like.prefix)
    if like.virtual:
        (folder / "lib").symlink_to(like.prefix / "lib")
    library = tree / "lib"
    python = _SCRIPT.format(
        library=library, loader=LOADER, preload=always_preloaded(tree), base=like.base
    )
    for name, script in {"python": python, "hipdnn": _COMMAND}.items():
        (scripts / name).write_text(script)
        (scripts / name).chmod(0o755)
    (scripts / "python3").symlink_to("python")


def always_preloaded(tree: Path) -> str:
    """Return the name of the stand-in that each process of the tree preloads, or ""."""
    return (tree / "preload").read_text()
