from __future__ import annotations

import gc
from contextlib import ExitStack

import pytest

from hipdnn_miopen_provider.spares import Spares


class Thing:
    """Counts how often it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_one_is_lent_to_one_user_at_a_time_and_one_is_kept() -> None:
    spares = Spares[Thing]()
    with ExitStack() as first, ExitStack() as second:
        ours = spares.lend(first, "kind", Thing)
        theirs = spares.lend(second, "kind", Thing)
        assert ours is not theirs
    kept, left_over = theirs, ours  # in the order in which they came back
    assert (kept.closed, left_over.closed) == (0, 1)
    with ExitStack() as later:
        assert spares.lend(later, "kind", Thing) is kept


def test_kinds_are_apart() -> None:
    spares = Spares[Thing]()
    with ExitStack() as until:
        ours = spares.lend(until, ("normal", False), Thing)
    with ExitStack() as until:
        assert spares.lend(until, ("normal", True), Thing) is not ours
        assert spares.lend(until, ("normal", False), Thing) is ours


def test_what_is_idle_at_the_end_is_closed_then() -> None:
    spares = Spares[Thing]()
    with ExitStack() as until:
        idle = spares.lend(until, "idle", Thing)
    until = ExitStack()
    lent = spares.lend(until, "lent", Thing)
    del spares
    gc.collect()
    assert (idle.closed, lent.closed) == (0, 0)  # their user may bring others back
    until.close()
    del until
    gc.collect()
    assert (idle.closed, lent.closed) == (1, 1)


def test_a_failure_to_make_one_leaves_nothing() -> None:
    def fail() -> Thing:
        raise OSError("no")

    spares = Spares[Thing]()
    with ExitStack() as until:
        with pytest.raises(OSError, match="no"):
            spares.lend(until, "kind", fail)
        assert spares.lend(until, "kind", Thing).closed == 0
