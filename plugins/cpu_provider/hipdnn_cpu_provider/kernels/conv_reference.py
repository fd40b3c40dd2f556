"""Convolutions in float64, tap by tap: slow, deterministic, and simple enough to be believed.

The order of every sum is fixed, and no BLAS is involved. The temporaries are float64 copies of
one image's group (x, y) and of one filter tap: they grow with an image, not with the batch.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from .correlation import split_channels
from .operands import store
from .views import trailing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .geometry import ConvGeometry


def _taps(
    w: tuple[int, ...], y: tuple[int, ...], geometry: ConvGeometry
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each tap's index into the filter, and the padded inputs that it meets, one per output."""
    for tap in itertools.product(*(range(size) for size in w[2:])):
        region = []
        for at, taps, outputs, stride, dilation in zip(
            tap, w[2:], y[2:], geometry.stride, geometry.dilation, strict=True
        ):
            start = (taps - 1 - at if geometry.flip else at) * dilation
            region.append(slice(start, start + (outputs - 1) * stride + 1, stride))
        yield tap, tuple(region)


def _padded(x: tuple[int, ...], geometry: ConvGeometry) -> tuple[np.ndarray, np.ndarray]:
    """Zeros for [C, padded...], and the view of the unpadded part."""
    pads = list(zip(geometry.pre_padding, geometry.post_padding, strict=True))
    padded = np.zeros(
        (x[0], *(pre + size + post for size, (pre, post) in zip(x[1:], pads, strict=True)))
    )
    inside = tuple(slice(pre, pre + size) for size, (pre, _) in zip(x[1:], pads, strict=True))
    return padded, padded[trailing(inside)]


def conv_fprop(x: np.ndarray, w: np.ndarray, y: np.ndarray, geometry: ConvGeometry) -> None:
    """Write the convolution of ``x`` [N, C, in...] with ``w`` [K, C/G, taps...] into ``y``.

    Raises:
        ValueError: The shapes don't belong together.
    """
    geometry.check(x.shape, w.shape, y.shape)
    groups = x.shape[1] // w.shape[1]
    xs, ys = split_channels(x, groups), split_channels(y, groups)
    ws = w.reshape(groups, -1, *w.shape[1:])
    for image, group in np.ndindex(x.shape[0], groups):
        padded, inside = _padded(xs.shape[2:], geometry)
        inside[...] = xs[image, group]
        total = np.zeros(ys.shape[2:])
        for tap, region in _taps(w.shape, y.shape, geometry):
            weights = ws[group][trailing(tap)].astype(np.float64)
            total += np.einsum("kc,c...->k...", weights, padded[trailing(region)])
        store(ys[image, group], total)


def conv_dgrad(dy: np.ndarray, w: np.ndarray, dx: np.ndarray, geometry: ConvGeometry) -> None:
    """Write the gradient of the data, [N, C, in...], into ``dx``.

    Raises:
        ValueError: The shapes don't belong together.
    """
    geometry.check(dx.shape, w.shape, dy.shape)
    groups = dx.shape[1] // w.shape[1]
    dxs, dys = split_channels(dx, groups), split_channels(dy, groups)
    ws = w.reshape(groups, -1, *w.shape[1:])
    for image, group in np.ndindex(dx.shape[0], groups):
        padded, inside = _padded(dxs.shape[2:], geometry)
        gradient = dys[image, group].astype(np.float64)
        for tap, region in _taps(w.shape, dy.shape, geometry):
            weights = ws[group][trailing(tap)].astype(np.float64)
            padded[trailing(region)] += np.einsum("kc,k...->c...", weights, gradient)
        store(dxs[image, group], inside)


def conv_wgrad(dy: np.ndarray, x: np.ndarray, dw: np.ndarray, geometry: ConvGeometry) -> None:
    """Write the gradient of the filter, [K, C/G, taps...], into ``dw``.

    Raises:
        ValueError: The shapes don't belong together.
    """
    geometry.check(x.shape, dw.shape, dy.shape)
    groups = x.shape[1] // dw.shape[1]
    xs, dys = split_channels(x, groups), split_channels(dy, groups)
    for group in range(groups):
        outputs = slice(group * dys.shape[2], (group + 1) * dys.shape[2])
        total = np.zeros((dys.shape[2], *dw.shape[1:]))
        for image in range(x.shape[0]):
            padded, inside = _padded(xs.shape[2:], geometry)
            inside[...] = xs[image, group]
            gradient = dys[image, group].astype(np.float64).reshape(dys.shape[2], -1)
            for tap, region in _taps(dw.shape, dy.shape, geometry):
                met = padded[trailing(region)].reshape(xs.shape[2], -1)
                total[trailing(tap)] += np.einsum("kp,cp->kc", gradient, met)
        store(dw[outputs], total)
