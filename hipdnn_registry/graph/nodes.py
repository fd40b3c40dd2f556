"""One pydantic model for each node type of hipDNN's schema, in the shape of its JSON form.

A node's `inputs` and `outputs` name tensors by uid under `<port>_tensor_uid`. Those that this
project computes (convolutions, batch normalisations, pointwise) are here, field by field.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .model import Float, Int64, Ints, Model
from .node import Node, Ports
from .stored_nodes import (
    BlockScaleDequantizeNode,
    BlockScaleQuantizeNode,
    CustomOpNode,
    LayernormBackwardNode,
    LayernormNode,
    MatmulNode,
    MoeGroupedMatmulBwdNode,
    MoeGroupedMatmulNode,
    ReductionNode,
    ResampleBwdNode,
    ResampleFwdNode,
    RMSNormBackwardNode,
    RMSNormNode,
    SdpaBackwardNode,
    SdpaNode,
)
from .types import ConvMode, PointwiseMode

Port = Int64
OptionalPort = Int64 | None
PeerStats = Annotated[Ints, Field(default=())]


# Convolution


class ConvFwdInputs(Ports):
    """x: [N, C, spatial...]; w: [K, C/groups, spatial...]."""

    x_tensor_uid: Port
    w_tensor_uid: Port


class ConvFwdOutputs(Ports):
    """y: [N, K, spatial...]."""

    y_tensor_uid: Port


class ConvBwdInputs(Ports):
    """dy: [N, K, spatial...]; w: [K, C/groups, spatial...]."""

    dy_tensor_uid: Port
    w_tensor_uid: Port


class ConvBwdOutputs(Ports):
    """dx: [N, C, spatial...]."""

    dx_tensor_uid: Port


class ConvWrwInputs(Ports):
    """x: [N, C, spatial...]; dy: [N, K, spatial...]."""

    x_tensor_uid: Port
    dy_tensor_uid: Port


class ConvWrwOutputs(Ports):
    """dw: [K, C/groups, spatial...]."""

    dw_tensor_uid: Port


class ConvParameters(Model):
    """One entry a spatial dimension; padding in elements before and behind the image."""

    conv_mode: ConvMode = ConvMode.CROSS_CORRELATION
    pre_padding: Ints
    post_padding: Ints
    stride: Ints
    dilation: Ints


class ConvolutionFwdNode(Node):
    """conv_fprop: y = x * w."""

    type: Literal["ConvolutionFwdAttributes"] = "ConvolutionFwdAttributes"
    inputs: ConvFwdInputs
    outputs: ConvFwdOutputs
    parameters: ConvParameters


class ConvolutionBwdNode(Node):
    """conv_dgrad: the gradient of conv_fprop with respect to x."""

    type: Literal["ConvolutionBwdAttributes"] = "ConvolutionBwdAttributes"
    inputs: ConvBwdInputs
    outputs: ConvBwdOutputs
    parameters: ConvParameters


class ConvolutionWrwNode(Node):
    """conv_wgrad: the gradient of conv_fprop with respect to w."""

    type: Literal["ConvolutionWrwAttributes"] = "ConvolutionWrwAttributes"
    inputs: ConvWrwInputs
    outputs: ConvWrwOutputs
    parameters: ConvParameters


# Batch normalisation. Statistics, scale and bias are [1, C, 1...] (spatial) or [1, C, H, W...]
# (per activation).


class BatchnormInputs(Ports):
    """x; scale and bias; scalar epsilon; for running statistics all of prev_* and momentum."""

    x_tensor_uid: Port
    scale_tensor_uid: Port
    bias_tensor_uid: Port
    epsilon_tensor_uid: OptionalPort = None
    peer_stats_tensor_uid: PeerStats
    prev_running_mean_tensor_uid: OptionalPort = None
    prev_running_variance_tensor_uid: OptionalPort = None
    momentum_tensor_uid: OptionalPort = None


class BatchnormOutputs(Ports):
    """y; batch mean and inverse standard deviation; updated running statistics."""

    y_tensor_uid: Port
    mean_tensor_uid: OptionalPort = None
    inv_variance_tensor_uid: OptionalPort = None
    next_running_mean_tensor_uid: OptionalPort = None
    next_running_variance_tensor_uid: OptionalPort = None


class BatchnormNode(Node):
    """batchnorm: training, with or without running statistics."""

    type: Literal["BatchnormAttributes"] = "BatchnormAttributes"
    inputs: BatchnormInputs
    outputs: BatchnormOutputs


class BatchnormInferenceInputs(Ports):
    """inv_variance is 1 / sqrt(variance + epsilon)."""

    x_tensor_uid: Port
    mean_tensor_uid: Port
    inv_variance_tensor_uid: Port
    scale_tensor_uid: Port
    bias_tensor_uid: Port


class BatchnormVarianceInputs(Ports):
    """The variance and epsilon in place of the inverse."""

    x_tensor_uid: Port
    mean_tensor_uid: Port
    variance_tensor_uid: Port
    scale_tensor_uid: Port
    bias_tensor_uid: Port
    epsilon_tensor_uid: OptionalPort = None


class YOutput(Ports):
    """y: the shape of x."""

    y_tensor_uid: Port


class BatchnormInferenceNode(Node):
    """batchnorm_inference with the inverse variance."""

    type: Literal["BatchnormInferenceAttributes"] = "BatchnormInferenceAttributes"
    inputs: BatchnormInferenceInputs
    outputs: YOutput


class BatchnormInferenceVarianceNode(Node):
    """batchnorm_inference with the variance: hipDNN's extension."""

    type: Literal["BatchnormInferenceAttributesVarianceExt"] = (
        "BatchnormInferenceAttributesVarianceExt"
    )
    inputs: BatchnormVarianceInputs
    outputs: YOutput


class BatchnormBackwardInputs(Ports):
    """mean and inv_variance are the saved ones of the forward pass."""

    dy_tensor_uid: Port
    x_tensor_uid: Port
    mean_tensor_uid: OptionalPort = None
    inv_variance_tensor_uid: OptionalPort = None
    scale_tensor_uid: Port
    peer_stats_tensor_uid: PeerStats


class BatchnormBackwardOutputs(Ports):
    """Gradients of x, scale and bias."""

    dx_tensor_uid: Port
    dscale_tensor_uid: Port
    dbias_tensor_uid: Port


BACKWARD_EPSILON = 1e-5
"""With which a backward recomputes statistics that were not saved: hipDNN's schema has none."""


class BatchnormBackwardNode(Node):
    """batchnorm_backward."""

    type: Literal["BatchnormBackwardAttributes"] = "BatchnormBackwardAttributes"
    inputs: BatchnormBackwardInputs
    outputs: BatchnormBackwardOutputs


# Pointwise


class PointwiseInputs(Ports):
    """Operands, and the operation with its settings: hipDNN's JSON keeps them together."""

    operation: PointwiseMode
    in_0_tensor_uid: Port
    in_1_tensor_uid: OptionalPort = None
    in_2_tensor_uid: OptionalPort = None
    axis_tensor_uid: OptionalPort = None
    relu_lower_clip: Float | None = None
    relu_upper_clip: Float | None = None
    relu_lower_clip_slope: Float | None = None
    swish_beta: Float | None = None
    elu_alpha: Float | None = None
    softplus_beta: Float | None = None


class PointwiseOutputs(Ports):
    """The result."""

    out_0_tensor_uid: Port


class PointwiseNode(Node):
    """pointwise: an elementwise operation; operands broadcast to the result.

    The backward modes read the gradient of the result as in_0 and the forward operand as in_1.
    """

    type: Literal["PointwiseAttributes"] = "PointwiseAttributes"
    inputs: PointwiseInputs
    outputs: PointwiseOutputs


ConvolutionNode = ConvolutionFwdNode | ConvolutionBwdNode | ConvolutionWrwNode

NODE_TYPES: dict[str, type[Node]] = {
    str(model.model_fields["type"].default): model
    for model in (
        BatchnormInferenceNode,
        PointwiseNode,
        BatchnormBackwardNode,
        BatchnormNode,
        ConvolutionFwdNode,
        ConvolutionBwdNode,
        ConvolutionWrwNode,
        BatchnormInferenceVarianceNode,
        MatmulNode,
        RMSNormNode,
        LayernormNode,
        SdpaNode,
        BlockScaleDequantizeNode,
        BlockScaleQuantizeNode,
        SdpaBackwardNode,
        CustomOpNode,
        RMSNormBackwardNode,
        ReductionNode,
        ResampleFwdNode,
        LayernormBackwardNode,
        ResampleBwdNode,
        MoeGroupedMatmulNode,
        MoeGroupedMatmulBwdNode,
    )
}
"""Model of a node by hipDNN's name of its attributes table."""
