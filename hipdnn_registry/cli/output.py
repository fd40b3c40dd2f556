"""What commands say: the same facts as a view for people or as one JSON document."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from hipdnn_registry.errors import HipdnnError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, RenderableType

    from hipdnn_registry import EngineRegistry, Graph

_UNLIMITED = 100_000  # columns; a line that is piped is not to be broken


@dataclass(frozen=True, slots=True)
class Report:
    """What a command found out.

    Attributes:
        data: All of it, for `--json`.
        view: Makes what people see; called only where somebody looks.
        failure: Why the exit code is to be 1 although there is something to report.
    """

    data: dict[str, Any]
    view: Callable[[], RenderableType]
    failure: str = ""


def publish(make: Callable[[EngineRegistry], Report], *, as_json: bool) -> None:
    """Print a report that is about no graph."""
    from hipdnn_registry import EngineRegistry

    with redirect_stdout(sys.stderr):  # what providers print is not the command's output
        report = make(EngineRegistry())
    if as_json:
        write_json(report.data)
    else:
        _show(report.view())


def publish_each(
    argument: str, make: Callable[[EngineRegistry, Graph], Report], *, as_json: bool
) -> None:
    """Print a report for each graph of a GRAPH argument.

    Where the work fails on one graph the others still have their turn, and the exit code is 1.
    The JSON document is `{"graphs": [...]}` with one entry a graph, also where there is but one.

    Raises:
        InvalidInputError: What the user gave is wrong.
        typer.Exit: With code 1: the work failed on a graph.
    """
    from hipdnn_registry import EngineRegistry

    from .source import read_graphs

    graphs = read_graphs(argument)
    registry = EngineRegistry()
    documents, failed = [], False
    for graph in graphs:
        failure = ""
        try:
            with redirect_stdout(sys.stderr):
                report = make(registry, graph)
            data, failure = report.data, report.failure
            if not as_json:
                _show(_heading(graph))
                _show(report.view())
        except InvalidInputError:
            raise
        except HipdnnError as error:
            failure = message_of(error)
            data = {"error": error_data(error, failure)}
        if failure:
            failed = True
            complain(f"{plain(graph.name)}: {failure}" if len(graphs) > 1 else failure)
        documents.append({"graph": graph_data(graph), **data})
    if as_json:
        write_json({"graphs": documents})
    if failed:
        raise typer.Exit(1)


def graph_data(graph: Graph) -> dict[str, Any]:
    """Return what identifies a graph."""
    return {"name": graph.name, "key": graph.content_key.digest}


def error_data(error: BaseException, message: str) -> dict[str, Any]:
    """Return an error for `--json`."""
    return {"type": type(error).__name__, "message": message}


def message_of(error: HipdnnError) -> str:
    """Return an error's message with its notes, which say where the input came from."""
    notes = getattr(error, "__notes__", ())
    return f"{error}{''.join(f' ({note})' for note in notes)}"


def write_json(document: dict[str, Any]) -> None:
    """Write one JSON document to stdout; refuses NaN, which is no JSON."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def complain(message: str) -> None:
    """Write one `error:` line to stderr."""
    from rich.text import Text

    shown = plain(message, keep="\n")  # the reasons of several engines take a line each
    _console(sys.stderr).print(Text.assemble(("error:", "bold red"), " ", shown), soft_wrap=True)


def warn(message: str) -> None:
    """Write one `warning:` line to stderr."""
    typer.echo(f"warning: {plain(message)}", err=True)


def plain(text: str, *, keep: str = "") -> str:
    """Escape what is not printable: a graph's names may be anybody's."""
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode()
        for char in text
    )


def prepare_streams() -> None:
    """Make a character that the terminal's encoding lacks an escape instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _show(view: RenderableType) -> None:
    """Print to stdout, without the blanks that fill lines up."""
    console = _console(sys.stdout)
    with console.capture() as captured:
        console.print(view)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())
    sys.stdout.flush()


def _console(stream: Any) -> Console:
    """Return a console as wide as the terminal, or without limit where piped."""
    from rich.console import Console

    columns = os.environ.get("COLUMNS", "")
    limited = stream.isatty() or columns.isdecimal()
    width = None if limited else _UNLIMITED
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def _heading(graph: Graph) -> RenderableType:
    from rich.text import Text

    name = plain(graph.name) or "(unnamed graph)"
    return Text.assemble((name, "bold"), (f"  key {graph.content_key.digest[:12]}", "dim"))
