"""Convolutions with a bias and an activation, by a fused solver or in parts."""

from __future__ import annotations

import pytest

from hipdnn_registry import EngineRegistry, graph_from_driver_command
from tests.graphs import conv_graph
from tests.numbers.cases import FUSIONS, LAYOUTS, TYPES, fusion
from tests.numbers.checking import DETERMINISTIC, ENGINE, assert_declined, check


@pytest.mark.parametrize("engine", [ENGINE, pytest.param(DETERMINISTIC, marks=pytest.mark.slow)])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("io", TYPES)
@pytest.mark.parametrize("convolved", ["plain", pytest.param("1x1", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", FUSIONS)
def test_fusion(
    registry: EngineRegistry, kind: str, convolved: str, io: str, layout: str, engine: str
) -> None:
    (graph,) = graph_from_driver_command(fusion(kind, convolved, io, layout))
    if io == "bfloat16":
        assert_declined(registry, graph, "(implemented|compile) for bfloat16", engine)
    else:
        check(registry, graph, engine)


@pytest.mark.parametrize("lower", [0.0, -0.25])
def test_clips(registry: EngineRegistry, lower: float) -> None:
    graph = conv_graph()
    y = graph.find_tensor("y").set_output(False).set_name("")
    clipped = graph.pointwise("relu_fwd", y, relu_lower_clip=lower, relu_upper_clip=0.5)
    clipped.set_output().set_name("clipped")
    if lower:
        assert_declined(registry, graph, "CLAMP .* does not compile")
    else:
        check(registry, graph)
