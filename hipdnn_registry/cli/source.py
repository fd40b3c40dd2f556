"""The GRAPH argument: a JSON file, `-` for stdin, or a MIOpenDriver line."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hipdnn_registry.errors import InvalidInputError

if TYPE_CHECKING:
    from hipdnn_registry import Graph

MAX_BYTES = 64 << 20
"""No graph is larger; what is larger is some other file."""

_FORMS = "give a JSON file, '-' to read stdin, or a quoted MIOpenDriver line"


def read_graphs(argument: str) -> list[Graph]:
    """Return the graphs of a GRAPH argument: one, or for a MIOpenDriver line one or more.

    Raises:
        InvalidInputError: There is no such file, or it can't be read as text.
        GraphError: The text is neither a graph nor a command line, or breaks a rule.
    """
    if argument == "-":
        return _parsed(_decoded(_read_stdin(), "stdin"), "stdin")
    path = Path(argument)
    if argument and _exists(path):
        return _parsed(_decoded(_read(path), f"file '{path}'"), f"file '{path}'")
    if re.search(r"\s", argument.strip()) or "MIOpenDriver" in argument:
        return _parsed(argument, "the command line")
    raise InvalidInputError(f"GRAPH is '{argument}', but there is no such file; {_FORMS}")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a driver line may be too long, or odd, for a file name
        return False


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidInputError(
            f"GRAPH is '{path}', which can't be read: {error.strerror}; {_FORMS}"
        ) from None


def _read_stdin() -> bytes:
    try:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    except (AttributeError, ValueError):  # started without one, or closed since
        raise InvalidInputError(f"GRAPH is '-', but stdin is closed; {_FORMS}") from None
    except OSError as error:
        raise InvalidInputError(
            f"GRAPH is '-', but stdin can't be read: {error.strerror}; {_FORMS}"
        ) from None


def _decoded(content: bytes, origin: str) -> str:
    if len(content) > MAX_BYTES:
        raise InvalidInputError(f"{origin} has more than {MAX_BYTES} bytes, so it is no graph")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{origin} is not UTF-8 text: {error}; {_FORMS}") from None


def _parsed(text: str, origin: str) -> list[Graph]:
    """Read JSON or a MIOpenDriver line, whichever the text looks like."""
    from hipdnn_registry import Graph, GraphError, graph_from_driver_command

    if not text.strip():
        raise InvalidInputError(f"{origin} is empty; {_FORMS}")
    try:
        if text.lstrip()[:1] in {"{", "[", '"'}:
            return [Graph.from_json(text)]
        return graph_from_driver_command(text)
    except GraphError as error:
        error.add_note(f"in {origin}")
        raise
