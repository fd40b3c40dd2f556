"""The content key: equal for graphs that compute the same, whatever they are called.

Names, uid numbers, the order of tensors and the order of nodes do not count; everything that can
change what is computed does. Each node gets a colour: at first what the node itself and its
tensors say, then, round by round, also the colours of the nodes that it shares tensors with. Once
all colours differ, they give the order in which the graph is written down and hashed. If some
nodes never differ, each of them is tried as the first and the smallest text wins; trials that
give the same text prove a symmetry and are not repeated.

Equal keys mean equal graphs without exception. The number of trials is bounded, so that a graph
of hundreds of look-alikes takes no time: where they are interchangeable, as parallel branches are,
any order gives the same text; a graph that hides an irregular structure behind more look-alikes
than that may get another key when its nodes come in another order.
"""

from __future__ import annotations

import marshal
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .validation import Structure


_TRIALS = 64  # enough for every graph of ten look-alikes
_NODES_TRIED = 8192  # a bound on trials times nodes, which is what trials take


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
        nodes: What each node says, the names of its ports, and how far it is from the inputs:
            that alone tells the links of a chain apart.
        ports: For each node the numbers of the tensors on its ports.
    """

    tensors: Sequence[tuple[Any, ...]]
    nodes: list[tuple[Any, ...]]
    ports: list[list[int]]


def content_key(structure: Structure, options: str = "") -> ContentKey:
    """Compute the key of a validated graph.

    Args:
        structure: The graph; its dims, strides and types are settled.
        options: Settings of the graph as a whole that change what a plan may do.
    """
    skeleton = _reduce(structure)
    tensors = skeleton.tensors
    looks = [
        (node, [tensors[number] for number in ports])
        for node, ports in zip(skeleton.nodes, skeleton.ports, strict=True)
    ]
    trials = iter(range(max(1, min(_TRIALS, _NODES_TRIED // len(looks)))))
    text, order = _smallest(skeleton, _refine(skeleton, _rank(looks)), trials)
    digest = sha256(text + options.encode()).hexdigest()
    uids = list(structure.tensors)
    return ContentKey(digest, tuple([uids[number] for number in order]))


def _reduce(structure: Structure) -> _Skeleton:
    number_of = {uid: number for number, uid in enumerate(structure.tensors)}
    depth_of_tensor = [0] * len(number_of)
    nodes: list[tuple[Any, ...]] = []
    ports = []
    for wiring, content in zip(structure.wirings, structure.node_contents, strict=True):
        numbers = [number_of[uid] for _, uid in wiring.input_uids]
        depth = max([depth_of_tensor[number] for number in numbers], default=0) + 1
        for _, uid in wiring.output_uids:
            number = number_of[uid]
            depth_of_tensor[number] = depth
            numbers.append(number)
        ports.append(numbers)
        nodes.append((depth, content, wiring.port_names))
    return _Skeleton(structure.tensor_contents, nodes, ports)


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
    if kinds == len(colours):
        return colours
    ends: list[list[tuple[int, int]]] = [[] for _ in skeleton.tensors]
    for node, ports in enumerate(skeleton.ports):
        for port, tensor in enumerate(ports):
            ends[tensor].append((node, port))
    while kinds < len(colours):
        seen = _rank(
            [sorted([(colours[node], port) for node, port in touching]) for touching in ends]
        )
        colours = _rank(
            [
                (colour, [seen[tensor] for tensor in ports])
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
            [number.setdefault(tensor, len(number)) for tensor in skeleton.ports[node]],
        )
        for node in sorted(range(len(colours)), key=colours.__getitem__)
    ]
    content = (nodes, [skeleton.tensors[tensor] for tensor in number])
    # marshal's version 0 depends on nothing but the values, and is three times as fast as repr.
    return marshal.dumps(content, 0), list(number)


def _smallest(
    skeleton: _Skeleton, colours: list[int], trials: Iterator[int]
) -> tuple[bytes, list[int]]:
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
        if next(trials, None) is None:
            break
        marked = _refine(
            skeleton, [2 * colour - (node == member) for node, colour in enumerate(colours)]
        )
        first, _ = _any_text(skeleton, marked)
        if first in seen:
            continue
        seen.add(first)
        found = _smallest(skeleton, marked, trials)
        if best is None or found[0] < best[0]:
            best = found
    return best or _any_text(skeleton, colours)


def _any_text(skeleton: _Skeleton, colours: list[int]) -> tuple[bytes, list[int]]:
    """Break ties as they come: the members of a tie in their given order, one tie at a time."""
    while tied := _first_tie(colours):
        place = {node: index for index, node in enumerate(tied)}
        count = len(colours)
        colours = _refine(
            skeleton,
            [colour * count + place.get(node, 0) for node, colour in enumerate(colours)],
        )
    return _write_down(skeleton, colours)


def _first_tie(colours: Sequence[int]) -> list[int]:
    groups: dict[int, list[int]] = {}
    for node, colour in enumerate(colours):
        groups.setdefault(colour, []).append(node)
    ties = [colour for colour, members in groups.items() if len(members) > 1]
    return groups[min(ties)] if ties else []
