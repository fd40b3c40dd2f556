"""Every convolution as correlations of strided views.

Forward is one correlation of the input with the filter. The gradient of the data is one
correlation of the output's gradient for each residue of the input position modulo the stride:
within one residue class only every so-many-th tap contributes, and those taps move over the
gradient one element at a time. So nothing is scattered, and each element is written once.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .views import trailing

if TYPE_CHECKING:
    from .geometry import ConvGeometry
    from .views import Box


@dataclass(frozen=True)
class Correlation:
    """Sliding products of two views, summed over channels and taps, written to a third.

    ``dst[n,g,k,o] = sum over c, r of filter[g,k,c,r] * src[n,g,c,i]`` with
    ``i = o*stride + r*dilation + offset``; positions outside of ``src`` count as zero. All three
    arrays are views of the caller's.

    Attributes:
        src: [N, G, C, in...].
        filter: [G, K, C, taps...].
        dst: [N, G, K, out...].
        stride: Source elements between neighbouring outputs, one entry per spatial axis.
        dilation: Source elements between neighbouring taps.
        offset: Source position of tap 0 of output 0; minus the padding in a forward convolution.
    """

    src: np.ndarray
    filter: np.ndarray
    dst: np.ndarray
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    offset: tuple[int, ...]

    @property
    def images(self) -> int:
        """N."""
        return int(self.src.shape[0])

    @property
    def groups(self) -> int:
        """G."""
        return int(self.src.shape[1])

    @property
    def channels(self) -> int:
        """Input channels a group."""
        return int(self.src.shape[2])

    @property
    def outputs(self) -> int:
        """Output channels a group."""
        return int(self.dst.shape[2])

    @property
    def taps(self) -> tuple[int, ...]:
        """Filter extents."""
        return self.filter.shape[3:]

    @property
    def tap_count(self) -> int:
        """Number of taps."""
        return math.prod(self.taps)

    @property
    def out(self) -> tuple[int, ...]:
        """Output extents."""
        return self.dst.shape[3:]


def split_channels(tensor: np.ndarray, groups: int) -> np.ndarray:
    """View [N, C, ...] as [N, G, C/G, ...]."""
    return tensor.reshape(tensor.shape[0], groups, -1, *tensor.shape[2:])


def _grouped_filter(w: np.ndarray, groups: int, *, flip: bool) -> np.ndarray:
    """View [K, C/G, taps...] as [G, K/G, C/G, taps...], reversed along the taps if asked."""
    grouped = w.reshape(groups, -1, *w.shape[1:])
    if flip:
        grouped = grouped[trailing([slice(None, None, -1)] * (w.ndim - 2))]
    return grouped


def forward(x: np.ndarray, w: np.ndarray, y: np.ndarray, geometry: ConvGeometry) -> Correlation:
    """The forward convolution. Backward weights has the same views, with the filter as output."""
    groups = x.shape[1] // w.shape[1]
    return Correlation(
        src=split_channels(x, groups),
        filter=_grouped_filter(w, groups, flip=geometry.flip),
        dst=split_channels(y, groups),
        stride=geometry.stride,
        dilation=geometry.dilation,
        offset=tuple(-pad for pad in geometry.pre_padding),
    )


@dataclass(frozen=True)
class _Residue:
    """The taps of one axis that reach the inputs ``first, first + stride, ...``."""

    taps: slice
    dilation: int
    offset: int


def _residue(first: int, *, stride: int, dilation: int, padding: int, taps: int) -> _Residue:
    """Solve ``first + stride*j + padding = stride*o + dilation*r`` for the taps r that have an o.

    If r0 is the smallest solution the others are r0 + m * stride/gcd(stride, dilation), and
    ``o = j + (first + padding - dilation*r0)/stride - m * dilation/gcd``. They come back in
    falling order, so that o rises.
    """
    common = math.gcd(stride, dilation)
    period = stride // common
    for tap in range(min(period, taps)):
        distance = first + padding - dilation * tap
        if distance % stride == 0:
            last = tap + (taps - 1 - tap) // period * period
            step = dilation // common
            offset = distance // stride - (last - tap) // period * step
            return _Residue(slice(last, tap - 1 if tap else None, -period), step, offset)
    return _Residue(slice(0, 0), 1, 0)


def backward_data(
    dy: np.ndarray, w: np.ndarray, dx: np.ndarray, geometry: ConvGeometry
) -> list[Correlation]:
    """The gradient of the data: one correlation for each residue of dx's positions.

    A residue that no tap reaches is a correlation without taps: its dx is zero.
    """
    groups = dx.shape[1] // w.shape[1]
    src = split_channels(dy, groups)
    grouped = np.swapaxes(_grouped_filter(w, groups, flip=geometry.flip), 1, 2)
    dst = split_channels(dx, groups)
    axes = range(geometry.rank)
    parts = []
    for firsts in itertools.product(
        *(range(min(geometry.stride[axis], dx.shape[2 + axis])) for axis in axes)
    ):
        residues = [
            _residue(
                firsts[axis],
                stride=geometry.stride[axis],
                dilation=geometry.dilation[axis],
                padding=geometry.pre_padding[axis],
                taps=w.shape[2 + axis],
            )
            for axis in axes
        ]
        positions: Box = tuple(
            slice(first, None, step) for first, step in zip(firsts, geometry.stride, strict=True)
        )
        parts.append(
            Correlation(
                src=src,
                filter=grouped[trailing(residue.taps for residue in residues)],
                dst=dst[trailing(positions)],
                stride=(1,) * geometry.rank,
                dilation=tuple(residue.dilation for residue in residues),
                offset=tuple(residue.offset for residue in residues),
            )
        )
    return parts
