"""A bump allocator over the workspace that the caller lends to a kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

ALIGNMENT = 64
"""Bytes: a cache line, and enough for every vector load of BLAS."""


def aligned_bytes(elements: int, dtype: np.dtype[Any]) -> int:
    """Bytes that `Arena.take` uses up for ``elements`` of ``dtype``."""
    return -(-elements * dtype.itemsize // ALIGNMENT) * ALIGNMENT


def workspace_bytes(payload: int) -> int:
    """Bytes a caller must lend so that ``payload`` aligned bytes fit wherever its buffer starts."""
    return payload + ALIGNMENT if payload else 0


def payload_bytes(workspace: int) -> int:
    """The inverse of `workspace_bytes`: what surely fits into ``workspace`` bytes."""
    return max(workspace - ALIGNMENT, 0)


class Arena:
    """Hands out arrays that live in one byte buffer, in order, until it is used up.

    Args:
        workspace: The buffer: one-dimensional, contiguous, ``uint8``.
    """

    def __init__(self, workspace: np.ndarray) -> None:
        if workspace.dtype != np.uint8 or workspace.ndim != 1 or not workspace.flags.c_contiguous:
            raise ValueError(
                "workspace must be a contiguous one-dimensional uint8 array, "
                f"got {workspace.ndim}-d {workspace.dtype}"
            )
        skip = -workspace.ctypes.data % ALIGNMENT if workspace.size else 0
        self._bytes = workspace[skip:]
        self._used = 0

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """Return an uninitialised C-contiguous array of ``shape``.

        Raises:
            ValueError: The buffer is too small; a kernel that planned within its budget never
                sees this.
        """
        elements = math.prod(shape)
        start, stop = self._used, self._used + elements * dtype.itemsize
        if stop > self._bytes.size:
            raise ValueError(
                f"workspace exhausted: {stop} bytes needed, {self._bytes.size} bytes available"
            )
        self._used = start + aligned_bytes(elements, dtype)
        return self._bytes[start:stop].view(dtype).reshape(shape)
