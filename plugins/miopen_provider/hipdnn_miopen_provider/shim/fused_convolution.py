"""MIOpen's fused convolution call: convolution, bias and activation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .activation_descriptor import ActivationDescriptor, pointwise_of
from .arguments import instance, require_scales, workspace_bytes
from .forwarding import EntryPoint
from .plan_key import GraphKind
from .problems import problem_and_buffers

if TYPE_CHECKING:
    from hipdnn_registry import ExecutionPlan

    from .convolution_descriptor import ConvolutionDescriptor
    from .handle import MiopenHandle
    from .tensor_descriptor import TensorDescriptor


def convolution_bias_activation_forward(
    handle: MiopenHandle,
    x_desc: TensorDescriptor,
    x: Any,
    w_desc: TensorDescriptor,
    w: Any,
    conv_desc: ConvolutionDescriptor,
    bias_desc: TensorDescriptor,
    bias: Any,
    activation_desc: ActivationDescriptor,
    y_desc: TensorDescriptor,
    y: Any,
    *,
    alpha1: float = 1.0,
    alpha2: float = 0.0,
    workspace: Any | None = None,
) -> ExecutionPlan:
    """Enqueue y = activation(convolution(x, w) + bias).

    Has no Find, so it tunes at its first call, and DbUpdate, which needs one with
    `exhaustive_search`, tunes nothing.

    Args:
        handle: The handle.
        x_desc: Of the image.
        x: Its buffer.
        w_desc: Of the filter.
        w: Its buffer.
        conv_desc: The convolution, not a transposed one.
        bias_desc: Of the bias, [1, K, 1...].
        bias: Its buffer.
        activation_desc: PASTHRU, RELU, CLIPPEDRELU, LEAKYRELU, CLAMP, LOGISTIC or TANH.
        y_desc: Of the result.
        y: Its buffer.
        alpha1: Must be 1.
        alpha2: Factor of z, a tensor that MIOpen's call adds. Must be 0, and so there is no z.
        workspace: Bounds the solvers.
    """
    entry = EntryPoint.CONVOLUTION_BIAS_ACTIVATION_FORWARD
    require_scales(entry, why="the engines compute without scaling", alpha1=(alpha1, 1.0))
    require_scales(entry, why="the engines add a bias, but no tensor z", alpha2=(alpha2, 0.0))
    activation = instance(ActivationDescriptor, activation_desc, entry, "activation_desc")
    pointwise_of(activation, entry)
    operands = {"x": (x_desc, x), "w": (w_desc, w), "bias": (bias_desc, bias), "y": (y_desc, y)}
    kind = GraphKind.CONV_BIAS_ACTIVATION
    problem, buffers = problem_and_buffers(handle, entry, kind, operands, conv_desc, activation)
    return handle.run(entry, problem, buffers, workspace, workspace_bytes(workspace, entry))
