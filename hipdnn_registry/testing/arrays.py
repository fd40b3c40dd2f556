"""Host arrays of any layout, and walks over them in blocks that stay small."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hipdnn_registry.errors import HipdnnError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hipdnn_registry import TensorAttributes

    Array = np.ndarray[Any, np.dtype[Any]]

BLOCK_ELEMENTS = 1 << 20
"""Elements that are drawn or compared at a time; bounds the temporaries."""

_CACHE_LINE = 64


def allocate(tensor: TensorAttributes) -> Array:
    """Return an uninitialised array with the dims, strides, type and alignment of a tensor.

    Raises:
        HipdnnError: numpy has no such type.
    """
    try:
        dtype = tensor.data_type.numpy_dtype()
    except TypeError as error:
        raise HipdnnError(f"tensor {tensor.label}: {error}, so no buffer can be made") from None
    span, alignment = tensor.span_bytes, max(tensor.alignment, _CACHE_LINE)
    memory = np.empty(span + alignment, np.uint8)
    start = -memory.ctypes.data % alignment
    return np.lib.stride_tricks.as_strided(
        memory[start : start + span].view(dtype),
        tensor.dims,
        [stride * dtype.itemsize for stride in tensor.strides or ()],
    )


def storage(array: Array) -> Array:
    """Return the memory of an array that `allocate` made, gaps included, as a flat array."""
    spans = zip(array.shape, array.strides, strict=True)
    last = sum((extent - 1) * stride for extent, stride in spans)
    size = last // array.itemsize + 1
    return np.lib.stride_tricks.as_strided(array, (size,), (array.itemsize,))


def blocks(shape: Sequence[int], limit: int = BLOCK_ELEMENTS) -> Iterator[tuple[Any, ...]]:
    """Yield indices that take an array apart into blocks, in row-major order.

    Args:
        shape: Shape of the array.
        limit: Most elements of a block.
    """
    axis = 0
    while axis < len(shape) - 1 and math.prod(shape[axis + 1 :]) > limit:
        axis += 1
    step = max(limit // math.prod(shape[axis + 1 :]), 1)
    for lead in np.ndindex(*shape[:axis]):
        for start in range(0, shape[axis], step):
            yield (*lead, slice(start, start + step))
