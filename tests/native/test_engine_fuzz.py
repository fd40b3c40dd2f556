"""Whatever convolution is valid as a graph is declined with a reason, or planned and executed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hipdnn_registry import EngineRegistry, Graph, GraphError, IntConstraint
from tests.graphs import new_graph
from tests.native.engines import (
    BFLOAT16,
    FLOAT,
    HALF,
    LIMIT,
    POLICY,
    new_registry,
    run,
)
from tests.native.observe import stderr_to

if TYPE_CHECKING:
    from collections.abc import Callable

    Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def convolutions(draw: Draw) -> Graph:
    rank = draw(st.integers(1, 3))
    small = st.integers(1, 9)

    def spatial(least: int, most: int) -> list[int]:
        return [draw(st.integers(least, most)) for _ in range(rank)]

    groups = draw(st.sampled_from([1, 1, 2, 3]))
    n, c, k = draw(small), groups * draw(small), groups * draw(small)
    filters = [k, c // groups, *spatial(1, 4)]
    options: dict[str, Any] = {
        "padding": spatial(0, 2),
        "stride": spatial(1, 3),
        "dilation": spatial(1, 2),
    }
    graph = new_graph(io=draw(st.sampled_from([FLOAT, HALF, BFLOAT16])))
    x = graph.tensor(dims=[n, c, *spatial(1, 12)], name="x")
    w = graph.tensor(dims=filters, name="w")
    y = graph.conv_fprop(x, w, **options)
    kind = draw(st.sampled_from(["plain", "bias", "relu", "dgrad", "wgrad"]))
    if kind == "bias":
        y = graph.pointwise("add", y, graph.tensor(dims=[1, k, *[1] * rank]))
    if kind in {"bias", "relu"}:
        y = graph.pointwise("relu_fwd", y)
    y.set_output()
    try:
        graph.validate()
    except GraphError:
        assume(False)
    if kind in {"dgrad", "wgrad"}:
        return gradient(graph, kind, options)
    return graph


def gradient(forward: Graph, kind: str, options: dict[str, Any]) -> Graph:
    x, w = forward.find_tensor("x"), forward.find_tensor("w")
    (y,) = (t for t in forward.tensors.values() if t.uid in forward.output_uids)
    graph = new_graph(io=x.data_type)
    dy = graph.tensor(dims=y.dims, name="dy")
    if kind == "dgrad":
        result = graph.conv_dgrad(dy, graph.tensor(dims=w.dims), **options).set_dim(x.dims or ())
    else:
        result = graph.conv_wgrad(dy, graph.tensor(dims=x.dims), **options).set_dim(w.dims or ())
    result.set_output()
    return graph.validate()


@pytest.fixture(scope="module")
def registry() -> EngineRegistry:
    return new_registry(plan_cache_size=8)


REQUESTS = given(graph=convolutions(), policy=st.integers(0, 5), limited=st.booleans())
OPTIONS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "database": None,
}


def check(graph: Graph, policy: int, limited: bool, registry: EngineRegistry) -> None:
    with stderr_to(Path(os.devnull)):
        for answer in registry.explain(graph).answers:
            assert answer.exception is None, answer.exception
            if answer.info is None:
                assert answer.reason
                continue
            settings = {POLICY: policy}
            if limited:
                constraint = answer.info.knobs[LIMIT].constraint
                assert isinstance(constraint, IntConstraint)
                settings[LIMIT] = constraint.min_value
            engine = answer.info.engine_name
            estimate = registry.estimate_workspace(graph, engine, settings)
            plan = registry.create_execution_plan_ext(graph, engine, settings)
            assert plan.workspace_size <= estimate <= answer.info.estimated_workspace_size
            run(plan)


@REQUESTS
@settings(max_examples=60, **OPTIONS)
def test_any_convolution(
    graph: Graph, policy: int, limited: bool, registry: EngineRegistry
) -> None:
    check(graph, policy, limited, registry)


@pytest.mark.slow
@REQUESTS
@settings(max_examples=1000, **OPTIONS)
def test_any_convolution_at_length(
    graph: Graph, policy: int, limited: bool, registry: EngineRegistry
) -> None:
    check(graph, policy, limited, registry)
