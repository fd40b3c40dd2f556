"""Native objects that nobody uses at the moment, kept for whoever needs the same next."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from contextlib import ExitStack


class Closable(Protocol):
    """What can be kept."""

    def close(self) -> None:
        """Release it."""


T = TypeVar("T", bound=Closable)


class Spares(Generic[T]):
    """Lends objects to one user at a time, and keeps one of each kind that is not lent.

    What is kept when nobody refers to the spares any more, nor borrows from them, is closed.
    """

    def __init__(self) -> None:
        self._idle: dict[Hashable, T] = {}
        weakref.finalize(self, _close, self._idle, os.getpid())

    def lend(self, until: ExitStack, kind: Hashable, make: Callable[[], T]) -> T:
        """Return an object for the caller alone.

        Args:
            until: Gives it back when it closes.
            kind: What distinguishes it from the others.
            make: Makes one where none is idle.
        """
        lent = self._idle.pop(kind, None)
        if lent is None:
            lent = make()
        until.callback(self._take_back, kind, lent)
        return lent

    def _take_back(self, kind: Hashable, lent: T) -> None:
        if self._idle.setdefault(kind, lent) is not lent:
            lent.close()


def _close(idle: dict[Hashable, T], creator: int) -> None:
    if os.getpid() != creator:  # a forked child must not touch its parent's objects
        return
    while idle:
        idle.popitem()[1].close()
