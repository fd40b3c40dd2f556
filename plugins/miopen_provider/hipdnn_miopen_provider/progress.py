"""Telling people that a plan is being tuned: a search can take minutes."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = logging.getLogger("hipdnn_registry.miopen")
"""Everything that the provider logs."""

HEARTBEAT_SECONDS = 2.0
"""How often a callback hears of a build that goes on."""


class TuningStage(StrEnum):
    """Where a build is."""

    STARTED = "started"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TuningProgress:
    """What a progress callback is given.

    Attributes:
        stage: Where the build is.
        what: Operation, graph and policy, for people.
        seconds: Wall time since it started.
        detail: At the end what changed in the perf-db, or the error.
    """

    stage: TuningStage
    what: str
    seconds: float = 0.0
    detail: str = ""

    def __str__(self) -> str:
        detail = f": {self.detail}" if self.detail else ""
        when = f" after {self.seconds:.2f} s" if self.stage is not TuningStage.STARTED else ""
        return f"tuning {self.stage}{when}: {self.what}{detail}"


@contextmanager
def reported(
    what: str, on_progress: Callable[[TuningProgress], None] | None
) -> Iterator[list[str]]:
    """Log the begin and the end of a block at level info, and tell a callback, also meanwhile.

    Args:
        what: Operation, graph and policy.
        on_progress: Called in the building thread at the begin and the end, and every few seconds
            in a thread of its own in between.

    Yields:
        A list; what the block appends to it is the detail of the end.
    """

    def tell(stage: TuningStage, detail: str = "") -> None:
        progress = TuningProgress(stage, what, time.perf_counter() - start, detail)
        if stage is not TuningStage.RUNNING:
            log.info("%s", progress)
        if on_progress is not None:
            on_progress(progress)

    def beat() -> None:
        while not over.wait(HEARTBEAT_SECONDS):
            tell(TuningStage.RUNNING)

    start, over, details = time.perf_counter(), threading.Event(), list[str]()
    tell(TuningStage.STARTED)
    heart = threading.Thread(target=beat, daemon=True) if on_progress is not None else None
    if heart is not None:
        heart.start()
    try:
        yield details
    except BaseException as error:
        over.set()
        tell(TuningStage.FAILED, f"{type(error).__name__}: {error}")
        raise
    finally:
        over.set()
        if heart is not None:
            heart.join()
    tell(TuningStage.ENDED, "; ".join(details))
