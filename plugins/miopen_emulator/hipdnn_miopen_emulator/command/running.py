"""`hipdnn emulator run`: becomes a command that runs inside a tree."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hipdnn_miopen_emulator.errors import EmulatorUnavailableError
from hipdnn_miopen_emulator.launcher import (
    CLOCK_VARIABLE,
    GUARD_VARIABLE,
    KERNELS_VARIABLE,
    LOG_VARIABLE,
    command_line,
    environment,
)
from hipdnn_miopen_emulator.pins import tree_pins
from hipdnn_miopen_emulator.pythons import make_python
from hipdnn_miopen_emulator.variables import check_variables
from hipdnn_registry.errors import InvalidInputError

from .building import ensure_tree
from .hip_python import install_command, provider_lacks_it

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


_OPTIONS = {
    KERNELS_VARIABLE: "--accept-only",
    GUARD_VARIABLE: "--guard",
    CLOCK_VARIABLE: "--clock",
    LOG_VARIABLE: "--log",
}
"""Variable -> the option that stands for it."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of `hipdnn emulator run`; where one is not given, the environment decides."""

    accept_only: bool
    guard: bool
    clock: str | None
    log: Path | None
    miopen: str
    or_skip: bool

    def variables(self) -> dict[str, str]:
        """Return the environment variables that the options stand for."""
        given = {
            KERNELS_VARIABLE: "accept" if self.accept_only else None,
            GUARD_VARIABLE: "1" if self.guard else None,
            CLOCK_VARIABLE: self.clock,
            LOG_VARIABLE: str(self.log.absolute()) if self.log else None,
        }
        return {name: value for name, value in given.items() if value is not None}


def run_command(command: Sequence[str], options: RunOptions) -> None:
    """Replace this process by `command` inside a tree, so that signals and exit code are its own.

    Returns only where the machine can't build the tree and `or_skip` allows that.

    Raises:
        UnknownTreeError: There is no tree for that version.
        UnsuitableCommandError: There is no such command, or it can't run inside a tree.
        EmulatorUnavailableError: This machine can't fetch the tree.
        EmulatorError: The tree can't be built.
    """
    given = options.variables()
    variables = dict(os.environ) | given
    # before a build that may take a minute
    check_variables(variables, {name: _OPTIONS[name] for name in given})
    pins = tree_pins().get(options.miopen)
    accepting = variables.get(KERNELS_VARIABLE) == "accept"
    if pins and not pins.executes and not accepting:
        raise InvalidInputError(
            f"MIOpen {options.miopen}'s kernels can't be run here, only accepted: "
            f"add --accept-only, or set {KERNELS_VARIABLE}=accept"
        )
    try:
        tree = ensure_tree(options.miopen)
    except EmulatorUnavailableError as reason:
        if not options.or_skip or os.environ.get("CI") == "true":
            raise
        print(f"skipped: {reason}", file=sys.stderr)
        return
    words = command_line(tree, command)
    if accepting:  # the command can't know, and what it reads back looks like any numbers
        cause = "--accept-only" if options.accept_only else f"{KERNELS_VARIABLE}=accept"
        remedy = f"; without {cause} they are executed" if pins and pins.executes else ""
        _note(f"kernels are accepted, not executed, so their results are not computed{remedy}")
    if words[0] == str(make_python(tree)) and provider_lacks_it():
        _note(f"without hip-python there are no MIOpen engines; '{install_command()}' brings it")
    sys.stdout.flush()
    os.execve(words[0], words, environment(tree, variables))  # noqa: S606  # no shell


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr, flush=True)
