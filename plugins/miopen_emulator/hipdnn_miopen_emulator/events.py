"""The log of MIOPEN_EMULATOR_LOG: one JSON object a line, one line for each event."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Event = dict[str, Any]
"""An event as the stand-ins wrote it; `event` is its kind, such as `"launch"` or `"compile"`."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel launch.

    Attributes:
        kernel: The kernel's name.
        executed: Whether it ran; if not, it was only accepted.
        event: All that is known of it.
    """

    kernel: str
    executed: bool
    event: Event


def read_events(log: Path) -> list[Event]:
    """Return the events of a log, in their order; none where there is no such file.

    Raises:
        ValueError: A line is no JSON object; with the file and the line's number.
    """
    if not log.exists():
        return []
    events = []
    for number, line in enumerate(log.read_text().splitlines(), 1):
        try:
            event = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{log}, line {number}: {error}: {line[:200]!r}") from error
        events.append(event)
    return events


def faults_of(events: list[Event]) -> list[Event]:
    """Return the accesses outside of buffers, or to freed ones, that were found."""
    return [event for event in events if event["event"] == "fault"]


def launches_of(events: list[Event]) -> list[Launch]:
    """Return the kernel launches among events."""
    return [
        Launch(event["kernel"], event["executed"], event)
        for event in events
        if event["event"] == "launch"
    ]
