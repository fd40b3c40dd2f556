"""The stand-ins' log, read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_emulator.events import launches_of, read_events

if TYPE_CHECKING:
    from pathlib import Path


def test_launches_are_found_among_the_events(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert read_events(log) == []
    log.write_text(
        '{"event": "compile", "name": "a.cpp", "ok": true}\n'
        '{"event": "launch", "kernel": "k", "grid": [4, 1, 1], "executed": true}\n'
        '{"event": "launch", "kernel": "l", "grid": [1, 1, 1], "executed": false}\n'
    )
    first, second = launches_of(read_events(log))
    assert (first.kernel, first.executed, first.event["grid"]) == ("k", True, [4, 1, 1])
    assert (second.kernel, second.executed) == ("l", False)


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('{"event": "alloc"}\nlaunch k\n')
    with pytest.raises(ValueError, match=r"log, line 2: .*'launch k'"):
        read_events(log)
