"""Gathering the inputs that each filter tap meets (im2col), a box of output positions at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .views import Box, box_shape, trailing

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Window:
    """How outputs and taps map to source positions: ``o * stride + tap * dilation + offset``.

    Attributes:
        taps: Filter extents, one entry per spatial axis, as in every tuple here.
        stride: At least 1.
        dilation: At least 1.
        offset: Of either sign.
    """

    taps: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    offset: tuple[int, ...]

    def field(self, outputs: Sequence[int]) -> tuple[int, ...]:
        """Extents of the source region that a box of so many outputs sees, padding included."""
        return tuple(
            (count - 1) * stride + (taps - 1) * dilation + 1
            for count, taps, stride, dilation in zip(
                outputs, self.taps, self.stride, self.dilation, strict=True
            )
        )

    def tile(self, outputs: Sequence[int]) -> tuple[int, ...]:
        """Extents of the copy of that region which `gather_columns_through` makes.

        The innermost axis is split into [phase, position / stride], so that the outputs of a row
        read neighbours.
        """
        *outer, inner = self.field(outputs)
        return (*outer, self.stride[-1], -(-inner // self.stride[-1]))


def gather_columns(
    columns: np.ndarray, src: np.ndarray, window: Window, positions: Box, taps: range
) -> None:
    """Fill ``columns[t, ..., o] = src[..., o*stride + tap(t)*dilation + offset]``, zero outside.

    Args:
        columns: [taps, ..., positions...], any strides; converts to its own type.
        src: [..., in...], as many leading axes as ``columns`` has between taps and positions.
        window: The mapping.
        positions: The box of output positions to gather.
        taps: Which taps, numbered in row-major order; as many as ``columns`` has.
    """
    for column, tap in zip(columns, taps, strict=True):
        index = np.unravel_index(tap, window.taps)
        shifts = [
            offset + int(at) * dilation
            for at, dilation, offset in zip(index, window.dilation, window.offset, strict=True)
        ]
        _copy_or_zero(column, src, positions, window.stride, shifts)


def gather_columns_through(
    tile: np.ndarray, columns: np.ndarray, src: np.ndarray, window: Window, positions: Box
) -> None:
    """Do what `gather_columns` does for all taps, by way of a padded copy of the source.

    The source is read, converted and padded once instead of once a tap, and all taps are views
    of the copy.

    Args:
        tile: [..., tile...], where tile is ``window.tile`` of the box.
        columns: [taps..., ..., positions...], any strides.
        src: [..., in...].
        window: The mapping.
        positions: The box of output positions to gather.
    """
    rank = len(positions)
    outputs = box_shape(positions)
    field = window.field(outputs)
    starts = [
        part.start * stride + offset
        for part, stride, offset in zip(positions, window.stride, window.offset, strict=True)
    ]
    phases, width = tile.shape[-2:]
    for phase in range(phases):
        _copy_or_zero(
            tile[..., phase, :],
            src,
            (*(slice(0, size) for size in field[:-1]), slice(0, width)),
            (*(1,) * (rank - 1), phases),
            (*starts[:-1], starts[-1] + phase),
        )
    lead = tile.ndim - rank - 1
    outer = tile.strides[lead:-2]
    shape = (*window.taps[:-1], *tile.shape[:lead], *outputs)
    strides = (
        *(step * dilation for step, dilation in zip(outer, window.dilation[:-1], strict=True)),
        *tile.strides[:lead],
        *(step * stride for step, stride in zip(outer, window.stride[:-1], strict=True)),
        tile.strides[-1],
    )
    for tap in range(window.taps[-1]):
        shift, phase = divmod(tap * window.dilation[-1], phases)
        column = np.moveaxis(columns, rank - 1, 0)[tap]
        np.copyto(column, as_strided(tile[..., phase, shift:], shape, strides))


def _copy_or_zero(
    target: np.ndarray,
    src: np.ndarray,
    positions: Box,
    stride: tuple[int, ...],
    shifts: Sequence[int],
) -> None:
    """``target[..., o - start] = src[..., o*stride + shift]`` for o in positions, zero outside."""
    extents = src.shape[src.ndim - len(positions) :]
    inside: list[slice] = []
    source: list[slice] = []
    for part, step, shift, extent in zip(positions, stride, shifts, extents, strict=True):
        first = max(part.start, -(shift // step))
        stop = min(part.stop, (extent - 1 - shift) // step + 1)
        if first >= stop:
            target.fill(0)
            return
        at = first * step + shift
        inside.append(slice(first - part.start, stop - part.start))
        source.append(slice(at, at + (stop - first - 1) * step + 1, step))
    region: list[slice] = [slice(None)] * len(inside)
    for axis, part in enumerate(inside):
        for margin in (slice(0, part.start), slice(part.stop, target.shape[axis - len(inside)])):
            if margin.start < margin.stop:
                region[axis] = margin
                target[trailing(region)] = 0
        region[axis] = part
    np.copyto(target[trailing(inside)], src[trailing(source)], casting="unsafe")
