"""Statistics of few values: rounding alone moves the results far, and `--check` knows how far."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hipdnn_registry import EngineRegistry, Graph, graph_from_driver_command
from hipdnn_registry.cli.run.memory import Need
from hipdnn_registry.testing.accuracy import compare
from hipdnn_registry.testing.conditioning import nearby_graph, sensitivities
from hipdnn_registry.testing.execution import execute
from hipdnn_registry.testing.inputs import random_inputs

if TYPE_CHECKING:
    from hipdnn_registry.testing.arrays import Array

BACKWARD = "MIOpenDriver bnorm -n {} -c 6 -H 8 -W 10 -m 0 --forw 0 -b 1 -s 0"
TWO_VALUES = "MIOpenDriver bnorm -n 2 -c 3 -H 1 -W 1 -m 1 --forw 0 -b 1"


def backward(batch: int) -> Graph:
    (graph,) = graph_from_driver_command(BACKWARD.format(batch))
    return graph


def reference(graph: Graph, inputs: dict[int, Array]) -> dict[int, Array]:
    plan = EngineRegistry().create_execution_plan_ext(graph, "CPU_REFERENCE_ENGINE")
    return execute(plan, inputs)


def two_passes(x: Array) -> Array:
    return np.asarray(((x - x.mean(0, keepdims=True)) ** 2).mean(0, keepdims=True))


def moments(x: Array) -> Array:
    """As MIOpen's kernels do."""
    return np.asarray((x**2).mean(0, keepdims=True) - x.mean(0, keepdims=True) ** 2)


def in_float(
    graph: Graph, inputs: dict[int, Array], variance: Callable[[Array], Array]
) -> dict[int, Array]:
    """The gradients over batches, every step rounded to float."""
    ports = graph.structure.wirings[0]
    x, dy, scale = (inputs[ports.inputs[port].uid or 0] for port in ("x", "dy", "scale"))
    inverse = 1 / np.sqrt(variance(x) + np.float32(1e-5))
    normal = (x - x.mean(0, keepdims=True)) * inverse
    dbias, dscale = dy.sum(0, keepdims=True), (dy * normal).sum(0, keepdims=True)
    dx = scale * inverse * (dy - dbias / len(x) - normal * dscale / len(x))
    results = {"dx": dx, "dscale": dscale, "dbias": dbias}
    assert {result.dtype for result in results.values()} == {np.dtype(np.float32)}
    return {tensor.uid or 0: results[port] for port, tensor in ports.outputs.items()}


@pytest.mark.parametrize("variance", [two_passes, moments])
@pytest.mark.parametrize(
    ("line", "mistake", "benign"),
    [
        (TWO_VALUES, 1.2, False),
        (BACKWARD.format(2), 1.2, False),
        (BACKWARD.format(3), 1.2, False),
        (BACKWARD.format(4), 1.02, False),
        (BACKWARD.format(6), 1.01, True),
    ],
)
def test_rounding_passes_and_a_mistake_does_not(
    line: str, mistake: float, benign: bool, variance: Callable[[Array], Array]
) -> None:
    (graph,) = graph_from_driver_command(line)
    widened = 0
    for seed in range(10):
        inputs = random_inputs(graph, seed)
        expected = reference(graph, inputs)
        moved = sensitivities(graph, inputs, expected, reference)
        actual = in_float(graph, inputs, variance)
        assert all(accuracy.passed for accuracy in compare(graph, actual, expected, moved))
        widened += not all(accuracy.passed for accuracy in compare(graph, actual, expected))
        for uid, result in actual.items():
            for wrong in (
                *(result * np.float32(mistake), -result, np.zeros_like(result)),
                np.where(result == result.ravel()[0], np.float32("nan"), result),
            ):
                checked = compare(graph, {**actual, uid: wrong}, expected, moved)
                assert not all(accuracy.passed for accuracy in checked)
    assert widened or benign  # else this would be no test


def test_what_forgets_a_term_of_the_gradient_of_two_values_fails() -> None:
    """The terms are 10**4 times what they leave; a bound by them alone would pass anything."""
    (graph,) = graph_from_driver_command(TWO_VALUES)
    ports = graph.structure.wirings[0]
    dx = ports.outputs["dx"].uid or 0
    for seed in range(10):
        inputs = random_inputs(graph, seed)
        expected = reference(graph, inputs)
        moved = sensitivities(graph, inputs, expected, reference)
        x, dy, scale = (inputs[ports.inputs[port].uid or 0] for port in ("x", "dy", "scale"))
        ratio = (two_passes(x) + 1e-5) / (two_passes(x) + 1e-3)
        other_epsilon = expected[dx] * ratio**1.5 * 1e-3 / 1e-5
        no_projection = scale / np.sqrt(two_passes(x) + 1e-5) * (dy - dy.mean(0, keepdims=True))
        for wrong in (other_epsilon, no_projection):
            checked = compare(graph, {**expected, dx: wrong}, expected, moved)
            assert [accuracy.passed for accuracy in checked] == [False, True, True]


def test_where_the_reference_is_0_nothing_is_widened() -> None:
    """Over one value dx and dscale are 0, and any error would be without bound."""
    (graph,) = graph_from_driver_command(TWO_VALUES.replace("-n 2", "-n 1"))
    inputs = random_inputs(graph, 0)
    expected = reference(graph, inputs)
    moved = sensitivities(graph, inputs, expected, reference)
    dx, dscale, dbias = expected
    assert not expected[dx].any()
    assert moved[dx] == moved[dscale] == 0 < moved[dbias]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (BACKWARD.format(4), True),
        (BACKWARD.format(64), False),
        (BACKWARD.format(4).replace("-s 0", "-s 1"), False),  # the statistics are given
        (BACKWARD.format(4).replace("-m 0", "-m 1"), False),  # over images, too
        ("MIOpenDriver bnorm -n 4 -c 6 -H 8 -W 10 -m 0 --forw 1 -s 1", True),
        ("MIOpenDriver conv -n 1 -c 1 -H 3 -W 3 -k 1 -y 1 -x 1 -F 1", False),
    ],
)
def test_which_graphs_are_ill_conditioned(line: str, expected: bool) -> None:
    (graph,) = graph_from_driver_command(line)
    assert (nearby_graph(graph) is not None) is expected


def test_inputs_of_a_coarser_type_than_the_arithmetic_stay() -> None:
    line = BACKWARD.format(3).replace("bnorm", "bnormfp16")
    (graph,) = graph_from_driver_command(line)
    ports = graph.structure.wirings[0].inputs
    inputs = random_inputs(graph, 0)
    seen: dict[int, Array] = {}

    def run(nearby: Graph, near: dict[int, Array]) -> dict[int, Array]:
        assert graph.output_uids < nearby.output_uids
        seen.update(near)
        return {}

    sensitivities(graph, inputs, {}, run)
    for port, tensor in ports.items():
        same = np.array_equal(seen[tensor.uid or 0], inputs[tensor.uid or 0])
        assert same is (port in {"x", "dy"})


def test_the_copies_are_counted() -> None:
    graph = backward(4)
    nearby = nearby_graph(graph)
    assert nearby is not None
    need = Need.of(graph, workspace=0, check=True, nearby=nearby, benchmarking=False)
    statistics = 2 * 8 * 6 * 8 * 10  # two in double, and y, which nobody reads
    y = 4 * 4 * 6 * 8 * 10
    assert need.check == 2 * need.outputs + need.inputs + statistics + y
    few, many = (
        Need.of(graph, workspace=0, check=True, benchmarking=False)
        for graph in (graph, backward(64))
    )
    assert (few.check, many.check) == (few.outputs, many.outputs)
