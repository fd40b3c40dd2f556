"""Batch normalisation against onnx, onnxruntime, PyTorch and its own derivative."""

from __future__ import annotations

import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hipdnn_cpu_provider.kernels.batchnorm import (
    BLOCK_BYTES,
    RunningStatistics,
    batchnorm,
    batchnorm_backward,
    batchnorm_inference,
    batchnorm_inference_variance,
)
from tests.cpu_provider.conv_cases import GUARD, memory_and_view
from tests.cpu_provider.onnx_parties import onnxruntime_run, reference_run

EPSILON = 1e-3
SPATIAL, PER_ACTIVATION = (1, 5, 1, 1), (1, 5, 4, 3)
SHAPE = (6, 5, 4, 3)
every_mode = pytest.mark.parametrize(
    "stats", [SPATIAL, PER_ACTIVATION], ids=["spatial", "per_activation"]
)
every_precision = pytest.mark.parametrize("double", [False, True], ids=["gemm", "reference"])


def random(shape: tuple[int, ...], seed: int, dtype: Any = np.float64) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@every_precision
@pytest.mark.parametrize("layout", ["packed", "channels_last", "strided"])
def test_training_against_onnx(layout: str, double: bool) -> None:
    x = memory_and_view(SHAPE, layout, np.float32)[1]
    x[...] = 3 + 2 * random(SHAPE, 0)
    scale, bias, mean, variance = (random(SPATIAL, seed, np.float32) for seed in (1, 2, 3, 4))
    variance = np.abs(variance)
    memory, y = memory_and_view(SHAPE, layout, np.float32)
    running = RunningStatistics(mean, variance, np.empty_like(mean), np.empty_like(mean), 0.1)
    saved_mean, saved_inverse = np.empty_like(mean), np.empty_like(mean)
    batchnorm(
        x,
        scale,
        bias,
        EPSILON,
        y,
        mean=saved_mean,
        inv_variance=saved_inverse,
        running=running,
        double=double,
    )
    # ONNX's momentum is the weight of the past.
    flat = [array.ravel() for array in (scale, bias, mean, variance)]
    expected, next_mean, next_biased = reference_run(
        "BatchNormalization", x, *flat, outputs=3, training_mode=1, momentum=0.9, epsilon=EPSILON
    )
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(running.next_mean.ravel(), next_mean, rtol=1e-5)
    # ONNX keeps the biased variance in the running one, cuDNN and hipDNN the unbiased one.
    count = x.size // x.shape[1]
    batch = (next_biased - 0.9 * flat[3]) / 0.1
    np.testing.assert_allclose(
        running.next_variance.ravel(), 0.9 * flat[3] + 0.1 * batch * count / (count - 1), rtol=1e-4
    )
    np.testing.assert_allclose(saved_mean.ravel(), x.mean(axis=(0, 2, 3)), rtol=1e-5)
    np.testing.assert_allclose(saved_inverse.ravel(), 1 / np.sqrt(batch + EPSILON), rtol=1e-4)
    if layout == "strided":
        assert (memory[:2] == GUARD).all()
        assert (memory[3::2] == GUARD).all()


@every_precision
def test_inference_against_onnxruntime(double: bool) -> None:
    x = random(SHAPE, 0, np.float32)
    scale, bias, mean, variance = (random(SPATIAL, seed, np.float32) for seed in (1, 2, 3, 4))
    variance = np.abs(variance)
    expected = onnxruntime_run(
        "BatchNormalization",
        x,
        *(a.ravel() for a in (scale, bias, mean, variance)),
        epsilon=EPSILON,
    )
    y = np.empty_like(x)
    batchnorm_inference_variance(x, mean, variance, scale, bias, EPSILON, y, double=double)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    inverse = (1 / np.sqrt(variance + EPSILON)).astype(np.float32)
    batchnorm_inference(x, mean, inverse, scale, bias, y, double=double)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


@every_mode
@pytest.mark.parametrize("keep", [False, True], ids=["recomputed", "saved"])
def test_backward_is_the_derivative(stats: tuple[int, ...], keep: bool) -> None:
    x, dy = random(SHAPE, 0), random(SHAPE, 1)
    scale, bias = random(stats, 2), random(stats, 3)
    y, mean, inverse = np.empty(SHAPE), np.empty(stats), np.empty(stats)

    def loss() -> float:
        batchnorm(x, scale, bias, EPSILON, y, mean=mean, inv_variance=inverse)
        return float(np.vdot(y, dy))

    loss()
    dx, dscale, dbias = np.empty(SHAPE), np.empty(stats), np.empty(stats)
    saved = (mean.copy(), inverse.copy()) if keep else None
    batchnorm_backward(x, dy, scale, dx, dscale, dbias, saved=saved, epsilon=EPSILON)
    step = 1e-5
    for value, gradient in ((x, dx), (scale, dscale), (bias, dbias)):
        for index in np.ndindex(value.shape):
            kept = value[index]
            value[index] = kept + step
            up = loss()
            value[index] = kept - step
            down = loss()
            value[index] = kept
            assert abs((up - down) / (2 * step) - gradient[index]) < 1e-7


@every_mode
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(np.float32, 2e-6), (np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2)],
    ids=["float", "half", "bfloat16"],
)
def test_precisions_agree(stats: tuple[int, ...], dtype: Any, tolerance: float) -> None:
    x, dy = random(SHAPE, 0, dtype), random(SHAPE, 1, dtype)
    scale, bias = random(stats, 2, np.float32), random(stats, 3, np.float32)
    results = []
    for double in (False, True):
        out = np.float64 if double else dtype
        y, dx = np.empty(SHAPE, out), np.empty(SHAPE, out)
        dscale, dbias = np.empty(stats), np.empty(stats)
        mean, inverse = np.empty(stats, np.float32), np.empty(stats, np.float32)
        batchnorm(x, scale, bias, EPSILON, y, mean=mean, inv_variance=inverse, double=double)
        batchnorm_backward(x, dy, scale, dx, dscale, dbias, saved=(mean, inverse), double=double)
        results.append([array.astype(np.float64) for array in (y, dx, dscale, dbias)])
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(
            actual, expected, rtol=0, atol=tolerance * np.abs(expected).max()
        )


@every_precision
def test_large_mean_does_not_cancel(double: bool) -> None:
    # The squares of 2^20 + 1 fill float32 forty bits over: a one-pass variance would be noise.
    x = (2.0**20 + np.random.default_rng(0).integers(-8, 9, (16, 2, 16, 16))).astype(np.float32)
    centered = x.astype(np.float64) - x.mean(axis=(0, 2, 3), keepdims=True, dtype=np.float64)
    one, zero, y = (
        np.ones((1, 2, 1, 1), np.float32),
        np.zeros((1, 2, 1, 1), np.float32),
        np.empty_like(x),
    )
    batchnorm(x, one, zero, 0.0, y, double=double)
    expected = centered / centered.std(axis=(0, 2, 3), keepdims=True)
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-5)


def test_single_element_keeps_running_variance_finite() -> None:
    x = np.array([[[[3.0]], [[5.0]]]])
    one, zero = np.ones((1, 2, 1, 1)), np.zeros((1, 2, 1, 1))
    running = RunningStatistics(zero, one, np.empty_like(one), np.empty_like(one), 0.25)
    y = np.empty_like(x)
    batchnorm(x, one, zero + 7, EPSILON, y, running=running)
    assert (y == 7).all()
    np.testing.assert_allclose(running.next_variance, 0.75)
    np.testing.assert_allclose(running.next_mean.ravel(), [0.75, 1.25])


def test_running_statistics_may_be_updated_in_place() -> None:
    x = random(SHAPE, 0)
    one, zero, y = np.ones(SPATIAL), np.zeros(SPATIAL), np.empty(SHAPE)
    mean, variance = zero.copy(), one.copy()
    batchnorm(
        x, one, zero, EPSILON, y, running=RunningStatistics(mean, variance, mean, variance, 1.0)
    )
    np.testing.assert_allclose(mean.ravel(), x.mean(axis=(0, 2, 3)))
    np.testing.assert_allclose(variance.ravel(), x.var(axis=(0, 2, 3), ddof=1))


@pytest.mark.parametrize("layout", ["packed", "channels_last"])
def test_temporaries_are_bounded(layout: str) -> None:
    shape, stats = (8, 32, 64, 64), (1, 32, 1, 1)
    x = memory_and_view(shape, layout, np.float32)[1]
    y = np.empty_like(x)
    one = np.ones(stats, np.float32)
    tracemalloc.start()
    batchnorm(x, one, one, EPSILON, y)
    batchnorm_backward(x, y, one, y, one.copy(), one.copy(), epsilon=EPSILON)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * BLOCK_BYTES < x.nbytes


def test_wrong_shapes_are_named() -> None:
    x, y = np.zeros((2, 3, 4)), np.zeros((2, 3, 4))
    with pytest.raises(ValueError, match=r"scale \(1, 2, 1\)"):
        batchnorm(x, np.ones((1, 2, 1)), np.ones((1, 2, 1)), EPSILON, y)
    with pytest.raises(ValueError, match=r"\(1, 3\) belongs neither"):
        batchnorm(x, np.ones((1, 3, 1)), np.ones((1, 3)), EPSILON, y)


def test_gradients_against_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: not compared with it")
    x, dy = random(SHAPE, 0), random(SHAPE, 1)
    scale, bias = random(SPATIAL, 2), random(SPATIAL, 3)
    leaves = [torch.tensor(a, requires_grad=True) for a in (x, scale.ravel(), bias.ravel())]
    y = torch.nn.functional.batch_norm(
        leaves[0], None, None, leaves[1], leaves[2], training=True, eps=EPSILON
    )
    y.backward(torch.tensor(dy))
    dx, dscale, dbias = np.empty(SHAPE), np.empty(SPATIAL), np.empty(SPATIAL)
    batchnorm_backward(x, dy, scale, dx, dscale, dbias, epsilon=EPSILON)
    for actual, leaf in zip((dx, dscale, dbias), leaves, strict=True):
        expected = leaf.grad.numpy().reshape(actual.shape)
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)
