"""Correlation as matrix products: all taps at once (im2col), or tap by tap in less memory."""

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

MIN_POSITIONS = 192
"""But BLAS needs matrices about this wide to reach its speed."""
LEAST_POSITIONS = 32
"""With less memory than these take, going tap by tap is faster."""


class GemmCorrelation:
    """Runs correlations that look like ``sample`` in any workspace from ``min_bytes`` up.

    Works on one box of (image, group, position...) at a time. In the compute type, a box takes
    memory for: the columns, unless the source itself is that matrix; the filter, unless it is
    one; the sum over taps, unless there is one product, which BLAS can write where it belongs; and
    the product to be added to it.

    Args:
        sample: Views of the right shapes and strides; their memory is not touched.
        compute: float32 or float64.
        by_tap: One tap at a time: smaller columns, but the products must be added up.
    """

    def __init__(self, sample: Correlation, compute: np.dtype[Any], *, by_tap: bool) -> None:
        self._sample = sample
        self._compute = compute
        self._chunk = min(1, sample.tap_count) if by_tap else sample.tap_count
        self._order = ColumnOrder(sample, self._chunk, compute)
        self._pack_once = self._order.packs_filter and self._chunk == sample.tap_count
        self._extents = (sample.images, sample.groups, *sample.out)
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
        """Compute ``problem.dst`` within ``budget`` bytes of ``arena``."""
        if self._chunk == 0:
            problem.dst.fill(0)
            return
        block, buffers = self._blocking.borrow(arena, budget)
        filters = None
        if self._pack_once:
            filters = self._order.pack_filter(problem, slice(None), 0, buffers[2])
        for box in boxes(self._extents, block):
            self._run_box(problem, box, buffers, filters)

    @property
    def cost(self) -> float:
        """Estimated time (see `costs`)."""
        sample = self._sample
        positions = sample.images * sample.groups * math.prod(sample.out)
        columns = positions * sample.channels * sample.tap_count
        chunks = sample.tap_count // max(self._chunk, 1)
        time = 2.0 * columns * sample.outputs
        if self._buffer_sizes(self._blocking.largest)[0]:
            time += columns * (STRIDED_COPY if max(sample.stride) > 1 else COPY)
        if self._order.packs_filter:
            time += sample.filter.size * STRIDED_COPY
        return time + positions * sample.outputs * COPY * (2 * chunks - 1)

    def _worthwhile(self, block: Block) -> bool:
        """Whether a block is small enough to be fast."""
        positions = math.prod(block[2:]) * block[0]
        depth = max(self._sample.channels * self._chunk, self._sample.outputs)
        size = positions * block[1] * depth * self._compute.itemsize
        return size <= CACHE_BYTES or (block[1] == 1 and positions <= MIN_POSITIONS)

    def _buffer_sizes(self, block: Block) -> tuple[int, ...]:
        """Elements of the columns, their tile, the packed filter, the product and the sum."""
        if self._chunk == 0:
            return (0, 0, 0, 0, 0)
        sample = self._sample
        box = tuple(slice(0, size) for size in block)
        groups, positions = block[1], block[0] * math.prod(block[2:])
        depth = sample.channels * self._chunk
        tile = groups * sample.outputs * positions
        gathers = source_matrix(sample, box, self._compute) is None
        several = self._chunk < sample.tap_count
        direct = positions_matrix(sample.dst, box, self._compute, merged=gathers) is not None
        packed_groups = sample.groups if self._pack_once else groups
        return (
            groups * depth * positions if gathers else 0,
            self._order.tile_size(sample, block) if gathers else 0,
            packed_groups * sample.outputs * depth if self._order.packs_filter else 0,
            tile if several else 0,
            tile if several or not direct else 0,
        )

    def _run_box(
        self,
        problem: Correlation,
        box: Box,
        buffers: list[np.ndarray],
        filters: np.ndarray | None,
    ) -> None:
        columns_memory, tile_memory, filter_memory, product_memory, sum_memory = buffers
        source = source_matrix(problem, box, self._compute)
        merged = source is None
        groups = box[1]
        if sum_memory.size:
            total = Tile.over(sum_memory, problem.dst, box, merged=merged)
            target = total.matrix
        else:
            total = None
            target = certain(positions_matrix(problem.dst, box, self._compute, merged=merged))

        for tap in range(0, problem.tap_count, self._chunk):
            columns = source
            if columns is None:
                columns = self._order.gather(problem, box, tap, columns_memory, tile_memory)
            if filters is not None:
                weights = filters[:, groups]
            elif self._order.packs_filter:
                weights = self._order.pack_filter(problem, groups, tap, filter_memory)
            else:
                weights = certain(self._order.filter_matrix(problem, tap))[:, groups]
            if tap == 0 or total is None:
                np.matmul(weights, columns, out=target)
            else:
                product = Tile.over(product_memory, problem.dst, box, merged=merged)
                np.matmul(weights, columns, out=product.matrix)
                # Flat, as numpy copies operands that it cannot prove not to overlap themselves.
                np.add(total.flat, product.flat, out=total.flat)
        if total is not None:
            images, groups, *positions = box
            store(problem.dst[(images, groups, slice(None), *positions)], total.view)
