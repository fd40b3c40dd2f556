"""Telling people that a plan is being tuned: a search can take minutes."""

from __future__ import annotations

import logging
import threading
import time
from _thread import interrupt_main
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from hipdnn_registry.errors import described

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

    What the callback raises is its own affair: it is logged as a warning, the callback hears no
    more of this block, and the block goes on or fails as it would have. Only a KeyboardInterrupt
    passes on; raised in between, to the main thread, as Ctrl-C would be (and as unheard as Ctrl-C
    in a process that ignores SIGINT).

    Args:
        what: Operation, graph and policy.
        on_progress: Called in the building thread at the begin and the end, and every few seconds
            in a thread of its own in between; never by two threads at once.

    Yields:
        A list; what the block appends to it is the detail of the end.
    """
    listener = on_progress

    def tell(stage: TuningStage, detail: str = "") -> None:
        nonlocal listener
        progress = TuningProgress(stage, what, time.perf_counter() - start, detail)
        if stage is not TuningStage.RUNNING:
            log.info("%s", progress)
        if listener is not None:
            try:
                listener(progress)
            except (Exception, SystemExit) as error:
                log.warning(
                    "on_progress %r failed at '%s' and is not called again for %s: %s",
                    *(listener, stage, what, described(error)),
                )
                listener = None

    def beat() -> None:
        try:
            while listener is not None and not over.wait(HEARTBEAT_SECONDS):
                tell(TuningStage.RUNNING)
        except KeyboardInterrupt:
            interrupt_main()

    start, over, details = time.perf_counter(), threading.Event(), list[str]()
    tell(TuningStage.STARTED)
    heart = threading.Thread(target=beat, daemon=True)
    if listener is not None:
        heart.start()
    try:
        try:
            yield details
        finally:
            over.set()
            if heart.ident is not None:
                heart.join()
    except BaseException as error:
        tell(TuningStage.FAILED, described(error))
        raise
    tell(TuningStage.ENDED, "; ".join(details))
