"""The peer: the calls that make a convolution's plan, by bare ctypes."""

from __future__ import annotations

import ctypes
import math
from contextlib import contextmanager
from ctypes import byref, c_float, c_int, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any

from hipdnn_registry import DataType, Graph

if TYPE_CHECKING:
    from collections.abc import Iterator

Dims = tuple[int, ...]
IMAGE, FILTER = (16, 64, 28, 28), (64, 64, 3, 3)
NONE, SEARCH_DB_UPDATE = 1, 4
_FLOAT, _CONVOLUTION, _NORMAL = 1, 0, 1


class Perf(ctypes.Structure):
    """miopenConvAlgoPerf_t."""

    _fields_ = (("algo", c_int), ("time", c_float), ("memory", c_size_t))


class Bare:
    """The calls of a convolution's plan by bare ctypes; checks that each succeeds."""

    def __init__(self) -> None:
        self.miopen, self.hip = ctypes.CDLL("libMIOpen.so.1"), ctypes.CDLL("libamdhip64.so")

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of MIOpen."""
        status = getattr(self.miopen, name)(*arguments)
        assert status == 0, (name, status)

    def tensor(self, dims: tuple[int, ...]) -> c_void_p:
        """Return a packed float tensor's descriptor."""
        descriptor, strides = c_void_p(), [1]
        for extent in reversed(dims[1:]):
            strides.insert(0, strides[0] * extent)
        ints = c_int * len(dims)
        self.call("miopenCreateTensorDescriptor", byref(descriptor))
        self.call(
            "miopenSetTensorDescriptor",
            *(descriptor, _FLOAT, len(dims), ints(*dims), ints(*strides)),
        )
        return descriptor

    @contextmanager
    def memory(self, nbytes: int) -> Iterator[c_void_p]:
        """Lend device memory."""
        pointer = c_void_p()
        if nbytes:
            assert self.hip.hipMalloc(byref(pointer), c_size_t(nbytes)) == 0
        yield pointer
        if nbytes:
            assert self.hip.hipFree(pointer) == 0

    @contextmanager
    def plan(
        self, policy: int = NONE, *, normal: bool = False, dims: Dims = IMAGE
    ) -> Iterator[tuple[Any, ...]]:
        """Find under a policy, on a handle of its own; yield the arguments of the run.

        Args:
            policy: The tuning policy.
            normal: Whether to find in NORMAL mode.
            dims: Those of x and y.
        """
        handle, convolution = c_void_p(), c_void_p()
        self.call("miopenCreateWithStream", byref(handle), None)
        x, w, y = self.tensor(dims), self.tensor(FILTER), self.tensor(dims)
        self.call("miopenCreateConvolutionDescriptor", byref(convolution))
        pair = c_int * 2
        geometry = (2, pair(1, 1), pair(1, 1), pair(1, 1), _CONVOLUTION)
        self.call("miopenInitConvolutionNdDescriptor", convolution, *geometry)
        if normal:
            self.call("miopenSetConvolutionFindMode", convolution, _NORMAL)
        size, returned, results = c_size_t(), c_int(), (Perf * 5)()
        self.call(
            "miopenConvolutionForwardGetWorkSpaceSize",
            *(handle, w, x, convolution, y, byref(size)),
        )
        with (
            self.memory(nbytes(dims)) as x_data,
            self.memory(nbytes(FILTER)) as w_data,
            self.memory(nbytes(dims)) as y_data,
            self.memory(size.value) as workspace,
        ):
            self.call("miopenSetTuningPolicy", handle, policy)
            self.call(
                "miopenFindConvolutionForwardAlgorithm",
                *(handle, x, x_data, w, w_data, convolution, y, y_data),
                *(5, byref(returned), results, workspace, size, False),
            )
            self.call("miopenSetTuningPolicy", handle, NONE)
        yield handle, x, w, convolution, results[0].algo, y, results[0].memory
        self.call("miopenDestroyConvolutionDescriptor", convolution)
        for descriptor in (x, w, y):
            self.call("miopenDestroyTensorDescriptor", descriptor)
        self.call("miopenDestroy", handle)


def nbytes(dims: Dims) -> int:
    """Return the bytes of a packed float tensor."""
    return 4 * math.prod(dims)


def convolution(dims: Dims = IMAGE) -> Graph:
    """Return the same convolution as a graph."""
    graph = Graph("conv", io_data_type=DataType.FLOAT, compute_data_type=DataType.FLOAT)
    x, w = graph.tensor(dims=dims, name="x"), graph.tensor(dims=FILTER, name="w")
    graph.conv_fprop(x, w, padding=1).set_output().set_name("y")
    return graph.validate()
