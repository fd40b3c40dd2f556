"""How far an output moves when the inputs move by a rounding error.

A batch normalization that computes the statistics of a few values may divide by a variance near 0,
or cancel nearly all of a gradient. No arithmetic gets more digits right there than the inputs
decide, so what the reference does with inputs one unit of rounding away is a measure of what any
engine may do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hipdnn_registry.graph import BatchnormBackwardNode, BatchnormNode

from .accuracy import errors, unit
from .arrays import allocate, blocks
from .cost import reduction_length

if TYPE_CHECKING:
    from collections.abc import Callable

    from hipdnn_registry import Graph
    from hipdnn_registry.graph import Wiring

    from .arrays import Array

FEW = 64
"""Values in a statistic that make it ill-conditioned now and then."""


def is_ill_conditioned(graph: Graph) -> bool:
    """Whether a graph computes statistics of few values."""
    return any(
        _computes_statistics(wiring) and reduction_length(wiring) < FEW
        for wiring in graph.structure.wirings
    )


def _computes_statistics(wiring: Wiring) -> bool:
    node, given = wiring.node, "mean" in wiring.inputs
    return isinstance(node, BatchnormNode) or (
        isinstance(node, BatchnormBackwardNode) and not given
    )


def sensitivities(
    graph: Graph,
    inputs: dict[int, Array],
    reference: dict[int, Array],
    run: Callable[[dict[int, Array]], dict[int, Array]],
) -> dict[int, float]:
    """Return by uid how far each output moves with the inputs; empty where a graph is benign.

    Args:
        graph: The graph.
        inputs: What the reference computed from.
        reference: What it computed.
        run: The reference.
    """
    if not is_ill_conditioned(graph):
        return {}
    rng = np.random.default_rng(0)
    arithmetic = max(unit(node.compute_data_type) for node in graph.nodes)
    moved = {}
    for uid, array in inputs.items():
        tensor = graph.tensors[uid]
        moved[uid] = array
        if 0 < unit(tensor.data_type) <= arithmetic:
            moved[uid] = allocate(tensor)
            _fill_with_neighbours(moved[uid], array, rng)
    return {uid: errors(result, reference[uid])[1] for uid, result in run(moved).items()}


def _fill_with_neighbours(target: Array, source: Array, rng: np.random.Generator) -> None:
    """Set elements to the next larger or smaller numbers, at random."""
    for index in blocks(source.shape):
        block = source[index]
        up = rng.integers(0, 2, block.shape, dtype=bool)
        target[index] = np.nextafter(block, np.where(up, np.inf, -np.inf).astype(block.dtype))
