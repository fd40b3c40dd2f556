"""How far an output moves when what it is computed from moves by a rounding error.

A batch normalization that computes the statistics of a few values may divide by a variance near 0,
or cancel nearly all of a gradient. What the reference does there with inputs and with moments of
the statistics that are a rounding error away is a measure of what any engine may do: no arithmetic
gets more digits right than its own numbers hold.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .accuracy import arithmetic_unit, errors, unit
from .arrays import allocate, blocks
from .cost import reduction_length
from .moments import computes_statistics, with_rounded_moments

if TYPE_CHECKING:
    from collections.abc import Callable

    from hipdnn_registry import Graph

    from .arrays import Array

FEW = 64
"""Values in a statistic that make it ill-conditioned now and then."""


def nearby_graph(graph: Graph) -> Graph | None:
    """Return a graph whose statistics are a rounding error off, or `None` where a graph is benign.

    It is benign unless it computes statistics of few values.
    """
    if not any(
        computes_statistics(wiring) and reduction_length(wiring) < FEW
        for wiring in graph.structure.wirings
    ):
        return None
    return with_rounded_moments(graph, arithmetic_unit(graph) / 2)  # correct rounding's most


def sensitivities(
    graph: Graph,
    inputs: dict[int, Array],
    reference: dict[int, Array],
    run: Callable[[Graph, dict[int, Array]], dict[int, Array]],
) -> dict[int, float]:
    """Return by uid how far each output moves; empty where a graph is benign.

    It is 0 where there is nothing to measure it by: the reference is 0 everywhere, or not finite.

    Args:
        graph: The graph.
        inputs: What the reference computed from.
        reference: What it computed.
        run: The reference.
    """
    nearby = nearby_graph(graph)
    if nearby is None:
        return {}
    rng = np.random.default_rng(0)
    arithmetic = arithmetic_unit(graph)
    moved = {}
    for uid, array in inputs.items():
        tensor = graph.tensors[uid]
        moved[uid] = array
        if 0 < unit(tensor.data_type) <= arithmetic:
            moved[uid] = allocate(tensor)
            _fill_with_neighbours(moved[uid], array, rng)
    results = run(nearby, moved)
    distances = {uid: errors(results[uid], exact)[1] for uid, exact in reference.items()}
    return {uid: far if math.isfinite(far) else 0.0 for uid, far in distances.items()}


def _fill_with_neighbours(target: Array, source: Array, rng: np.random.Generator) -> None:
    """Set elements to the next larger or smaller numbers, at random."""
    for index in blocks(source.shape):
        block = source[index]
        up = rng.integers(0, 2, block.shape, dtype=bool)
        target[index] = np.nextafter(block, np.where(up, np.inf, -np.inf).astype(block.dtype))
