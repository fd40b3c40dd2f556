"""What the provider adds to the calls of MIOpen that it makes when a plan is built.

Most of these take as long as MIOpen has to work: where it searches, or measures its solvers, that
is long; where it looks a problem up in its find-db it has kernels to load, at the most.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

from hipdnn_registry import EngineRegistry

from .figures import Figure
from .miopen_calls import IMAGE, NONE, SEARCH_DB_UPDATE, convolution

if TYPE_CHECKING:
    from collections.abc import Callable

    from .miopen_calls import Bare, Dims

_NORMAL = 1
_SMALL = (1, 64, 7, 7)  # for a CPU that runs every solver's kernels
_KNOWN = "policy None, problem in the find-db"


def figures_with_kernels(bare: Bare, repeat: int) -> list[Figure]:
    """Measure where kernels are loaded and run."""
    return [
        _figure(bare, "policy None, every solver measured", 3 * repeat, normal=True, dims=_SMALL),
        _figure(bare, f"{_KNOWN}, kernels loaded", 10 * repeat),
    ]


def figures_without_kernels(bare: Bare, repeat: int) -> list[Figure]:
    """Measure what can be told best where kernels take no time."""
    return [
        _figure(bare, "policy SearchDbUpdate", repeat, policy=SEARCH_DB_UPDATE, normal=True),
        _figure(bare, f"{_KNOWN}, no kernels to load", 20 * repeat),
    ]


def _figure(
    bare: Bare,
    what: str,
    rounds: int,
    *,
    policy: int = NONE,
    normal: bool = False,
    dims: Dims = IMAGE,
) -> Figure:
    registry, graph = EngineRegistry(allow=["miopen"], plan_cache_size=0), convolution(dims)
    settings = {"miopen.tuning_policy": policy} | ({"miopen.find_mode": _NORMAL} if normal else {})

    def by_hand() -> None:
        with bare.plan(policy, normal=normal, dims=dims):
            pass

    def by_registry() -> None:
        registry.create_execution_plan_ext(graph, "MIOPEN_ENGINE", settings)

    by_hand()
    by_registry()
    pairs = [(_milliseconds(by_hand), _milliseconds(by_registry)) for _ in range(rounds)]
    # neighbours in time: the machine's speed may change between rounds, and hardly within one
    ratio = median([ours / plain for plain, ours in pairs])
    plain, ours = (median(times) for times in zip(*pairs, strict=True))
    detail = f"{ours:.2f} ms, bare calls {plain:.2f} ms; medians of {rounds}"
    return Figure(f"building a plan, {what}", ratio, "x", 1.05, detail=detail)


def _milliseconds(action: Callable[[], object]) -> float:
    """Return CPU time of the process: MIOpen compiles in threads, and the machine may be shared."""
    start = time.process_time()
    action()
    return (time.process_time() - start) * 1e3
