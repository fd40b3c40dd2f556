"""MIOpen's numbers on an AMD GPU, against CPU_REFERENCE_ENGINE: `make test-gpu`.

Without a GPU, everything here is skipped with what is missing.
"""

from __future__ import annotations

import pytest

from hipdnn_registry import (
    EngineRegistry,
    Graph,
    UnsupportedGraphError,
    graph_from_driver_command,
)
from hipdnn_registry.cli.run import RunOptions, run_report
from tests.cpu_provider.test_engines import SMALL_LINES
from tests.graphs import batchnorm_graph, conv_graph, fused_graph

POLICY = "miopen.tuning_policy"


@pytest.fixture(scope="module")
def registry() -> EngineRegistry:
    registry = EngineRegistry(allow=["cpu", "miopen"])
    missing = [r.reason for r in registry.providers() if r.name == "miopen" and not r.engines]
    if missing:
        pytest.skip(f"MIOpen can't be used here: {missing[0]}")
    return registry


def check(registry: EngineRegistry, graph: Graph, engine: str, policy: int | None = None) -> None:
    """Run a graph on inputs of a fixed seed and compare every output with the reference."""
    knobs = [] if policy is None else [(POLICY, str(policy))]
    report = run_report(registry, graph, RunOptions(engine, knobs, check=True, repeat=1))
    assert report.data["check"]["passed"], report.data["check"]


@pytest.mark.parametrize("engine", ["MIOPEN_ENGINE", "MIOPEN_ENGINE_DETERMINISTIC"])
@pytest.mark.parametrize("line", SMALL_LINES)
def test_driver_lines(registry: EngineRegistry, engine: str, line: str) -> None:
    for graph in graph_from_driver_command(line):
        try:
            registry.get_engine_config(graph, engine)
        except UnsupportedGraphError as reason:
            pytest.skip(str(reason))
        check(registry, graph, engine)


@pytest.mark.parametrize("policy", range(6))
@pytest.mark.parametrize("build", [conv_graph, fused_graph, batchnorm_graph])
def test_every_policy_leaves_the_numbers_right(
    registry: EngineRegistry, build: type[Graph], policy: int
) -> None:
    graph = build()
    knobs = registry.get_engine_config(graph, "MIOPEN_ENGINE").knobs
    if POLICY not in knobs:
        pytest.skip("nothing to tune, or a libMIOpen without policies")
    check(registry, graph, "MIOPEN_ENGINE", policy)
