"""In which order MIOpen's per-activation kernels read scale and statistics, see docs/findings.md.

The provider describes NHWC tensors to them in the order of their memory. If one of these fails the
library has learnt about layouts, and docs/miopen-shim.md says something wrong about it.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from hipdnn_miopen_provider.native import (
    BatchNormMode,
    BatchNormProblem,
    DataType,
    DeviceBuffer,
    Handle,
    TensorDescriptor,
    batchnorm,
    copy_to_host,
)
from tests.native.problems import channels_last

N, C, H, W = DIMS = (4, 3, 5, 7)
NUMPY = {DataType.Float: np.float32, DataType.Half: np.float16}


class Memory:
    """Device buffers of one call, their elements in the order of an image's memory."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._rng = np.random.default_rng(0)

    def of(self, values: np.ndarray[Any, Any]) -> DeviceBuffer:
        return self._stack.enter_context(DeviceBuffer.from_host(values))

    def image(self, dtype: DataType) -> np.ndarray[Any, Any]:
        """Small integers: their sums are exact."""
        return self._rng.integers(-8, 8, (N, H * W * C)).astype(NUMPY[dtype])


def elements(buffer: DeviceBuffer) -> np.ndarray[Any, Any]:
    values = np.empty(H * W * C, np.float32)
    copy_to_host(values, buffer)
    return values


@pytest.mark.parametrize("derived", [True, False], ids=["derived", "NHWC"])
@pytest.mark.parametrize("dtype", list(NUMPY))
def test_statistics_lie_as_an_image_does(dtype: DataType, derived: bool) -> None:
    """Whatever the descriptor of the statistics says; and MIOpen derives packed NCHW."""
    per_activation = BatchNormMode.PerActivation
    with ExitStack() as stack:
        own = stack.enter_context
        x_desc = own(TensorDescriptor(dtype, DIMS, channels_last(DIMS)))
        packed = own(TensorDescriptor.for_batchnorm(x_desc, per_activation))
        assert list(packed.strides) == [C * H * W, H * W, W, 1]
        last = own(TensorDescriptor(DataType.Float, packed.dims, channels_last(packed.dims)))
        problem = BatchNormProblem(per_activation, x_desc, packed if derived else last)
        handle, memory = own(Handle()), Memory(stack)
        image, gradient = memory.image(dtype), memory.image(dtype)
        zeros, parameter = np.zeros(H * W * C, np.float32), np.arange(H * W * C, dtype=np.float32)
        x, y = memory.of(image), memory.of(image)
        mean, inverse, dscale, dbias = (memory.of(zeros) for _ in range(4))

        tensors = {"x": x, "y": y, "scale": memory.of(zeros), "bias": memory.of(parameter)}
        batchnorm.inference(handle, problem, epsilon=1.0).bind(
            **tensors, mean=mean, variance=memory.of(zeros)
        )()
        inferred = np.empty_like(image)
        copy_to_host(inferred, y)
        np.testing.assert_array_equal(inferred, np.broadcast_to(parameter, image.shape))

        batchnorm.TrainingRunner(handle, problem, epsilon=1.0).bind(
            **tensors, mean=mean, inv_variance=inverse
        )()
        wide = image.astype(np.float64)
        np.testing.assert_array_equal(elements(mean), wide.mean(0))
        np.testing.assert_allclose(elements(inverse), (wide.var(0) + 1) ** -0.5, rtol=1e-6)

        batchnorm.backward(handle, problem, epsilon=1.0).bind(
            x=x,
            dy=memory.of(gradient),
            dx=y,
            scale=memory.of(parameter),
            dscale=dscale,
            dbias=dbias,
            mean=mean,
            inv_variance=inverse,
        )()
        np.testing.assert_array_equal(elements(dbias), gradient.astype(np.float64).sum(0))
