"""The graph nearby computes what its original does, with statistics that are off by so much."""

from __future__ import annotations

import numpy as np
import pytest

from hipdnn_registry import DataType, EngineRegistry, Graph, graph_from_driver_command
from hipdnn_registry.testing.accuracy import errors
from hipdnn_registry.testing.execution import execute
from hipdnn_registry.testing.inputs import random_inputs
from hipdnn_registry.testing.moments import with_rounded_moments
from tests.graphs import batchnorm_graph


def of_line(line: str) -> Graph:
    (graph,) = graph_from_driver_command(f"MIOpenDriver {line}")
    return graph


def between_others() -> Graph:
    """x and dx are results and operands of other nodes; two nodes compute statistics."""
    graph = Graph("between", io_data_type=DataType.FLOAT, compute_data_type=DataType.FLOAT)
    graph.set_intermediate_data_type(DataType.FLOAT)
    x, scale = graph.tensor(dims=[3, 4, 5, 2]), graph.tensor(dims=[1, 4, 1, 1], name="scale")
    twice = graph.pointwise("add", x, x)
    y = graph.batchnorm(twice, scale, scale, graph.scalar(1e-3)).y
    gradients = graph.batchnorm_backward(y, twice, scale)
    graph.pointwise("relu_fwd", gradients.dx).set_output(True)
    gradients.dscale.set_output(True)
    gradients.dbias.set_output(True)
    return graph


GRAPHS = [
    of_line("bnorm -n 2 -c 3 -H 2 -W 1 -m 1 --forw 0 -b 1"),
    of_line("bnormfp16 -n 3 -c 3 -H 2 -W 4 -m 0 --forw 0 -b 1 -L NHWC"),
    of_line("bnorm -n 3 -c 3 -H 2 -W 4 -m 1 --forw 1 -b 0 -s 1 -r 1"),
    of_line("bnormfp16 -n 3 -c 3 -H 2 -W 4 -m 0 --forw 1 -b 0 -s 0 --activ_mode 3 -L NHWC"),
    batchnorm_graph((4, 3, 2, 2)),
    between_others(),
]


@pytest.mark.parametrize("graph", GRAPHS, ids=[graph.name for graph in GRAPHS])
def test_without_an_error_it_computes_the_same(graph: Graph) -> None:
    inputs = random_inputs(graph, 0)
    registry = EngineRegistry()
    exact, same, near = (
        execute(registry.create_execution_plan_ext(each, "CPU_REFERENCE_ENGINE"), inputs)
        for each in (graph, *(with_rounded_moments(graph, error) for error in (0.0, 2**-8)))
    )
    distances = {}
    for uid, array in exact.items():
        assert errors(same[uid], array)[1] <= 2**-23
        distances[graph.tensors[uid].name] = errors(near[uid], array)[1]
    assert any(distances.values())


def test_how_far_the_statistics_are_off() -> None:
    graph = of_line("bnorm -n 3 -c 3 -H 2 -W 4 -m 1 --forw 1 -b 0 -s 1")
    inputs, rounding = random_inputs(graph, 0), 2.0**-8
    nearby = with_rounded_moments(graph, rounding)
    plan = EngineRegistry().create_execution_plan_ext(nearby, "CPU_REFERENCE_ENGINE")
    results = execute(plan, inputs)
    by_name = {
        graph.tensors[uid].name: array
        for uid, array in (inputs | results).items()
        if uid in graph.tensors
    }
    x = by_name["x"].astype(np.float64)
    mean = x.mean((0, 2, 3), keepdims=True) * (1 - rounding)
    variance = (x**2).mean((0, 2, 3), keepdims=True) * (1 + rounding) - mean**2
    # epsilon, 1e-3 here, is a part of the mean of the squares
    inverse = 1 / np.sqrt(variance + 1e-3 * (1 + rounding))
    np.testing.assert_allclose(by_name["mean"], mean, rtol=1e-6)
    np.testing.assert_allclose(by_name["inv_variance"], inverse, rtol=1e-6)
    y = (x - mean) * inverse * by_name["scale"] + by_name["bias"]
    np.testing.assert_allclose(by_name["y"], y, rtol=1e-5, atol=1e-6)
