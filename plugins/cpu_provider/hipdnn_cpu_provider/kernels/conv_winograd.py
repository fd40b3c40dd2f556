"""Winograd's minimal filtering F(4x4, 3x3): 36 products for what takes 144.

Each 4x4 tile of outputs needs a 6x6 tile of inputs d and is A^T [(G g G^T) * (B^T d B)] A
(Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016). Summed over channels,
the elementwise products are 36 matrix products; the transforms are products with the Kronecker
squares of B^T, G and A^T, so that BLAS does all the arithmetic.

In float32 results differ from direct summation by about 1e-5 of the largest output, and a
non-finite input spreads over its whole tile; which is why nothing else than float32 comes here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .blocking import CACHE_BYTES, Block, Blocking, boxes
from .columns import Window, gather_columns_through
from .costs import STRIDED_COPY
from .operands import store
from .views import Box, blas_matrix, box_shape, channels_innermost, merge_axes

if TYPE_CHECKING:
    from .arena import Arena
    from .correlation import Correlation

Matrix = list[list[float]]

OUT, TAPS, IN = 4, 3, 6
MIN_TILES = 48
"""Below this many tiles a block the matrix products get slow."""
LEAST_TILES = 4
"""With less memory than these take, the other algorithms are faster."""

_B: Matrix = [
    [4, 0, -5, 0, 1, 0],
    [0, -4, -4, 1, 1, 0],
    [0, 4, -4, -1, 1, 0],
    [0, -2, -1, 2, 1, 0],
    [0, 2, -1, -2, 1, 0],
    [0, 4, 0, -5, 0, 1],
]
_G: Matrix = [
    [1 / 4, 0, 0],
    [-1 / 6, -1 / 6, -1 / 6],
    [-1 / 6, 1 / 6, -1 / 6],
    [1 / 24, 1 / 12, 1 / 6],
    [1 / 24, -1 / 12, 1 / 6],
    [0, 0, 1],
]
_A: Matrix = [
    [1, 1, 1, 1, 1, 0],
    [0, 1, -1, 2, -2, 0],
    [0, 1, 1, 4, 4, 0],
    [0, 1, -1, 8, -8, 1],
]


def _squared(matrix: Matrix) -> np.ndarray:
    return np.kron(matrix, matrix).astype(np.float32)


INPUT_TRANSFORM, FILTER_TRANSFORM, OUTPUT_TRANSFORM = _squared(_B), _squared(_G), _squared(_A)


def applies(problem: Correlation, compute: np.dtype[Any]) -> bool:
    """Whether the correlation is 3x3, moves by single steps, and computes in float32."""
    return (
        compute == np.float32
        and problem.taps == (TAPS, TAPS)
        and problem.stride == (1, 1)
        and problem.dilation == (1, 1)
    )


class WinogradCorrelation:
    """Runs correlations that look like ``sample`` in any workspace from ``min_bytes`` up.

    Works on one box of (image, tile row, tile column) of one group at a time. Takes memory for
    the transformed filter, and twice for the larger of transformed inputs and outputs of a box.

    Args:
        sample: Views of the right shapes and strides, for which `applies`.
    """

    def __init__(self, sample: Correlation) -> None:
        self._sample = sample
        self._dtype = np.dtype(np.float32)
        self._extents = (sample.images, *(-(-size // OUT) for size in sample.out))
        self._src_last = channels_innermost(sample.src, 2, range(3, 5))
        self._dst_last = channels_innermost(sample.dst, 2, range(3, 5))
        self._window = Window((IN, IN), (OUT, OUT), (1, 1), sample.offset)
        self._packs = _taps_matrix(sample.filter) is None
        self._blocking = Blocking(
            self._extents, self._worthwhile, self._buffer_sizes, self._dtype, LEAST_TILES
        )
        self.min_bytes = self._blocking.min_bytes
        self.max_bytes = self._blocking.max_bytes

    def run(self, problem: Correlation, arena: Arena, budget: int) -> None:
        """Compute ``problem.dst`` within ``budget`` bytes of ``arena``."""
        block, (transformed, packed, ping, pong) = self._blocking.borrow(arena, budget)
        for group in range(problem.groups):
            weights = self._transform_filter(problem.filter[group], transformed, packed)
            for box in boxes(self._extents, block):
                self._run_box(problem, group, box, weights, ping, pong)

    @property
    def cost(self) -> float:
        """Estimated time (see `costs`)."""
        sample = self._sample
        tiles = math.prod(self._extents)
        filter_size = sample.outputs * sample.channels
        per_group = (
            IN * IN * filter_size * (2 * tiles + STRIDED_COPY)
            + (2 * IN * IN * TAPS * TAPS + IN * IN * STRIDED_COPY) * filter_size
            + IN * IN * sample.channels * tiles * (2 * IN * IN + STRIDED_COPY)
            + OUT * OUT * sample.outputs * tiles * (2 * IN * IN + STRIDED_COPY)
        )
        return float(sample.groups * per_group)

    def _worthwhile(self, block: Block) -> bool:
        tiles = math.prod(block)
        return tiles <= MIN_TILES or self._buffer_sizes(block)[2] * 4 <= CACHE_BYTES

    def _buffer_sizes(self, block: Block) -> tuple[int, int, int, int]:
        """Elements of the transformed filter, the packed filter, and the two buffers of a box."""
        sample = self._sample
        matrix = sample.channels * sample.outputs
        transform = IN * IN * max(sample.channels, sample.outputs) * math.prod(block)
        tile = sample.channels * block[0] * math.prod(self._window.tile(block[1:]))
        return (
            IN * IN * matrix,
            TAPS * TAPS * matrix if self._packs else 0,
            transform,
            max(transform, tile),
        )

    def _transform_filter(
        self, taps: np.ndarray, transformed: np.ndarray, packed: np.ndarray
    ) -> np.ndarray:
        """[K, C, 3, 3] -> [36, K, C]."""
        outputs, channels = taps.shape[:2]
        matrix = _taps_matrix(taps)
        if matrix is None:
            matrix = packed.reshape(TAPS * TAPS, -1)
            store(packed.reshape(TAPS, TAPS, outputs, channels), taps.transpose(2, 3, 0, 1))
        np.matmul(FILTER_TRANSFORM, matrix, out=transformed.reshape(IN * IN, -1))
        return transformed.reshape(IN * IN, outputs, channels)

    def _run_box(
        self,
        problem: Correlation,
        group: int,
        box: Box,
        weights: np.ndarray,
        ping: np.ndarray,
        pong: np.ndarray,
    ) -> None:
        images, *tiles = box
        extents = box_shape(box)

        extent = self._window.tile(extents[1:])
        tile = _tiles(
            pong, 1, problem.channels, (extents[0], *extent), channels_last=self._src_last
        )
        inputs = _tiles(ping, IN * IN, problem.channels, extents, channels_last=self._src_last)
        gather_columns_through(
            tile[0],
            inputs.reshape(IN, IN, *inputs.shape[1:]),
            problem.src[images, group].swapaxes(0, 1),
            self._window,
            tuple(tiles),
        )
        inputs_hat = _tiles(pong, IN * IN, problem.channels, extents, channels_last=self._src_last)
        _transform(INPUT_TRANSFORM, ping, pong, inputs.size)

        outputs_hat = _tiles(ping, IN * IN, problem.outputs, extents, channels_last=self._dst_last)
        width = math.prod(extents)
        np.matmul(
            weights,
            inputs_hat.reshape(IN * IN, problem.channels, width),
            out=outputs_hat.reshape(IN * IN, problem.outputs, width),
        )
        outputs = _tiles(pong, OUT * OUT, problem.outputs, extents, channels_last=self._dst_last)
        _transform(OUTPUT_TRANSFORM, ping, pong, outputs_hat.size)

        for index in range(OUT * OUT):
            row, column = divmod(index, OUT)
            target = problem.dst[
                images,
                group,
                :,
                tiles[0].start * OUT + row : tiles[0].stop * OUT : OUT,
                tiles[1].start * OUT + column : tiles[1].stop * OUT : OUT,
            ]
            values = outputs[index].transpose(1, 0, 2, 3)
            store(target, values[..., : target.shape[2], : target.shape[3]])


def _taps_matrix(taps: np.ndarray) -> np.ndarray | None:
    """View [..., K, C, 3, 3] as [9, K * C], or None where it takes a copy."""
    one = taps[0] if taps.ndim > 4 else taps
    matrix = merge_axes(one.transpose(2, 3, 0, 1), 2, 2)
    return blas_matrix(matrix, np.dtype(np.float32))


def _tiles(
    memory: np.ndarray,
    points: int,
    channels: int,
    extents: tuple[int, ...],
    *,
    channels_last: bool,
) -> np.ndarray:
    """Lay [points, channels, n, tile rows, tile columns] over the start of ``memory``."""
    flat = memory[: points * channels * math.prod(extents)]
    if channels_last:
        return np.moveaxis(flat.reshape(points, *extents, channels), -1, 1)
    return flat.reshape(points, channels, *extents)


def _transform(matrix: np.ndarray, source: np.ndarray, target: np.ndarray, size: int) -> None:
    """``target = matrix @ source``, both flat, the leading axis being points."""
    rows, points = matrix.shape
    width = size // points
    np.matmul(
        matrix,
        source[:size].reshape(points, width),
        out=target[: rows * width].reshape(rows, width),
    )
