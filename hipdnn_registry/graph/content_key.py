"""The content key: equal for graphs that compute the same, whatever they are called.

Names, uid numbers, the order of tensors and the order of nodes do not count; everything that can
change what is computed does. Each node gets a colour: at first what the node itself and its
tensors say, then, round by round, also the colours of the nodes that it shares tensors with. Once
all colours differ, they give the order in which the graph is written down and hashed. If some
nodes never differ, each of them is tried as the first and the smallest text wins; trials that
give the same text prove a symmetry and are not repeated.
"""

from __future__ import annotations

import marshal
from dataclasses import dataclass
from enum import Enum
from functools import cache
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .model import Model
from .nodes import PORT_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .nodes import Node
    from .tensor import TensorAttributes
    from .validation import Structure

_NOT_CONTENT = frozenset({"name", "type", "compute_data_type", "inputs", "outputs"})


@dataclass(frozen=True, slots=True)
class ContentKey:
    """What a graph is, apart from names.

    Attributes:
        digest: Hexadecimal SHA-256; stable across processes and machines.
        uids: The graph's tensors in canonical order: graphs of one digest correspond tensor by
            tensor in this order.
    """

    digest: str
    uids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Skeleton:
    """The graph reduced to numbers and plain tuples.

    Attributes:
        tensors: What each tensor says.
        nodes: What each node says, and how far it is from the inputs: that alone tells the links
            of a chain apart.
        ports: For each node its ports by name, with the tensor's number.
        ends: For each tensor the nodes and ports that touch it.
    """

    tensors: list[tuple[Any, ...]]
    nodes: list[tuple[Any, ...]]
    ports: list[list[tuple[str, int]]]
    ends: list[list[tuple[int, str]]]


def content_key(structure: Structure, options: str = "") -> ContentKey:
    """Compute the key of a validated graph.

    Args:
        structure: The graph; its dims, strides and types are settled.
        options: Settings of the graph as a whole that change what a plan may do.
    """
    skeleton = _reduce(structure)
    tensors = skeleton.tensors
    looks = [
        (node, [(port, tensors[tensor]) for port, tensor in ports])
        for node, ports in zip(skeleton.nodes, skeleton.ports, strict=True)
    ]
    text, order = _smallest(skeleton, _refine(skeleton, _rank(looks)))
    digest = sha256(text + options.encode()).hexdigest()
    uids = list(structure.tensors)
    return ContentKey(digest, tuple([uids[number] for number in order]))


def _reduce(structure: Structure) -> _Skeleton:
    number_of = {uid: number for number, uid in enumerate(structure.tensors)}
    ends: list[list[tuple[int, str]]] = [[] for _ in number_of]
    depth_of_tensor = [0] * len(number_of)
    nodes, ports = [], []
    for index, wiring in enumerate(structure.wirings):
        touched = [(port, number_of[uid]) for port, uid in wiring.input_uids]
        depth = max([depth_of_tensor[number] for _, number in touched], default=0) + 1
        for port, uid in wiring.output_uids:
            number = number_of[uid]
            depth_of_tensor[number] = depth
            touched.append((port, number))
        touched.sort()
        for port, number in touched:
            ends[number].append((index, port))
        ports.append(touched)
        nodes.append((depth, *_node_content(wiring.node)))
    tensors = [_tensor_content(tensor) for tensor in structure.tensors.values()]
    return _Skeleton(tensors, nodes, ports, ends)


@cache
def _setting_names(model: type[Model]) -> tuple[str, ...]:
    """The fields of a model that are settings, neither names nor tensors."""
    return tuple(
        name
        for name in model.model_fields
        if name not in _NOT_CONTENT and not name.endswith(PORT_SUFFIX)
    )


def _settings(model: Model) -> list[tuple[str, Any]]:
    """The settings of a model and of what lies in it; unset ones count as absent."""
    names, extra = _setting_names(type(model)), model.__pydantic_extra__
    if not names and not extra:
        return []
    fields = model.__dict__
    found = [(name, _plain(fields[name])) for name in names if fields[name] is not None]
    if extra:
        found += [
            (name, repr(value))
            for name, value in sorted(extra.items())
            if value is not None and not name.endswith(PORT_SUFFIX)
        ]
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Model):
        return _settings(value)
    return value.value if isinstance(value, Enum) else value


def _node_content(node: Node) -> tuple[Any, ...]:
    """Everything that a node says besides names and uids."""
    return (
        node.type,
        node.compute_data_type.value,
        *(_settings(node.inputs), _settings(node.outputs), _settings(node)),
    )


def _tensor_content(tensor: TensorAttributes) -> tuple[Any, ...]:
    """Everything that a tensor says besides name and uid."""
    rare = ""
    if tensor.value_type is not None:
        value = tensor.value
        # A JSON integer is a good way to write a floating-point constant, and the same constant.
        number = float(value) if value is not None and tensor.data_type.is_floating else value
        rare = f"{tensor.value_type}={number!r}"
    if tensor.is_runtime_pass_by_value or tensor.ragged_offset_multiplier != 1:
        rare += f" {tensor.is_runtime_pass_by_value} {tensor.ragged_offset_multiplier}"
    if tensor.__pydantic_extra__:
        rare += repr(sorted(tensor.__pydantic_extra__.items()))
    return (
        tensor.data_type.value,
        tensor.dims,
        tensor.strides,
        tensor.virtual,
        tensor.alignment,
        rare,
    )


def _rank(looks: list[Any]) -> list[int]:
    """Replace each look by its place among the distinct ones."""
    order = sorted(range(len(looks)), key=looks.__getitem__)
    ranks = [0] * len(looks)
    place = 0
    for before, node in pairwise(order):
        place += looks[before] != looks[node]
        ranks[node] = place
    return ranks


def _refine(skeleton: _Skeleton, colours: list[int]) -> list[int]:
    """Tell nodes apart by their neighbours' colours until that tells no more apart."""
    kinds = len(set(colours))
    while kinds < len(colours):
        seen = [sorted([(colours[node], port) for node, port in ends]) for ends in skeleton.ends]
        colours = _rank(
            [
                (colour, [seen[tensor] for _, tensor in ports])
                for colour, ports in zip(colours, skeleton.ports, strict=True)
            ]
        )
        if len(set(colours)) == kinds:
            break
        kinds = len(set(colours))
    return colours


def _write_down(skeleton: _Skeleton, colours: Sequence[int]) -> tuple[bytes, list[int]]:
    """Write the graph with its nodes in the order of their distinct colours."""
    number: dict[int, int] = {}
    nodes = [
        (
            skeleton.nodes[node],
            [
                (port, number.setdefault(tensor, len(number)))
                for port, tensor in skeleton.ports[node]
            ],
        )
        for node in sorted(range(len(colours)), key=colours.__getitem__)
    ]
    content = (nodes, [skeleton.tensors[tensor] for tensor in number])
    # marshal's version 0 depends on nothing but the values, and is three times as fast as repr.
    return marshal.dumps(content, 0), list(number)


def _smallest(skeleton: _Skeleton, colours: list[int]) -> tuple[bytes, list[int]]:
    """Break ties in every way that matters and return the smallest text.

    If the first texts found below two members of a tie are equal, a symmetry of the graph maps
    one member to the other, so only one of them needs to be followed in full.
    """
    tied = _first_tie(colours)
    if not tied:
        return _write_down(skeleton, colours)
    seen: set[bytes] = set()
    best: tuple[bytes, list[int]] | None = None
    for member in tied:
        marked = _mark(skeleton, colours, member)
        first, _ = _any_text(skeleton, marked)
        if first in seen:
            continue
        seen.add(first)
        found = _smallest(skeleton, marked)
        if best is None or found[0] < best[0]:
            best = found
    assert best is not None, "a tie has members"  # noqa: S101
    return best


def _any_text(skeleton: _Skeleton, colours: list[int]) -> tuple[bytes, list[int]]:
    """Follow the first member of every tie."""
    while tied := _first_tie(colours):
        colours = _mark(skeleton, colours, tied[0])
    return _write_down(skeleton, colours)


def _first_tie(colours: Sequence[int]) -> list[int]:
    groups: dict[int, list[int]] = {}
    for node, colour in enumerate(colours):
        groups.setdefault(colour, []).append(node)
    ties = [colour for colour, members in groups.items() if len(members) > 1]
    return groups[min(ties)] if ties else []


def _mark(skeleton: _Skeleton, colours: list[int], member: int) -> list[int]:
    """Tell one node apart from those that look like it, and what follows from that."""
    return _refine(skeleton, [2 * colour - (node == member) for node, colour in enumerate(colours)])
