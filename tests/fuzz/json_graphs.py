"""Graphs in JSON form with fields lost, doubled, replaced or of the wrong type."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from hipdnn_registry import DataType, Graph, GraphError, graph_from_driver_command
from hipdnn_registry.graph import NODE_TYPES, PointwiseMode
from tests.fuzz.driver_lines import REAL
from tests.graphs import batchnorm_graph, fused_graph, relu_graph

Place = tuple[Any, ...]


def _valid_graphs() -> Iterator[Graph]:
    yield from (fused_graph(), batchnorm_graph(), batchnorm_graph(running=False), relu_graph())
    for line in REAL:
        try:
            yield from graph_from_driver_command(line)
        except GraphError:
            continue  # some of the real lines are wrong


_FILES = sorted((Path(__file__).parents[1] / "data" / "graphs").glob("*.json"))
VALID: list[dict[str, Any]] = [
    *(json.loads(file.read_text()) for file in _FILES),
    *(graph.to_dict() for graph in _valid_graphs()),
]

_MOST_TWINS = 60

_NESTED = "@nested"
"""Stands for a value within so many brackets that no recursion could build it here."""

_ODD_VALUES = st.one_of(
    st.sampled_from(
        [
            None,
            True,
            False,
            0,
            -1,
            1,
            2,
            3,
            1.5,
            -0.0,
            1e308,
            math.nan,
            math.inf,
            2**31,
            2**62,
            2**63 - 1,
            2**63,
            -(2**63) - 1,
            10**400,
            "",
            "0",
            "float",
            "NaN",
            "x" * 5000,
            "\ud800",
            "\x00",
            [],
            {},
            [0],
            [1, 1],
            [0, 0],
            [1] * 3000,
            [2**40] * 4,
            [-1, -1],
            {"a": 1},
            _NESTED,
        ]
    ),
    st.sampled_from([*DataType, *PointwiseMode, *NODE_TYPES]).map(str),
    st.integers(-4, 12),
    st.integers(),
    st.floats(),
    st.lists(st.integers(1, 9), max_size=6),
)


def _paths(value: Any, path: Place = ()) -> Iterator[Place]:
    """Yield the path of everything inside a document."""
    items: Iterable[Any] = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, (dict, list)):
            yield from _paths(inner, (*path, key))


def _at(document: Any, path: Iterable[Any]) -> Any:
    for key in path:
        document = document[key]
    return document


def _mutate(draw: st.DrawFn, document: dict[str, Any]) -> None:
    paths = list(_paths(document))
    if not paths:
        return
    *parent, key = draw(st.sampled_from(paths))
    container: Any = _at(document, parent)
    kind = draw(
        st.sampled_from(["lose", "double", "replace", "replace", "nudge", "graft", "crowd"])
    )
    if kind == "lose":
        del container[key]
    elif kind == "double" and isinstance(container, list):
        container.insert(draw(st.integers(0, len(container))), copy.deepcopy(container[key]))
    elif kind == "double":
        container[draw(st.text(max_size=8))] = copy.deepcopy(container[key])
    elif kind == "nudge" and type(container[key]) is int:
        container[key] += draw(st.sampled_from([-1, 1, 2, 8]))
    elif kind == "graft":
        container[key] = copy.deepcopy(_at(document, draw(st.sampled_from(paths))))
    elif kind == "crowd":
        _crowd(document, draw(st.integers(2, _MOST_TWINS)))
    else:
        container[key] = copy.deepcopy(draw(_ODD_VALUES))


def _crowd(document: dict[str, Any], number: int) -> None:
    """Repeat the last node, each time with outputs of its own."""
    try:
        *_, node = document["nodes"]
        tensors = {tensor["uid"]: tensor for tensor in document["tensors"]}
        fresh = max(tensors) + 1
        for _ in range(number):
            twin = copy.deepcopy(node)
            for port, uid in node["outputs"].items():
                if uid is not None:
                    twin["outputs"][port] = fresh
                    document["tensors"].append({**tensors[uid], "uid": fresh})
                    fresh += 1
            document["nodes"].append(twin)
    except (AttributeError, KeyError, TypeError, ValueError):
        return  # an earlier mutation has left nothing to repeat


@st.composite
def json_graphs(draw: st.DrawFn) -> str:
    """The text of a graph with one to three mutations, at times cut off or with a stray byte."""
    document = copy.deepcopy(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        _mutate(draw, document)
    text = json.dumps(document)
    if _NESTED in text:
        depth = draw(st.sampled_from([3, 100, 900, 100_000]))
        text = text.replace(json.dumps(_NESTED), "[" * depth + "1" + "]" * depth)
    if draw(st.integers(0, 19)) == 0:
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(
            st.sampled_from(["", "}", "]", ",", '"', "\x00", text[place:] * 2])
        )
    return text
