"""Operation graphs: tensors, nodes, their rules, hipDNN's JSON form and the content key."""

from .content_key import ContentKey
from .graph import Graph
from .node import Node
from .nodes import (
    BACKWARD_EPSILON,
    NODE_TYPES,
    BatchnormBackwardNode,
    BatchnormInferenceNode,
    BatchnormInferenceVarianceNode,
    BatchnormNode,
    ConvolutionBwdNode,
    ConvolutionFwdNode,
    ConvolutionNode,
    ConvolutionWrwNode,
    PointwiseNode,
)
from .operation_options import BatchnormGradients, BatchnormTensors
from .rules import Wiring
from .tensor import TensorAttributes, channels_last_order, packed_strides, strides_overlap
from .types import ConvMode, DataType, PointwiseMode, ValueType
from .validation import Structure

__all__ = [
    "BACKWARD_EPSILON",
    "NODE_TYPES",
    "BatchnormBackwardNode",
    "BatchnormGradients",
    "BatchnormInferenceNode",
    "BatchnormInferenceVarianceNode",
    "BatchnormNode",
    "BatchnormTensors",
    "ContentKey",
    "ConvMode",
    "ConvolutionBwdNode",
    "ConvolutionFwdNode",
    "ConvolutionNode",
    "ConvolutionWrwNode",
    "DataType",
    "Graph",
    "Node",
    "PointwiseMode",
    "PointwiseNode",
    "Structure",
    "TensorAttributes",
    "ValueType",
    "Wiring",
    "channels_last_order",
    "packed_strides",
    "strides_overlap",
]
