"""A caller's policy on its own handle, on the real library: what MIOpen ran under, and wrote.

make test takes every pair of operation, policy and state of the db; make test-full all triples.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_provider.native import Handle, MiopenError
from hipdnn_miopen_provider.shim import BadParm, MiopenHandle, TuningPolicy
from tests.native.engines import POLICY, miopen_plan, new_registry
from tests.native.observe import observe
from tests.native.shim_lane import HEIGHT, Memory, Policies, find_of, spy_on_policies
from tests.shim_calls import OPERATIONS, BatchNorm, Conv

if TYPE_CHECKING:
    from collections.abc import Iterator

NONE, DB_UPDATE, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN = TuningPolicy
STATES = ("empty", "record")
INFERENCE = "batchnorm inference"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory() as memory:
        yield memory


@pytest.fixture
def policies_seen(monkeypatch: pytest.MonkeyPatch) -> Policies:
    return spy_on_policies(monkeypatch)


def _cases() -> Iterator[object]:
    for (index, operation), policy, (at, state) in itertools.product(
        enumerate(OPERATIONS), TuningPolicy, enumerate(STATES)
    ):
        marks = () if (index + policy + at) % 2 == 0 else pytest.mark.slow
        name = f"{operation}-{policy.name}-{state}"
        yield pytest.param(operation, policy, state, marks=marks, id=name)


@pytest.mark.parametrize(("operation", "policy", "state"), list(_cases()))
def test_policy(
    operation: str, policy: TuningPolicy, state: str, memory: Memory, policies_seen: Policies
) -> None:
    is_batchnorm, tunable = operation.startswith("batchnorm"), operation != INFERENCE
    # a width of its own: the databases are the process's
    call = memory.call(operation, 400 + 2 * (policy + 5 * STATES.index(state)))
    recorded: frozenset[tuple[str, str]] = frozenset()
    if state == "record":
        with MiopenHandle(registry=new_registry()) as other, observe() as first:
            other.set_tuning_policy(SEARCH)
            call(other)
        recorded = first.added
        assert bool(recorded) is tunable
    policies_seen.clear()

    with MiopenHandle(registry=new_registry()) as handle:
        handle.set_tuning_policy(policy)
        with observe() as seen:
            plan = call(handle)

        # DbUpdate does nothing without an exhaustive Find
        searches = (policy is SEARCH and not recorded) or policy is SEARCH_DB_UPDATE
        searches &= tunable
        assert bool(seen.searched) is searches
        assert bool(seen.added) is (searches and not recorded)
        assert seen.removed == (recorded if policy is DB_CLEAN else frozenset())
        assert seen.perf_db_written is (searches or bool(seen.removed))
        effective = NONE if not tunable or (policy is DB_UPDATE and not is_batchnorm) else policy
        assert policies_seen == [(effective, NONE)]
        assert all(native.tuning_policy is NONE for native in miopen_plan(plan).handles)
        if tunable and policy is not NONE:
            note = f"tuning policy: {effective.name} ({effective}), decided by {POLICY}"
            assert plan.notes[0] == note
        assert seen.launches
        with observe() as again:
            assert call(handle) is plan
        assert again.launches
        assert not again.searched
        assert not again.perf_db_written
        assert handle.get_tuning_policy() is policy


@pytest.mark.parametrize("value", [*range(-1, 8), 2**31 - 1])
def test_the_same_policies_are_good_as_in_miopen(value: int) -> None:
    """And the statuses of the others are MIOpen's."""
    with MiopenHandle(registry=new_registry()) as handle, Handle() as native:
        status = 0
        try:
            native.tuning_policy = value  # type: ignore[assignment]  # MIOpen decides
        except MiopenError as error:
            status = error.status
        if status == 0:
            handle.set_tuning_policy(value)  # type: ignore[arg-type]
            assert handle.get_tuning_policy() is native.tuning_policy
        else:
            with pytest.raises(BadParm) as refused:
                handle.set_tuning_policy(value)  # type: ignore[arg-type]
            assert refused.value.status == status


# Exhaustive search


@pytest.mark.parametrize("operation", ["forward", "backward data", "backward weights"])
def test_dbupdate_tunes_in_an_exhaustive_find(operation: str, memory: Memory) -> None:
    find, compute = find_of(operation, memory, 440), memory.call(operation, 440)
    with MiopenHandle(registry=new_registry()) as handle:
        handle.set_tuning_policy(DB_UPDATE)
        with observe() as plain:
            find(handle)
            compute(handle)
        assert not plain.searched
        assert not plain.perf_db_written
        with observe() as exhaustive:
            plan = find(handle, exhaustive_search=True)
        assert exhaustive.searched
        assert exhaustive.added
        with observe() as after:
            assert compute(handle) is plan
            find(handle, exhaustive_search=True)
        assert not after.perf_db_written
        handle.set_tuning_policy(DB_UPDATE)
        with observe() as next_epoch:
            find(handle, exhaustive_search=True)
        assert next_epoch.searched
        assert next_epoch.perf_db_written
        assert not next_epoch.added


def test_exhaustive_search_under_none_searches_on_a_miss(memory: Memory) -> None:
    conv = Conv(memory, 424, HEIGHT)
    with MiopenHandle(registry=new_registry()) as handle:
        with observe() as plain:
            conv.find(handle)
        assert not plain.searched
        with observe() as miss:
            plan = conv.find(handle, exhaustive_search=True)
            assert conv.forward(handle) is plan
        assert miss.added
        assert plan.notes[0] == "tuning policy: SEARCH (3), decided by global.benchmarking"
    with MiopenHandle(registry=new_registry()) as fresh, observe() as hit:
        conv.find(fresh, exhaustive_search=True)
    assert not hit.searched
    assert not hit.perf_db_written


@pytest.mark.parametrize(("force", "searches"), [("on", True), ("off", False)])
def test_under_none_force_benchmarking_speaks(
    force: str, searches: bool, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under MIOpen's None the environment may; an explicit policy silences it."""
    monkeypatch.setenv("HIPDNN_FORCE_BENCHMARKING", force)
    conv = Conv(memory, 444 + 2 * searches, HEIGHT)
    with MiopenHandle(registry=new_registry()) as handle:
        with observe() as seen:
            conv.forward(handle)
            conv.find(handle, exhaustive_search=True)  # off overrules the argument, too
        assert bool(seen.searched) is searches
        handle.set_tuning_policy(DB_UPDATE)
        with observe() as silent:
            plan = conv.forward(handle)
        assert not silent.perf_db_written
        assert plan.notes[0] == f"tuning policy: NONE (1), decided by {POLICY}"


# One handle, several policies; several handles


@pytest.mark.parametrize("operation", ["forward", "fused", "batchnorm training"])
def test_the_policy_changes_midway(operation: str, memory: Memory) -> None:
    """What is searched, what is in the perf-db, and which plan comes back."""
    call, story, plans = memory.call(operation, 450), [], []
    with MiopenHandle(registry=new_registry()) as handle:
        for policy in (1, 3, 1, 3, 4, 4, 5, 1, 5, 3):
            handle.set_tuning_policy(TuningPolicy(policy))
            with observe() as seen:
                plan = call(handle)
                assert call(handle) is plan
            plans.append(plan)
            if len(plans) == 2:
                empty, full = len(seen.perf_db) - len(seen.added), len(seen.perf_db)
            story.append((policy, bool(seen.searched), seen.perf_db_written, len(seen.perf_db)))
    assert story[1:] == [
        (3, True, True, full),
        (1, False, False, full),
        (3, False, False, full),
        (4, True, True, full),
        (4, True, True, full),  # set again: a new epoch
        (5, False, True, empty),
        (1, False, False, empty),
        (5, False, False, empty),  # nothing is left to remove
        (3, True, True, full),
    ]
    assert plans[2] is plans[0]
    assert plans[3] is plans[1]
    assert plans[7] is not plans[0], "built from a perf-db that is no more"
    assert plans[9] is not plans[1]


def test_none_after_tuning_uses_the_record(memory: Memory) -> None:
    conv = Conv(memory, 452, HEIGHT)
    with MiopenHandle(registry=new_registry()) as handle:
        stale = conv.forward(handle)
        handle.set_tuning_policy(SEARCH_DB_UPDATE)
        with observe() as tuning:
            conv.forward(handle)
        assert tuning.added
        handle.set_tuning_policy(NONE)
        assert conv.forward(handle) is not stale


def test_two_handles_take_turns(memory: Memory, policies_seen: Policies) -> None:
    """Neither sees the other's policy, on one registry and one problem."""
    call, registry = memory.call("forward", 454), new_registry()
    with MiopenHandle(registry=registry) as tuning, MiopenHandle(registry=registry) as plain:
        tuning.set_tuning_policy(SEARCH_DB_UPDATE)
        with observe() as first:
            plain_plan = call(plain)
        assert not first.perf_db_written
        for round_ in range(3):
            with observe() as seen:
                tuned_plan = call(tuning)
            assert bool(seen.searched) is (round_ == 0)
            with observe() as untuned:
                assert call(plain) is plain_plan is not tuned_plan
            assert not untuned.perf_db_written
            assert not untuned.searched
        assert policies_seen == [(NONE, NONE), (SEARCH_DB_UPDATE, NONE)]
        tuning.set_tuning_policy(DB_CLEAN)
        with observe() as cleaning:
            call(tuning)
        assert cleaning.removed
        assert (plain.get_tuning_policy(), tuning.get_tuning_policy()) == (NONE, DB_CLEAN)


def test_a_changing_factor_tunes_once_an_epoch(memory: Memory) -> None:
    """Cumulative averages hand over another expAvgFactor each time."""
    norm = BatchNorm(memory, 456, HEIGHT)
    with MiopenHandle(registry=new_registry()) as handle:
        handle.set_tuning_policy(SEARCH_DB_UPDATE)
        searched = []
        for count in range(1, 5):
            with observe() as seen:
                norm.training(handle, factor=1 / count)
            searched.append(bool(seen.searched))
            assert seen.launches
        assert searched == [True, False, False, False]
