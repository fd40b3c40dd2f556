"""A bounded cache of compiled plans in which each key is built once, however many threads ask."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from hipdnn_registry.errors import EngineDefectError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")


class CacheInfo(NamedTuple):
    """How a cache is doing, as `functools.lru_cache` tells it."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


class _Building(Generic[T]):
    """A build in progress, or just ended."""

    __slots__ = ("builder", "error", "lock", "value", "waiting")

    def __init__(self) -> None:
        self.builder = threading.get_ident()
        self.lock = threading.Lock()  # held while it goes on; much cheaper than an Event
        self.lock.acquire()
        self.waiting = 0
        self.value: T | None = None
        self.error: Exception | None = None


class PlanCache(Generic[T]):
    """Least-recently-used cache with single-flight builds.

    A failed build is not remembered: threads that waited for it get its error, later ones build
    anew. An interrupted build (KeyboardInterrupt) passes on to one of the waiting threads.

    Args:
        maxsize: Entries kept; 0 keeps none, but still merges simultaneous builds.
    """

    def __init__(self, maxsize: int) -> None:
        if maxsize < 0:
            raise ValueError(f"maxsize is {maxsize}, but must not be negative")
        self._maxsize = maxsize
        self._entries: OrderedDict[Hashable, T] = OrderedDict()
        self._building: dict[Hashable, _Building[T]] = {}
        self._lock = threading.Lock()
        self._hits = self._misses = self._generation = 0

    def get_or_build(self, key: Hashable, build: Callable[[], T]) -> tuple[T, bool]:
        """Return the entry of a key, building it if need be, and whether it was there."""
        while True:
            with self._lock:
                known = self._entries.get(key)
                if known is not None:
                    self._entries.move_to_end(key)
                    self._hits += 1
                    return known, True
                ours = key not in self._building
                if ours:
                    self._misses += 1
                    self._building[key] = _Building()
                building = self._building[key]
                if not ours:
                    building.waiting += 1
            if ours:
                return self._build(key, building, build), False
            if building.builder == threading.get_ident():
                raise EngineDefectError("a plan's build asks for the same plan")
            with building.lock:  # until it is over
                pass
            if building.error is not None:
                raise building.error
            if building.value is not None:
                with self._lock:
                    self._hits += 1
                return building.value, True

    def _build(self, key: Hashable, building: _Building[T], build: Callable[[], T]) -> T:
        generation = self._generation
        try:
            value = build()
        except BaseException as error:
            if isinstance(error, Exception):
                building.error = error
            with self._lock:
                del self._building[key]
            building.lock.release()
            raise
        evicted: list[T] = []  # released outside the lock: freeing a plan may take a while
        with self._lock:
            del self._building[key]
            if self._maxsize and generation == self._generation:
                self._entries[key] = value
                while len(self._entries) > self._maxsize:
                    evicted.append(self._entries.popitem(last=False)[1])
        building.value = value
        building.lock.release()
        return value

    def clear(self) -> None:
        """Forget every entry and the counts; what is being built serves those who wait for it."""
        with self._lock:
            self._generation += 1
            entries, self._entries = self._entries, OrderedDict()
            self._hits = self._misses = 0
        entries.clear()

    def info(self) -> CacheInfo:
        """Return hits, misses, bound and size."""
        with self._lock:
            return CacheInfo(self._hits, self._misses, self._maxsize, len(self._entries))
