"""Commands that installed packages bring, through the entry-point group `hipdnn_registry.commands`.

The entry's name is the command's, its value a typer app (of one command, or of several below the
name):

    # pyproject.toml
    [project.entry-points."hipdnn_registry.commands"]
    acme-cache = "acme_provider.commands:app"

    # acme_provider/commands.py: imported for `hipdnn --help`, so it should load little
    import typer
    from hipdnn_registry.cli import GraphArgument, JsonOption, publish_each

    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    def acme_cache(graph: GraphArgument, as_json: JsonOption = False) -> None:
        '''Show what ACME keeps of a graph.'''
        from acme_provider.cache import cache_report
        publish_each(graph, cache_report, as_json=as_json)

What `hipdnn_registry.cli` exports is there for such commands. Errors are treated as the core's are:
an `InvalidInputError` ends in one line and exit code 2, any other `HipdnnError` in exit code 1.

Entry points are looked at for a name that the core lacks and for help, never for the core's own
commands. One that is broken, or that claims a name which is taken, takes nothing else down. Which
providers are blocked or allowed makes no difference here.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from typing import Any

import typer
import typer.core
import typer.main

from hipdnn_registry.errors import ProviderError, described

from . import output

ENTRY_POINT_GROUP = "hipdnn_registry.commands"

_COMMAND: type = typer.core.TyperCommand.__mro__[1]
"""The base of all commands; from `click` in older typers, then typer's own."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """An entry point of the group.

    Attributes:
        distribution: Name and version of the distribution that brings it.
        entry: The entry point.
    """

    distribution: str
    entry: metadata.EntryPoint

    @property
    def origin(self) -> str:
        """The command and where it comes from, for messages."""
        return f"command '{self.entry.name}' of {self.distribution} ({self.entry.value})"

    def load(self) -> Any:
        """Import the command.

        Raises:
            ProviderError: It can't be imported, or is no command; names it and its distribution.
        """
        try:
            with redirect_stdout(sys.stderr):
                loaded = self.entry.load()
                command = _command_of(loaded)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            reason = " ".join(described(error).split())
            raise ProviderError(f"{self.origin} is broken: {reason}") from error
        command.name = self.entry.name
        return command


def _command_of(loaded: object) -> Any:
    if isinstance(loaded, typer.Typer):
        command: Any = typer.main.get_command(loaded)
        own = {"install_completion", "show_completion"}  # of programs, not of their commands
        command.params = [option for option in command.params if option.name not in own]
        return command
    if isinstance(loaded, _COMMAND):
        return loaded
    raise TypeError(f"{loaded!r} is neither a typer app nor a command of one")


def _contributions() -> list[Contribution]:
    found = [
        Contribution(
            f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown distribution",
            entry,
        )
        for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)
    ]
    return sorted(found, key=lambda one: (one.distribution, one.entry.name))


def contributing() -> dict[str, str]:
    """Return the distributions that bring commands, each with its version; loads nothing."""
    entries = metadata.entry_points(group=ENTRY_POINT_GROUP)
    return {entry.dist.name: entry.dist.version for entry in entries if entry.dist}


class CommandGroup(typer.core.TyperGroup):
    """The core's commands, then those that packages contribute."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names; what is broken is left out and said on stderr."""
        self._load_all()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or `None` where there is none of that name.

        Raises:
            ProviderError: A package contributes it, but it is broken.
        """
        if cmd_name not in self.commands:
            contribution = self._contributed[0].get(cmd_name)
            if contribution is not None:
                self.commands[cmd_name] = contribution.load()
            else:  # for the suggestions; and what is broken may be what is missed
                self._load_all()
        return super().get_command(ctx, cmd_name)

    @cached_property
    def _contributed(self) -> tuple[dict[str, Contribution], list[str]]:
        """What is contributed by name, and what is refused."""
        admitted: dict[str, Contribution] = {}
        refused = []
        for one in _contributions():
            name = one.entry.name
            first = admitted.setdefault(name, one) if name not in self.commands else None
            if first is not one:
                owner = first.origin if first else "hipdnn-registry"
                refused.append(f"{one.origin} is refused: {owner} has that name already")
        return admitted, refused

    def _load_all(self) -> None:
        contributed, complaints = self._contributed
        for name in [name for name in contributed if name not in self.commands]:
            try:
                self.commands[name] = contributed[name].load()
            except ProviderError as error:
                complaints.append(str(error))
                del contributed[name]
        while complaints:
            output.warn(complaints.pop(0))
