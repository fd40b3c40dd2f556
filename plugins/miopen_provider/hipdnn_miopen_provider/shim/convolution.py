"""MIOpen's convolution calls: workspace, Find and compute in each direction.

Arguments have MIOpen's names and, from Find on, MIOpen's order: descriptor and buffer of both
inputs, the convolution, descriptor and buffer of the result. What has no use in Python is left
out: the algorithm (the plan of the last Find runs), counts, and sizes that buffers tell
themselves.

    size = convolution_forward_get_workspace_size(handle, w_desc, x_desc, conv, y_desc)
    workspace = allocate(size)
    find_convolution_forward(handle, x_desc, x, w_desc, w, conv, y_desc, y, workspace=workspace)
    convolution_forward(handle, x_desc, x, w_desc, w, conv, y_desc, y, workspace=workspace)

A compute call without a Find finds by itself, as if `exhaustive_search` were False.

Common to all:

- Tensors are of rank 4 or 5, packed in one layout (NCHW, NHWC and their 3-D likes), of one type:
  float, half or bfloat16. Filters are [K, C/groups, ...]; [C, K/groups, ...] where the mode is
  Transpose.
- Buffers are device addresses, `DeviceBuffer`s or DLPack objects.
- `workspace` is a `DeviceBuffer`, or a pair of address and size. In a Find, or in a compute call
  without one, its size bounds the solvers; `None` does not, and the plan brings its own.
- `alpha` must be 1 and `beta` 0.
- Raised are `BadParm` for wrong arguments, `UnsupportedOp` for what is declined, `AllocFailed`,
  and `InternalError` where MIOpen failed.
- Compute and Find return the registry's `ExecutionPlan`: its notes say which policy ruled, which
  solver was chosen, and what changed in the perf-db.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arguments import (
    flag,
    require_scales,
    workspace_bytes,
)
from .forwarding import EntryPoint
from .plan_key import GraphKind
from .problems import Operands, convolution_problem, problem_and_buffers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hipdnn_registry import ExecutionPlan

    from .convolution_descriptor import ConvolutionDescriptor
    from .handle import MiopenHandle
    from .tensor_descriptor import TensorDescriptor


_ONE_AND_ZERO = "the engines compute without scaling"


# Workspace


def convolution_forward_get_workspace_size(
    handle: MiopenHandle,
    w_desc: TensorDescriptor,
    x_desc: TensorDescriptor,
    conv_desc: ConvolutionDescriptor,
    y_desc: TensorDescriptor,
) -> int:
    """Return the bytes of workspace that suffice under the handle's policy; tunes nothing.

    As in MIOpen w comes before x. It also suffices for `convolution_bias_activation_forward`.
    """
    entry, kind = EntryPoint.CONVOLUTION_FORWARD_GET_WORKSPACE_SIZE, GraphKind.CONV_FPROP
    return _workspace(handle, entry, kind, {"x": x_desc, "w": w_desc, "y": y_desc}, conv_desc)


def convolution_backward_data_get_workspace_size(
    handle: MiopenHandle,
    dy_desc: TensorDescriptor,
    w_desc: TensorDescriptor,
    conv_desc: ConvolutionDescriptor,
    dx_desc: TensorDescriptor,
) -> int:
    """Return the bytes of workspace that suffice under the handle's policy; tunes nothing."""
    entry, kind = EntryPoint.CONVOLUTION_BACKWARD_DATA_GET_WORKSPACE_SIZE, GraphKind.CONV_DGRAD
    return _workspace(handle, entry, kind, {"dy": dy_desc, "w": w_desc, "dx": dx_desc}, conv_desc)


def convolution_backward_weights_get_workspace_size(
    handle: MiopenHandle,
    dy_desc: TensorDescriptor,
    x_desc: TensorDescriptor,
    conv_desc: ConvolutionDescriptor,
    dw_desc: TensorDescriptor,
) -> int:
    """Return the bytes of workspace that suffice under the handle's policy; tunes nothing."""
    entry, kind = EntryPoint.CONVOLUTION_BACKWARD_WEIGHTS_GET_WORKSPACE_SIZE, GraphKind.CONV_WGRAD
    return _workspace(handle, entry, kind, {"dy": dy_desc, "x": x_desc, "dw": dw_desc}, conv_desc)


# Find


def find_convolution_forward(
    handle: MiopenHandle,
    x_desc: TensorDescriptor,
    x: Any,
    w_desc: TensorDescriptor,
    w: Any,
    conv_desc: ConvolutionDescriptor,
    y_desc: TensorDescriptor,
    y: Any,
    *,
    workspace: Any | None = None,
    exhaustive_search: bool = False,
) -> ExecutionPlan:
    """Find a solver for `convolution_forward` under the handle's policy, tuning as that says.

    Args:
        handle: The handle.
        x_desc: Of the image, [N, C, spatial...].
        x: Its buffer. Unlike MIOpen's, this Find works on buffers of its own: those given are
            checked, and not touched.
        w_desc: Of the filter.
        w: Its buffer.
        conv_desc: The convolution.
        y_desc: Of the result, [N, K, spatial...].
        y: Its buffer.
        workspace: Bounds the solvers.
        exhaustive_search: Under policy None search on a miss, and write what was found; under
            DbUpdate search and write, where without it nothing is tuned. Under the other
            policies it changes nothing.
    """
    operands = {"x": (x_desc, x), "w": (w_desc, w), "y": (y_desc, y)}
    entry, kind = EntryPoint.FIND_CONVOLUTION_FORWARD, GraphKind.CONV_FPROP
    return _find(handle, entry, kind, operands, conv_desc, workspace, exhaustive_search)


def find_convolution_backward_data(
    handle: MiopenHandle,
    dy_desc: TensorDescriptor,
    dy: Any,
    w_desc: TensorDescriptor,
    w: Any,
    conv_desc: ConvolutionDescriptor,
    dx_desc: TensorDescriptor,
    dx: Any,
    *,
    workspace: Any | None = None,
    exhaustive_search: bool = False,
) -> ExecutionPlan:
    """Find a solver for `convolution_backward_data`; see `find_convolution_forward`."""
    operands = {"dy": (dy_desc, dy), "w": (w_desc, w), "dx": (dx_desc, dx)}
    entry, kind = EntryPoint.FIND_CONVOLUTION_BACKWARD_DATA, GraphKind.CONV_DGRAD
    return _find(handle, entry, kind, operands, conv_desc, workspace, exhaustive_search)


def find_convolution_backward_weights(
    handle: MiopenHandle,
    dy_desc: TensorDescriptor,
    dy: Any,
    x_desc: TensorDescriptor,
    x: Any,
    conv_desc: ConvolutionDescriptor,
    dw_desc: TensorDescriptor,
    dw: Any,
    *,
    workspace: Any | None = None,
    exhaustive_search: bool = False,
) -> ExecutionPlan:
    """Find a solver for `convolution_backward_weights`; see `find_convolution_forward`."""
    operands = {"dy": (dy_desc, dy), "x": (x_desc, x), "dw": (dw_desc, dw)}
    entry, kind = EntryPoint.FIND_CONVOLUTION_BACKWARD_WEIGHTS, GraphKind.CONV_WGRAD
    return _find(handle, entry, kind, operands, conv_desc, workspace, exhaustive_search)


# Compute


def convolution_forward(
    handle: MiopenHandle,
    x_desc: TensorDescriptor,
    x: Any,
    w_desc: TensorDescriptor,
    w: Any,
    conv_desc: ConvolutionDescriptor,
    y_desc: TensorDescriptor,
    y: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    workspace: Any | None = None,
) -> ExecutionPlan:
    """Enqueue y = convolution(x, w)."""
    operands = {"x": (x_desc, x), "w": (w_desc, w), "y": (y_desc, y)}
    entry, kind = EntryPoint.CONVOLUTION_FORWARD, GraphKind.CONV_FPROP
    return _run(handle, entry, kind, operands, conv_desc, (alpha, beta), workspace)


def convolution_backward_data(
    handle: MiopenHandle,
    dy_desc: TensorDescriptor,
    dy: Any,
    w_desc: TensorDescriptor,
    w: Any,
    conv_desc: ConvolutionDescriptor,
    dx_desc: TensorDescriptor,
    dx: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    workspace: Any | None = None,
) -> ExecutionPlan:
    """Enqueue dx, the gradient of `convolution_forward` by x."""
    operands = {"dy": (dy_desc, dy), "w": (w_desc, w), "dx": (dx_desc, dx)}
    entry, kind = EntryPoint.CONVOLUTION_BACKWARD_DATA, GraphKind.CONV_DGRAD
    return _run(handle, entry, kind, operands, conv_desc, (alpha, beta), workspace)


def convolution_backward_weights(
    handle: MiopenHandle,
    dy_desc: TensorDescriptor,
    dy: Any,
    x_desc: TensorDescriptor,
    x: Any,
    conv_desc: ConvolutionDescriptor,
    dw_desc: TensorDescriptor,
    dw: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    workspace: Any | None = None,
) -> ExecutionPlan:
    """Enqueue dw, the gradient of `convolution_forward` by w."""
    operands = {"dy": (dy_desc, dy), "x": (x_desc, x), "dw": (dw_desc, dw)}
    entry, kind = EntryPoint.CONVOLUTION_BACKWARD_WEIGHTS, GraphKind.CONV_WGRAD
    return _run(handle, entry, kind, operands, conv_desc, (alpha, beta), workspace)


# What they share


def _workspace(
    handle: MiopenHandle,
    entry: EntryPoint,
    kind: GraphKind,
    tensors: Mapping[str, TensorDescriptor],
    conv_desc: ConvolutionDescriptor,
) -> int:
    problem = convolution_problem(handle, entry, kind, tensors, conv_desc)
    return handle.estimate_workspace(entry, problem)


def _find(
    handle: MiopenHandle,
    entry: EntryPoint,
    kind: GraphKind,
    operands: Operands,
    conv_desc: ConvolutionDescriptor,
    workspace: Any | None,
    exhaustive_search: bool,
) -> ExecutionPlan:
    problem, buffers = problem_and_buffers(handle, entry, kind, operands, conv_desc)
    return handle.find(
        entry,
        problem,
        buffers,
        workspace,
        workspace_limit=workspace_bytes(workspace, entry),
        exhaustive=flag(exhaustive_search, entry, "exhaustive_search"),
    )


def _run(
    handle: MiopenHandle,
    entry: EntryPoint,
    kind: GraphKind,
    operands: Operands,
    conv_desc: ConvolutionDescriptor,
    scales: tuple[float, float],
    workspace: Any | None,
) -> ExecutionPlan:
    alpha, beta = scales
    require_scales(entry, why=_ONE_AND_ZERO, alpha=(alpha, 1.0), beta=(beta, 0.0))
    problem, buffers = problem_and_buffers(handle, entry, kind, operands, conv_desc)
    return handle.run(entry, problem, buffers, workspace, workspace_bytes(workspace, entry))
