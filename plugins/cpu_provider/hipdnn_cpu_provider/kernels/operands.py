"""The matrices of a correlation: as views where BLAS takes them, in borrowed memory otherwise.

A box is a part of the index space (image, group, output position...). Every matrix has the axes
[image batch, group, rows, columns]; where the images of a box are merged into the positions, the
batch is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .columns import Window, gather_columns, gather_columns_through
from .views import Box, blas_matrix, box_shape, channels_innermost, merge_axes, trailing

if TYPE_CHECKING:
    from .correlation import Correlation


def store(target: np.ndarray, values: np.ndarray) -> None:
    """Write ``values``, rounding to ``target``'s type; what lies beyond its range is infinite."""
    with np.errstate(over="ignore"):
        np.copyto(target, values, casting="unsafe")


def certain(matrix: np.ndarray | None) -> np.ndarray:
    """A matrix that must be there, since planning on the same strides found that it is."""
    if matrix is None:
        raise AssertionError("the arrays' strides are not the planned ones")
    return matrix


def positions_matrix(
    tensor: np.ndarray, box: Box, compute: np.dtype[Any], *, merged: bool
) -> np.ndarray | None:
    """[n, g, channels, positions], or merged [1, g, channels, n * positions], or None."""
    images, groups, *positions = box
    view = tensor[(images, groups, slice(None), *positions)]
    if not merged:
        return blas_matrix(merge_axes(view, 1, 1, 1, len(positions)), compute)
    inward = view.transpose(1, 2, 0, *range(3, view.ndim))
    matrix = merge_axes(inward, 1, 1, 1 + len(positions))
    return blas_matrix(None if matrix is None else matrix[np.newaxis], compute)


def source_matrix(problem: Correlation, box: Box, compute: np.dtype[Any]) -> np.ndarray | None:
    """[n, g, C, positions] if the source itself serves as columns: one tap, nothing padded."""
    if problem.tap_count != 1:
        return None
    positions = []
    for axis, part in enumerate(box[2:]):
        stride, shift = problem.stride[axis], problem.offset[axis]
        last = (problem.out[axis] - 1) * stride + shift
        if shift < 0 or last >= problem.src.shape[3 + axis]:
            return None
        positions.append(
            slice(part.start * stride + shift, (part.stop - 1) * stride + shift + 1, stride)
        )
    return positions_matrix(problem.src, (*box[:2], *positions), compute, merged=False)


@dataclass(frozen=True)
class Tile:
    """Values for the box of a tensor, in memory of their own.

    Attributes:
        view: Shaped like that part of the tensor, [n, g, channels, positions...].
        matrix: The same memory as [n, g, channels, positions] or [1, g, channels, n * positions].
        flat: The same memory as it lies.
    """

    view: np.ndarray
    matrix: np.ndarray
    flat: np.ndarray

    @classmethod
    def over(cls, memory: np.ndarray, tensor: np.ndarray, box: Box, *, merged: bool) -> Tile:
        """Lay a tile over the start of ``memory`` (flat), its axes ordered as ``tensor``'s."""
        count, groups, *extents = box_shape(box)
        channels = tensor.shape[2]
        batch, width = (1, count * math.prod(extents)) if merged else (count, math.prod(extents))
        flat = memory[: batch * groups * channels * width]
        if channels_innermost(tensor, 2, range(3, tensor.ndim)):
            matrix = flat.reshape(batch, groups, width, channels).swapaxes(2, 3)
        else:
            matrix = flat.reshape(batch, groups, channels, width)
        if merged:
            split = matrix.reshape(groups, channels, count, *extents)
            view = split.transpose(2, 0, 1, *range(3, split.ndim))
        else:
            view = matrix.reshape(count, groups, channels, *extents)
        return cls(view, matrix, flat)


class ColumnOrder:
    """The order of the inner dimension, over which columns and filter are multiplied.

    It runs over (channel, tap) or (tap, channel): the one in which the filter is a matrix without
    a copy; failing both, the one in which the source is contiguous.

    Args:
        sample: The problem.
        chunk: How many taps are multiplied at once: all of them, or one.
        compute: The type of the matrices.
    """

    def __init__(self, sample: Correlation, chunk: int, compute: np.dtype[Any]) -> None:
        self.chunk = chunk
        self.compute = compute
        self.window = Window(sample.taps, sample.stride, sample.dilation, sample.offset)
        self.channels_last = channels_innermost(sample.src, 2, range(3, sample.src.ndim))
        for tap_major in (self.channels_last, not self.channels_last):
            self.tap_major = tap_major
            self.packs_filter = self.filter_matrix(sample, 0) is None
            if not self.packs_filter:
                return
        self.tap_major = self.channels_last

    def filter_part(self, problem: Correlation, tap: int) -> np.ndarray:
        """View of the filter's taps from ``tap`` on, [G, K, inner dimension's axes...]."""
        if self.chunk < problem.tap_count:
            index = map(int, np.unravel_index(tap, problem.taps))
            one: np.ndarray = problem.filter[trailing(index)]
            return one
        if self.tap_major:
            return np.moveaxis(problem.filter, 2, -1)
        return problem.filter

    def filter_matrix(self, problem: Correlation, tap: int) -> np.ndarray | None:
        """[1, G, K, C * chunk], or None if it takes a copy."""
        part = self.filter_part(problem, tap)
        matrix = merge_axes(part, 1, 1, part.ndim - 2)
        return blas_matrix(None if matrix is None else matrix[np.newaxis], self.compute)

    def pack_filter(
        self, problem: Correlation, groups: slice, tap: int, memory: np.ndarray
    ) -> np.ndarray:
        """Copy some groups of `filter_part` into ``memory``: [1, g, K, C * chunk]."""
        part = self.filter_part(problem, tap)[groups]
        packed = memory[: part.size].reshape(part.shape)
        store(packed, part)
        return packed.reshape(1, *part.shape[:2], -1)

    def tile_size(self, problem: Correlation, block: tuple[int, ...]) -> int:
        """Elements of the padded copy of the source that `gather` takes for (n, g, position...)."""
        if self.chunk == 1:
            return 0
        images, groups, *extents = block
        return images * groups * problem.channels * math.prod(self.window.tile(extents))

    def gather(
        self, problem: Correlation, box: Box, tap: int, memory: np.ndarray, tile_memory: np.ndarray
    ) -> np.ndarray:
        """Gather the columns of a box into ``memory``: [1, g, C * chunk, n * positions]."""
        images, groups, *positions = box
        count, batch, *extents = box_shape(box)
        channels, width = problem.channels, count * math.prod(extents)
        flat = memory[: batch * channels * self.chunk * width]
        if self.channels_last:
            matrix = flat.reshape(batch, width, -1).swapaxes(1, 2)
        else:
            matrix = flat.reshape(batch, -1, width)
        taps = problem.taps if self.chunk > 1 else (1,)
        inner = (*taps, channels) if self.tap_major else (channels, *taps)
        split = matrix.reshape(batch, *inner, count, *extents)
        # To [taps..., C, g, n, positions...].
        split = np.moveaxis(split, 0, len(inner))
        if not self.tap_major:
            split = np.moveaxis(split, 0, len(taps))
        src = problem.src[images, groups].transpose(2, 1, 0, *range(3, problem.src.ndim))
        if self.chunk == 1:
            gather_columns(split, src, self.window, tuple(positions), range(tap, tap + 1))
        else:
            extent = self.window.tile(extents)
            flat = tile_memory[: channels * batch * count * math.prod(extent)]
            if self.channels_last:
                tile = np.moveaxis(flat.reshape(batch, count, *extent, channels), -1, 0)
            else:
                tile = flat.reshape(batch, channels, count, *extent).swapaxes(0, 1)
            gather_columns_through(tile, split, src, self.window, tuple(positions))
        return matrix[np.newaxis]
