"""What a build is doing and did, as data: the command draws it, tests and `--json` read it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Step:
    """One step of a build.

    Attributes:
        name: What is done, such as "compile the stand-ins".
        size: Bytes so far: downloaded, unpacked or written.
        total: Bytes to come where that is known, else 0.
        seconds: How long it took; `None` while it lasts.
    """

    name: str
    size: int = 0
    total: int = 0
    seconds: float | None = None


@dataclass(slots=True)
class Steps:
    """The steps of a build in their order; empty where everything was there."""

    steps: list[Step] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Record a step for as long as the block lasts."""
        step = Step(name)
        self.steps.append(step)
        start = time.monotonic()
        try:
            yield step
        finally:
            step.seconds = time.monotonic() - start
