"""How far results are from the reference engine's, and how far they may be.

The error of an output is the largest |y - reference| / max(|reference|, rms(reference)): relative
where values are large, and measured against the output's own scale where terms cancelled. It may
be at most

    4 * u + 4 * c * sqrt(n)

where u is the unit of rounding of the results (the coarsest of the output and of the graph's
intermediate tensors), c that of the arithmetic, and n the number of terms of the longest sum:
rounding errors of a sum grow with its root. Where a graph computes statistics of few values it may
be 8 times what the reference's results move with a rounding error of its inputs and statistics, if
that is more: see `conditioning`. Integers must be equal. NaN equals NaN and an infinity itself;
anything else that is not finite is an error without bound.

An operation that jumps, such as a comparison or a ReLU's gradient, of an intermediate result may
fall on the other side of its threshold; no bound on rounding covers that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .arrays import blocks
from .cost import reduction_length

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hipdnn_registry import DataType, Graph, TensorAttributes

    from .arrays import Array

MEASURE = "max |y - reference| / max(|reference|, rms(reference)) <= max(4 u + 4 c sqrt(n), 8 s)"


class Accuracy(NamedTuple):
    """How an output compares with the reference.

    Attributes:
        output: Label of the tensor.
        absolute: Largest |y - reference|; infinite where one of the two is not finite.
        relative: Largest |y - reference| / max(|reference|, rms(reference)).
        tolerance: What `relative` may be.
    """

    output: str
    absolute: float
    relative: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether the error is within the tolerance."""
        return self.relative <= self.tolerance

    def data(self) -> dict[str, Any]:
        """Return it for `--json`, where an infinity is `null`."""
        return {
            "output": self.output,
            "absolute_error": self.absolute if math.isfinite(self.absolute) else None,
            "relative_error": self.relative if math.isfinite(self.relative) else None,
            "tolerance": self.tolerance,
            "passed": self.passed,
        }


def compare(
    graph: Graph,
    actual: dict[int, Array],
    reference: dict[int, Array],
    sensitivities: Mapping[int, float] | None = None,
) -> list[Accuracy]:
    """Compare every output of a graph with the reference's.

    Args:
        graph: The graph.
        actual: An engine's results by uid.
        reference: The reference's.
        sensitivities: What `conditioning` says of the graph's outputs.
    """
    result = []
    for uid, expected in reference.items():
        tensor = graph.tensors[uid]
        absolute, relative = errors(actual[uid], expected)
        moved = (sensitivities or {}).get(uid, 0.0)
        tolerance = max(tolerance_of(graph, tensor), 8 * moved)
        result.append(Accuracy(tensor.label, absolute, relative, tolerance))
    return result


def tolerance_of(graph: Graph, output: TensorAttributes) -> float:
    """Return the error that an output of a graph may have."""
    if not output.data_type.is_floating:
        return 0.0
    virtual = [tensor.data_type for tensor in graph.tensors.values() if tensor.virtual]
    results = max(unit(data_type) for data_type in (output.data_type, *virtual))
    terms = sum(reduction_length(wiring) for wiring in graph.structure.wirings)
    return 4 * results + 4 * arithmetic_unit(graph) * math.sqrt(terms)


def arithmetic_unit(graph: Graph) -> float:
    """Return the unit of rounding of the coarsest arithmetic in a graph."""
    return max(unit(node.compute_data_type) for node in graph.nodes)


def unit(data_type: DataType) -> float:
    """Return the distance from 1 to the next number; 0 for types that do not round."""
    if not data_type.is_floating:
        return 0.0
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo  # not typed
    return float(finfo(data_type.numpy_dtype()).eps)


def errors(actual: Array, expected: Array) -> tuple[float, float]:
    """Return the largest absolute and relative error of an array."""
    scale = _rms(expected)
    absolute = relative = 0.0
    for index in blocks(expected.shape):
        y, reference = (np.asarray(a[index]).astype(np.float64) for a in (actual, expected))
        same = (y == reference) | (np.isnan(y) & np.isnan(reference))
        if same.all():
            continue
        y, reference = y[~same], reference[~same]
        if not (np.isfinite(y).all() and np.isfinite(reference).all()):
            return math.inf, math.inf
        error = np.abs(y - reference)
        absolute = max(absolute, float(error.max()))
        with np.errstate(divide="ignore"):  # an error where all of the reference is 0
            relative = max(relative, float((error / np.maximum(np.abs(reference), scale)).max()))
    return absolute, relative


def _rms(array: Array) -> float:
    """Return the root of the mean square of the finite elements."""
    total, count = 0.0, 0
    for index in blocks(array.shape):
        block = np.asarray(array[index]).astype(np.float64)
        finite = block[np.isfinite(block)]
        total += float(np.vdot(finite, finite))
        count += finite.size
    return math.sqrt(total / count) if count else 0.0
