"""Batch normalisation: training, inference and backward.

Statistics belong to the positions of ``scale``: over the axes where it has extent one they are
shared. [1, C, 1, 1] is hipDNN's spatial normalisation, [1, C, H, W] its per-activation one.

All functions compute in float32 (float64 if any tensor is), or in float64 throughout with
``double``, which makes them the reference. Means and variances are taken in two passes over x,
so a large mean does not cancel the variance away; sums over blocks are kept in float64. Work
goes in blocks: temporaries take `BLOCK_BYTES` times a small number, plus a few float64 arrays of
the size of ``scale``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .blocking import boxes, largest_block
from .geometry import compute_dtype
from .operands import store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .views import Box

BLOCK_BYTES = 1 << 18


@dataclass(frozen=True)
class RunningStatistics:
    """The moving averages of a training step; all of ``scale``'s shape.

    Attributes:
        prev_mean: Running mean before.
        prev_variance: Running variance before.
        next_mean: Where to write ``(1 - momentum) * prev + momentum * batch mean``.
        next_variance: The same for the variance, with the batch's unbiased one (n - 1). Both may
            be the previous arrays.
        momentum: Weight of the batch, 0 to 1.
    """

    prev_mean: np.ndarray
    prev_variance: np.ndarray
    next_mean: np.ndarray
    next_variance: np.ndarray
    momentum: float


class _Normalisation:
    """The blocks of a tensor, and where in the statistics each block belongs."""

    def __init__(self, x: np.ndarray, parameter: np.ndarray, dtype: np.dtype[Any]) -> None:
        if parameter.ndim != x.ndim or any(
            extent not in (1, size) for extent, size in zip(parameter.shape, x.shape, strict=True)
        ):
            raise ValueError(
                f"scale {parameter.shape} must have extent 1 or x's extent along each axis of "
                f"x {x.shape}"
            )
        self.dtype = dtype
        self.shape = parameter.shape
        self._extents = x.shape
        self._axes = tuple(
            axis for axis, extent in enumerate(parameter.shape) if extent < x.shape[axis]
        )
        self.count = x.size // math.prod(parameter.shape)
        limit = BLOCK_BYTES // dtype.itemsize
        self._block = largest_block(x.shape, lambda block: math.prod(block) <= limit)

    def blocks(self) -> Iterator[tuple[Box, Box]]:
        """Boxes of x, and the box of the statistics that each one meets."""
        for box in boxes(self._extents, self._block):
            yield (
                box,
                tuple(
                    part if extent > 1 else slice(0, 1)
                    for part, extent in zip(box, self.shape, strict=True)
                ),
            )

    def sum(self, block: np.ndarray) -> np.ndarray:
        """Sum of a block over the shared axes, in float64."""
        return np.asarray(block.sum(axis=self._axes, keepdims=True, dtype=np.float64))

    def load(self, tensor: np.ndarray, box: Box) -> np.ndarray:
        """A block in the compute type."""
        return tensor[box].astype(self.dtype, copy=False)

    def statistics(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and biased variance, float64."""
        mean = np.zeros(self.shape)
        for box, where in self.blocks():
            mean[where] += self.sum(self.load(x, box))
        mean /= self.count
        variance = np.zeros(self.shape)
        for box, where in self.blocks():
            centered = self.load(x, box) - mean[where]
            variance[where] += self.sum(np.square(centered, out=centered))
        variance /= self.count
        return mean, variance

    def affine(
        self, x: np.ndarray, box: Box, center: np.ndarray, factor: np.ndarray, bias: np.ndarray
    ) -> np.ndarray:
        """A block of ``(x - center) * factor + bias``, for float64 coefficients of that block.

        What rounding takes from the center goes into the bias, so that a large mean costs no
        more digits than x has lost already.
        """
        rounded = center.astype(self.dtype)
        block: np.ndarray = self.load(x, box) - rounded
        block *= factor.astype(self.dtype)
        block += (bias - (center - rounded) * factor).astype(self.dtype)
        return block

    def normalise(
        self, x: np.ndarray, y: np.ndarray, mean: np.ndarray, factor: np.ndarray, bias: np.ndarray
    ) -> None:
        """``y = (x - mean) * factor + bias``."""
        for box, where in self.blocks():
            store(y[box], self.affine(x, box, mean[where], factor[where], bias[where]))


def _prepare(
    x: np.ndarray, parameter: np.ndarray, others: tuple[np.ndarray, ...], *, double: bool
) -> _Normalisation:
    for other in others:
        if other.shape not in (parameter.shape, x.shape):
            raise ValueError(
                f"a tensor of shape {other.shape} belongs neither to x {x.shape} nor to "
                f"scale {parameter.shape}"
            )
    dtypes = (array.dtype for array in (x, parameter, *others))
    dtype = compute_dtype(*dtypes, double=double)
    return _Normalisation(x, parameter, dtype)


@np.errstate(all="ignore")
def batchnorm(
    x: np.ndarray,
    scale: np.ndarray,
    bias: np.ndarray,
    epsilon: float,
    y: np.ndarray,
    *,
    mean: np.ndarray | None = None,
    inv_variance: np.ndarray | None = None,
    running: RunningStatistics | None = None,
    double: bool = False,
) -> None:
    """Normalise with the statistics of the batch (training).

    ``y = (x - mean) / sqrt(variance + epsilon) * scale + bias`` with the biased variance.

    Args:
        x: [N, C, spatial...].
        scale: [1, C, 1...] or [1, C, spatial...].
        bias: Like scale.
        epsilon: Added to the variance.
        y: Output, like x.
        mean: Where to write the batch's mean, like scale.
        inv_variance: Where to write ``1 / sqrt(variance + epsilon)``, like scale.
        running: Moving averages to update. With a single element a position there is no unbiased
            variance; the biased one, zero, counts then, so that the averages stay finite.
        double: Compute in float64 in any case.

    Raises:
        ValueError: Shapes that don't belong together.
    """
    outputs = tuple(array for array in (mean, inv_variance) if array is not None)
    norm = _prepare(x, scale, (bias, y, *outputs), double=double)
    batch_mean, variance = norm.statistics(x)
    inverse = 1 / np.sqrt(variance + epsilon)
    norm.normalise(x, y, batch_mean, inverse * scale, bias.astype(np.float64))
    if mean is not None:
        store(mean, batch_mean)
    if inv_variance is not None:
        store(inv_variance, inverse)
    if running is not None:
        unbiased = variance * (norm.count / max(norm.count - 1, 1))
        for previous, batch, target in (
            (running.prev_mean, batch_mean, running.next_mean),
            (running.prev_variance, unbiased, running.next_variance),
        ):
            before = previous.astype(np.float64)
            store(target, (1 - running.momentum) * before + running.momentum * batch)


@np.errstate(all="ignore")
def batchnorm_inference(
    x: np.ndarray,
    mean: np.ndarray,
    inv_variance: np.ndarray,
    scale: np.ndarray,
    bias: np.ndarray,
    y: np.ndarray,
    *,
    double: bool = False,
) -> None:
    """Normalise with given statistics: ``y = (x - mean) * inv_variance * scale + bias``.

    Args:
        x: [N, C, spatial...].
        mean: Like scale.
        inv_variance: ``1 / sqrt(variance + epsilon)``, like scale.
        scale: [1, C, 1...] or [1, C, spatial...].
        bias: Like scale.
        y: Output, like x.
        double: Compute in float64 in any case.

    Raises:
        ValueError: Shapes that don't belong together.
    """
    norm = _prepare(x, scale, (mean, inv_variance, bias, y), double=double)
    factor = inv_variance.astype(np.float64) * scale
    norm.normalise(x, y, mean.astype(np.float64), factor, bias.astype(np.float64))


@np.errstate(all="ignore")
def batchnorm_inference_variance(
    x: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    scale: np.ndarray,
    bias: np.ndarray,
    epsilon: float,
    y: np.ndarray,
    *,
    double: bool = False,
) -> None:
    """`batchnorm_inference` with ``1 / sqrt(variance + epsilon)`` for the inverse variance.

    Raises:
        ValueError: Shapes that don't belong together.
    """
    inverse = 1 / np.sqrt(variance.astype(np.float64) + epsilon)
    norm = _prepare(x, scale, (mean, variance, bias, y), double=double)
    norm.normalise(x, y, mean.astype(np.float64), inverse * scale, bias.astype(np.float64))


@np.errstate(all="ignore")
def batchnorm_backward(
    x: np.ndarray,
    dy: np.ndarray,
    scale: np.ndarray,
    dx: np.ndarray,
    dscale: np.ndarray,
    dbias: np.ndarray,
    *,
    saved: tuple[np.ndarray, np.ndarray] | None = None,
    epsilon: float = 0.0,
    double: bool = False,
) -> None:
    """Differentiate `batchnorm`, through the batch's statistics.

    With ``h = (x - mean) * inv_variance``: ``dbias = sum(dy)``, ``dscale = sum(dy * h)`` and
    ``dx = scale * inv_variance * (dy - dbias / n - h * dscale / n)``, n elements a position.

    Args:
        x: Input of the forward pass, [N, C, spatial...].
        dy: Gradient of its output, like x.
        scale: [1, C, 1...] or [1, C, spatial...].
        dx: Output, like x.
        dscale: Output, like scale.
        dbias: Output, like scale.
        saved: Mean and inverse variance of the forward pass; recomputed from x if None.
        epsilon: Added to the variance if recomputing.
        double: Compute in float64 in any case.

    Raises:
        ValueError: Shapes that don't belong together.
    """
    norm = _prepare(x, scale, (dy, dx, dscale, dbias, *(saved or ())), double=double)
    if saved is None:
        mean, variance = norm.statistics(x)
        inverse = 1 / np.sqrt(variance + epsilon)
    else:
        mean, inverse = (array.astype(np.float64) for array in saved)
    sum_dy, sum_dy_h = np.zeros(norm.shape), np.zeros(norm.shape)

    shift = np.zeros(norm.shape)

    def normalised(box: Box, where: Box) -> np.ndarray:
        return norm.affine(x, box, mean[where], inverse[where], shift[where])

    for box, where in norm.blocks():
        gradient = norm.load(dy, box)
        sum_dy[where] += norm.sum(gradient)
        sum_dy_h[where] += norm.sum(gradient * normalised(box, where))
    factor = inverse * scale
    for box, where in norm.blocks():
        block = normalised(box, where)
        block *= (sum_dy_h[where] / -norm.count).astype(norm.dtype)
        block += norm.load(dy, box)
        block -= (sum_dy[where] / norm.count).astype(norm.dtype)
        block *= factor[where].astype(norm.dtype)
        store(dx[box], block)
    store(dscale, sum_dy_h)
    store(dbias, sum_dy)
