"""Every test starts from the same environment and leaves no logging behind."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator

import pytest


def pytest_configure() -> None:
    """Hear Ctrl-C, as tests of it do, also where a shell started all of them in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the shell's HIPDNN_* variables, and undo what HIPDNN_LOG_LEVEL did to the logger."""
    for name in list(os.environ):
        if name.startswith("HIPDNN_") and not name.startswith("HIPDNN_MIOPEN_"):
            monkeypatch.delenv(name)
    logger = logging.getLogger("hipdnn_registry")
    level, handlers = logger.level, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers
