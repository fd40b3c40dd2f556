"""Kernels that no engine uses, but that programs under the emulator do: softmax and pooling."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import ExitStack
from ctypes import byref, c_bool, c_float, c_int, c_size_t, c_void_p
from itertools import product
from typing import Any

import numpy as np
import pytest

from hipdnn_miopen_provider.native import (
    DataType,
    DeviceBuffer,
    Handle,
    Status,
    TensorDescriptor,
    copy_to_host,
    hip,
)

Array = np.ndarray[Any, Any]

SHAPE = (2, 6, 7, 9)
TYPES = {DataType.Float: (np.float32, 2e-6), DataType.Half: (np.float16, 2e-3)}
"""numpy's type; the allowed error relative to the largest element, 2 to 4 ulps of the type."""

FAST, ACCURATE, LOG = range(3)
INSTANCE, CHANNEL = range(2)
MAX, AVERAGE, AVERAGE_INCLUSIVE = range(3)
ONE, ZERO = byref(c_float(1)), byref(c_float(0))


class Calls:
    """Calls of libMIOpen that the provider has no binding for, on tensors of one type."""

    def __init__(self, owner: ExitStack, dtype: DataType) -> None:
        self._library = ctypes.CDLL("libMIOpen.so.1")
        self._owner, self._dtype = owner, dtype
        self.numpy, self.tolerance = TYPES[dtype]
        self.handle = owner.enter_context(Handle())

    def status(self, name: str, *arguments: Any) -> int:
        return int(getattr(self._library, name)(*arguments))

    def __call__(self, name: str, *arguments: Any) -> None:
        assert self.status(name, *arguments) == Status.Success, name

    def describe(self, shape: tuple[int, ...]) -> Any:
        return self._owner.enter_context(TensorDescriptor(self._dtype, shape)).raw

    def given(self, values: Array) -> c_void_p:
        array = values.astype(self.numpy)
        return c_void_p(self._owner.enter_context(DeviceBuffer.from_host(array)).address)

    def room(self, shape: tuple[int, ...]) -> DeviceBuffer:
        nan = np.full(shape, np.nan, self.numpy)
        return self._owner.enter_context(DeviceBuffer.from_host(nan))

    def check(self, buffer: DeviceBuffer, expected: Array) -> None:
        hip.synchronize_device()
        found = np.empty(expected.shape, self.numpy)
        copy_to_host(found, buffer)
        error = np.abs(found.astype(np.float64) - expected).max()
        assert error <= self.tolerance * max(np.abs(expected).max(), 1)


@pytest.fixture(params=list(TYPES), ids=lambda dtype: dtype.name)
def calls(request: pytest.FixtureRequest) -> Iterator[Calls]:
    with ExitStack() as owner:
        yield Calls(owner, request.param)


def values(seed: int, dtype: Any, shape: tuple[int, ...] = SHAPE) -> Array:
    """Random numbers that the type holds, as float64."""
    random = np.random.default_rng(seed).standard_normal(shape)
    return random.astype(dtype).astype(np.float64)


@pytest.mark.parametrize("mode", [INSTANCE, CHANNEL])
@pytest.mark.parametrize("algorithm", [FAST, ACCURATE, LOG])
def test_softmax(algorithm: int, mode: int, calls: Calls) -> None:
    axes = (1, 2, 3) if mode == INSTANCE else (1,)
    x, dy = values(1, calls.numpy), values(2, calls.numpy)
    exponential = np.exp(x - x.max(axes, keepdims=True))
    probability = exponential / exponential.sum(axes, keepdims=True)
    y = np.log(probability) if algorithm == LOG else probability
    descriptor, out = calls.describe(SHAPE), calls.room(SHAPE)
    calls(
        "miopenSoftmaxForward_V2",
        *(calls.handle.raw, ONE, descriptor, calls.given(x), ZERO, descriptor),
        *(c_void_p(out.address), algorithm, mode),
    )
    calls.check(out, y)
    y = y.astype(calls.numpy).astype(np.float64)
    if algorithm == LOG:
        dx = dy - np.exp(y) * dy.sum(axes, keepdims=True)
    else:
        dx = y * (dy - (dy * y).sum(axes, keepdims=True))
    gradient = calls.room(SHAPE)
    calls(
        "miopenSoftmaxBackward_V2",
        *(calls.handle.raw, ONE, descriptor, calls.given(y), descriptor, calls.given(dy), ZERO),
        *(descriptor, c_void_p(gradient.address), algorithm, mode),
    )
    calls.check(gradient, dx)


@pytest.mark.parametrize("mode", [MAX, AVERAGE, AVERAGE_INCLUSIVE])
def test_pooling(mode: int, calls: Calls) -> None:
    window, pad, stride = 3, 1, 2
    x = values(3, calls.numpy)
    out_shape = (*SHAPE[:2], *((n + 2 * pad - window) // stride + 1 for n in SHAPE[2:]))
    dy = values(4, calls.numpy, out_shape)
    y, dx = pooled(x, dy, mode, window, pad, stride)
    pooling, size = c_void_p(), c_size_t()
    calls("miopenCreatePoolingDescriptor", byref(pooling))
    geometry = (window, window, pad, pad, stride, stride)
    calls("miopenSet2dPoolingDescriptor", pooling, mode, *map(c_int, geometry))
    x_descriptor, y_descriptor = calls.describe(SHAPE), calls.describe(out_shape)
    calls("miopenPoolingGetWorkSpaceSizeV2", pooling, y_descriptor, byref(size))
    workspace = calls.room((size.value + 4,))
    given, out, gradient = calls.given(x), calls.room(out_shape), calls.room(SHAPE)
    calls(
        "miopenPoolingForward",
        *(calls.handle.raw, pooling, ONE, x_descriptor, given, ZERO, y_descriptor),
        *(c_void_p(out.address), c_bool(True), c_void_p(workspace.address), size),
    )
    calls.check(out, y)
    calls(
        "miopenPoolingBackward",
        *(calls.handle.raw, pooling, ONE, y_descriptor, c_void_p(out.address), y_descriptor),
        *(calls.given(dy), x_descriptor, given, ZERO, x_descriptor),
        *(c_void_p(gradient.address), c_void_p(workspace.address)),
    )
    calls.check(gradient, dx)
    calls("miopenDestroyPoolingDescriptor", pooling)


def pooled(
    x: Array, dy: Array, mode: int, window: int, pad: int, stride: int
) -> tuple[Array, Array]:
    """Result and gradient of a pooling, by its definition."""
    y, dx = np.empty_like(dy), np.zeros_like(x)
    height, width = x.shape[2:]
    for n, c, i, j in product(*map(range, dy.shape)):
        rows = slice(max(i * stride - pad, 0), min(i * stride - pad + window, height))
        columns = slice(max(j * stride - pad, 0), min(j * stride - pad + window, width))
        part, part_dx = x[n, c, rows, columns], dx[n, c, rows, columns]
        if mode == MAX:
            y[n, c, i, j] = part.max()
            part_dx[np.unravel_index(part.argmax(), part.shape)] += dy[n, c, i, j]
        else:
            count = part.size if mode == AVERAGE else window * window
            y[n, c, i, j] = part.sum() / count
            part_dx += dy[n, c, i, j] / count
    return y, dx


def test_softmax_of_bfloat16_is_not_implemented_in_miopen() -> None:
    with ExitStack() as owner:
        calls = Calls(owner, DataType.Float)
        descriptor = owner.enter_context(TensorDescriptor(DataType.BFloat16, SHAPE)).raw
        memory = c_void_p(calls.room(SHAPE).address)
        arguments = (calls.handle.raw, ONE, descriptor, memory, ZERO, descriptor, memory)
        status = calls.status("miopenSoftmaxForward_V2", *arguments, FAST, INSTANCE)
        assert status == Status.NotImplemented
