"""The error of an output, what it may be, and the costs that they are made of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hipdnn_registry import DataType, Graph, graph_from_driver_command
from hipdnn_registry.testing.accuracy import compare, errors, tolerance_of
from hipdnn_registry.testing.arrays import BLOCK_ELEMENTS
from hipdnn_registry.testing.cost import bytes_moved, convolution_flops, reduction_length
from tests.graphs import conv_graph, fused_graph, new_graph, relu_graph

LINE = "MIOpenDriver conv -n 3 -c 8 -H 9 -W 7 -k 6 -y 3 -x 5 -p 1 -q 2 -u 2 -g 2 -F"
INFINITE = (math.inf, math.inf)


def test_errors_are_relative_to_the_value_or_to_the_scale() -> None:
    reference = np.array([3.0, 4.0, 0.0, 0.0])  # rms 2.5
    assert errors(reference, reference) == (0.0, 0.0)
    assert errors(reference + np.array([0, 0.4, 0, 0]), reference) == pytest.approx((0.4, 0.1))
    assert errors(reference + np.array([0, 0, 0.25, 0]), reference) == pytest.approx((0.25, 0.1))


def test_what_is_not_finite_must_agree() -> None:
    reference = np.array([1.0, math.nan, math.inf, -math.inf])
    assert errors(reference.copy(), reference) == (0.0, 0.0)
    for place, value in ((0, math.nan), (1, 0.0), (2, -math.inf), (2, 1e300), (3, math.nan)):
        actual = reference.copy()
        actual[place] = value
        assert errors(actual, reference) == INFINITE
    assert errors(np.array([1e-30]), np.array([0.0])) == (1e-30, math.inf)


@pytest.mark.parametrize("place", [0, BLOCK_ELEMENTS - 1, BLOCK_ELEMENTS, 2 * BLOCK_ELEMENTS])
def test_a_single_error_is_found_wherever_it_is(place: int) -> None:
    reference = np.ones(2 * BLOCK_ELEMENTS + 1, np.float32)
    actual = reference.copy()
    actual[place] += 0.25
    assert errors(actual, reference) == (0.25, 0.25)


@pytest.mark.parametrize(
    ("direction", "terms"), [(1, 4 * 15), (2, 3 * 15), (4, 3 * 5 * 7)], ids=["fwd", "bwd", "wrw"]
)
def test_reductions_and_flops(direction: int, terms: int) -> None:
    (graph,) = graph_from_driver_command(f"{LINE} {direction}")
    (wiring,) = graph.structure.wirings
    assert reduction_length(wiring) == terms
    assert convolution_flops(graph) == 2 * 3 * 6 * (5 * 7) * 4 * 15
    eps = 2.0**-23
    (output,) = (graph.tensors[uid] for uid in graph.output_uids)
    assert tolerance_of(graph, output) == pytest.approx(4 * eps + 4 * eps * math.sqrt(terms))


def test_reductions_of_batchnorm() -> None:
    line = "MIOpenDriver bnorm -n 4 -c 3 -H 5 -W 6 -F 1"
    for mode, terms in ((1, 4 * 5 * 6), (0, 4)):
        (graph,) = graph_from_driver_command(f"{line} -m {mode}")
        assert reduction_length(graph.structure.wirings[0]) == terms


def test_tolerances_follow_the_types() -> None:
    half, eps = conv_graph(io=DataType.HALF).validate(), 2.0**-10
    assert 4 * eps < tolerance_of(half, half.io_tensors[-1]) < 4.1 * eps
    graph = Graph(
        "half between",
        io_data_type=DataType.FLOAT,
        intermediate_data_type=DataType.HALF,
        compute_data_type=DataType.FLOAT,
    )
    middle = graph.pointwise("relu_fwd", graph.tensor(dims=[4]))
    graph.pointwise("abs", middle).set_output()
    graph.validate()
    assert tolerance_of(graph, graph.io_tensors[-1]) > 4 * eps


def test_bytes_count_each_buffer_once() -> None:
    assert bytes_moved(relu_graph(dims=(5, 7))) == 2 * 4 * 35
    x, w, bias, residual = 2 * 4 * 64, 6 * 4 * 9, 6, 2 * 6 * 64
    assert bytes_moved(fused_graph()) == 4 * (x + w + bias + 2 * residual)


def test_integers_must_be_equal() -> None:
    graph = new_graph(io=DataType.INT32)
    graph.pointwise("abs", graph.tensor(dims=[4])).set_output()
    (uid,) = graph.output_uids
    reference = np.array([1, 2, 3, 1_000_000_000], np.int32)
    (same,) = compare(graph, {uid: reference.copy()}, {uid: reference})
    (off,) = compare(graph, {uid: reference + np.int32(1)}, {uid: reference})
    assert same.passed
    assert not off.passed
