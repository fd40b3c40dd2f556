"""From a document to a sound, topologically sorted structure.

The checks run from the outside in: identities and references, then order, then each operation's
own rule in that order (which infers what is not given), then what holds for every tensor.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hipdnn_registry.errors import GraphError

from .content import node_content, tensor_content
from .model import INT64_MAX
from .rules import RULES, Wiring
from .tensor import packed_strides, strides_overlap, uid_of
from .types import VALUE_TYPE_OF, DataType, ValueType

if TYPE_CHECKING:
    from .document import GraphDocument
    from .node import Node
    from .tensor import TensorAttributes


@dataclass(frozen=True, slots=True)
class Structure:
    """A validated graph, by reference.

    Attributes:
        tensors: Every tensor by uid.
        wirings: The nodes with their tensors, in topological order.
        tensor_contents: What each tensor says apart from its name and uid, as in `tensors`.
        node_contents: What each node says apart from its name and uids, as in `wirings`.
    """

    tensors: dict[int, TensorAttributes]
    wirings: tuple[Wiring, ...]
    tensor_contents: tuple[tuple[Any, ...], ...]
    node_contents: tuple[tuple[Any, ...], ...]


def validate_document(document: GraphDocument) -> Structure:
    """Check a document, infer dims, strides and types, sort its nodes; changes it in place.

    Raises:
        GraphError: A rule is broken; names the node, the tensor and the rule.
    """
    tensors = _index(document)
    wirings = _sort([_wire(node, tensors) for node in document.nodes])
    _check_uses(tensors, wirings)
    _settle_types(document, wirings)
    for wiring in wirings:
        for tensor in wiring.inputs.values():
            _check_tensor(tensor, written=False)
        rule = RULES.get(type(wiring.node))
        if rule is not None:
            rule(wiring)
        for tensor in wiring.outputs.values():
            _check_tensor(tensor, written=True)
    document.nodes = [wiring.node for wiring in wirings]
    return Structure(
        tensors=tensors,
        wirings=tuple(wirings),
        tensor_contents=tuple(tensor_content(tensor) for tensor in tensors.values()),
        node_contents=tuple(node_content(wiring.node) for wiring in wirings),
    )


def _index(document: GraphDocument) -> dict[int, TensorAttributes]:
    tensors: dict[int, TensorAttributes] = {}
    for tensor in document.tensors:
        if tensor.uid is None:
            raise GraphError("uid is not set", rule="tensor.uid", tensor=tensor.label)
        if tensor.uid in tensors:
            raise GraphError(
                f"uid is taken by tensor {tensors[tensor.uid].label} as well",
                rule="tensor.duplicate_uid",
                tensor=tensor.label,
            )
        tensors[tensor.uid] = tensor
        if tensor.dims is not None and (not tensor.dims or min(tensor.dims) < 1):
            raise GraphError(
                f"dims are {list(tensor.dims)}, but each must be at least 1",
                rule="tensor.dims",
                tensor=tensor.label,
            )
    for tensor in document.tensors:
        offsets = tensor.ragged_offset_tensor_uid
        if offsets is not None and offsets not in tensors:
            raise GraphError(
                f"ragged_offset_tensor_uid is {offsets}, but no tensor has that uid",
                rule="tensor.unknown_uid",
                tensor=tensor.label,
            )
    return tensors


def _wire(node: Node, tensors: dict[int, TensorAttributes]) -> Wiring:
    inputs: dict[str, TensorAttributes] = {}
    outputs: dict[str, TensorAttributes] = {}
    for kind, ports, found in (
        ("input", node.inputs, inputs),
        ("output", node.outputs, outputs),
    ):
        for port, uid in ports.uids():
            tensor = tensors.get(uid) if type(uid) is int else None
            if tensor is None:
                raise GraphError(
                    f"{kind} {port} names uid {uid!r}, but no tensor has that uid",
                    rule="tensor.unknown_uid",
                    node=node.name or node.type,
                )
            found[port] = tensor
            offsets = tensor.ragged_offset_tensor_uid
            if offsets is not None:  # a node that touches a ragged tensor reads its offsets
                inputs[f"{port}.ragged_offset"] = tensors[offsets]
    names = (
        *(f"<{port}" for port in sorted(inputs)),
        *(f">{port}" for port in sorted(outputs)),
    )
    wiring = Wiring(node, inputs, outputs, _uids(inputs), _uids(outputs), names)
    for kind, required, present in (
        ("input", node.required_inputs, inputs),
        ("output", node.required_outputs, outputs),
    ):
        for port in required:
            if port not in present:
                wiring.fail("node.missing_port", f"{kind} {port} is missing")
    if not outputs:
        wiring.fail("node.no_output", "writes no tensor")
    return wiring


def _uids(ports: dict[str, TensorAttributes]) -> tuple[tuple[str, int], ...]:
    return tuple((port, uid_of(tensor)) for port, tensor in sorted(ports.items(), key=_port))


def _port(item: tuple[str, TensorAttributes]) -> str:
    return item[0]


def _sort(wirings: list[Wiring]) -> list[Wiring]:
    """Sort topologically, keeping the given order wherever it is one."""
    writer: dict[int, int] = {}
    for index, wiring in enumerate(wirings):
        for tensor in wiring.outputs.values():
            uid = uid_of(tensor)
            if uid in writer:
                other = wirings[writer[uid]].node
                wiring.fail(
                    "tensor.two_writers",
                    f"is written by node '{other.name or other.type}' as well",
                    tensor,
                )
            writer[uid] = index
    waits_for = [
        {writer[uid_of(tensor)] for tensor in wiring.inputs.values() if uid_of(tensor) in writer}
        for wiring in wirings
    ]
    readers: list[list[int]] = [[] for _ in wirings]
    for index, needed in enumerate(waits_for):
        for earlier in needed:
            readers[earlier].append(index)
    ready = [index for index, needed in enumerate(waits_for) if not needed]
    order: list[Wiring] = []
    done: set[int] = set()
    while ready:
        index = heapq.heappop(ready)
        done.add(index)
        order.append(wirings[index])
        for reader in readers[index]:
            waits_for[reader].discard(index)
            if not waits_for[reader]:
                heapq.heappush(ready, reader)
    if len(order) != len(wirings):
        stuck = [w.node.name or w.node.type for i, w in enumerate(wirings) if i not in done]
        raise GraphError(
            f"nodes {', '.join(stuck)} wait for each other in a cycle", rule="graph.cycle"
        )
    return order


def _check_uses(tensors: dict[int, TensorAttributes], wirings: list[Wiring]) -> None:
    """Check that every tensor has a use that suits it and that the graph is one piece."""
    written = {uid_of(tensor) for wiring in wirings for tensor in wiring.outputs.values()}
    read = {uid_of(tensor) for wiring in wirings for tensor in wiring.inputs.values()}
    for uid, tensor in tensors.items():
        problem = None
        if tensor.is_constant and uid in written:
            problem = ("constant_output", "is a constant, but a node writes it")
        elif tensor.is_constant and tensor.virtual:
            problem = ("virtual_constant", "is a constant, so it can't be virtual")
        elif tensor.virtual and uid not in written:
            problem = ("virtual_input", "is virtual, but no node writes it")
        elif tensor.virtual and uid not in read:
            problem = (
                "unread_virtual",
                "is virtual, but no node reads it; call set_output(True) on a result",
            )
        elif uid not in written and uid not in read:
            problem = ("unused", "is neither read nor written by any node")
        if problem:
            rule, message = problem
            raise GraphError(message, rule=f"tensor.{rule}", tensor=tensor.label)
    _check_connected(wirings)


def _check_connected(wirings: list[Wiring]) -> None:
    touching: dict[int, list[int]] = {}
    for index, wiring in enumerate(wirings):
        for tensor in (*wiring.inputs.values(), *wiring.outputs.values()):
            touching.setdefault(uid_of(tensor), []).append(index)
    reached, frontier = {0}, [0]
    while frontier:
        wiring = wirings[frontier.pop()]
        for tensor in (*wiring.inputs.values(), *wiring.outputs.values()):
            for index in touching.pop(uid_of(tensor), ()):
                if index not in reached:
                    reached.add(index)
                    frontier.append(index)
    if len(reached) != len(wirings):
        apart = next(w for i, w in enumerate(wirings) if i not in reached)
        apart.fail(
            "graph.disconnected",
            f"shares no tensor, directly or not, with node "
            f"'{wirings[0].node.name or wirings[0].node.type}'; make it a graph of its own",
        )


def _settle_types(document: GraphDocument, wirings: list[Wiring]) -> None:
    """Give tensors and nodes without a data type the graph's."""
    for wiring in wirings:
        node = wiring.node
        if node.compute_data_type is DataType.UNSET:
            if document.compute_data_type is DataType.UNSET:
                wiring.fail(
                    "node.compute_data_type",
                    "compute data type is not set, and neither is the graph's",
                )
            node.compute_data_type = document.compute_data_type
        for tensor in (*wiring.inputs.values(), *wiring.outputs.values()):
            if tensor.data_type is DataType.UNSET:
                kind = "intermediate" if tensor.virtual else "io"
                default = (
                    document.intermediate_data_type if tensor.virtual else document.io_data_type
                )
                if default is DataType.UNSET:
                    wiring.fail(
                        "tensor.data_type",
                        f"data type is not set, and neither is the graph's {kind} data type",
                        tensor,
                    )
                tensor.data_type = default


def _check_tensor(tensor: TensorAttributes, *, written: bool) -> None:
    def fail(rule: str, message: str) -> None:
        raise GraphError(message, rule=f"tensor.{rule}", tensor=tensor.label)

    if tensor.dims is None:
        fail("no_dims", "dims are not set and do not follow from the operation")
        return
    if tensor.strides is None:
        tensor.strides = packed_strides(tensor.dims)
    if len(tensor.strides) != len(tensor.dims):
        fail(
            "strides",
            f"strides {list(tensor.strides)} do not match the rank of dims {list(tensor.dims)}",
        )
    if min(tensor.strides) < 0:
        fail("strides", f"strides are {list(tensor.strides)}, but none may be negative")
    if max(tensor.span_bytes, math.prod(tensor.dims) * 8) > INT64_MAX:
        fail("size", f"dims {list(tensor.dims)} span more than 2**63 bytes")
    if max(tensor.strides) * 8 > INT64_MAX:  # of an extent of 1: it spans nothing
        fail("size", f"a stride of {max(tensor.strides)} is more than 2**63 bytes")
    if written and strides_overlap(tensor.dims, tensor.strides):
        fail(
            "overlap",
            f"is written, but with strides {list(tensor.strides)} elements of dims "
            f"{list(tensor.dims)} share addresses",
        )
    if tensor.alignment < 1 or tensor.alignment & (tensor.alignment - 1):
        fail("alignment", f"alignment is {tensor.alignment}, but must be a power of two")
    if (tensor.value_type is None) != (tensor.value is None):
        fail("value", "value and value_type must be set together")
    if tensor.value is not None:
        _check_constant(tensor)


def _check_constant(tensor: TensorAttributes) -> None:
    def fail(rule: str, message: str) -> None:
        raise GraphError(message, rule=f"tensor.{rule}", tensor=tensor.label)

    if tensor.element_count != 1:
        fail("value", f"carries a value, so it must be a scalar, not {list(tensor.dims or ())}")
    if tensor.value_type is not VALUE_TYPE_OF.get(tensor.data_type):
        fail(
            "value_type",
            f"value_type '{tensor.value_type}' does not fit data type '{tensor.data_type}'",
        )
    value = tensor.value
    if isinstance(value, bool) != (tensor.value_type is ValueType.BOOL):
        fail("value", f"value {value!r} does not fit value_type '{tensor.value_type}'")
    if isinstance(value, float):
        if not math.isfinite(value):
            fail("value", f"value is {value}, but must be finite")
        if tensor.value_type in {ValueType.INT32, ValueType.INT64}:
            fail("value", f"value {value!r} does not fit value_type '{tensor.value_type}'")
