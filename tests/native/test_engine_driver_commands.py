"""Command lines that people pasted into public reports, planned and executed by MIOpen."""

from __future__ import annotations

import pytest

from hipdnn_registry import EngineRegistry, Graph, IntConstraint, graph_from_driver_command
from tests.driver_lines import REPORTED
from tests.native.engines import BENCHMARKING, ENGINE, LIMIT, POLICY, run
from tests.native.observe import observe

HUGE = 1 << 30
"""Bytes of tensors beyond which a line is planned only."""


def size_of(graph: Graph) -> int:
    return sum(tensor.span_bytes for tensor in graph.io_tensors)


@pytest.mark.parametrize("line", REPORTED, ids=lambda line: line.rpartition("# ")[2])
def test_a_reported_problem_at_every_bound_of_every_knob(
    line: str, registry: EngineRegistry
) -> None:
    (graph,) = graph_from_driver_command(line)
    info = next(i for i in registry.get_engine_configs(graph) if i.engine_name == ENGINE)
    settings: list[dict[str, int]] = [{}]
    for knob_id in (BENCHMARKING, LIMIT, POLICY):
        if knob_id in info.knobs:
            constraint = info.knobs[knob_id].constraint
            assert isinstance(constraint, IntConstraint)
            bounds = {constraint.min_value, constraint.max_value}
            settings += [{knob_id: bound} for bound in sorted(bounds)]
    for setting in settings:
        estimate = registry.estimate_workspace(graph, ENGINE, setting)
        with observe() as seen:
            plan = registry.create_execution_plan_ext(graph, ENGINE, setting)
            if size_of(graph) < HUGE:
                run(plan)
        assert plan.workspace_size <= estimate <= info.estimated_workspace_size
        notes = " ".join(plan.notes)
        # what the notes say of the perf-db is what happened there
        assert ("perf-db: added" in notes and not plan.from_cache) is bool(seen.added)
        assert ("perf-db: removed" in notes) is bool(seen.removed)


def test_the_lines_cover_what_they_should() -> None:
    assert sum(size_of(graph_from_driver_command(line)[0]) >= HUGE for line in REPORTED) == 1
