"""Pointwise operations against onnxruntime, the math module, and numerical derivatives."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipdnn_cpu_provider.kernels import special
from hipdnn_cpu_provider.kernels.pointwise import (
    INPUTS,
    TEMPORARY_BYTES,
    PointwiseParameters,
    pointwise,
)
from tests.cpu_provider.conv_cases import GUARD, memory_and_view
from tests.cpu_provider.onnx_parties import onnxruntime_run

INF, NAN = math.inf, math.nan


def run(mode: str, *inputs: Any, dtype: Any = np.float64, **parameters: float) -> np.ndarray:
    arrays = [np.asarray(value, dtype) for value in inputs]
    out = np.empty(np.broadcast_shapes(*(array.shape for array in arrays)), dtype)
    pointwise(mode, arrays, out, PointwiseParameters(**parameters))
    return out


X = np.concatenate([np.linspace(-6, 6, 97), [-80.0, 80.0, 1e-4]]).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.125)
ONNX: list[tuple[str, str, dict[str, float], dict[str, Any], np.ndarray]] = [
    ("abs", "Abs", {}, {}, X),
    ("ceil", "Ceil", {}, {}, X),
    ("elu_fwd", "Elu", {"elu_alpha": 0.7}, {"alpha": 0.7}, X),
    ("erf", "Erf", {}, {}, X),
    ("exp", "Exp", {}, {}, X[np.abs(X) < 20]),
    ("floor", "Floor", {}, {}, X),
    ("gelu_approx_tanh_fwd", "Gelu", {}, {"approximate": "tanh"}, X),
    ("gelu_fwd", "Gelu", {}, {}, X),
    ("identity", "Identity", {}, {}, X),
    ("log", "Log", {}, {}, POSITIVE),
    ("neg", "Neg", {}, {}, X),
    ("reciprocal", "Reciprocal", {}, {}, POSITIVE),
    ("relu_fwd", "LeakyRelu", {"relu_lower_clip_slope": 0.2}, {"alpha": 0.2}, X),
    ("relu_fwd", "Relu", {}, {}, X),
    ("sigmoid_fwd", "Sigmoid", {}, {}, X),
    ("sin", "Sin", {}, {}, X),
    ("softplus_fwd", "Softplus", {}, {}, X[np.abs(X) < 20]),
    ("sqrt", "Sqrt", {}, {}, POSITIVE),
    ("tan", "Tan", {}, {}, X[np.abs(X) < 1.4]),
    ("tanh_fwd", "Tanh", {}, {}, X),
]
ONNX_BINARY = [
    ("add", "Add"), ("div", "Div"), ("max_op", "Max"),
    ("min_op", "Min"), ("mul", "Mul"), ("sub", "Sub"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "op", "parameters", "attributes", "x"),
    ONNX,
    ids=[f"{row[0]}-{row[1]}" for row in ONNX],
)
def test_unary_against_onnxruntime(
    mode: str, op: str, parameters: dict[str, float], attributes: dict[str, Any], x: np.ndarray
) -> None:
    expected = onnxruntime_run(op, x, **attributes)
    actual = run(mode, x, dtype=np.float32, **parameters)
    np.testing.assert_allclose(actual, expected, rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize(("mode", "op"), ONNX_BINARY)
def test_binary_against_onnxruntime(mode: str, op: str) -> None:
    a, b = X.reshape(10, 10), POSITIVE[:10]
    np.testing.assert_array_equal(run(mode, a, b, dtype=np.float32), onnxruntime_run(op, a, b))


PLAIN: dict[str, Any] = {
    "add_square": lambda a, b: a + b * b,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "swish_fwd": lambda x: x / (1 + math.exp(-1.7 * x)),
    "softplus_fwd": lambda x: math.log(1 + math.exp(0.6 * x)) / 0.6,
    "relu_fwd": lambda x: min(x, 2.5) if x > 1.0 else 1.0 + 0.1 * (x - 1.0),
}


@pytest.mark.parametrize("mode", PLAIN)
def test_parameters_against_plain_formulas(mode: str) -> None:
    x = np.linspace(0.125 if mode == "rsqrt" else -4, 4, 33)
    inputs = (x, x[::-1])[: INPUTS[mode]]
    parameters = {
        "swish_beta": 1.7, "softplus_beta": 0.6, "relu_lower_clip": 1.0, "relu_upper_clip": 2.5,
        "relu_lower_clip_slope": 0.1,
    }  # fmt: skip
    expected = [PLAIN[mode](*values) for values in zip(*inputs, strict=True)]
    np.testing.assert_allclose(run(mode, *inputs, **parameters), expected, rtol=1e-14, atol=1e-15)


def test_every_mode_is_compared_with_someone() -> None:
    compared = {row[0] for row in ONNX} | {row[0] for row in ONNX_BINARY} | set(PLAIN)
    assert compared | {"relu_bwd", "sigmoid_bwd", "tanh_bwd"} == set(INPUTS)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("relu", {}),
        ("relu", {"relu_lower_clip_slope": 0.3}),
        ("relu", {"relu_lower_clip": -1.0, "relu_upper_clip": 2.0}),
        ("sigmoid", {}),
        ("tanh", {}),
    ],
    ids=str,
)
def test_backward_is_the_derivative(name: str, parameters: dict[str, float]) -> None:
    x = np.linspace(-5, 5, 101) + 0.013  # no kink within a step
    dy = np.cos(x)
    step = 1e-5
    up = run(f"{name}_fwd", x + step, **parameters)
    down = run(f"{name}_fwd", x - step, **parameters)
    actual = run(f"{name}_bwd", x, dy, **parameters)
    np.testing.assert_allclose(actual, dy * (up - down) / (2 * step), atol=1e-9)


def test_backward_at_kinks_and_far_out() -> None:
    clipped = {"relu_lower_clip": -1.0, "relu_upper_clip": 2.0, "relu_lower_clip_slope": 0.5}
    np.testing.assert_array_equal(
        run("relu_bwd", [-2, -1, 0, 2, 3], [10.0] * 5, **clipped), [5, 5, 10, 10, 0]
    )
    np.testing.assert_array_equal(run("relu_bwd", [0.0, 1e-300], [1.0, 1.0]), [0, 1])
    # 1 - tanh(20)^2 cancels to zero when written so; the derivative is 4 exp(-40).
    np.testing.assert_allclose(
        run("tanh_bwd", [20.0, -20.0], [1.0, 1.0]), 4 * math.exp(-40), rtol=1e-12
    )
    np.testing.assert_allclose(
        run("sigmoid_bwd", [40.0, -40.0], [1.0, 1.0]), math.exp(-40), rtol=1e-12
    )
    assert (run("tanh_bwd", [1e4, -1e4, INF, -INF], [1.0] * 4) == 0).all()


LIMITS: list[tuple[str, list[float], list[float]]] = [
    ("sigmoid_fwd", [-INF, -1e4, 1e4, INF], [0, 0, 1, 1]),
    ("softplus_fwd", [-INF, -1e4, 1e4, INF], [0, 0, 1e4, INF]),
    ("gelu_fwd", [-INF, -1e4, 1e4, INF], [0, 0, 1e4, INF]),
    ("gelu_approx_tanh_fwd", [-INF, -1e4, 1e4, INF], [0, 0, 1e4, INF]),
    ("swish_fwd", [-INF, -1e4, 1e4, INF], [0, 0, 1e4, INF]),
    ("elu_fwd", [-INF, -1e4, 1e4, INF], [-1, -1, 1e4, INF]),
    ("relu_fwd", [-INF, -1e4, 1e4, INF], [0, 0, 1e4, INF]),
    ("tanh_fwd", [-INF, -1e4, 1e4, INF], [-1, -1, 1, 1]),
    ("erf", [-INF, -1e4, 1e4, INF], [-1, -1, 1, 1]),
    ("exp", [-INF, 1e4], [0, INF]),
    ("log", [0, -1, INF], [-INF, NAN, INF]),
    ("sqrt", [-1, INF], [NAN, INF]),
    ("rsqrt", [0, INF], [INF, 0]),
    ("reciprocal", [0, -0.0, INF], [INF, -INF, 0]),
]


@pytest.mark.parametrize(("mode", "x", "expected"), LIMITS, ids=[row[0] for row in LIMITS])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_limits_come_without_warnings(
    mode: str, x: list[float], expected: list[float], dtype: Any
) -> None:
    np.testing.assert_array_equal(run(mode, x, dtype=dtype), np.array(expected, dtype))


@pytest.mark.parametrize("mode", sorted(INPUTS))
def test_nan_stays_nan(mode: str) -> None:
    values = [np.array([NAN, 1.0])] * INPUTS[mode]
    assert np.isnan(run(mode, *values)).tolist() == [True, False]


@given(st.floats(-8, 8))
def test_erf_against_math(x: float) -> None:
    for dtype, ulps in ((np.float64, 4), (np.float32, 1)):
        value = dtype(x)
        expected = math.erf(float(value))
        actual = float(special.erf(np.array([value]))[0])
        assert abs(actual - expected) <= ulps * float(np.spacing(dtype(abs(expected))))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["half", "bfloat16"])
def test_16_bit_is_computed_in_float32_and_rounded_once(dtype: Any) -> None:
    x = np.linspace(-4, 4, 999).astype(dtype)
    for mode in ("gelu_fwd", "softplus_fwd", "sigmoid_fwd"):
        out = np.empty_like(x)
        pointwise(mode, [x], out)
        np.testing.assert_array_equal(out, run(mode, x, dtype=np.float32).astype(dtype))
    total = np.empty(3, np.float32)
    pointwise("add", [np.array([1, 2, 3], dtype), np.array([2**-20], dtype)], total)
    np.testing.assert_array_equal(total, np.array([1, 2, 3], np.float32) + np.float32(2**-20))


@pytest.mark.parametrize("layout", ["channels_last", "strided", "permuted"])
def test_broadcast_into_any_layout(layout: str) -> None:
    memory, out = memory_and_view((2, 3, 4, 5), layout, np.float64)
    x, bias = np.arange(120.0).reshape(2, 3, 4, 5), np.array([1.0, 2.0, 3.0]).reshape(1, 3, 1, 1)
    pointwise("add", [x, bias], out)
    np.testing.assert_array_equal(out, x + bias)
    if layout == "strided":
        assert (memory == GUARD).sum() == memory.size - (out != GUARD).sum()
    pointwise("neg", [out], out)
    np.testing.assert_array_equal(out, -(x + bias))


@pytest.mark.parametrize("mode", ["gelu_fwd", "relu_fwd", "tanh_bwd", "add_square"])
def test_temporaries_are_bounded(mode: str) -> None:
    x = np.zeros((4, 1 << 18), np.float16)
    tracemalloc.start()
    pointwise(mode, [x] * INPUTS[mode], x, double=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= TEMPORARY_BYTES


def test_refusals_name_the_value() -> None:
    x = np.zeros(3)
    with pytest.raises(ValueError, match=r"unknown pointwise mode 'relu' \(allowed: abs, add, "):
        pointwise("relu", [x], x)
    with pytest.raises(ValueError, match="add takes 2 inputs, got 1"):
        pointwise("add", [x], x)
    with pytest.raises(ValueError, match="broadcast"):
        pointwise("add", [x, np.zeros(2)], x)
