"""Reproducible random inputs that leave every operation well conditioned.

Values are uniform, so none is far out: images within [-1, 1], filters (or in a weight gradient
dy) scaled so that results have a variance near 1 whatever the reduction length, variances and the
operands of logarithms, roots and divisions positive. What is drawn depends on the seed, the
tensor's place and its shape, not on its layout: NCHW and NHWC runs compute the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hipdnn_registry.graph import (
    ConvolutionBwdNode,
    ConvolutionFwdNode,
    ConvolutionWrwNode,
    DataType,
    PointwiseMode,
    PointwiseNode,
)

from .arrays import allocate, blocks
from .cost import reduction_length

if TYPE_CHECKING:
    from hipdnn_registry import Graph, TensorAttributes
    from hipdnn_registry.graph import Wiring

    from .arrays import Array


class Interval(NamedTuple):
    """Values are drawn uniformly from it."""

    low: float
    high: float

    def meet(self, other: Interval) -> Interval:
        """Return what suits both uses of a tensor; where nothing does, the greater values."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Interval(low, high) if low <= high else max(self, other)


_ANY = Interval(-1.0, 1.0)
_POSITIVE = Interval(0.5, 2.0)
_INTEGER_SCALE = 4
"""Integers are drawn from the interval times this."""

_BY_PORT = {
    "scale": Interval(0.5, 1.5),
    "mean": Interval(-0.5, 0.5),
    "variance": _POSITIVE,
    "inv_variance": _POSITIVE,
    "prev_running_mean": Interval(-0.5, 0.5),
    "prev_running_variance": _POSITIVE,
    "epsilon": Interval(1e-5, 1e-5),
    "momentum": Interval(0.1, 0.1),
}

_SCALED = {ConvolutionFwdNode: "w", ConvolutionBwdNode: "w", ConvolutionWrwNode: "dy"}
"""The operand of each convolution that is made small."""

_POSITIVE_OPERAND = {
    PointwiseMode.LOG: "in_0",
    PointwiseMode.SQRT: "in_0",
    PointwiseMode.RSQRT: "in_0",
    PointwiseMode.RECIPROCAL: "in_0",
    PointwiseMode.DIV: "in_1",
}


def random_inputs(graph: Graph, seed: int) -> dict[int, Array]:
    """Return an array by uid for every tensor that a validated graph reads from its caller.

    Raises:
        HipdnnError: numpy has no type for a tensor.
    """
    arrays = {}
    for place, tensor in enumerate(graph.io_tensors):
        if tensor.uid is not None and tensor.uid not in graph.output_uids:
            array = allocate(tensor)
            _fill(array, interval_of(graph, tensor), np.random.default_rng([seed, place]))
            arrays[tensor.uid] = array
    return arrays


def poisoned_outputs(graph: Graph) -> dict[int, Array]:
    """Return an array by uid for every tensor that a graph writes for its caller.

    Floating-point ones hold NaN, so that an element that the engine leaves out is seen.
    """
    arrays = {}
    for tensor in graph.io_tensors:
        if tensor.uid is not None and tensor.uid in graph.output_uids:
            array = allocate(tensor)
            array.fill(math.nan if tensor.data_type.is_floating else 0)
            arrays[tensor.uid] = array
    return arrays


def interval_of(graph: Graph, tensor: TensorAttributes) -> Interval:
    """Return what a tensor's values are drawn from: what suits all its uses."""
    uses = [
        _interval_for(wiring, port)
        for wiring in graph.structure.wirings
        for port, other in wiring.inputs.items()
        if other is tensor
    ]
    result = uses[0] if uses else _ANY
    for use in uses[1:]:
        result = result.meet(use)
    return result.meet(_POSITIVE) if tensor.data_type is DataType.FP8_E8M0 else result


def _interval_for(wiring: Wiring, port: str) -> Interval:
    node = wiring.node
    if _SCALED.get(type(node)) == port:
        bound = 3 / math.sqrt(reduction_length(wiring))  # var(x) var(w) n = 1/3 bound^2/3 n = 1
        return Interval(-bound, bound)
    if isinstance(node, PointwiseNode) and _POSITIVE_OPERAND.get(node.inputs.operation) == port:
        return _POSITIVE
    return _BY_PORT.get(port, _ANY)


def _fill(array: Array, interval: Interval, rng: np.random.Generator) -> None:
    kind = array.dtype.kind
    for index in blocks(array.shape):
        block = array[index]
        block[...] = _drawn(kind, block.dtype, interval, block.shape, rng)


def _drawn(
    kind: str,
    dtype: np.dtype[Any],
    interval: Interval,
    shape: tuple[int, ...],
    rng: np.random.Generator,
) -> Array:
    if kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if kind in "iu":
        low = math.floor(interval.low * _INTEGER_SCALE) if kind == "i" else 0
        high = max(math.ceil(interval.high * _INTEGER_SCALE), low)
        return rng.integers(low, high, shape, endpoint=True).astype(dtype)
    values: Array = rng.random(shape, "float64" if dtype == np.float64 else "float32")
    values *= interval.high - interval.low
    values += interval.low
    return values.astype(dtype, copy=False)
