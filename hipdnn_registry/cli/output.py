"""What commands say: the same facts as a view for people or as one JSON document."""

from __future__ import annotations

import io
import json
import logging
import math
import os
import sys
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hipdnn_registry.errors import HipdnnError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


class StdoutError(Exception):
    """What is to be printed can't be written; no failure of the work."""


@contextmanager
def _stdout_named() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StdoutError(f"stdout can't be written: {error.strerror or error}") from error


def flush() -> None:
    """Flush stdout.

    Raises:
        StdoutError: It can't be written.
    """
    with _stdout_named():
        sys.stdout.flush()


def publish(make: Callable[[EngineRegistry], Report], *, as_json: bool) -> None:
    """Print a report that is about no graph."""
    from hipdnn_registry import EngineRegistry

    # What providers print is not the command's output.
    with _logged_warnings(), redirect_stdout(sys.stderr):
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
    with _logged_warnings() as told:
        failed = _publish_graphs(graphs, EngineRegistry(), make, told, as_json=as_json)
    if failed:
        raise typer.Exit(1)


def _publish_graphs(
    graphs: list[Graph],
    registry: EngineRegistry,
    make: Callable[[EngineRegistry, Graph], Report],
    told: list[str],
    *,
    as_json: bool,
) -> bool:
    """Print the reports, add to `told` what they say of the log, and return whether work failed."""
    documents, failed = [], False
    for graph in graphs:
        failure = ""
        try:
            with redirect_stdout(sys.stderr):
                report = make(registry, graph)
            data, failure = report.data, report.failure
            told += data.get("warnings", ())
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
    return failed


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
    """Write one JSON document to stdout; NaN and infinities, which JSON lacks, are null."""
    with _stdout_named():
        sys.stdout.write(json.dumps(_finite(document), indent=2, allow_nan=False) + "\n")
        sys.stdout.flush()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def complain(message: str) -> None:
    """Write one `error:` line to stderr."""
    from rich.text import Text

    shown = plain(message, keep="\n")  # the reasons of several engines take a line each
    line = Text.assemble(("error:", "bold red"), " ", shown)
    to_stderr(lambda: _console(sys.stderr).print(line, soft_wrap=True))


def warn(message: str) -> None:
    """Write one `warning:` line to stderr."""
    to_stderr(lambda: typer.echo(f"warning: {plain(message)}", err=True))


def to_stderr(write: Callable[[], None]) -> None:
    """Write where possible: of a stderr that is full nobody can be told, but by the exit code."""
    try:
        write()
        sys.stderr.flush()
    except BrokenPipeError:
        raise
    except OSError:
        abandon(sys.stderr)


def abandon(stream: Any) -> None:
    """Let the interpreter's last flush of a stream go nowhere instead of failing."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


@contextmanager
def _logged_warnings() -> Iterator[list[str]]:
    """Collect what is logged as a warning, and print it as `note:` lines at the end.

    HIPDNN_LOG_LEVEL says itself what of the log is wanted, and where; nothing is collected then.
    """
    from hipdnn_registry import environment

    collected = _Collector(logging.WARNING)
    log = logging.getLogger("hipdnn_registry")
    if not os.environ.get(environment.LOG_LEVEL, "").strip():
        log.addHandler(collected)
    told: list[str] = []
    try:
        yield told
    finally:
        log.removeHandler(collected)
        for message in dict.fromkeys(collected.messages):
            if message not in told:
                to_stderr(partial(typer.echo, f"note: {plain(message)}", err=True))
                told.append(message)


class _Collector(logging.Handler):
    """Keeps messages."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def plain(text: str, *, keep: str = "") -> str:
    """Escape what is not printable: a graph's names may be anybody's."""
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode()
        for char in text
    )


def prepare_streams() -> None:
    """Make a character that the terminal's encoding lacks an escape instead of an error.

    A process that was started without stderr gets one that leads nowhere.
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - till the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _show(view: RenderableType) -> None:
    """Print to stdout, without the blanks that fill lines up."""
    console = _console(sys.stdout)
    with _stdout_named():
        with console.capture() as captured:
            console.print(view, crop=False)  # a name may be longer than a line
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
