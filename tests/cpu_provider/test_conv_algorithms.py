"""The three convolutions: algorithms against the reference, workspaces, and what they refuse."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings

from hipdnn_cpu_provider.kernels import conv_reference
from hipdnn_cpu_provider.kernels.conv_algorithms import Algorithm, Direction, algorithms
from hipdnn_cpu_provider.kernels.geometry import ConvGeometry, TensorSpec
from tests.cpu_provider.conv_cases import (
    EDGE_CASES,
    GUARD,
    Problem,
    memory_and_view,
    operands,
    problems,
)

HALF, BFLOAT, FLOAT, DOUBLE = np.float16, ml_dtypes.bfloat16, np.float32, np.float64
REFERENCES = {
    Direction.FPROP: conv_reference.conv_fprop,
    Direction.DGRAD: conv_reference.conv_dgrad,
    Direction.WGRAD: conv_reference.conv_wgrad,
}
TOLERANCE: dict[Any, float] = {HALF: 1e-3, BFLOAT: 8e-3, FLOAT: 2e-5, DOUBLE: 1e-14}
"""Of the largest output: one rounding to 16 bits; Winograd's float32; summation order."""
SLACK = 64 << 10
"""Bytes of Python objects and of numpy's casting buffers that a run may take besides."""

every_direction = pytest.mark.parametrize("direction", list(Direction))


def plan_for(
    geometry: ConvGeometry, direction: Direction, *arrays: np.ndarray, double: bool = False
) -> tuple[Algorithm, ...]:
    a, b, out = map(TensorSpec.of, arrays)
    return algorithms(direction, a, b, out, geometry, double=double)


def plan(problem: Problem, direction: Direction, *arrays: np.ndarray) -> tuple[Algorithm, ...]:
    return plan_for(problem.geometry, direction, *arrays)


def assert_close(actual: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    scale = max(float(np.abs(expected).max()), 1.0)
    np.testing.assert_allclose(actual.astype(DOUBLE), expected, rtol=0, atol=tolerance * scale)


def assert_guards_untouched(memory: np.ndarray, out: np.ndarray) -> None:
    before = np.full_like(memory, GUARD)
    step = np.zeros_like(memory)
    start = (out.ctypes.data - memory.ctypes.data) // memory.itemsize
    inside = np.lib.stride_tricks.as_strided(step.ravel()[start:], out.shape, out.strides)
    inside[...] = 1
    outside = step == 0
    np.testing.assert_array_equal(memory[outside], before[outside])


def check_all(problem: Problem, direction: Direction, dtypes: tuple[Any, Any, Any]) -> None:
    """Run every algorithm at its least, most and a middling workspace."""
    a, b, out, memory = operands(problem, direction, dtypes)
    expected = np.empty(out.shape)
    REFERENCES[direction](a, b, expected, problem.geometry)
    for algorithm in plan(problem, direction, a, b, out):
        low, high = algorithm.min_workspace, algorithm.max_workspace
        for size in {low, (low + high) // 2, (7 * low + high) // 8, high}:
            memory.fill(GUARD)
            # An odd start: the workspace need not be aligned.
            algorithm.run(a, b, out, np.full(size + 1, 0xFF, np.uint8)[1:])
            assert_close(out, expected, TOLERANCE[out.dtype.type])
            assert_guards_untouched(memory, out)


@every_direction
@given(problem=problems())
@settings(max_examples=60, deadline=None)
def test_any_problem_in_any_workspace(direction: Direction, problem: Problem) -> None:
    check_all(problem, direction, (DOUBLE, DOUBLE, DOUBLE))


@every_direction
@pytest.mark.parametrize("problem", EDGE_CASES.values(), ids=EDGE_CASES)
def test_edge_cases(direction: Direction, problem: Problem) -> None:
    check_all(problem, direction, (FLOAT, FLOAT, FLOAT))


@every_direction
@pytest.mark.parametrize(
    "dtypes",
    [(HALF,) * 3, (BFLOAT,) * 3, (HALF, HALF, FLOAT), (FLOAT, BFLOAT, HALF), (HALF, FLOAT, DOUBLE)],
    ids=lambda dtypes: "-".join(np.dtype(dtype).name for dtype in dtypes),
)
@pytest.mark.parametrize(
    "layouts", [("packed",) * 3, ("channels_last", "packed", "strided")], ids=str
)
def test_16_bit_and_mixed_types(
    direction: Direction, dtypes: tuple[Any, Any, Any], layouts: tuple[str, str, str]
) -> None:
    geometry = ConvGeometry.uniform(2, padding=1)
    check_all(Problem((2, 16, 9, 8), (12, 8, 3, 3), geometry, layouts), direction, dtypes)


def test_16_bit_sums_are_kept_in_float32() -> None:
    # 4096 + 1 + 1 + ...: a half cannot hold 4097, so a sum kept in halves would stay at 4096.
    x = np.ones((1, 257, 3), HALF)
    x[0, 0] = 4096
    w = np.ones((1, 257, 3), HALF)
    geometry = ConvGeometry.uniform(1)
    y = np.empty((1, 1, 1), HALF)
    for algorithm in plan_for(geometry, Direction.FPROP, x, w, y):
        for size in (algorithm.min_workspace, algorithm.max_workspace):
            algorithm.run(x, w, y, np.empty(size, np.uint8))
            assert y.item() == HALF(3 * 4096 + 3 * 256)


def test_double_computes_in_float64() -> None:
    # 1 is lost beside 2^26 in float32.
    x = np.array([[[2.0**26], [1.0], [-(2.0**26)]]], FLOAT)
    w, y = np.ones((1, 3, 1), FLOAT), np.empty((1, 1, 1), FLOAT)
    for algorithm in plan_for(ConvGeometry.uniform(1), Direction.FPROP, x, w, y, double=True):
        algorithm.run(x, w, y, np.empty(algorithm.max_workspace, np.uint8))
        assert y.item() == 1


def test_values_beyond_the_output_type_become_infinite_silently() -> None:
    x, w, y = (
        np.full((1, 4, 2), 300, HALF),
        np.full((1, 4, 1), 300, HALF),
        np.empty((1, 1, 2), HALF),
    )
    for algorithm in plan_for(ConvGeometry.uniform(1), Direction.FPROP, x, w, y):
        algorithm.run(x, w, y, np.empty(algorithm.max_workspace, np.uint8))
        assert np.isposinf(y).all()


@given(problem=problems())
@settings(max_examples=60, deadline=None)
def test_the_directions_are_adjoint(problem: Problem) -> None:
    # <conv(x, w), dy> = <x, dgrad(dy, w)> = <w, wgrad(dy, x)>: holds for no wrong gradient.
    layouts = dict(zip("xwy", problem.layouts, strict=True))
    rng = np.random.default_rng(1)
    shapes = {"x": problem.x, "w": problem.w, "y": problem.y}
    values = {name: rng.uniform(-1, 1, shape) for name, shape in shapes.items()}
    for name, value in values.items():
        view = memory_and_view(value.shape, layouts[name], DOUBLE)[1]
        view[...] = value
        values[name] = view
    x, w, dy = values["x"], values["w"], values["y"]
    tasks = {
        Direction.FPROP: (x, w, dy),
        Direction.DGRAD: (dy, w, x),
        Direction.WGRAD: (dy, x, w),
    }
    products = []
    for direction, (a, b, other) in tasks.items():
        out = np.empty_like(other)
        REFERENCES[direction](a, b, out, problem.geometry)
        products.append(np.vdot(out, other))
        for algorithm in plan(problem, direction, a, b, out):
            algorithm.run(a, b, out, np.empty(algorithm.max_workspace, np.uint8))
            products.append(np.vdot(out, other))
    scale = float(np.linalg.norm(dy) * np.linalg.norm(x) * np.linalg.norm(w)) + 1e-300
    np.testing.assert_allclose(np.array(products) / scale, products[0] / scale, rtol=0, atol=1e-13)


@every_direction
@pytest.mark.parametrize("dtype", [FLOAT, BFLOAT], ids=["float", "bfloat16"])
@pytest.mark.parametrize("layout", ["packed", "channels_last", "strided"])
@pytest.mark.parametrize("taps", [1, 3])
def test_workspace_limits_all_memory(
    direction: Direction, dtype: Any, layout: str, taps: int
) -> None:
    geometry = ConvGeometry.uniform(2, padding=taps // 2)
    problem = Problem((2, 32, 30, 30), (48, 32, taps, taps), geometry, (layout,) * 3)
    a, b, out, _ = operands(problem, direction, (dtype,) * 3)
    for algorithm in plan(problem, direction, a, b, out):
        low, high = algorithm.min_workspace, algorithm.max_workspace
        for size in sorted({max(low, high // 16), high}):
            workspace = np.empty(size, np.uint8)
            algorithm.run(a, b, out, workspace)  # let caches fill
            tracemalloc.start()
            algorithm.run(a, b, out, workspace)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak <= SLACK, (algorithm.name, size)


def test_more_workspace_than_the_maximum_is_not_touched() -> None:
    problem = Problem((2, 16, 20, 20), (16, 16, 3, 3), ConvGeometry.uniform(2, padding=1))
    x, w, y, _ = operands(problem, Direction.FPROP, (FLOAT,) * 3)
    for algorithm in plan(problem, Direction.FPROP, x, w, y):
        workspace = np.full(2 * algorithm.max_workspace, 0xA5, np.uint8)
        algorithm.run(x, w, y, workspace)
        assert (workspace[algorithm.max_workspace :] == 0xA5).all()


def test_threads_share_an_algorithm() -> None:
    problem = Problem((3, 8, 17, 16), (8, 8, 3, 3), ConvGeometry.uniform(2, padding=1))
    x, w, y, _ = operands(problem, Direction.FPROP, (FLOAT,) * 3)
    for algorithm in plan(problem, Direction.FPROP, x, w, y):

        def call(_: int, run: Algorithm = algorithm) -> np.ndarray:
            out = np.empty_like(y)
            run.run(x, w, out, np.empty(run.max_workspace, np.uint8))
            return out

        with ThreadPoolExecutor(4) as pool:
            first, *others = pool.map(call, range(16))
        assert all((other == first).all() for other in others)


def test_unit_convolution_needs_no_workspace() -> None:
    problem = Problem((2, 16, 5, 5), (8, 16, 1, 1), ConvGeometry.uniform(2))
    x, w, y, _ = operands(problem, Direction.FPROP, (FLOAT,) * 3)
    assert [a.max_workspace for a in plan(problem, Direction.FPROP, x, w, y)] == [0]


def test_winograd_is_offered_where_it_applies() -> None:
    def names(
        dtype: Any, direction: Direction = Direction.FPROP, stride: int = 1, dilation: int = 1
    ) -> set[str]:
        problem = Problem(
            (1, 8, 20, 20), (8, 8, 3, 3), ConvGeometry.uniform(2, stride=stride, dilation=dilation)
        )
        arrays = operands(problem, direction, (dtype,) * 3)[:3]
        return {algorithm.name for algorithm in plan(problem, direction, *arrays)}

    assert names(FLOAT) == {"im2col_gemm", "tap_gemm", "winograd"}
    assert names(FLOAT, Direction.DGRAD) == {"im2col_gemm", "tap_gemm", "winograd"}
    assert names(FLOAT, Direction.WGRAD) == {"im2col_gemm", "tap_gemm"}
    assert names(FLOAT, stride=2) == {"im2col_gemm", "tap_gemm"}
    assert names(FLOAT, dilation=2) == {"im2col_gemm", "tap_gemm"}
    assert names(DOUBLE) == {"im2col_gemm", "tap_gemm"}


def test_refusals_name_the_problem() -> None:
    problem = Problem((2, 4, 8, 8), (6, 4, 3, 3), ConvGeometry.uniform(2))
    x, w, y, _ = operands(problem, Direction.FPROP, (FLOAT,) * 3)
    first, *_ = plan(problem, Direction.FPROP, x, w, y)
    workspace = np.empty(first.max_workspace, np.uint8)
    with pytest.raises(ValueError, match=rf"needs {first.min_workspace} bytes of workspace, got 5"):
        first.run(x, w, y, workspace[:5])
    with pytest.raises(ValueError, match="planned for"):
        first.run(x[:, ::-1], w, y, workspace)
    with pytest.raises(ValueError, match="uint8"):
        first.run(x, w, y, workspace.view(np.int8))
    unaligned = np.empty(x.nbytes + 1, np.uint8)[1:].view(FLOAT).reshape(x.shape)
    with pytest.raises(ValueError, match="aligned"):
        first.run(unaligned, w, y, workspace)
    with pytest.raises(ValueError, match=r"y has shape \(2, 6, 6, 5\), but .* give \(2, 6, 6, 6\)"):
        plan(problem, Direction.FPROP, x, w, y[..., :5])
    with pytest.raises(ValueError, match="does not fit"):
        problem.geometry.output_shape((1, 4, 2, 8), w.shape)
    with pytest.raises(ValueError, match="groups"):
        problem.geometry.output_shape((1, 6, 8, 8), w.shape)
    with pytest.raises(ValueError, match="dilation"):
        ConvGeometry((1, 1), (1, 0), (0, 0), (0, 0))
    with pytest.raises(ValueError, match="int32"):
        TensorSpec.packed((1, 1, 1), np.int32)
