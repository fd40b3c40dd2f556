"""The convolutions against onnxruntime, onnx's reference evaluator and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hipdnn_cpu_provider.kernels import conv_reference
from hipdnn_cpu_provider.kernels.conv_algorithms import Direction, algorithms
from hipdnn_cpu_provider.kernels.geometry import ConvGeometry, TensorSpec
from tests.cpu_provider.conv_cases import Problem, operands
from tests.cpu_provider.onnx_parties import onnxruntime_run, reference_run

PROBLEMS = {
    "signal": Problem((2, 4, 19), (6, 2, 3), ConvGeometry((2,), (3,), (4,), (1,))),
    "image": Problem((3, 8, 13, 12), (10, 8, 3, 3), ConvGeometry.uniform(2, padding=1)),
    "dilated groups": Problem(
        (2, 6, 12, 11), (9, 2, 3, 2), ConvGeometry((1, 2), (2, 3), (3, 0), (1, 2))
    ),
    "depthwise": Problem((2, 7, 9, 9), (7, 1, 3, 3), ConvGeometry.uniform(2, stride=2, padding=1)),
    "strided 1x1": Problem((2, 16, 9, 8), (12, 16, 1, 1), ConvGeometry.uniform(2, stride=2)),
    "stem": Problem((1, 3, 32, 30), (8, 3, 7, 7), ConvGeometry.uniform(2, stride=2, padding=3)),
    "flipped": Problem((2, 4, 9, 8), (6, 4, 3, 2), ConvGeometry.uniform(2, padding=1, flip=True)),
    "volume": Problem(
        (2, 4, 6, 5, 7), (6, 2, 2, 3, 3), ConvGeometry((1, 2, 1), (2, 1, 1), (1, 0, 2), (0, 1, 1))
    ),
}
IMAGES = {name: problem for name, problem in PROBLEMS.items() if len(problem.x) == 4}
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


def ours(problem: Problem, direction: Direction) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """The inputs, and the results of the reference and of all algorithms, in float32."""
    a, b, out, _ = operands(problem, direction, (np.float32,) * 3)
    reference = {
        Direction.FPROP: conv_reference.conv_fprop,
        Direction.DGRAD: conv_reference.conv_dgrad,
        Direction.WGRAD: conv_reference.conv_wgrad,
    }[direction]
    reference(a, b, out, problem.geometry)
    results = [out.copy()]
    first, second, result = (TensorSpec.of(array) for array in (a, b, out))
    for algorithm in algorithms(direction, first, second, result, problem.geometry):
        algorithm.run(a, b, out, np.empty(algorithm.max_workspace, np.uint8))
        results.append(out.copy())
    return a, b, results


def onnx_attributes(problem: Problem) -> dict[str, Any]:
    geometry = problem.geometry
    return {
        "strides": geometry.stride,
        "dilations": geometry.dilation,
        "pads": (*geometry.pre_padding, *geometry.post_padding),
        "group": problem.x[1] // problem.w[1],
        "kernel_shape": problem.w[2:],
    }


def upright(w: np.ndarray, problem: Problem) -> np.ndarray:
    """The filter for cross-correlation, which is all that others know."""
    return np.flip(w, tuple(range(2, w.ndim))) if problem.geometry.flip else w


def assert_all_close(results: list[np.ndarray], expected: np.ndarray) -> None:
    for result in results:
        np.testing.assert_allclose(result, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


@every_problem
def test_forward_against_onnxruntime(problem: Problem) -> None:
    x, w, results = ours(problem, Direction.FPROP)
    expected = onnxruntime_run("Conv", x, upright(w, problem), **onnx_attributes(problem))
    assert_all_close(results, expected)


@pytest.mark.parametrize("problem", IMAGES.values(), ids=IMAGES)
def test_forward_against_onnx_reference(problem: Problem) -> None:
    x, w, results = ours(problem, Direction.FPROP)
    assert_all_close(
        results, reference_run("Conv", x, upright(w, problem), **onnx_attributes(problem))[0]
    )


@every_problem
def test_backward_data_against_onnxruntime(problem: Problem) -> None:
    dy, w, results = ours(problem, Direction.DGRAD)
    geometry = problem.geometry
    # The rows that the strides don't reach are what ONNX calls output padding.
    reached = [
        (outputs - 1) * stride + (taps - 1) * dilation + 1 - pre - post
        for outputs, stride, taps, dilation, pre, post in zip(
            problem.y[2:], geometry.stride, problem.w[2:], geometry.dilation,
            geometry.pre_padding, geometry.post_padding, strict=True,
        )
    ]  # fmt: skip
    rest = [size - end for size, end in zip(problem.x[2:], reached, strict=True)]
    expected = onnxruntime_run(
        "ConvTranspose", dy, upright(w, problem), output_padding=rest, **onnx_attributes(problem)
    )
    assert_all_close(results, expected)


@pytest.mark.parametrize(
    "problem",
    [problem for problem in PROBLEMS.values() if problem.x[1] == problem.w[1]],
    ids=[name for name, problem in PROBLEMS.items() if problem.x[1] == problem.w[1]],
)
def test_backward_weights_against_onnxruntime(problem: Problem) -> None:
    # dw is a convolution of x with dy in which images are summed over, channels take the images'
    # place, and stride and dilation change places.
    dy, x, results = ours(problem, Direction.WGRAD)
    geometry = problem.geometry
    raw = onnxruntime_run(
        "Conv",
        x.swapaxes(0, 1),
        dy.swapaxes(0, 1),
        strides=geometry.dilation,
        dilations=geometry.stride,
        pads=(*geometry.pre_padding, *geometry.post_padding),
    )
    wanted: Any = (..., *(slice(0, taps) for taps in problem.w[2:]))
    expected = raw.swapaxes(0, 1)[wanted]
    assert_all_close(results, upright(expected, problem))


@every_problem
@pytest.mark.parametrize("direction", [Direction.DGRAD, Direction.WGRAD])
def test_gradients_against_pytorch(problem: Problem, direction: Direction) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: not compared with it")
    a, b, results = ours(problem, direction)
    geometry = problem.geometry
    rank = geometry.rank
    x = b if direction == Direction.WGRAD else np.zeros(problem.x, np.float32)
    w = b if direction == Direction.DGRAD else np.zeros(problem.w, np.float32)
    tx = torch.tensor(np.ascontiguousarray(x), requires_grad=True)
    tw = torch.tensor(np.ascontiguousarray(upright(w, problem)), requires_grad=True)
    pads = [
        p
        for pair in zip(geometry.pre_padding, geometry.post_padding, strict=True)
        for p in pair[::-1]
    ]
    padded = torch.nn.functional.pad(tx, pads[::-1])
    convolution = getattr(torch.nn.functional, f"conv{rank}d")
    y = convolution(
        padded, tw, None, geometry.stride, 0, geometry.dilation, problem.x[1] // problem.w[1]
    )
    y.backward(torch.tensor(np.ascontiguousarray(a)))
    gradient = (
        tx.grad.numpy() if direction == Direction.DGRAD else upright(tw.grad.numpy(), problem)
    )
    assert_all_close(results, gradient)
