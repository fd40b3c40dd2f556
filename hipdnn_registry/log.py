"""HIPDNN_LOG_LEVEL, HIPDNN_LOG_FILE and HIPDNN_LOG_GRAPH_DIR on standard `logging`.

Everything is logged under `hipdnn_registry`. Without HIPDNN_LOG_LEVEL a program's own logging
configuration decides; the package itself adds nothing that prints. With it, HIPDNN_LOG_FILE gets
every line; without a file they go to stderr, unless the program has given its root logger handlers
of its own (`logging.basicConfig`): these get the records then, and nothing is printed twice.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from . import environment

if TYPE_CHECKING:
    from .graph import Graph

_LEVELS = {
    "off": logging.CRITICAL + 10,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
}

_log = logging.getLogger("hipdnn_registry")
_log.addHandler(logging.NullHandler())
_configured = threading.Lock()
_handler: logging.Handler | None = None


def configure() -> None:
    """Obey HIPDNN_LOG_LEVEL and HIPDNN_LOG_FILE; a later call replaces an earlier one's handler."""
    global _handler  # noqa: PLW0603 - the logger it belongs to is global as well
    text = os.environ.get(environment.LOG_LEVEL, "").strip().lower()
    if not text:
        return
    with _configured:
        if _handler is not None:
            _log.removeHandler(_handler)
            _handler.close()
        _handler = _make_handler(os.environ.get(environment.LOG_FILE))
        _log.addHandler(_handler)
        _log.setLevel(_LEVELS.get(text, logging.INFO))
        if text not in _LEVELS:
            _log.setLevel(logging.WARNING)
            _log.warning(
                "%s=%r is not recognised and counts as warn; use one of %s",
                environment.LOG_LEVEL,
                text,
                ", ".join(_LEVELS),
            )


def _nobody_else_prints(_: logging.LogRecord) -> bool:
    """Whether stderr is ours: handlers of the program's root logger see every record too."""
    return not (_log.propagate and logging.getLogger().handlers)


def _make_handler(path: str | None) -> logging.Handler:
    problem = None
    handler: logging.Handler = logging.StreamHandler()
    handler.addFilter(_nobody_else_prints)
    if path:
        try:
            handler = logging.FileHandler(path, encoding="utf-8")
        except OSError as error:
            problem = error
    handler.setFormatter(logging.Formatter("[%(asctime)s] [%(name)s] [%(levelname)s] %(message)s"))
    if problem is not None:
        record = _log.makeRecord(
            _log.name,
            logging.WARNING,
            __file__,
            0,
            "%s=%r can't be written, logging to stderr: %s",
            (environment.LOG_FILE, path, problem),
            None,
        )
        handler.handle(record)
    return handler


def write_graph(graph: Graph) -> None:
    """Write a graph to HIPDNN_LOG_GRAPH_DIR as `graph_<key>.json`; failing to is only a warning."""
    folder = os.environ.get(environment.LOG_GRAPH_DIR)
    if not folder:
        return
    target = Path(folder) / f"graph_{graph.content_key.digest[:16]}.json"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        try:  # a new file with the umask's mode, which those of `tempfile` don't have
            with unfinished.open("x", encoding="utf-8") as file:
                file.write(graph.to_json())
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        _log.warning(
            "%s: graph '%s' can't be written: %s", environment.LOG_GRAPH_DIR, graph.name, error
        )
