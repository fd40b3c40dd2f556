"""Which graphs MIOpen's engines serve: from a graph to an `Operation`, or the reason why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hipdnn_miopen_provider.activation import ACTIVATIONS, activation_of
from hipdnn_miopen_provider.batchnorm_graphs import batchnorm_operation
from hipdnn_miopen_provider.chains import check_intermediate, uid
from hipdnn_miopen_provider.convolution import Convolution, Geometry
from hipdnn_miopen_provider.fused import FusedConvolution
from hipdnn_miopen_provider.kernel_defects import refuse_addition, refuse_clamp
from hipdnn_miopen_provider.native import DataType, Direction
from hipdnn_miopen_provider.pointwise import ActivationForward, Addition
from hipdnn_miopen_provider.tensors import Unsupported, in_memory_order, pad_spatial, specs
from hipdnn_registry import ConvMode, PointwiseMode
from hipdnn_registry import DataType as GraphType
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

if TYPE_CHECKING:
    from hipdnn_miopen_provider.operation import Operation
    from hipdnn_miopen_provider.tensors import TensorSpec
    from hipdnn_registry import Graph, TensorAttributes
    from hipdnn_registry.graph import ConvolutionNode, Wiring

_CONVOLUTIONS = {
    ConvolutionFwdNode: (Direction.FORWARD, ("x", "w", "y")),
    ConvolutionBwdNode: (Direction.BACKWARD_DATA, ("dx", "w", "dy")),
    ConvolutionWrwNode: (Direction.BACKWARD_WEIGHTS, ("x", "dw", "dy")),
}
_BATCHNORMS = (
    BatchnormNode,
    BatchnormInferenceNode,
    BatchnormInferenceVarianceNode,
    BatchnormBackwardNode,
)
_SCALARS = frozenset({"epsilon", "momentum"})

CONVOLUTION = "convolution"
BATCHNORM = "batchnorm"
POINTWISE = "pointwise"


def operation_of(graph: Graph, *, deterministic: bool) -> Operation:
    """Return the graph in MIOpen's terms.

    Args:
        graph: A validated graph.
        deterministic: Whether only operations that can be told to be deterministic will do.

    Raises:
        Unsupported: The reason; names the node or the tensor.
    """
    wirings = graph.structure.wirings
    kinds = [_kind(wiring) for wiring in wirings]
    _check_graph(graph)
    if kinds[0] == CONVOLUTION:
        return _convolution_operation(wirings)
    if deterministic:
        raise Unsupported(
            f"node '{wirings[0].node.name}': MIOpen has a deterministic attribute for convolutions "
            "only; use MIOPEN_ENGINE"
        )
    if kinds[0] == BATCHNORM:
        return batchnorm_operation(wirings)
    if len(wirings) > 1:
        raise Unsupported(
            f"node '{wirings[1].node.name}': pointwise operations are served one at a time, or "
            "behind a convolution or a batchnorm"
        )
    return _pointwise(wirings[0])


def _kind(wiring: Wiring) -> str:
    node = wiring.node
    if type(node) in _CONVOLUTIONS:
        return CONVOLUTION
    if isinstance(node, _BATCHNORMS):
        return BATCHNORM
    if isinstance(node, PointwiseNode):
        return POINTWISE
    raise Unsupported(f"node '{node.name}': MIOpen's engines have no operation {node.type}")


def _check_graph(graph: Graph) -> None:
    """Check what holds for every graph: its types, its constants, where its tensors live."""
    if graph.is_override_shape_enabled:
        raise Unsupported("the graph may be given other shapes later, and MIOpen's plans are fixed")
    for wiring in graph.structure.wirings:
        node = wiring.node
        bias_type = {t.data_type for t in wiring.outputs.values()}
        allowed = {GraphType.FLOAT} | (bias_type if isinstance(node, PointwiseNode) else set())
        if node.compute_data_type not in allowed:
            raise Unsupported(
                f"node '{node.name}': compute data type is '{node.compute_data_type}', but MIOpen "
                "computes in 'float'"
            )
        for port, tensor in wiring.inputs.items():
            if port.endswith("ragged_offset"):
                raise Unsupported(f"node '{node.name}': {port}: MIOpen takes no ragged tensors")
            if tensor.is_constant != (port in _SCALARS):
                wanted = "a constant" if port in _SCALARS else "in device memory"
                raise Unsupported(
                    f"node '{node.name}': {port} (tensor {tensor.label}) must be {wanted}"
                )


def _convolution_operation(wirings: tuple[Wiring, ...]) -> Operation:
    first, *rest = wirings
    if not rest:
        return convolution_of(first, first.outputs.get("y"))
    if not isinstance(first.node, ConvolutionFwdNode):
        raise Unsupported(f"node '{rest[0].node.name}': MIOpen fuses forward convolutions only")
    result, bias, activation = first.outputs["y"], None, None
    for wiring in rest:
        check_intermediate(result, wiring)
        node = cast("PointwiseNode", wiring.node)
        mode = node.inputs.operation if isinstance(node, PointwiseNode) else None
        if mode is PointwiseMode.ADD and bias is None and activation is None:
            bias = _other_operand(wiring, result)
        elif mode in ACTIVATIONS and activation is None:
            activation = activation_of(node)
        else:
            raise Unsupported(
                f"node '{node.name}': behind a convolution MIOpen takes a bias, then an "
                f"activation ({', '.join(sorted(ACTIVATIONS))}), each once"
            )
        result = wiring.outputs["out_0"]
    plain = convolution_of(first, result)
    return FusedConvolution(plain, _bias(rest[0], bias, result), activation)


def _other_operand(wiring: Wiring, known: TensorAttributes) -> TensorAttributes:
    first, second = wiring.inputs["in_0"], wiring.inputs["in_1"]
    other = second if first is known else first
    if other.virtual:
        raise Unsupported(f"node '{wiring.node.name}': adds the convolution's result to itself")
    return other


def _bias(
    wiring: Wiring, bias: TensorAttributes | None, y: TensorAttributes
) -> tuple[int, TensorSpec] | None:
    if bias is None:
        return None
    dims = y.dims or ()
    expected = (1, dims[1], *[1] * (len(dims) - 2))
    if bias.dims != expected or bias.data_type is not y.data_type:
        raise Unsupported(
            f"node '{wiring.node.name}': tensor {bias.label} has dims {list(bias.dims or ())} and "
            f"data type '{bias.data_type}', but a bias has {list(expected)} and '{y.data_type}'"
        )
    return uid(bias), specs([y, bias])[1]


def convolution_of(wiring: Wiring, result: TensorAttributes | None) -> Convolution:
    """Return a node's convolution; `result` stands for y where that is not stored.

    Raises:
        Unsupported: The reason; names the node or the tensor.
    """
    node = cast("ConvolutionNode", wiring.node)
    direction, ports = _CONVOLUTIONS[type(node)]
    found = {**wiring.inputs, **wiring.outputs}
    if result is not None:
        found["y"] = result
    tensors = [found[port] for port in ports]
    described = specs(tensors)
    types = {spec.dtype for spec in described}
    if len(types) > 1:
        listed = ", ".join(f"{t.label}: '{t.data_type}'" for t in tensors)
        raise Unsupported(
            f"node '{node.name}': MIOpen takes one data type for all tensors ({listed})"
        )
    parameters = node.parameters
    if parameters.conv_mode is not ConvMode.CROSS_CORRELATION:
        raise Unsupported(
            f"node '{node.name}': conv_mode is {parameters.conv_mode}, but MIOpen computes "
            "CROSS_CORRELATION"
        )
    if parameters.pre_padding != parameters.post_padding:
        raise Unsupported(
            f"node '{node.name}': padding is {list(parameters.pre_padding)} before and "
            f"{list(parameters.post_padding)} behind, but MIOpen takes symmetric padding only"
        )
    geometry = Geometry(
        pad_spatial(parameters.pre_padding, 0),
        pad_spatial(parameters.stride, 1),
        pad_spatial(parameters.dilation, 1),
        groups=described[0].dims[1] // described[1].dims[1],
    )
    x, w, y = described
    uids = (uid(tensors[0]), uid(tensors[1]), uid(tensors[2]))
    return Convolution(direction, x, w, y, uids, geometry)


def _pointwise(wiring: Wiring) -> Operation:
    node = cast("PointwiseNode", wiring.node)
    mode, out = node.inputs.operation, wiring.outputs["out_0"]
    if mode is PointwiseMode.ADD:
        return _addition(wiring, out)
    if mode not in ACTIVATIONS:
        raise Unsupported(
            f"node '{node.name}': operation '{mode}' is not served; MIOpen's engines take "
            f"{', '.join(sorted({*ACTIVATIONS, PointwiseMode.ADD}))}"
        )
    x = wiring.inputs["in_0"]
    if x.dims != out.dims:
        raise Unsupported(
            f"node '{node.name}': MIOpen's activations don't broadcast {list(x.dims or ())} to "
            f"{list(out.dims or ())}"
        )
    _same_type(wiring, x, out)
    spec = specs([x, out])[0]
    if spec.dtype is DataType.BFloat16:
        raise Unsupported(f"node '{node.name}': MIOpen's activation has no bfloat16")
    activation = activation_of(node)
    refuse_clamp(activation)
    return ActivationForward(activation, spec, (uid(x), uid(out)))


def _addition(wiring: Wiring, out: TensorAttributes) -> Addition:
    first, second = wiring.inputs["in_0"], wiring.inputs["in_1"]
    if first.dims != out.dims:
        first, second = second, first
    rank = len(out.dims or ())
    if first.dims != out.dims or len(second.dims or ()) != rank or rank > 5:
        raise Unsupported(
            f"node '{wiring.node.name}': MIOpen adds tensors of one rank up to 5, one of them of "
            f"the result's dims, but has {list(first.dims or ())} and {list(second.dims or ())}"
        )
    _same_type(wiring, first, second)
    _same_type(wiring, first, out)
    a, b, _ = map(in_memory_order, specs([first, second, out]))
    refuse_addition(a.dtype)
    return Addition(a, b, (uid(first), uid(second), uid(out)))


def _same_type(wiring: Wiring, first: TensorAttributes, second: TensorAttributes) -> None:
    if first.data_type is not second.data_type:
        raise Unsupported(
            f"node '{wiring.node.name}': MIOpen takes one data type, but tensor {first.label} has "
            f"'{first.data_type}' and tensor {second.label} has '{second.data_type}'"
        )
