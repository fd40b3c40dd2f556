"""Which batch normalization graphs are served: one node, or one with an activation around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hipdnn_miopen_provider.activation import activation_of
from hipdnn_miopen_provider.batchnorm import (
    BatchNorm,
    BatchNormBackward,
    BatchNormInference,
    BatchNormTraining,
)
from hipdnn_miopen_provider.chains import check_intermediate, uid
from hipdnn_miopen_provider.kernel_defects import refuse_hazard
from hipdnn_miopen_provider.native import ActivationMode, BatchNormMode, library
from hipdnn_miopen_provider.native.batchnorm import (
    BACKWARD_ACTIVATION,
    INFERENCE_ACTIVATION,
    TRAINING_ACTIVATION,
)
from hipdnn_miopen_provider.tensors import TensorSpec, Unsupported, layout_name, specs
from hipdnn_registry import DataType as GraphType
from hipdnn_registry import PointwiseMode
from hipdnn_registry.graph import BatchnormBackwardNode, BatchnormNode, PointwiseNode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hipdnn_miopen_provider.activation import Activation
    from hipdnn_registry import TensorAttributes
    from hipdnn_registry.graph import Wiring

_IMAGES = frozenset({"x", "y", "dx", "dy"})
_SCALARS = frozenset({"epsilon", "momentum"})
_TYPES = "3.5.1 refuses every other combination of float, half and bfloat16"
_FUSED = frozenset({ActivationMode.RELU, ActivationMode.CLIPPEDRELU, ActivationMode.CLAMP})


def batchnorm_operation(wirings: tuple[Wiring, ...]) -> BatchNorm:
    """Return the operation of a graph that begins with a batch normalization.

    Raises:
        Unsupported: The reason; names the node or the tensor.
    """
    operation = _read(wirings)
    refuse_hazard(operation.x, operation.hazard, wirings[-1].node.name)
    return operation


def _read(wirings: tuple[Wiring, ...]) -> BatchNorm:
    first, *rest = wirings
    if not rest:
        return batchnorm_of(first, {**first.inputs, **first.outputs}, None)
    if len(rest) == 1 and isinstance(rest[0].node, PointwiseNode):
        if isinstance(first.node, BatchnormBackwardNode):
            raise Unsupported(f"node '{rest[0].node.name}': nothing can follow a backward")
        (behind,) = rest
        check_intermediate(first.outputs["y"], behind)
        tensors = {**first.inputs, **first.outputs, "y": behind.outputs["out_0"]}
        return batchnorm_of(first, tensors, _fused_activation(behind, first))
    if len(rest) == 2 and isinstance(rest[1].node, BatchnormBackwardNode):
        return _backward_through_activation(first, rest[0], rest[1])
    raise Unsupported(
        f"node '{rest[0].node.name}': behind a batchnorm MIOpen takes one activation, or the "
        "gradient of one and then of the batchnorm"
    )


def _fused_activation(wiring: Wiring, batchnorm: Wiring) -> Activation:
    activation = activation_of(cast("PointwiseNode", wiring.node))
    if activation.mode not in _FUSED:
        raise Unsupported(
            f"node '{wiring.node.name}': MIOpen fuses a batchnorm with "
            f"{', '.join(sorted(mode.name for mode in _FUSED))}, but not with "
            f"{activation.mode.name}"
        )
    call = TRAINING_ACTIVATION if isinstance(batchnorm.node, BatchnormNode) else None
    call = call or INFERENCE_ACTIVATION
    _require(call, wiring)
    return activation


def _require(call: str, wiring: Wiring) -> None:
    miopen = library.load()
    if not miopen.exports(call):
        version = ".".join(map(str, miopen.version))
        raise Unsupported(
            f"node '{wiring.node.name}': libMIOpen {version} fuses no batchnorm with an "
            f"activation: it does not export {call}"
        )


def _backward_through_activation(
    forward: Wiring, activation: Wiring, backward: Wiring
) -> BatchNorm:
    """Return the gradient of activation(batchnorm_inference(x)), whose y MIOpen computes again."""
    node = activation.node
    is_gradient = (
        isinstance(node, PointwiseNode) and node.inputs.operation is PointwiseMode.RELU_BWD
    )
    if not is_gradient or isinstance(forward.node, BatchnormNode):
        raise Unsupported(
            f"node '{node.name}': the gradient through a batchnorm and its activation is "
            "batchnorm_inference, relu_bwd, batchnorm_backward"
        )
    check_intermediate(forward.outputs["y"], activation)
    check_intermediate(activation.outputs["out_0"], backward)
    if activation.inputs["in_1"] is not forward.outputs["y"]:
        raise Unsupported(f"node '{node.name}': in_1 must be the batchnorm's y")
    shared = [port for port in ("x", "mean", "inv_variance", "scale") if port in backward.inputs]
    for port in shared:
        if forward.inputs.get(port) is not backward.inputs[port]:
            raise Unsupported(
                f"node '{backward.node.name}': {port} must be the tensor that node "
                f"'{forward.node.name}' reads: MIOpen takes one for both"
            )
    activation_descriptor = activation_of(cast("PointwiseNode", node))
    if activation_descriptor.mode not in _FUSED or "mean" not in shared:
        raise Unsupported(
            f"node '{backward.node.name}': MIOpen fuses the gradients of "
            f"{', '.join(sorted(mode.name for mode in _FUSED))} and a batchnorm with saved "
            "statistics"
        )
    _require(BACKWARD_ACTIVATION, activation)
    tensors = {
        **{port: backward.inputs[port] for port in shared},
        "bias": forward.inputs["bias"],
        "dy": activation.inputs["in_0"],
        **backward.outputs,
    }
    return batchnorm_of(backward, tensors, activation_descriptor)


def batchnorm_of(
    wiring: Wiring, tensors: Mapping[str, TensorAttributes], activation: Activation | None
) -> BatchNorm:
    """Return a node's batch normalization of these tensors by port.

    Raises:
        Unsupported: The reason; names the node or the tensor.
    """
    node = wiring.node
    if any(port.startswith("peer_stats") for port in tensors):
        raise Unsupported(f"node '{node.name}': MIOpen has no statistics of peers")
    if ("mean" in tensors) != ("inv_variance" in tensors) and "variance" not in tensors:
        raise Unsupported(
            f"node '{node.name}': MIOpen takes mean and inv_variance together, or neither"
        )
    x_spec, statistics, mode = _shapes(wiring, tensors)
    ports = {port: uid(tensor) for port, tensor in tensors.items() if port not in _SCALARS}
    if activation is not None and mode is BatchNormMode.PerActivation:
        raise Unsupported(
            f"node '{node.name}': MIOpen's per-activation batchnorm takes an activation and leaves "
            "it out"
        )
    shared = (mode, x_spec, statistics, ports, activation)
    if isinstance(node, BatchnormBackwardNode):
        return BatchNormBackward(*shared)
    if isinstance(node, BatchnormNode):
        return BatchNormTraining(*shared, _scalar(tensors, "epsilon"), _scalar(tensors, "momentum"))
    return BatchNormInference(*shared, _scalar(tensors, "epsilon"))


def _scalar(tensors: Mapping[str, TensorAttributes], port: str) -> float:
    tensor = tensors.get(port)
    return 0.0 if tensor is None else float(tensor.value or 0.0)


def _shapes(
    wiring: Wiring, tensors: Mapping[str, TensorAttributes]
) -> tuple[TensorSpec, TensorSpec, BatchNormMode]:
    node, x = wiring.node, tensors["x"]
    rank = len(x.dims or ())
    if rank > 5:
        raise Unsupported(f"node '{node.name}': x has {rank} dims, but MIOpen takes up to 5")
    images = [tensor for port, tensor in tensors.items() if port in _IMAGES]
    for tensor in images:
        if tensor.data_type is not x.data_type:
            raise Unsupported(
                f"node '{node.name}': tensor {tensor.label} has data type '{tensor.data_type}', "
                f"but MIOpen takes that of x, '{x.data_type}' ({_TYPES})"
            )
    x_spec = specs([x, *images])[0]
    parameters = [t for port, t in tensors.items() if port not in _IMAGES | _SCALARS]
    for tensor in parameters:
        if tensor.data_type is not GraphType.FLOAT:
            raise Unsupported(
                f"node '{node.name}': tensor {tensor.label} has data type '{tensor.data_type}', "
                f"but MIOpen takes scale, bias and statistics in 'float' ({_TYPES})"
            )
    statistics = specs(parameters)[0]
    spatial = all(extent == 1 for extent in statistics.dims[2:])
    if not spatial and layout_name(statistics) != layout_name(x_spec):
        first = parameters[0]
        raise Unsupported(
            f"node '{node.name}': tensor {first.label} has dims {list(first.dims or ())} and "
            f"strides {list(first.strides or ())}, but MIOpen's per-activation kernels read scale, "
            f"bias and statistics in the order of x's memory, {layout_name(x_spec)}"
        )
    return x_spec, statistics, BatchNormMode.Spatial if spatial else BatchNormMode.PerActivation
