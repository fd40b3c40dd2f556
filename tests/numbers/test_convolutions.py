"""Convolutions: every direction, type, layout and geometry that the engines serve."""

from __future__ import annotations

import pytest

from hipdnn_registry import DataType, EngineRegistry, Graph, graph_from_driver_command
from tests.graphs import conv_graph
from tests.numbers.cases import CONVOLUTIONS, DIRECTIONS, LAYOUTS, TYPES, convolution
from tests.numbers.checking import DETERMINISTIC, ENGINE, check

EVERY_TIME = {"plain", "depthwise", "1-D", "3-D"}


@pytest.mark.parametrize("engine", [ENGINE, pytest.param(DETERMINISTIC, marks=pytest.mark.slow)])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("io", TYPES)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    "kind",
    [k if k in EVERY_TIME else pytest.param(k, marks=pytest.mark.slow) for k in CONVOLUTIONS],
)
def test_convolution(
    registry: EngineRegistry, kind: str, direction: str, io: str, layout: str, engine: str
) -> None:
    (graph,) = graph_from_driver_command(convolution(kind, direction, io, layout))
    check(registry, graph, engine)


def rank_three(direction: str) -> Graph:
    """Tensors without a second spatial dimension, which no driver line has."""
    graph = conv_graph((2, 4, 19), (6, 4, 5), padding=2, stride=2)
    if direction == "forward":
        return graph
    graph = Graph("1-D", io_data_type=DataType.FLOAT, compute_data_type=DataType.FLOAT)
    dy = graph.tensor(dims=[2, 6, 10], name="dy")
    if direction == "backward data":
        w = graph.tensor(dims=[6, 4, 5], name="w")
        out = graph.conv_dgrad(dy, w, padding=2, stride=2).set_dim([2, 4, 19])
    else:
        x = graph.tensor(dims=[2, 4, 19], name="x")
        out = graph.conv_wgrad(dy, x, padding=2, stride=2).set_dim([6, 4, 5])
    out.set_output().set_name("out")
    return graph


@pytest.mark.parametrize("engine", [ENGINE, DETERMINISTIC])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_one_spatial_dimension(registry: EngineRegistry, direction: str, engine: str) -> None:
    check(registry, rank_three(direction), engine)
