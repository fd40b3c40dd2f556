"""What each operation demands of its tensors, and what it tells about its outputs."""

from hipdnn_registry.graph.node import Node
from hipdnn_registry.graph.nodes import (
    BatchnormBackwardNode,
    BatchnormInferenceNode,
    BatchnormInferenceVarianceNode,
    BatchnormNode,
    ConvolutionBwdNode,
    ConvolutionFwdNode,
    ConvolutionWrwNode,
    PointwiseNode,
)
from hipdnn_registry.graph.wiring import Rule, Wiring

from .batchnorm import apply_batchnorm, apply_batchnorm_backward, apply_batchnorm_inference
from .convolution import apply_dgrad, apply_fprop, apply_wgrad
from .pointwise import apply_pointwise

RULES: dict[type[Node], Rule] = {
    ConvolutionFwdNode: apply_fprop,
    ConvolutionBwdNode: apply_dgrad,
    ConvolutionWrwNode: apply_wgrad,
    BatchnormNode: apply_batchnorm,
    BatchnormInferenceNode: apply_batchnorm_inference,
    BatchnormInferenceVarianceNode: apply_batchnorm_inference,
    BatchnormBackwardNode: apply_batchnorm_backward,
    PointwiseNode: apply_pointwise,
}
"""The rule of each operation that is fully understood; the others are checked structurally."""

__all__ = ["RULES", "Rule", "Wiring"]
