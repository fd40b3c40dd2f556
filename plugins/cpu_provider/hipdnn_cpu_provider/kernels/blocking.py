"""Cutting an index space into boxes that fit the cache and the caller's workspace."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from .arena import Arena, aligned_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np

    from .views import Box

Block = tuple[int, ...]

CACHE_BYTES = 4 << 20
"""Of a kernel's largest buffer. What is larger leaves the last-level cache between the step that
writes it and the step that reads it; what is much smaller makes BLAS start and join its threads
too often."""


def boxes(extents: Block, block: Block) -> Iterator[Box]:
    """Cover an index space with boxes of at most ``block``, in row-major order."""
    ranges = (
        [slice(start, min(start + step, extent)) for start in range(0, extent, step)]
        for extent, step in zip(extents, block, strict=True)
    )
    return itertools.product(*ranges)


def largest_block(extents: Block, fits: Callable[[Block], bool]) -> Block:
    """The block that grows from the innermost axis outwards for as long as ``fits`` allows.

    Each axis but the last to grow is whole. That the block of ones fits is taken for granted.
    """
    block = [1] * len(extents)
    for axis in reversed(range(len(extents))):
        low, high = 1, extents[axis]
        middle = high
        while low < high:
            block[axis] = middle
            if fits(tuple(block)):
                low = middle
            else:
                high = middle - 1
            middle = (low + high + 1) // 2
        block[axis] = low
        if low < extents[axis]:
            break
    return tuple(block)


class Blocking:
    """Picks blocks for a kernel, and borrows their buffers.

    Args:
        extents: The index space to cover, outermost axis first.
        worthwhile: Whether a block is still small enough to be fast.
        buffer_sizes: Elements of each buffer that working on a block takes.
        dtype: Type of the buffers.
        least: Elements of the smallest block worth working on.

    Attributes:
        min_bytes: What the smallest block takes.
        max_bytes: What the largest worthwhile block takes.
    """

    def __init__(
        self,
        extents: Block,
        worthwhile: Callable[[Block], bool],
        buffer_sizes: Callable[[Block], tuple[int, ...]],
        dtype: np.dtype[Any],
        least: int,
    ) -> None:
        self._extents = extents
        self._worthwhile = worthwhile
        self._buffer_sizes = buffer_sizes
        self._dtype = dtype
        self._chosen: dict[int, Block] = {}
        self.largest = largest_block(extents, worthwhile)
        smallest = largest_block(extents, lambda block: math.prod(block) <= least)
        self.min_bytes = min(self._bytes(smallest), self._bytes(self.largest))
        self.max_bytes = self._bytes(self.largest)

    def borrow(self, arena: Arena, budget: int) -> tuple[Block, list[np.ndarray]]:
        """The largest worthwhile block within ``budget`` bytes, and its buffers (flat)."""
        block = self._chosen.get(budget)
        if block is None:
            # The largest may take less than parts of it (nothing to add up): don't grow up to it.
            block = self.largest
            if self._bytes(block) > budget:
                block = largest_block(
                    self._extents, lambda b: self._worthwhile(b) and self._bytes(b) <= budget
                )
            self._chosen[budget] = block
        return block, [arena.take((size,), self._dtype) for size in self._buffer_sizes(block)]

    def _bytes(self, block: Block) -> int:
        return sum(aligned_bytes(size, self._dtype) for size in self._buffer_sizes(block))
