"""The plan cache: bounded, single-flight, and blind to failed builds."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from hipdnn_registry import EngineDefectError
from hipdnn_registry.plans.cache import PlanCache


def test_least_recently_used_goes_first() -> None:
    cache: PlanCache[str] = PlanCache(2)
    for key in ("a", "b", "a", "c"):
        cache.get_or_build(key, lambda key=key: key.upper())  # type: ignore[misc]
    assert cache.get_or_build("a", lambda: "new") == ("A", True)
    assert cache.get_or_build("b", lambda: "new") == ("new", False)
    assert cache.info() == (2, 4, 2, 2)
    cache.clear()
    assert cache.info() == (0, 0, 2, 0)


@pytest.mark.parametrize("maxsize", [0, 8])
def test_one_build_for_32_threads(maxsize: int) -> None:
    cache: PlanCache[object] = PlanCache(maxsize)
    builds: list[object] = []

    def build() -> object:
        # Ends when all the others wait for it, however slow the machine is.
        building = cache._building["key"]
        while building.waiting < 31:
            time.sleep(0.001)
        builds.append(object())
        return builds[-1]

    with ThreadPoolExecutor(32) as pool:
        asked = [pool.submit(cache.get_or_build, "key", build) for _ in range(32)]
        found = {id(future.result()[0]) for future in asked}
    assert len(builds) == 1
    assert found == {id(builds[0])}
    assert cache.info().currsize == min(maxsize, 1)


def test_a_failed_build_reaches_all_who_wait_and_is_forgotten() -> None:
    cache: PlanCache[str] = PlanCache(4)
    started = threading.Event()

    def fail() -> str:
        started.set()
        time.sleep(0.1)
        raise ValueError("no luck")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get_or_build, "key", fail)
        started.wait()
        second = pool.submit(cache.get_or_build, "key", lambda: "never")
        for future in (first, second):
            with pytest.raises(ValueError, match="no luck"):
                future.result()
    assert cache.info().currsize == 0
    assert cache.get_or_build("key", lambda: "later") == ("later", False)


def test_an_interrupt_hands_the_build_on() -> None:
    cache: PlanCache[str] = PlanCache(4)
    started = threading.Event()

    def interrupted() -> str:
        started.set()
        time.sleep(0.1)
        raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get_or_build, "key", interrupted)
        started.wait()
        second = pool.submit(cache.get_or_build, "key", lambda: "built")
        with pytest.raises(KeyboardInterrupt):
            first.result()
        assert second.result() == ("built", False)


def test_a_build_that_needs_itself_does_not_hang() -> None:
    cache: PlanCache[str] = PlanCache(4)
    with pytest.raises(EngineDefectError, match="same plan"):
        cache.get_or_build("key", lambda: cache.get_or_build("key", lambda: "x")[0])


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        PlanCache(-1)
