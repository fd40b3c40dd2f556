"""What the calls compute, against sums written out, on an engine that runs on the host."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from hipdnn_miopen_provider.shim import (
    ActivationDescriptor,
    ActivationMode,
    BatchNormMode,
    ConvolutionDescriptor,
    ConvolutionMode,
    DataType,
    MiopenHandle,
    TensorDescriptor,
    convolution_backward_data,
    convolution_backward_weights,
    convolution_forward,
)
from tests.miopen_provider.shim.engines import HostEngine, host_registry
from tests.shim_calls import BatchNorm, Conv

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module")
def handle() -> MiopenHandle:
    return MiopenHandle(registry=host_registry(HostEngine()))


def array(desc: TensorDescriptor) -> Array:
    return RANDOM.standard_normal(desc.dims).astype(np.float32)


def taps(x: Array, w: Array, y_dims: tuple[int, ...], conv: ConvolutionDescriptor) -> Any:
    """Every (index of x, of w, of y) whose products a plain convolution adds up."""
    fields = conv.fields
    per_group = w.shape[1]
    for n, k, p, q in np.ndindex(*y_dims):
        for c, r, s in np.ndindex(*w.shape[1:]):
            h = p * fields.strides[0] + r * fields.dilations[0] - fields.pads[0]
            v = q * fields.strides[1] + s * fields.dilations[1] - fields.pads[1]
            if 0 <= h < x.shape[2] and 0 <= v < x.shape[3]:
                channel = k // (w.shape[0] // fields.group_count) * per_group + c
                yield (n, channel, h, v), (k, c, r, s), (n, k, p, q)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_convolutions(transposed: bool, groups: int, handle: MiopenHandle) -> None:
    """Grouped and transposed, each direction: the transposed one's y is the plain one's x."""
    pads, strides, dilations = (1, 0), (2, 1), (1, 2)
    plain = ConvolutionDescriptor(pads, strides, dilations, group_count=groups)
    image = TensorDescriptor(DataType.Float, (2, 4, 6, 7))
    filters = TensorDescriptor(DataType.Float, (8, 4 // groups, 3, 2))
    result = TensorDescriptor(DataType.Float, plain.get_forward_output_dim(image, filters))
    x, w, y = array(image), array(filters), array(result)
    sums = {name: np.zeros_like(a, np.float64) for name, a in (("x", x), ("w", w), ("y", y))}
    for at_x, at_w, at_y in taps(x, w, result.dims, plain):
        sums["y"][at_y] += float(x[at_x]) * float(w[at_w])
        sums["x"][at_x] += float(y[at_y]) * float(w[at_w])
        sums["w"][at_w] += float(y[at_y]) * float(x[at_x])
    conv, x_desc, y_desc = plain, image, result
    if transposed:
        left = [1, 0]  # of the extents, by the stride
        conv = ConvolutionDescriptor(
            *(pads, strides, dilations, ConvolutionMode.Transpose),
            group_count=groups,
            output_padding=left,
        )
        x_desc, y_desc, x, y = result, image, y, x
        sums["x"], sums["y"] = sums["y"], sums["x"]
    assert conv.get_forward_output_dim(x_desc, filters) == y_desc.dims
    out = {"x": np.empty_like(x), "w": np.empty_like(w), "y": np.empty_like(y)}
    convolution_forward(handle, x_desc, x, filters, w, conv, y_desc, out["y"])
    convolution_backward_data(handle, y_desc, y, filters, w, conv, x_desc, out["x"])
    convolution_backward_weights(handle, y_desc, y, x_desc, x, conv, filters, out["w"])
    for name, expected in sums.items():
        np.testing.assert_allclose(out[name], expected, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        (ActivationDescriptor(ActivationMode.PASTHRU), lambda v: v),
        (ActivationDescriptor(ActivationMode.RELU), lambda v: np.maximum(v, 0)),
        (ActivationDescriptor(ActivationMode.CLIPPEDRELU, 2.0), lambda v: np.clip(v, 0, 2)),
        (ActivationDescriptor(ActivationMode.LEAKYRELU, 0.5), lambda v: np.where(v > 0, v, v / 2)),
        (ActivationDescriptor(ActivationMode.CLAMP, -1.0, 2.0), lambda v: np.clip(v, -1, 2)),
        (ActivationDescriptor(ActivationMode.CLAMP, 0.0, 2.0), lambda v: np.clip(v, 0, 2)),
        (ActivationDescriptor(ActivationMode.LOGISTIC), lambda v: 1 / (1 + np.exp(-v))),
        (ActivationDescriptor(ActivationMode.TANH, 1.0, 1.0), np.tanh),
    ],
)
def test_fused(activation: ActivationDescriptor, function: Any, handle: MiopenHandle) -> None:
    conv = Conv(array)
    conv.forward(handle)
    expected = function(conv.y.astype(np.float64) + conv.bias)
    conv.fused(handle, activation)
    np.testing.assert_allclose(conv.y, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", BatchNormMode)
@pytest.mark.parametrize(("running", "save"), list(itertools.product([False, True], repeat=2)))
def test_batchnorm(mode: BatchNormMode, running: bool, save: bool, handle: MiopenHandle) -> None:
    norm = BatchNorm(array, mode=mode)
    of = norm.statistics
    of["variance"][...] = np.abs(of["variance"]) + 0.5
    before = {name: a.copy() for name, a in of.items()}
    axes = (0, 2, 3) if mode is BatchNormMode.Spatial else (0,)
    x = norm.x.astype(np.float64)
    mean, variance = (f(x, axis=axes, keepdims=True) for f in (np.mean, np.var))
    inverse = 1 / np.sqrt(variance + 1e-5)

    norm.training(handle, running=running, save=save, factor=0.25)

    np.testing.assert_allclose(
        norm.y, (x - mean) * inverse * before["scale"] + before["bias"], rtol=1e-4, atol=1e-4
    )
    if running:
        count = x.size // mean.size
        next_mean = 0.75 * before["mean"] + 0.25 * mean
        next_variance = 0.75 * before["variance"] + 0.25 * variance * count / (count - 1)
        np.testing.assert_allclose(of["mean"], next_mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(of["variance"], next_variance, rtol=1e-5)
    else:
        np.testing.assert_array_equal(of["mean"], before["mean"])
    if save:
        np.testing.assert_allclose(of["saved_mean"], mean, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(of["saved_inv"], inverse, rtol=1e-5)
    else:
        np.testing.assert_array_equal(of["saved_mean"], before["saved_mean"])

    y = norm.y.astype(np.float64)
    norm.backward(handle, saved=save)
    count = x.size // mean.size
    normal = (x - mean) * inverse
    dscale, dbias = ((y * f).sum(axis=axes, keepdims=True) for f in (normal, 1.0))
    dx = of["scale"] * inverse * (y - dbias / count - normal * dscale / count)
    np.testing.assert_allclose(of["dscale"], dscale, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(of["dbias"], dbias, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(norm.dx, dx, rtol=1e-3, atol=1e-3)

    norm.inference(handle)
    scaled = (x - of["mean"]) / np.sqrt(of["variance"] + 1e-5)
    np.testing.assert_allclose(norm.y, scaled * of["scale"] + of["bias"], rtol=1e-4, atol=1e-4)
