"""conv: one graph for each direction that `-F` asks for, of a convolution or a transposed one.

MIOpen's transposed convolution (`-m trans`) of x [N, C, in...] with the filter w [C, K/groups,
r...] is the backward data of the convolution that leads from y back to x:

    y [N, K, stride * (in - 1) + dilation * (r - 1) + 1 - 2 * pad + output padding]

So its forward is `conv_dgrad` with x in dy's place, its backward data is `conv_fprop` from dy to
dx, and its backward weights is `conv_wgrad` with dy as the image and x as the gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipdnn_registry.graph.graph import Graph
from hipdnn_registry.graph.types import DataType, PointwiseMode

from .geometry import Convolution, read_convolution
from .shapes import Shape

if TYPE_CHECKING:
    from hipdnn_registry.graph.tensor import TensorAttributes

    from .flags import Flags

_FORWARD, _BACKWARD_DATA, _BACKWARD_WEIGHTS = 1, 2, 4


def convolution_graphs(flags: Flags, base: str, io_type: DataType) -> list[Graph]:
    """Return conv's graphs in the order forward, backward data, backward weights.

    Args:
        flags: The command's flags, of the table `CONV`.
        base: The command's base, for the graphs' names.
        io_type: Type of every tensor.
    """
    convolution = read_convolution(flags, transposed=flags.text("mode") == "trans")
    directions = flags.integer("forw") or _FORWARD | _BACKWARD_DATA | _BACKWARD_WEIGHTS
    graphs = []
    if directions & _FORWARD:
        graph = open_graph(f"{base}_fwd", io_type)
        graphs.append(_forward(graph, convolution, bias=flags.integer("bias") == 1))
    if directions & _BACKWARD_DATA:
        graphs.append(_backward_data(open_graph(f"{base}_bwd", io_type), convolution))
    if directions & _BACKWARD_WEIGHTS:
        graphs.append(_backward_weights(open_graph(f"{base}_wrw", io_type), convolution))
    return [graph.validate() for graph in graphs]


def open_graph(name: str, io_type: DataType) -> Graph:
    """Return an empty graph whose intermediates and arithmetic are float."""
    return Graph(
        name,
        io_data_type=io_type,
        intermediate_data_type=DataType.FLOAT,
        compute_data_type=DataType.FLOAT,
    )


def add_bias(graph: Graph, y: TensorAttributes) -> TensorAttributes:
    """Add the bias [1, K, 1...] to a convolution's result."""
    _, filters, *spatial = y.dims or ()
    shape = Shape((1, filters, *(1 for _ in spatial)))
    return graph.pointwise(PointwiseMode.ADD, y, shape.read_by(graph, "bias"))


def _forward(graph: Graph, convolution: Convolution, *, bias: bool) -> Graph:
    x, w = convolution.x.read_by(graph, "x"), convolution.w.read_by(graph, "w")
    add = convolution.add_dgrad if convolution.transposed else convolution.add_fprop
    y = convolution.y.give(add(graph, x, w))
    if bias:
        y = add_bias(graph, y)
    convolution.y.output(y, "y")
    return graph


def _backward_data(graph: Graph, convolution: Convolution) -> Graph:
    dy, w = convolution.y.read_by(graph, "dy"), convolution.w.read_by(graph, "w")
    add = convolution.add_fprop if convolution.transposed else convolution.add_dgrad
    convolution.x.output(add(graph, dy, w), "dx")
    return graph


def _backward_weights(graph: Graph, convolution: Convolution) -> Graph:
    dy, x = convolution.y.read_by(graph, "dy"), convolution.x.read_by(graph, "x")
    gradient, image = (x, dy) if convolution.transposed else (dy, x)
    convolution.w.output(convolution.add_wgrad(graph, gradient, image), "dw")
    return graph
