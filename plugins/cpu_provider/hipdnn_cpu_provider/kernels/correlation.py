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


class TooManyResiduesError(ValueError):
    """The gradient of the data falls apart into more correlations than are worth computing."""


MOST_RESIDUES = 4096


@dataclass(frozen=True)
class _Residue:
    """The positions ``first, first + stride, ...`` of one axis, and the taps that reach them."""

    first: int
    taps: slice
    dilation: int
    offset: int


@dataclass(frozen=True)
class _Axis:
    """One spatial axis of a data gradient."""

    size: int
    taps: int
    stride: int
    dilation: int
    padding: int

    @property
    def period(self) -> int:
        """Taps that are this far apart reach the same residue."""
        return self.stride // math.gcd(self.stride, self.dilation)

    @property
    def bound(self) -> int:
        """No more residues than this are reached by a tap."""
        return min(self.period, self.taps)

    def residues(self) -> list[_Residue]:
        """Solve ``first + stride*j + padding = stride*o + dilation*r`` for all r that have an o.

        If r0 is the smallest solution for a residue the others are r0 + m * period, and
        ``o = j + (first + padding - dilation*r0)/stride - m * dilation/gcd``. The taps come in
        falling order, so that o rises.
        """
        step = self.dilation // math.gcd(self.stride, self.dilation)
        found = []
        for tap in range(self.bound):
            first = (self.dilation * tap - self.padding) % self.stride
            if first < self.size:
                last = tap + (self.taps - 1 - tap) // self.period * self.period
                distance = first + self.padding - self.dilation * tap
                offset = distance // self.stride - (last - tap) // self.period * step
                stop = tap - 1 if tap else None
                found.append(_Residue(first, slice(last, stop, -self.period), step, offset))
        return sorted(found, key=lambda residue: residue.first)


def _axes(dx: np.ndarray, w: np.ndarray, geometry: ConvGeometry) -> list[_Axis]:
    return [
        _Axis(*numbers)
        for numbers in zip(
            dx.shape[2:],
            w.shape[2:],
            geometry.stride,
            geometry.dilation,
            geometry.pre_padding,
            strict=True,
        )
    ]


def leaves_gaps(dx: np.ndarray, w: np.ndarray, geometry: ConvGeometry) -> bool:
    """Whether a data gradient has positions that no tap reaches: their gradient is zero."""
    return any(
        len(axis.residues()) < min(axis.stride, axis.size) for axis in _axes(dx, w, geometry)
    )


def backward_data(
    dy: np.ndarray, w: np.ndarray, dx: np.ndarray, geometry: ConvGeometry
) -> list[Correlation]:
    """The gradient of the data: one correlation for each residue of dx that a tap reaches.

    Raises:
        TooManyResiduesError: There are more of them than `MOST_RESIDUES`.
    """
    axes = _axes(dx, w, geometry)
    if math.prod(axis.bound for axis in axes) > MOST_RESIDUES:
        raise TooManyResiduesError(
            f"stride {geometry.stride} parts the data gradient of filter {w.shape[2:]} into more "
            f"than {MOST_RESIDUES} correlations"
        )
    groups = dx.shape[1] // w.shape[1]
    src = split_channels(dy, groups)
    grouped = np.swapaxes(_grouped_filter(w, groups, flip=geometry.flip), 1, 2)
    dst = split_channels(dx, groups)
    parts = []
    for residues in itertools.product(*(axis.residues() for axis in axes)):
        positions: Box = tuple(
            slice(residue.first, None, axis.stride)
            for residue, axis in zip(residues, axes, strict=True)
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
