"""The gradient of the filter as matrix products of the output's gradient with columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .blocking import CACHE_BYTES, Block, Blocking, boxes
from .costs import COPY, STRIDED_COPY
from .operands import ColumnOrder, Tile, certain, positions_matrix, source_matrix, store

if TYPE_CHECKING:
    from .arena import Arena
    from .correlation import Correlation
    from .views import Box

MIN_POSITIONS = 1024
"""Each block ends with a pass over the whole filter: give it something to add."""
LEAST_POSITIONS = 32
"""With less memory than these take, going tap by tap is faster."""


class GemmWeightGradient:
    """Computes ``problem.filter`` from ``problem.src`` (x) and ``problem.dst`` (dy).

    Works on one box of (image, position...) after the other for one block of groups and one
    chunk of taps. In the compute type it takes memory for: the columns and the gradient of the
    box, unless they are matrices as they lie; the sum, unless the filter's memory serves; and
    the product, if there is more than one box.

    Args:
        sample: Views of the right shapes and strides; their memory is not touched.
        compute: float32 or float64.
        by_tap: One tap at a time: smaller columns, products and sums.
    """

    def __init__(self, sample: Correlation, compute: np.dtype[Any], *, by_tap: bool) -> None:
        self._sample = sample
        self._compute = compute
        self._chunk = 1 if by_tap else sample.tap_count
        self._order = ColumnOrder(sample, self._chunk, compute)
        self._extents = (sample.groups, sample.images, *sample.out)
        self._blocking = Blocking(
            self._extents,
            self._worthwhile,
            self._buffer_sizes,
            compute,
            1 if by_tap else LEAST_POSITIONS,
        )
        self.min_bytes = self._blocking.min_bytes
        self.max_bytes = self._blocking.max_bytes

    def run(self, problem: Correlation, arena: Arena, budget: int) -> None:
        """Compute ``problem.filter`` within ``budget`` bytes of ``arena``."""
        block, buffers = self._blocking.borrow(arena, budget)
        for (groups,) in boxes(self._extents[:1], block[:1]):
            for tap in range(0, problem.tap_count, self._chunk):
                self._run_filter(problem, groups, tap, block[1:], buffers)

    @property
    def cost(self) -> float:
        """Estimated time (see `costs`)."""
        sample = self._sample
        positions = sample.images * sample.groups * math.prod(sample.out)
        columns = positions * sample.channels * sample.tap_count
        time = 2.0 * columns * sample.outputs
        if self._buffer_sizes(self._blocking.largest)[0]:
            time += columns * (STRIDED_COPY if max(sample.stride) > 1 else COPY)
        # dy is copied, or at least read once more, for each chunk of taps.
        time += positions * sample.outputs * COPY * (sample.tap_count // self._chunk)
        blocks = math.prod(self._extents[1:]) / math.prod(self._blocking.largest[1:])
        return time + 2 * COPY * blocks * sample.filter.size

    def _worthwhile(self, block: Block) -> bool:
        """Whether a block is small enough to be fast."""
        positions = math.prod(block[1:])
        depth = max(self._sample.channels * self._chunk, self._sample.outputs)
        size = positions * block[0] * depth * self._compute.itemsize
        return size <= CACHE_BYTES or (block[0] == 1 and positions <= MIN_POSITIONS)

    def _buffer_sizes(self, block: Block) -> tuple[int, ...]:
        """Elements of the columns, their tile, dy, the product and the sum."""
        sample = self._sample
        groups, images, *extents = block
        box = tuple(slice(0, size) for size in (images, groups, *extents))
        positions = images * math.prod(extents)
        matrix = groups * sample.outputs * sample.channels * self._chunk
        x, dy = self._operands(sample, box)
        single = tuple(block[1:]) == self._extents[1:]
        in_place = single and not self._order.packs_filter
        return (
            groups * sample.channels * self._chunk * positions if x is None else 0,
            self._order.tile_size(sample, (images, groups, *extents)) if x is None else 0,
            groups * sample.outputs * positions if dy is None else 0,
            0 if single else matrix,
            0 if in_place else matrix,
        )

    def _operands(
        self, problem: Correlation, box: Box
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """[1, g, C, positions] of x and [1, g, K, positions] of dy, None where it takes a copy."""
        x = source_matrix(problem, box, self._compute)
        if x is not None and x.shape[0] > 1:
            x = None  # images must be merged: the sum runs over them
        return x, positions_matrix(problem.dst, box, self._compute, merged=True)

    def _run_filter(
        self,
        problem: Correlation,
        groups: slice,
        tap: int,
        block: Block,
        buffers: list[np.ndarray],
    ) -> None:
        """Sum one chunk of taps of some groups over all images and positions."""
        columns_memory, tile_memory, dy_memory, product_memory, sum_memory = buffers
        part = self._order.filter_part(problem, tap)[groups]
        shape = (*part.shape[:2], math.prod(part.shape[2:]))
        if sum_memory.size:
            total = sum_memory[: part.size].reshape(1, *shape)
        else:
            total = certain(self._order.filter_matrix(problem, tap))[:, groups]

        for index, (images, *positions) in enumerate(boxes(self._extents[1:], block)):
            box = (images, groups, *positions)
            x, dy = self._operands(problem, box)
            if dy is None:
                tile = Tile.over(dy_memory, problem.dst, box, merged=True)
                store(tile.view, problem.dst[(images, groups, slice(None), *positions)])
                dy = tile.matrix
            if x is None:
                x = self._order.gather(problem, box, tap, columns_memory, tile_memory)
            if index == 0:
                np.matmul(dy, x.swapaxes(2, 3), out=total)
            else:
                product = product_memory[: part.size].reshape(1, *shape)
                np.matmul(dy, x.swapaxes(2, 3), out=product)
                np.add(total, product, out=total)
        if sum_memory.size:
            store(part, total.reshape(part.shape))
