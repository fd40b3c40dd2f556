"""Which graphs the CPU engines serve, and the reason why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipdnn_registry import DataType
from hipdnn_registry.graph import (
    BatchnormBackwardNode,
    BatchnormInferenceNode,
    BatchnormInferenceVarianceNode,
    BatchnormNode,
    ConvolutionBwdNode,
    ConvolutionFwdNode,
    ConvolutionWrwNode,
    PointwiseNode,
)

from .kernels.pointwise import INPUTS

if TYPE_CHECKING:
    from hipdnn_registry import Graph
    from hipdnn_registry.graph import Wiring

TENSOR_TYPES = frozenset({DataType.FLOAT, DataType.HALF, DataType.BFLOAT16, DataType.DOUBLE})
COMPUTE_TYPES = TENSOR_TYPES
"""16-bit arithmetic is done in float32 and rounded once, which is at least as exact."""

_NODES = (
    ConvolutionFwdNode,
    ConvolutionBwdNode,
    ConvolutionWrwNode,
    BatchnormNode,
    BatchnormInferenceNode,
    BatchnormInferenceVarianceNode,
    BatchnormBackwardNode,
    PointwiseNode,
)


def unsupported(graph: Graph) -> str | None:
    """Return the reason why the CPU engines can't run a graph, or `None`."""
    for wiring in graph.structure.wirings:
        reason = _unsupported_node(wiring)
        if reason:
            return f"node '{wiring.node.name}': {reason}"
    return None


def _unsupported_node(wiring: Wiring) -> str | None:
    node = wiring.node
    if not isinstance(node, _NODES):
        return f"operation {node.type} is not implemented on the CPU"
    if isinstance(node, PointwiseNode) and node.inputs.operation.value not in INPUTS:
        return f"pointwise operation '{node.inputs.operation}' is not implemented on the CPU"
    if isinstance(node, BatchnormNode | BatchnormBackwardNode) and (
        node.inputs.peer_stats_tensor_uid
    ):
        return "statistics of peers are not supported on the CPU"
    if node.compute_data_type not in COMPUTE_TYPES:
        return _not_among("compute data type", node.compute_data_type, COMPUTE_TYPES)
    for tensor in (*wiring.inputs.values(), *wiring.outputs.values()):
        if tensor.data_type not in TENSOR_TYPES:
            what = f"data type of tensor {tensor.label}"
            return _not_among(what, tensor.data_type, TENSOR_TYPES)
    return None


def _not_among(what: str, value: DataType, allowed: frozenset[DataType]) -> str:
    return f"{what} is '{value}', but the CPU takes {', '.join(sorted(allowed))}"
