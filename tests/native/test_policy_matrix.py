"""Each policy on each operation, with and without a record, through the registry.

make test takes every pair of operation, policy and state of the db; make test-full all triples.
"""

from __future__ import annotations

import itertools
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_provider.native import Handle, TuningPolicy
from hipdnn_registry import DroppedKnobWarning, EngineRegistry, Graph, KnobError
from tests.native.engines import (
    BENCHMARKING,
    DETERMINISTIC,
    ENGINE,
    POLICY,
    TUNABLE,
    bn_inference,
    conv_bias_relu,
    conv_forward,
    miopen_plan,
    new_registry,
    run,
)
from tests.native.observe import Observation, observe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hipdnn_registry import ExecutionPlan

NONE, DB_UPDATE, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN = TuningPolicy


@pytest.fixture
def policies_seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[TuningPolicy, TuningPolicy]]:
    """What real handles said of themselves: (within a build, after it)."""
    seen: list[tuple[TuningPolicy, TuningPolicy]] = []
    under_policy = Handle.under_policy

    @contextmanager
    def spied(handle: Handle, policy: TuningPolicy) -> Iterator[None]:
        within = NONE
        try:
            with under_policy(handle, policy):
                within = handle.tuning_policy
                yield
        finally:
            seen.append((within, handle.tuning_policy))

    monkeypatch.setattr(Handle, "under_policy", spied)
    return seen


def build(
    registry: EngineRegistry, graph: Graph, policy: int, engine: str = ENGINE
) -> tuple[ExecutionPlan, Observation]:
    with observe() as seen:
        plan = registry.create_execution_plan_ext(graph, engine, {POLICY: policy})
    return plan, seen


STATES = ("empty", "record")
TRIPLES = list(itertools.product(enumerate(TUNABLE), TuningPolicy, enumerate(STATES)))


def _case(triple: tuple[tuple[int, str], TuningPolicy, tuple[int, str]]) -> object:
    (index, operation), policy, (state_index, state) = triple
    in_pairwise = (index + policy + state_index) % 2 == 0
    return pytest.param(
        operation,
        policy,
        state,
        marks=() if in_pairwise else pytest.mark.slow,
        id=f"{operation}-{policy.name}-{state}",
    )


@pytest.mark.parametrize(("operation", "policy", "state"), [_case(t) for t in TRIPLES])
def test_policy(
    operation: str,
    policy: TuningPolicy,
    state: str,
    registry: EngineRegistry,
    policies_seen: list[tuple[TuningPolicy, TuningPolicy]],
) -> None:
    batchnorm = operation.startswith("batchnorm")
    # a width of its own: the databases are the process's
    width = 100 + 2 * (policy + 5 * STATES.index(state))
    graph = TUNABLE[operation](width)
    recorded: frozenset[tuple[str, str]] = frozenset()
    if state == "record":
        _, first = build(registry, graph, SEARCH)
        recorded = first.added
        assert recorded
    policies_seen.clear()

    plan, seen = build(new_registry(), graph, policy)

    searches = (policy is SEARCH and not recorded) or policy is SEARCH_DB_UPDATE
    searches |= policy is DB_UPDATE and not batchnorm
    assert bool(seen.searched) is searches
    assert bool(seen.added) is (searches and not recorded)
    assert seen.removed == (recorded if policy is DB_CLEAN else frozenset())
    assert seen.perf_db_written is (searches or bool(seen.removed))
    assert policies_seen == [(policy, NONE)]
    assert all(h.tuning_policy is NONE for h in miopen_plan(plan).handles)
    assert f"tuning policy: {policy.name} ({policy}), decided by {POLICY}" in plan.notes
    notes = " ".join(plan.notes)
    assert ("DbUpdate does nothing" in notes) is (batchnorm and policy is DB_UPDATE)
    if policy is not NONE:
        word = "removed" if seen.removed else "added" if seen.added else "rewritten"
        assert f"user perf-db: {word if seen.perf_db_written else 'no change'}" in notes
    if policy is not NONE and operation in {"forward", "backward data", "backward weights"}:
        assert re.search(r"solver: (Conv|Gemm|fft)\w+.* \(\w+, [\d.e-]+ ms, \d+ bytes", notes), (
            notes
        )
    with observe() as executing:
        run(plan)
    assert executing.launches
    assert not executing.perf_db_written
    assert not executing.searched


@pytest.mark.parametrize("operation", ["forward", "fused", "batchnorm training"])
def test_one_policy_after_the_other(operation: str, registry: EngineRegistry) -> None:
    """1, 3, 3, 2, 4, 5, 1 on one graph: what is in the perf-db each time, and what is cached."""
    graph, can_update = TUNABLE[operation](60), not operation.startswith("batchnorm")
    story = []
    for policy in (1, 3, 3, 2, 4, 5, 1):
        plan, seen = build(registry, graph, policy)
        story.append((policy, plan.from_cache, bool(seen.searched), len(seen.perf_db)))
        if policy == 3 and not plan.from_cache:
            empty, full = len(seen.perf_db) - len(seen.added), len(seen.perf_db)
    assert story == [
        (1, False, False, empty),
        (3, False, True, full),
        (3, True, False, full),
        (2, False, can_update, full),
        (4, False, True, full),
        (5, False, False, empty),
        (1, False, False, empty),
    ]
    assert build(registry, graph, 1)[0].from_cache
    # cleaning made the cached plan of policy 3 stale: it is built, and tuned, anew
    plan, seen = build(registry, graph, 3)
    assert (plan.from_cache, bool(seen.searched), len(seen.perf_db)) == (False, True, full)


def test_two_plans_of_one_graph_under_different_policies(registry: EngineRegistry) -> None:
    graph = conv_forward(62)
    untuned, _ = build(registry, graph, 1)
    tuned, _ = build(registry, graph, 3)
    assert miopen_plan(untuned) is not miopen_plan(tuned)
    for plan in (untuned, tuned, untuned):
        run(plan)
    # the search has left records, which None uses, too
    assert [build(registry, graph, 1)[0].from_cache for _ in range(3)] == [False, True, True]
    assert build(registry, graph, 3)[0].from_cache


@pytest.mark.parametrize(
    ("force", "benchmarking", "knob", "expected"),
    [
        (None, None, None, (NONE, BENCHMARKING)),
        (None, 1, None, (SEARCH, BENCHMARKING)),
        (None, 1, 0, (SEARCH, BENCHMARKING)),
        ("on", None, None, (SEARCH, "HIPDNN_FORCE_BENCHMARKING")),
        ("off", 1, None, (NONE, "HIPDNN_FORCE_BENCHMARKING")),
        ("on", 0, 1, (NONE, POLICY)),
        ("off", 0, 3, (SEARCH, POLICY)),
        (None, 1, 5, (DB_CLEAN, POLICY)),
    ],
)
def test_who_decides(
    force: str | None,
    benchmarking: int | None,
    knob: int | None,
    expected: tuple[TuningPolicy, str],
    registry: EngineRegistry,
    policies_seen: list[tuple[TuningPolicy, TuningPolicy]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if force is not None:
        monkeypatch.setenv("HIPDNN_FORCE_BENCHMARKING", force)
    settings = {BENCHMARKING: benchmarking, POLICY: knob}
    given = {name: value for name, value in settings.items() if value is not None}
    with observe():
        plan = new_registry().create_execution_plan_ext(conv_forward(64), ENGINE, given)
    policy, who = expected
    assert plan.notes[0] == f"tuning policy: {policy.name} ({policy}), decided by {who}"
    assert policies_seen == [(policy, NONE)]


def test_the_deterministic_engine_obeys_too(registry: EngineRegistry) -> None:
    for graph in (conv_forward(66), conv_bias_relu(66)):
        plan, seen = build(registry, graph, SEARCH_DB_UPDATE, DETERMINISTIC)
        assert seen.searched
        run(plan)


def test_where_there_is_nothing_to_tune_the_knob_is_refused(registry: EngineRegistry) -> None:
    graph = bn_inference()
    with pytest.warns(DroppedKnobWarning, match=POLICY), observe():
        plan = registry.create_execution_plan_ext(graph, ENGINE, {POLICY: 3})
    assert [str(knob) for knob in plan.dropped_knobs] == [f"{POLICY}=3"]
    with pytest.raises(KnobError, match="not advertised for this graph"):
        registry.create_execution_plan_ext(graph, ENGINE, {POLICY: 3}, strict=True)


@pytest.mark.parametrize("value", [-1, 6, "3", 3.0])
def test_a_bad_value_is_one_clear_error(value: object, registry: EngineRegistry) -> None:
    with pytest.raises(KnobError, match=r"miopen\.tuning_policy.*IntConstraint\{min=0,max=5"):
        registry.create_execution_plan_ext(
            conv_forward(),
            ENGINE,
            {POLICY: value},  # type: ignore[dict-item]  # on purpose
        )
