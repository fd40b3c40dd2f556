"""Starts commands inside a tree: Python's programs, and others that are linked dynamically."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .cache import LOADER, cache_folder
from .errors import UnsuitableCommandError
from .pythons import always_preloaded, interpreter_of, make_python, this_interpreter
from .variables import check_variables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KERNELS_VARIABLE = "MIOPEN_EMULATOR_KERNELS"
GUARD_VARIABLE = "MIOPEN_EMULATOR_GUARD"
CLOCK_VARIABLE = "MIOPEN_EMULATOR_CLOCK"
LOG_VARIABLE = "MIOPEN_EMULATOR_LOG"

WITHOUT_ASSEMBLY = {
    # Debian's package lacks the assembly kernels, yet their solvers stay applicable, and then every
    # Find fails; the second is for a fused solver that the first doesn't reach
    "MIOPEN_DEBUG_GCN_ASM_KERNELS": "0",
    "MIOPEN_DEBUG_AMD_WINOGRAD_RXS_F2X3_G1": "0",
}

_ENV_ASSIGNMENTS = re.compile(r"(-\S+\s+|\w+=\S*\s+)*")
_LONG_PATH_PREFIX = b"'''exec' "  # how pip writes a script whose interpreter's path is long


def command_line(tree: Path, command: Sequence[str]) -> list[str]:
    """Return what to execute so that `command` runs inside a tree.

    A name without a slash is looked for beside this Python (where a virtual environment has its
    scripts), then on PATH. Python and its scripts run by an interpreter like the one they name, so
    with the packages that it has; other programs are started by the tree's loader, whose libraries
    then come before the host's.

    Raises:
        UnsuitableCommandError: There is no such command, or it can't run inside a tree.
    """
    program = _find(command[0])
    return [*_starter(tree, program), *command[1:]]


def environment(tree: Path, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment variables for a command inside a tree.

    What `base` sets stays, except that PATH leads to the tree's Python first. What it doesn't set:
    solvers that need assembly kernels are switched off, as the package has none; and MIOpen's
    databases and kernel cache are in a folder of the tree's own, never those of the user.

    Args:
        tree: The tree.
        base: Variables to start from; by default this process's.

    Raises:
        UnsuitableSettingError: A variable of the emulator is not what it may be.
    """
    base = os.environ if base is None else base
    check_variables(base)
    mode = base.get(KERNELS_VARIABLE) or "execute"
    if base.get(GUARD_VARIABLE) == "1":
        mode += "-guard"  # what is compiled differs, and MIOpen keeps it
    state = miopen_state(tree) / mode
    defaults = {
        "MIOPEN_USER_DB_PATH": str(state / "db"),
        "MIOPEN_CUSTOM_CACHE_DIR": str(state / "cache"),
    }
    if not base.get("MIOPEN_EMULATOR_ASM"):
        defaults |= WITHOUT_ASSEMBLY
    for variable in ("MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR"):
        if variable not in base:
            Path(defaults[variable]).mkdir(parents=True, exist_ok=True)
    path = base.get("PATH", os.defpath)
    return defaults | dict(base) | {"PATH": f"{make_python(tree).parent}{os.pathsep}{path}"}


def miopen_state(tree: Path) -> Path:
    """Return the folder of what MIOpen keeps of one tree: databases and compiled kernels."""
    return cache_folder() / "miopen" / tree.name


def _find(name: str) -> Path:
    if "/" in name:
        if not os.access(name, os.X_OK) or Path(name).is_dir():
            raise UnsuitableCommandError(f"'{name}' is no program that may be executed")
        return Path(name).absolute()
    beside = Path(sys.executable).parent, this_interpreter().prefix / "bin"
    folders = os.pathsep.join([*map(str, beside), os.environ.get("PATH", os.defpath)])
    found = shutil.which(name, path=folders)
    if found is None:
        raise UnsuitableCommandError(f"command '{name}' is not found beside {beside[0]} or on PATH")
    return Path(found).absolute()


def _starter(tree: Path, program: Path) -> list[str]:
    """The words that start a program, up to its arguments."""
    if program.is_relative_to(tree / "pythons"):
        return [str(program)]
    if re.fullmatch(r"python(3(\.\d+)?)?", program.name):
        own = program.parent in (Path(sys.executable).parent, this_interpreter().prefix / "bin")
        return [str(make_python(tree, None if own else interpreter_of(program)))]
    with program.open("rb") as file:
        head = file.read(4096)
    if head.startswith(b"\x7fELF"):
        _check_elf(program, head)
        return [*_loader(tree, program)]
    if not head.startswith(b"#!"):
        raise UnsuitableCommandError(f"'{program}' is neither a program nor a script with '#!'")
    first, _, rest = head.partition(b"\n")
    if rest.startswith(_LONG_PATH_PREFIX):
        first = b"#!" + rest.removeprefix(_LONG_PATH_PREFIX).partition(b' "$0"')[0].strip(b'"')
        return [*_starter(tree, Path(os.fsdecode(first[2:]))), str(program)]
    interpreter, _, argument = os.fsdecode(first[2:]).strip().partition(" ")
    argument = argument.strip()
    if Path(interpreter).name == "env":
        interpreter, _, argument = _ENV_ASSIGNMENTS.sub("", argument, count=1).partition(" ")
        argument = argument.strip()
    starter = _starter(tree, _find(interpreter))
    return [*starter, *([argument] if argument else []), str(program)]


def _loader(tree: Path, program: Path) -> list[str]:
    library = tree / "lib"
    preload = always_preloaded(tree)
    if os.environ.get("MIOPEN_EMULATOR_ASM"):
        preload += " kernel_source.so"
    return [
        *(str(library / LOADER), "--argv0", str(program), "--preload", preload),
        *("--library-path", str(library), str(program)),
    ]


def _check_elf(program: Path, head: bytes) -> None:
    """Refuse what the tree's loader can't load; offsets are those of the ELF-64 header."""
    is_64_bit, machine = head[4] == 2, int.from_bytes(head[18:20], "little")
    if not is_64_bit or machine != 62:
        raise UnsuitableCommandError(f"'{program}' is no program for 64-bit x86")
    start = int.from_bytes(head[32:40], "little")
    size = int.from_bytes(head[54:56], "little")
    count = int.from_bytes(head[56:58], "little")
    kinds = [
        int.from_bytes(head[at : at + 4], "little")
        for at in range(start, start + size * count, size)
    ]
    if 3 not in kinds:  # PT_INTERP: it asks for a loader
        raise UnsuitableCommandError(
            f"'{program}' is linked statically: it loads no library, so none can be replaced"
        )
