"""What the emulator's environment variables may be: a typo must not change what a run means."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import UnsuitableSettingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PREFIX = "MIOPEN_EMULATOR_"

_ARCHITECTURE = re.compile(r"gfx[0-9a-f]{3,4}(:[a-z]+[+-])*")


def _one_of(*words: str) -> Callable[[str], str]:
    allowed = " or ".join(f"'{word}'" for word in words)
    return lambda value: "" if value in words else allowed


def _number(least: int) -> Callable[[str], str]:
    def problem(value: str) -> str:
        good = value.isascii() and value.isdigit() and int(value) >= least
        return "" if good else f"a number from {least} on"

    return problem


def _architecture(value: str) -> str:
    good = _ARCHITECTURE.fullmatch(value)
    return "" if good else "an AMD GPU's target such as 'gfx90a' or 'gfx90a:sramecc+:xnack-'"


def _file(value: str) -> str:
    path = Path(value).absolute()
    existing = path if path.exists() else path.parent
    good = not path.is_dir() and existing.exists() and os.access(existing, os.W_OK)
    return "" if good else "a file that can be written to, in a folder that exists"


def _anything(value: str) -> str:
    del value
    return ""


_ALLOWED: dict[str, Callable[[str], str]] = {
    "ANY_VERSION": _anything,
    "ARCH": _architecture,
    "ARCHIVE": _anything,
    "ASM": _one_of("1"),
    "CACHE": _anything,
    "CLOCK": _one_of("virtual", "real"),
    "CU": _number(1),
    "DEVICES": _number(0),
    "FAIL_COMPILE": _anything,
    "GUARD": _one_of("0", "1"),
    "KEEP_SOURCES": _anything,
    "KERNELS": _one_of("execute", "accept"),
    "LOG": _file,
    "THREADS": _number(1),
}
"""Name without the prefix -> what says what is allowed, or '' for a good value."""


def check_variables(variables: Mapping[str, str], options: Mapping[str, str] | None = None) -> None:
    """Check the emulator's variables before a command starts under them. Empty is unset.

    Args:
        variables: Those of the environment that the command is to have.
        options: Variable -> the option that gave its value, for messages.

    Raises:
        UnsuitableSettingError: A value that is not allowed, or no such variable.
    """
    options = options or {}
    for name, value in variables.items():
        if not name.startswith(PREFIX) or not value:
            continue
        allowed = _ALLOWED.get(name.removeprefix(PREFIX))
        if allowed is None:
            known = [PREFIX + known for known in _ALLOWED]
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
            raise UnsuitableSettingError(f"the emulator has no environment variable {name}{hint}")
        wanted = allowed(value)
        if wanted:
            origin = (
                f"option {options[name]}" if name in options else f"environment variable {name}"
            )
            raise UnsuitableSettingError(f"{origin} is '{value}', but must be {wanted}")
