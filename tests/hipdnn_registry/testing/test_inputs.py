"""Random inputs: reproducible, the same in every layout, and kind to every operation."""

from __future__ import annotations

import numpy as np
import pytest

from hipdnn_registry import DataType, Graph, PointwiseMode, graph_from_driver_command
from hipdnn_registry.testing.inputs import Interval, interval_of, poisoned_outputs, random_inputs
from tests.graphs import batchnorm_graph, conv_graph, new_graph

LINE = "MIOpenDriver conv -n 3 -c 8 -H 9 -W 7 -k 6 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -g 2"


def by_name(graph: Graph, seed: int = 0) -> dict[str, np.ndarray]:
    arrays = random_inputs(graph, seed)
    return {graph.tensors[uid].name: array for uid, array in arrays.items()}


def test_the_seed_decides() -> None:
    first, again, other = (by_name(conv_graph(), seed) for seed in (1, 1, 2))
    for name in ("x", "w"):
        assert np.array_equal(first[name], again[name])
        assert not np.array_equal(first[name], other[name])
    assert not np.array_equal(first["x"].flat[:100], first["w"].flat[:100])


def test_layouts_get_the_same_values() -> None:
    nchw, nhwc = (
        by_name(graph_from_driver_command(f"{LINE} -F 1 {layout}")[0])
        for layout in ("", "-I NHWC -O NHWC -f NHWC")
    )
    for name in ("x", "w"):
        assert nchw[name].strides != nhwc[name].strides
        assert np.array_equal(nchw[name], nhwc[name])


@pytest.mark.parametrize("direction", [1, 2, 4])
@pytest.mark.parametrize("base", ["conv", "convfp16"])
def test_convolutions_keep_their_results_near_1(direction: int, base: str) -> None:
    from hipdnn_registry import EngineRegistry

    line = f"MIOpenDriver {base} -n 8 -c 32 -H 16 -W 16 -k 32 -y 3 -x 3 -p 1 -q 1 -F {direction}"
    (graph,) = graph_from_driver_command(line)
    outputs = poisoned_outputs(graph)
    plan = EngineRegistry().create_execution_plan_ext(graph, "CPU_GEMM_ENGINE")
    plan.execute({**random_inputs(graph, 0), **outputs})
    (result,) = outputs.values()
    assert 0.5 < np.std(result.astype(np.float64)) < 1.5


def test_statistics_of_batchnorm_are_sensible() -> None:
    arrays = by_name(batchnorm_graph())
    assert arrays["prev_variance"].min() >= 0.5
    assert arrays["scale"].min() >= 0.5
    assert abs(arrays["prev_mean"]).max() <= 0.5


def test_scalars_given_at_execution_are_sensible() -> None:
    graph = new_graph()
    x, scale, bias, epsilon = (
        graph.tensor(dims=dims, name=name)
        for dims, name in (
            ([2, 3, 4, 4], "x"), ([1, 3, 1, 1], "scale"), ([1, 3, 1, 1], "bias"), ([1], "epsilon"),
        )
    )  # fmt: skip
    graph.batchnorm(x, scale, bias, epsilon).y.set_output()
    assert by_name(graph)["epsilon"] == pytest.approx(1e-5)


@pytest.mark.parametrize("mode", ["log", "sqrt", "rsqrt", "reciprocal"])
def test_operands_lie_in_the_domain(mode: str) -> None:
    graph = new_graph()
    x = graph.tensor(dims=[1000], name="x")
    graph.pointwise(mode, x).set_output()
    assert by_name(graph)["x"].min() >= 0.5


def test_a_divisor_stays_away_from_zero_and_the_dividend_need_not() -> None:
    graph = new_graph()
    a, b = (graph.tensor(dims=[1000], name=name) for name in "ab")
    graph.pointwise("div", a, b).set_output()
    arrays = by_name(graph)
    assert arrays["b"].min() >= 0.5
    assert arrays["a"].min() < 0


def test_a_tensor_with_two_uses_suits_both() -> None:
    graph = new_graph()
    x = graph.tensor(dims=[8, 3], name="x")
    product = graph.pointwise("mul", x, graph.pointwise("log", x))
    product.set_output()
    graph.validate()
    assert interval_of(graph, x) == Interval(0.5, 1.0)
    assert Interval(-0.1, 0.1).meet(Interval(0.5, 2.0)) == Interval(0.5, 2.0)


@pytest.mark.parametrize(
    ("data_type", "low", "high"),
    [
        (DataType.INT8, -4, 4),
        (DataType.UINT8, 0, 4),
        (DataType.INT64, -4, 4),
        (DataType.BOOLEAN, 0, 1),
        (DataType.FP8_E4M3, -1, 1),
        (DataType.FP8_E8M0, 0.5, 1),
        (DataType.DOUBLE, -1, 1),
    ],
)
def test_every_type(data_type: DataType, low: float, high: float) -> None:
    graph = new_graph(io=data_type)
    x = graph.tensor(dims=[3000], name="x")
    graph.pointwise(PointwiseMode.IDENTITY, x).set_output()
    values = by_name(graph)["x"].astype(np.float64)
    assert low <= values.min() < values.max() <= high


def test_outputs_start_as_nan() -> None:
    (output,) = poisoned_outputs(conv_graph()).values()
    assert np.isnan(output).all()
