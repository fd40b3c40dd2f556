"""Whether the kernel that MIOpen chose for a batchnorm's backward sums each channel's elements.

A perf-db record may make it choose variant 1, which for some images doesn't, see
`kernel_defects.py`. A plan for such an image computes one input whose sums are known.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.chosen_kernel import records_behind, result_of
from hipdnn_miopen_provider.native import (
    NO_MEMORY,
    ActivationMode,
    Device,
    copy_to_device,
    fill,
    hip,
    library,
)
from hipdnn_miopen_provider.perf_db import user_db_folder
from hipdnn_miopen_provider.tensors import numpy_type
from hipdnn_registry import ExecutionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hipdnn_miopen_provider.activation import Activation
    from hipdnn_miopen_provider.batchnorm import BatchNormBackward
    from hipdnn_miopen_provider.native import DeviceMemory
    from hipdnn_miopen_provider.operation import Run

_TOLERANCE = 1e-4
"""Relative error of a sum. Each second image at least loses an element: 1 in 2048 or more."""


def check_sums(operation: BatchNormBackward, buffers: Mapping[int, DeviceMemory], run: Run) -> None:
    """Compute the gradient of the bias of a dy that is 1 or 2, alternating with the channel.

    Args:
        operation: The backward of an NCHW image with H * W up to 1024.
        buffers: Scratch memory of its tensors by uid; overwritten.
        run: Its launcher, bound to them.

    Raises:
        ExecutionError: MIOpen's kernel sums other elements; names the record that chose it.
        NativeError: HIP or MIOpen failed.
    """
    import numpy as np

    x, ports = operation.x, operation.ports
    value = 1.0 + np.arange(x.dims[1]) % 2
    dy = np.empty((x.dims[0], x.dims[1], math.prod(x.dims[2:])), numpy_type(x.dtype))
    dy[...] = value[:, None]
    for uid in operation.tensors:
        fill(buffers[uid], 0)
    copy_to_device(buffers[ports["dy"]], dy)
    if operation.activation is not None:  # of y, which is the bias here
        bias = np.full(value.shape, _passing(operation.activation), np.float32)
        copy_to_device(buffers[ports["bias"]], bias)
    dbias = result_of(partial(run, NO_MEMORY), buffers[ports["dbias"]], operation.statistics)
    wanted = value * (dy.size // value.size)
    if dbias is not None and not np.allclose(dbias.ravel(), wanted, rtol=_TOLERANCE, atol=0):
        raise ExecutionError(
            f"{operation.name}: MIOpen chose a kernel that sums the wrong elements "
            f"({operation.hazard}), {_cause(operation)}. docs/findings.md says more"
        )


def _cause(operation: BatchNormBackward) -> str:
    """Return why MIOpen chose the kernel, and what to do about it."""
    records = records_behind(operation)
    if not records:
        device, version = Device.query(hip.current_device()), library.load().version
        return (
            f"by itself: the perf-db in {user_db_folder()} has no record of it for "
            f"{device.architecture} with {device.compute_units} compute units and MIOpen "
            f"{'.'.join(map(str, version))}. Use NHWC tensors, or another engine"
        )
    found = "; ".join(map(str, records))
    return (
        f"because of a perf-db record ({found}). Remove that line, or the file, while no process "
        "uses MIOpen"
    )


def _passing(activation: Activation) -> float:
    """Return a y whose gradient the activation lets through."""
    if activation.mode is ActivationMode.RELU:
        return 1.0
    if activation.mode is ActivationMode.CLIPPEDRELU:
        return activation.alpha / 2
    return (activation.alpha + activation.beta) / 2
