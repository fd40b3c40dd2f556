"""Statistics of few values: rounding alone moves the results far, and `--check` knows how far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from hipdnn_registry import EngineRegistry, Graph, graph_from_driver_command
from hipdnn_registry.cli.run.accuracy import compare
from hipdnn_registry.cli.run.conditioning import is_ill_conditioned, sensitivities
from hipdnn_registry.cli.run.execution import execute
from hipdnn_registry.cli.run.inputs import random_inputs
from hipdnn_registry.cli.run.memory import Need

if TYPE_CHECKING:
    from hipdnn_registry.cli.run.arrays import Array

BACKWARD = "MIOpenDriver bnorm -n {} -c 6 -H 8 -W 10 -m 0 --forw 0 -b 1 -s 0"


def backward(batch: int) -> Graph:
    (graph,) = graph_from_driver_command(BACKWARD.format(batch))
    return graph


def in_float(graph: Graph, inputs: dict[int, Array]) -> dict[int, Array]:
    """The gradients by two passes, every step rounded to float."""
    ports = graph.structure.wirings[0]
    x, dy, scale = (inputs[ports.inputs[port].uid or 0] for port in ("x", "dy", "scale"))
    centred = x - x.mean(0, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).mean(0, keepdims=True) + np.float32(1e-5))
    normal = centred * inverse
    dbias, dscale = dy.sum(0, keepdims=True), (dy * normal).sum(0, keepdims=True)
    dx = scale * inverse * (dy - dbias / len(x) - normal * dscale / len(x))
    results = {"dx": dx, "dscale": dscale, "dbias": dbias}
    assert {result.dtype for result in results.values()} == {np.dtype(np.float32)}
    return {tensor.uid or 0: results[port] for port, tensor in ports.outputs.items()}


@pytest.mark.parametrize("batch", [2, 3, 4, 6])
def test_rounding_passes_and_a_mistake_does_not(batch: int) -> None:
    graph = backward(batch)
    reference = EngineRegistry().create_execution_plan_ext(graph, "CPU_REFERENCE_ENGINE")
    widened = 0
    for seed in range(5):
        inputs = random_inputs(graph, seed)
        expected = execute(reference, inputs)
        moved = sensitivities(graph, inputs, expected, lambda near: execute(reference, near))
        actual = in_float(graph, inputs)
        assert all(accuracy.passed for accuracy in compare(graph, actual, expected, moved))
        widened += not all(accuracy.passed for accuracy in compare(graph, actual, expected))
        for uid in actual:
            wrong = {**actual, uid: actual[uid] * np.float32(1.02)}
            assert not all(accuracy.passed for accuracy in compare(graph, wrong, expected, moved))
    assert widened or batch > 4  # else this would be no test


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
def test_which_graphs(line: str, expected: bool) -> None:
    (graph,) = graph_from_driver_command(line)
    assert is_ill_conditioned(graph) is expected


def test_inputs_of_a_coarser_type_than_the_arithmetic_stay() -> None:
    line = BACKWARD.format(3).replace("bnorm", "bnormfp16")
    (graph,) = graph_from_driver_command(line)
    ports = graph.structure.wirings[0].inputs
    inputs = random_inputs(graph, 0)
    seen: dict[int, Array] = {}

    def run(near: dict[int, Array]) -> dict[int, Array]:
        seen.update(near)
        return {}

    sensitivities(graph, inputs, {}, run)
    for port, tensor in ports.items():
        same = np.array_equal(seen[tensor.uid or 0], inputs[tensor.uid or 0])
        assert same is (port in {"x", "dy"})


def test_the_copies_are_counted() -> None:
    few, many = (
        Need.of(backward(batch), workspace=0, check=True, benchmarking=False) for batch in (4, 64)
    )
    assert few.check == 2 * few.outputs + few.inputs
    assert many.check == many.outputs
