"""Under which keys MIOpen keeps what it knows of a graph's nodes: the writing side of `perf_db`.

As MIOpen 3.4.0 and 3.5.1 were seen to write them. A perf-db key has no extents of the result, so
two backward data problems of stride 2 may share a record; their find-db keys differ. A convolution
fused with an activation has a find-db of its own, keyed by all three,

    3, 4, 19, 23FP323, 8, 19, 23FP324x19x23x3x3x8x19x23x3xNCHWxFP32x1x1x1x1x1x1x1xFxDefault
    biasOnActivFwd3

(one line; the number is that of the activation's mode), but the plain convolution's perf-db key:
the solvers' names tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.batchnorm_graphs import batchnorm_of
from hipdnn_miopen_provider.database_files import FileKind
from hipdnn_miopen_provider.fused import FusedConvolution
from hipdnn_miopen_provider.native import Direction
from hipdnn_miopen_provider.support import convolution_of, operation_of
from hipdnn_miopen_provider.tensors import Unsupported
from hipdnn_registry.graph import (
    BatchnormBackwardNode,
    BatchnormInferenceNode,
    BatchnormInferenceVarianceNode,
    BatchnormNode,
    ConvolutionBwdNode,
    ConvolutionFwdNode,
    ConvolutionWrwNode,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hipdnn_miopen_provider.activation import Activation
    from hipdnn_miopen_provider.convolution import Convolution
    from hipdnn_miopen_provider.perf_db import BatchNormKey, ConvolutionKey
    from hipdnn_registry import Graph
    from hipdnn_registry.graph import Wiring

_CONVOLUTIONS = (ConvolutionFwdNode, ConvolutionBwdNode, ConvolutionWrwNode)
_BATCHNORMS = (
    BatchnormNode,
    BatchnormInferenceNode,
    BatchnormInferenceVarianceNode,
    BatchnormBackwardNode,
)


@dataclass(frozen=True, slots=True)
class NodeKeys:
    """Where a node's records are.

    Attributes:
        node: The node's name.
        operation: What it is in MIOpen's terms.
        keys: Its key by kind of file.
        reason: Why there are no keys; empty where there are.
    """

    node: str
    operation: str
    keys: Mapping[FileKind, str] = field(default_factory=dict)
    reason: str = ""


def keys_of(graph: Graph) -> list[NodeKeys]:
    """Return the keys of a graph's convolutions and batch normalizations, in order.

    Every node is looked at alone, whether or not MIOpen's engines serve the graph. No libMIOpen is
    needed.
    """
    wirings = graph.structure.wirings
    fused = _fused(graph) if len(wirings) > 1 else None
    found = []
    for wiring in wirings:
        try:
            if isinstance(wiring.node, _CONVOLUTIONS):
                found.append(_convolution_keys(wiring, fused))
            elif isinstance(wiring.node, _BATCHNORMS):
                found.append(_batchnorm_keys(wiring))
        except Unsupported as reason:
            operation = wiring.node.type.removesuffix("Attributes")
            found.append(NodeKeys(wiring.node.name, operation, reason=str(reason)))
    return found


def _fused(graph: Graph) -> FusedConvolution | None:
    if not isinstance(graph.structure.wirings[0].node, ConvolutionFwdNode):
        return None
    try:
        operation = operation_of(graph, deterministic=False)
    except Unsupported:
        return None
    return operation if isinstance(operation, FusedConvolution) else None


def _convolution_keys(wiring: Wiring, fused: FusedConvolution | None) -> NodeKeys:
    plain = fused.convolution if fused else convolution_of(wiring, wiring.outputs.get("y"))
    keys = {FileKind.PERF: perf_db_key(plain.database_key), FileKind.FIND: find_db_key(plain)}
    name = f"convolution {plain.direction.name.lower().replace('_', ' ')}"
    if fused and fused.activation:
        keys[FileKind.FUSION_FIND] = fusion_find_db_key(
            plain, fused.activation, bias=fused.bias is not None
        )
        bias = " + bias" if fused.bias else ""
        name = f"{name}{bias} + activation {fused.activation.mode.name}"
    return NodeKeys(wiring.node.name, name, keys)


def _batchnorm_keys(wiring: Wiring) -> NodeKeys:
    """Return a batch normalization's key, which knows of no activation around it."""
    ends = {**wiring.inputs, **wiring.outputs}
    stored = {port: tensor for port, tensor in ends.items() if not tensor.virtual}
    operation = batchnorm_of(wiring, {"x": ends["x"], **stored}, None)
    name = f"{operation.mode.name.lower()} {operation.name}"
    if not operation.has_records:
        reason = f"MIOpen has nothing to tune in {name}, and keeps no record of it"
        return NodeKeys(wiring.node.name, name, reason=reason)
    key = batchnorm_perf_db_key(operation.database_key)
    return NodeKeys(wiring.node.name, name, {FileKind.BATCHNORM_PERF: key})


def perf_db_key(key: ConvolutionKey) -> str:
    """Write a convolution's key as the perf-db has it; the inverse of `parse_convolution_key`."""
    rank = len(key.in_dims)

    def spatial(values: tuple[int, ...], depth: int) -> tuple[int, ...]:
        *first, height, width = values
        return (height, width, *(first or [depth]))

    numbers = (
        *(rank, key.in_channels, *spatial(key.in_dims, 1)),
        *(*spatial(key.filter_dims, 1), key.out_channels, key.batch),
        *(*spatial(key.padding, 0), *spatial(key.strides, 0), *spatial(key.dilations, 0)),
        *(0, key.groups),  # no bias
    )
    return _joined("x", *numbers, key.layout, key.dtype, key.direction)


def find_db_key(convolution: Convolution) -> str:
    """Write a convolution's key as the find-db has it."""
    key = convolution.database_key
    forward = convolution.direction is Direction.FORWARD
    result = convolution.y if forward else convolution.x
    default = key.layout in {"NCHW", "NCDHW"}
    text = _joined(
        "-",
        *(key.in_channels, *key.in_dims),
        _joined("x", *key.filter_dims),
        *(key.out_channels, *result.dims[2:]),
        key.batch,
        *(_joined("x", *each) for each in (key.padding, key.strides, key.dilations)),
        0,  # no bias
        *([key.layout] if default else [key.layout] * 3),
        *(key.dtype, key.direction),
    )
    return text if key.groups == 1 else f"{text}_g{key.groups}"


def fusion_find_db_key(convolution: Convolution, activation: Activation, *, bias: bool) -> str:
    """Write the key of a forward convolution and what is fused with it as their find-db has it."""
    key, x, y = convolution.database_key, convolution.x, convolution.y
    ends = "".join(f"{_joined(', ', *spec.dims)}{key.dtype}" for spec in (x, y))
    problem = _joined(
        "x",
        *(key.in_channels, *key.in_dims, *key.filter_dims),
        *(key.out_channels, *y.dims[2:], key.batch, key.layout, key.dtype),
        *(*key.padding, *key.strides, *key.dilations, key.groups, key.direction, "Default"),
    )
    return f"{ends}{problem}{'biasOn' if bias else ''}ActivFwd{activation.mode.value}"


def batchnorm_perf_db_key(key: BatchNormKey) -> str:
    """Write a spatial batch normalization's key; the inverse of `parse_batchnorm_key`."""
    flags = (key.saves, key.updates_running, key.uses_saved)
    numbers = (2, *key.dims, 1, *(int(flag) for flag in flags))
    return _joined("x", *numbers, key.layout, key.direction, key.dtype, 1)


def _joined(separator: str, *parts: object) -> str:
    return separator.join(map(str, parts))
