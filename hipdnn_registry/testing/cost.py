"""What a graph costs: floating-point operations, bytes moved, lengths of sums."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hipdnn_registry.graph import (
    BatchnormBackwardNode,
    BatchnormNode,
    ConvolutionBwdNode,
    ConvolutionFwdNode,
    ConvolutionWrwNode,
    PointwiseNode,
)

if TYPE_CHECKING:
    from hipdnn_registry import Graph
    from hipdnn_registry.graph import Wiring

_CONVOLUTIONS = (ConvolutionFwdNode, ConvolutionBwdNode, ConvolutionWrwNode)


def convolution_flops(graph: Graph) -> int:
    """Return the operations of all convolutions of a graph, two for a multiply-add.

    In each direction 2 * N * K * prod(out) * (C / groups) * prod(filter), the count that MIOpen
    uses; padding counts as if it were data.
    """
    return sum(
        2 * math.prod(_ends(wiring)["y"]) * math.prod(_ends(wiring)["w"][1:])
        for wiring in graph.structure.wirings
        if isinstance(wiring.node, _CONVOLUTIONS)
    )


def bytes_moved(graph: Graph) -> int:
    """Return the bytes of all buffers of a graph, each read or written once."""
    return sum(tensor.element_count * tensor.data_type.bits // 8 for tensor in graph.io_tensors)


def reduction_length(wiring: Wiring) -> int:
    """Return how many terms are summed for one element of a node's largest sum."""
    node = wiring.node
    if isinstance(node, _CONVOLUTIONS):
        ends = _ends(wiring)
        y, w = ends["y"], ends["w"]
        if isinstance(node, ConvolutionFwdNode):
            return math.prod(w[1:])
        if isinstance(node, ConvolutionBwdNode):
            groups = ends["x"][1] // w[1]
            return w[0] // groups * math.prod(w[2:])
        return y[0] * math.prod(y[2:])
    if isinstance(node, (BatchnormNode, BatchnormBackwardNode)):
        return wiring.inputs["x"].element_count // wiring.inputs["scale"].element_count
    if isinstance(node, PointwiseNode):
        return 1
    return max(max(tensor.dims or (1,)) for tensor in wiring.inputs.values())


def _ends(wiring: Wiring) -> dict[str, tuple[int, ...]]:
    """Return the dims of a convolution's x, w and y, whichever of them is the gradient."""
    return {
        port.removeprefix("d"): tensor.dims or ()
        for port, tensor in (*wiring.inputs.items(), *wiring.outputs.items())
    }
