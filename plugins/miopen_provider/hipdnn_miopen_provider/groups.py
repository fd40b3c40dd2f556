"""Whether the kernel that MIOpen chose for a grouped backward weights keeps the groups apart.

ConvOclBwdWrW2 takes the inputs of one group for a whole block of output channels, and a perf-db
record or a search may choose blocks that reach into the next group, see docs/findings.md. A plan
computes one gradient that is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipdnn_miopen_provider.chosen_kernel import records_behind, result_of
from hipdnn_miopen_provider.native import ConvolutionAlgorithm, Direction, copy_to_device
from hipdnn_miopen_provider.tensors import is_channels_last, numpy_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hipdnn_miopen_provider.convolution import Convolution
    from hipdnn_miopen_provider.native import DeviceMemory

_SOLVER = "ConvOclBwdWrW2<"


def may_mix_groups(operation: Convolution, algorithm: ConvolutionAlgorithm) -> bool:
    """Whether an algorithm may be the kernel: it is of 2-D NCHW problems."""
    return (
        algorithm is ConvolutionAlgorithm.Direct
        and operation.direction is Direction.BACKWARD_WEIGHTS
        and operation.geometry.groups > 1
        and len(operation.x.dims) == 4
        and not is_channels_last(operation.x)
    )


def keeps_groups_apart(
    operation: Convolution, memory: Mapping[int, DeviceMemory], run: Callable[[], None]
) -> bool:
    """Compute the gradient of an x that is 1 or 2, alternating with the group, for one dy of 1.

    Args:
        operation: A grouped backward weights.
        memory: Scratch memory of its tensors by uid; overwritten.
        run: Runs the kernel on it.

    Raises:
        NativeError: HIP or MIOpen failed.
    """
    import numpy as np

    dtype = numpy_type(operation.x.dtype)
    groups = operation.geometry.groups
    value = 1.0 + np.arange(groups) % 2
    x, w, y = (memory[uid] for uid in operation.uids)
    image = np.empty(operation.x.dims, dtype)
    image[...] = np.repeat(value, image.shape[1] // groups)[:, None, None]
    gradient = np.zeros(operation.y.dims, dtype)
    middle = tuple(extent // 2 for extent in gradient.shape[2:])
    gradient[0, :, middle[0], middle[1]] = 1
    copy_to_device(x, image)
    copy_to_device(y, gradient)
    got = result_of(run, w, operation.w)
    if got is None:
        return True
    seen = np.multiply.outer(*_taps_inside(operation, middle))
    wanted = np.repeat(value, got.shape[0] // groups)[:, None, None, None] * seen
    return bool(np.allclose(got, wanted, rtol=0.25, atol=0))  # half or twice as much if not


def _taps_inside(operation: Convolution, at: tuple[int, ...]) -> list[list[bool]]:
    """Which taps of the filter lie on the image, by dimension, for one position of y."""
    geometry = operation.geometry
    return [
        [0 <= place * stride - padding + tap * dilation < extent for tap in range(taps)]
        for place, stride, padding, dilation, taps, extent in zip(
            *(at, geometry.strides, geometry.padding, geometry.dilations),
            *(operation.w.dims[2:], operation.x.dims[2:]),
            strict=True,
        )
    ]


def why_left_out(operation: Convolution) -> str:
    """Say what is wrong with the kernel, and which perf-db records chose it."""
    records = records_behind(operation)
    found = "; ".join(str(record) for record in records if record.solver.startswith(_SOLVER))
    cause = f", because of a perf-db record ({found})" if found else ""
    return (
        "Direct was left out: MIOpen chose a kernel that takes one group's inputs for output "
        f"channels of two{cause}. docs/findings.md says more"
    )
