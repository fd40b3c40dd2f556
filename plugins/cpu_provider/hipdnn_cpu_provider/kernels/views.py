"""Strided views: merging axes without a copy, matrices that BLAS accepts, index boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.lib.stride_tricks import as_strided

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

Box = tuple[slice, ...]


def trailing(parts: Iterable[slice | int]) -> Any:
    """Index of the last axes: ``array[trailing(box)]`` is ``array[..., *box]``."""
    return (..., *parts)


def channels_innermost(array: np.ndarray, channel_axis: int, spatial_axes: range) -> bool:
    """Whether channels lie closer together in memory than any spatial axis does (NHWC)."""
    spatial = [abs(array.strides[axis]) for axis in spatial_axes if array.shape[axis] > 1]
    channels = array.shape[channel_axis] > 1
    return channels and abs(array.strides[channel_axis]) < min(spatial, default=0)


def merge_axes(array: np.ndarray, *counts: int) -> np.ndarray | None:
    """View with consecutive axes merged, or None where that would take a copy.

    Args:
        array: Any array.
        counts: How many axes of ``array`` form each axis of the result; they sum to its rank.
    """
    shape: list[int] = []
    strides: list[int] = []
    axis = 0
    for count in counts:
        size, step = 1, array.dtype.itemsize
        for inner in reversed(range(axis, axis + count)):
            extent, stride = array.shape[inner], array.strides[inner]
            if extent == 1:
                continue
            if size == 1:
                step = stride
            elif stride != step * size:
                return None
            size *= extent
        shape.append(size)
        strides.append(step)
        axis += count
    return as_strided(array, tuple(shape), tuple(strides))


def blas_matrix(array: np.ndarray | None, dtype: np.dtype[Any]) -> np.ndarray | None:
    """``array`` [..., rows, columns] if np.matmul hands it to BLAS as it is, else None.

    np.matmul falls to a slow loop or copies for any other matrix. Axes of length one get the
    strides that a packed matrix would have, as numpy and BLAS look at those, too.
    """
    if array is None or array.dtype != dtype:
        return None
    itemsize = dtype.itemsize
    *_, rows, columns = array.shape
    *outer, row_step, column_step = array.strides
    if columns == 1 and rows == 1:
        row_step = column_step = itemsize
    elif columns == 1:
        column_step = itemsize if row_step != itemsize else itemsize * rows
    elif rows == 1:
        row_step = itemsize if column_step != itemsize else itemsize * columns

    def leads(lead: int, unit: int, length: int) -> bool:
        return unit == itemsize and lead % itemsize == 0 and lead >= length * itemsize

    if leads(row_step, column_step, columns) or leads(column_step, row_step, rows):
        return as_strided(array, array.shape, (*outer, row_step, column_step))
    return None


def box_shape(box: Box) -> tuple[int, ...]:
    """Extents of a box of slices."""
    return tuple(part.stop - part.start for part in box)
