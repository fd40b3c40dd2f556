"""Handles: policies, epochs, the plans they keep, streams, threads, and when there is no MIOpen."""

from __future__ import annotations

import copy
import math
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipdnn_miopen_provider.native import HipError, MiopenError
from hipdnn_miopen_provider.shim import (
    AllocFailed,
    BadParm,
    InternalError,
    MiopenHandle,
    MiopenStatusError,
    NotInitialized,
    Status,
    TensorDescriptor,
    TuningPolicy,
    UnsupportedOp,
)
from hipdnn_registry import EngineRegistry, ExecutionError, ProviderUnavailableError
from tests.miopen_provider.shim.engines import LEAST, MOST, HostEngine, host_registry, ones
from tests.shim_calls import OPERATIONS, BatchNorm, Conv, call_of, every_entry_point

Array = np.ndarray[Any, Any]
NONE, DB_UPDATE, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN = TuningPolicy
WRITING = (SEARCH_DB_UPDATE, DB_CLEAN)
POLICY, LIMIT = "miopen.tuning_policy", "global.workspace_size_limit"


def policies_built(engine: HostEngine) -> list[object]:
    return [settings.get(POLICY, 0) for settings in engine.built]


# Policies


def test_the_policy_is_none_until_it_is_set(handle: MiopenHandle) -> None:
    assert handle.get_tuning_policy() is NONE
    for policy in TuningPolicy:
        handle.set_tuning_policy(policy)
        assert handle.get_tuning_policy() is policy
        handle.set_tuning_policy(policy.value)  # type: ignore[arg-type]  # MIOpen's number
        assert handle.get_tuning_policy() is policy


@given(
    st.one_of(
        st.integers().filter(lambda value: not 1 <= value <= 5),
        st.sampled_from([True, False, None, "SEARCH", "3", 3.0, (3,), b"", [], SimpleNamespace()]),
    )
)
def test_other_policies_are_badparm(value: Any) -> None:
    handle = MiopenHandle(registry=host_registry(HostEngine()))
    handle.set_tuning_policy(SEARCH)
    with pytest.raises(BadParm, match="miopenSetTuningPolicy: policy is .*NONE .1., DB_UPDATE"):
        handle.set_tuning_policy(value)
    assert handle.get_tuning_policy() is SEARCH


def test_a_change_takes_effect_on_the_next_call_and_going_back_finds_the_plan(
    handle: MiopenHandle, engine: HostEngine
) -> None:
    conv, plans = Conv(ones), []
    for policy in (NONE, SEARCH, NONE, SEARCH, SEARCH):
        handle.set_tuning_policy(policy)
        plans.append(conv.forward(handle))
    assert plans[0] is plans[2]
    assert plans[1] is plans[3] is plans[4] is not plans[0]
    assert policies_built(engine) == [0, 3]


@pytest.mark.parametrize("policy", WRITING)
def test_a_policy_that_writes_acts_once_an_epoch(
    policy: TuningPolicy, handle: MiopenHandle, engine: HostEngine
) -> None:
    conv, wider = Conv(ones), Conv(ones, 7)
    for _ in range(2):  # also with the same value
        handle.set_tuning_policy(policy)
        plans = [conv.find(handle), conv.forward(handle), conv.forward(handle)]
        assert len(set(map(id, plans))) == 1
        wider.forward(handle)
    assert policies_built(engine) == [policy] * 4
    assert handle.plan_count == 2, "plans of earlier epochs are of no use any more"


def test_dbupdate_acts_on_the_first_exhaustive_find_of_an_epoch(
    handle: MiopenHandle, engine: HostEngine
) -> None:
    conv = Conv(ones)
    for _ in range(2):
        handle.set_tuning_policy(DB_UPDATE)
        conv.forward(handle)
        for _ in range(2):
            conv.find(handle, exhaustive_search=True)
        conv.forward(handle)
    assert policies_built(engine) == [1, 2, 1, 2]


@pytest.mark.parametrize("policy", WRITING)
def test_a_problem_is_what_miopen_tunes(
    policy: TuningPolicy, handle: MiopenHandle, engine: HostEngine
) -> None:
    """Another factor, and another workspace, are other plans of the same problem."""
    handle.set_tuning_policy(policy)
    norm, conv = BatchNorm(ones), Conv(ones)
    for factor in (0.1, 0.2, 0.1, 0.3):
        norm.training(handle, factor=factor)
    conv.find(handle, workspace=np.empty(1024, np.uint8))
    conv.find(handle)
    assert policies_built(engine) == [policy, 1, 1, policy, 1]
    assert [settings.get(LIMIT) for settings in engine.built[-2:]] == [1024, None]


@pytest.mark.parametrize("policy", WRITING)
def test_what_was_built_before_a_write_is_built_anew(
    policy: TuningPolicy, handle: MiopenHandle, engine: HostEngine
) -> None:
    """It came from a perf-db that is no more; other problems' plans stay."""
    conv, other = Conv(ones), Conv(ones, 7)
    story: tuple[TuningPolicy, ...] = (NONE, SEARCH, policy, NONE, SEARCH)
    plans, others = [], []
    for current in story:
        handle.set_tuning_policy(current)
        plans.append(conv.forward(handle))
        if current is not policy:
            others.append(other.forward(handle))
    assert len(set(map(id, plans))) == len(story)
    assert others[:2] == others[2:]


def test_two_handles_under_different_policies_take_turns(engine: HostEngine) -> None:
    registry, conv = host_registry(engine), Conv(ones)
    one, other = MiopenHandle(registry=registry), MiopenHandle(registry=registry)
    other.set_tuning_policy(SEARCH_DB_UPDATE)
    for _ in range(3):
        mine, its = conv.forward(one), conv.forward(other)
        assert mine.settings[POLICY].value == 0
        assert its.settings[POLICY].value == 4
    assert policies_built(engine) == [0, 4]
    assert one.get_tuning_policy() is NONE


def test_least_recently_used_plans_go_first(engine: HostEngine) -> None:
    handle = MiopenHandle(registry=host_registry(engine), plans=2)
    convs = [Conv(ones, width) for width in (5, 6, 7)]
    first = convs[0].forward(handle)
    convs[1].forward(handle)
    assert convs[0].forward(handle) is first
    convs[2].forward(handle)  # the second goes
    assert convs[0].forward(handle) is first
    assert handle.plan_count == 2
    handle.set_tuning_policy(SEARCH_DB_UPDATE)
    for conv in (*convs, *convs):
        conv.forward(handle)
    # a plan that had to go does not tune again when it comes back
    assert policies_built(engine)[-6:] == [4, 4, 4, 1, 1, 1]


# Workspaces


def test_a_workspace_bounds_the_solvers(handle: MiopenHandle, engine: HostEngine) -> None:
    conv = Conv(ones)
    assert conv.workspace_size(handle) == 512
    assert engine.built == []
    small, large = np.empty(LEAST, np.uint8), np.empty(2 * MOST, np.uint8)
    plan = conv.find(handle, workspace=small)
    assert plan.workspace_size == LEAST
    assert conv.find(handle, workspace=small) is conv.forward(handle, workspace=small) is plan
    assert conv.forward(handle) is plan, "without one it brings its own"
    bigger = conv.find(handle, workspace=large)
    assert conv.forward(handle, workspace=large) is bigger is not plan
    assert conv.workspace_size(handle) == bigger.workspace_size == MOST, "no less than the plan's"
    with pytest.raises(BadParm, match=f"workspace has {LEAST} bytes, but the plan needs {MOST}"):
        conv.forward(handle, workspace=small)
    with pytest.raises(UnsupportedOp, match="has 63 bytes, but no solver runs in less than 64"):
        conv.find(handle, workspace=np.empty(LEAST - 1, np.uint8))
    assert [settings.get(LIMIT) for settings in engine.built] == [LEAST, None]


@pytest.mark.parametrize(
    ("policy", "asked"),
    [(NONE, {}), (DB_UPDATE, {POLICY: 2}), (SEARCH, {POLICY: 3}), (DB_CLEAN, {POLICY: 5})],
)
def test_the_size_is_estimated_under_the_policy(
    policy: TuningPolicy, asked: dict[str, int], handle: MiopenHandle, engine: HostEngine
) -> None:
    handle.set_tuning_policy(policy)
    Conv(ones).workspace_size(handle)
    assert (engine.estimated, engine.built) == ([asked], [])


# Failures


@pytest.mark.parametrize(
    ("failure", "kind", "status"),
    [
        (MiopenError("miopenFind", 7, "miopenStatusUnknownError", ""), InternalError, 5),
        (MiopenError("miopenFind", 4, "miopenStatusAllocFailed", ""), AllocFailed, 4),
        (HipError("hipMalloc", 2, "hipErrorOutOfMemory", "out of memory"), AllocFailed, 4),
        (ExecutionError("no solver fits"), InternalError, 5),
        (ZeroDivisionError("a defect"), InternalError, 5),
        (KeyboardInterrupt(), KeyboardInterrupt, None),
    ],
)
@pytest.mark.parametrize("policy", [NONE, SEARCH, SEARCH_DB_UPDATE])
def test_a_failed_build_leaves_the_handle_as_it_was(
    policy: TuningPolicy,
    failure: BaseException,
    kind: type[BaseException],
    status: int | None,
    handle: MiopenHandle,
    engine: HostEngine,
) -> None:
    conv = Conv(ones)
    handle.set_tuning_policy(policy)
    engine.failing = failure
    for act in (conv.find, conv.forward):
        with pytest.raises(kind) as error:
            act(handle)
        if isinstance(error.value, MiopenStatusError):
            assert error.value.status == status
            assert error.value.__cause__ is not None
    assert handle.plan_count == 0
    assert handle.get_tuning_policy() is policy
    engine.failing = None
    conv.forward(handle)
    # what failed has not acted: it acts now
    assert policies_built(engine)[-1] == (0 if policy is NONE else policy)
    assert handle.plan_count == 1


@pytest.mark.parametrize("operation", OPERATIONS)
def test_buffers_are_checked_before_anything_is_built(
    operation: str, handle: MiopenHandle, engine: HostEngine
) -> None:
    handle.set_tuning_policy(SEARCH_DB_UPDATE)

    def one_off(desc: TensorDescriptor) -> Any:
        """An array of the right shape that is not aligned to its elements."""
        given = ones(desc)
        moved = np.zeros(given.nbytes + 1, np.uint8)[1:].view(given.dtype)
        return moved.reshape(given.shape)

    with pytest.raises(BadParm, match="is not aligned to its elements"):
        call_of(operation, one_off)(handle)
    shared = np.zeros(4 * 8 * 6 * 6, np.float32)

    def overlapping(desc: TensorDescriptor) -> Any:
        return shared[: math.prod(desc.dims)].reshape(desc.dims)

    with pytest.raises(BadParm, match="which the plan writes, overlaps"):
        call_of(operation, overlapping)(handle)
    assert not engine.built
    assert handle.plan_count == 0
    call_of(operation, ones)(handle)
    assert len(engine.built) == 1


def test_a_failed_find_keeps_the_plan_that_is_there(
    handle: MiopenHandle, engine: HostEngine
) -> None:
    conv = Conv(ones)
    plan = conv.find(handle)
    engine.failing = ExecutionError("no")
    with pytest.raises(InternalError):
        conv.find(handle, exhaustive_search=True)
    assert conv.forward(handle) is plan


def test_a_callback_may_set_the_policy_meanwhile() -> None:
    """Tuning tells its progress in the caller's thread; the call goes on under its own policy."""

    class Talking(HostEngine):
        def build(self, graph: Any, resolution: Any) -> Any:
            if not self.built:
                busy.set_tuning_policy(SEARCH_DB_UPDATE)
            return super().build(graph, resolution)

    talking = Talking()
    busy = MiopenHandle(registry=host_registry(talking))
    busy.set_tuning_policy(SEARCH_DB_UPDATE)
    conv = Conv(ones)
    conv.forward(busy)
    conv.forward(busy)  # a new epoch
    assert policies_built(talking) == [4, 4]


# Handles come and go


def test_a_closed_handle_is_refused_everywhere(handle: MiopenHandle) -> None:
    calls = every_entry_point(handle, ones)
    with handle as same:
        Conv(ones).forward(same)
        assert same.plan_count == 1
    handle.close()
    assert handle.plan_count == 0
    for act in (
        *calls.values(),
        *(handle.get_tuning_policy, handle.get_stream),
        *(lambda: handle.set_tuning_policy(NONE), lambda: handle.set_stream(None)),
    ):
        with pytest.raises(BadParm, match="this MiopenHandle has been closed"):
            act()


def test_a_handle_is_one_of_its_kind(handle: MiopenHandle) -> None:
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="can't be copied or pickled"):
            attempt(handle)
    handle.set_tuning_policy(DB_CLEAN)
    assert "policy DbClean (5), 0 plans" in repr(handle)
    handle.close()
    with pytest.raises(BadParm, match="has been closed"), handle:
        pass


def test_streams(handle: MiopenHandle) -> None:
    assert handle.get_stream() is None
    for stream, address in ((64, 64), (0, None), (SimpleNamespace(address=8), 8), (None, None)):
        handle.set_stream(stream)
        assert handle.get_stream() == address
    for bad in (-1, 1 << 64, True, "0", 1.0, object()):
        with pytest.raises(BadParm, match="miopenSetStream: stream is .*must be a hipStream_t"):
            handle.set_stream(bad)
    assert MiopenHandle(16, registry=handle.registry).get_stream() == 16


def test_without_miopen_the_reason_is_given() -> None:
    with pytest.raises(NotInitialized, match="no MIOPEN_ENGINE: .*not among its prov") as error:
        MiopenHandle(registry=EngineRegistry(entry_points=False))
    assert error.value.status is Status.NotInitialized
    assert isinstance(error.value, ProviderUnavailableError)
    registry = EngineRegistry(allow=["miopen"])
    if not registry.engine_names():  # no GPU here
        (reason,) = [r.reason for r in registry.providers() if r.name == "miopen"]
        with pytest.raises(NotInitialized) as error:
            MiopenHandle(registry=registry)
        assert reason in str(error.value)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"registry": "miopen"}, "registry is 'miopen', but must be a EngineRegistry"),
        ({"plans": 0}, "plans is 0, but must be an integer from 1 on"),
        ({"stream": "x"}, "stream is 'x'"),
    ],
)
def test_bad_handles(options: dict[str, Any], problem: str, engine: HostEngine) -> None:
    with pytest.raises(BadParm, match=problem):
        MiopenHandle(**{"registry": host_registry(engine)} | options)


# Threads


def test_one_handle_in_eight_threads(handle: MiopenHandle, engine: HostEngine) -> None:
    """Each call is of one policy; each plan is built once an epoch at most; nothing is lost."""
    start = threading.Barrier(8)

    def work(number: int) -> int:
        conv, done = Conv(ones, 4 + number % 3), 0
        start.wait()
        for round_ in range(20):
            policy = TuningPolicy((number + round_) % 5 + 1)
            handle.set_tuning_policy(policy)
            plan = conv.forward(handle)
            assert plan.settings[POLICY].value in {0, 1, 3, 4, 5}
            np.testing.assert_array_equal(conv.y[0, 0, 1, 1], 72)
            done += 1
        return done

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [20] * 8
    assert len(engine.built) <= 160


def test_threads_that_want_one_plan_build_it_once(handle: MiopenHandle, engine: HostEngine) -> None:
    handle.set_tuning_policy(SEARCH_DB_UPDATE)
    start = threading.Barrier(8)

    def work(_: int) -> int:
        conv = Conv(ones)
        start.wait()
        return id(conv.forward(handle))

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(work, range(8)))) == 1
    assert policies_built(engine) == [4]


def test_close_waits_for_a_call_in_another_thread(engine: HostEngine) -> None:
    building, go = threading.Event(), threading.Event()

    class Slow(HostEngine):
        def build(self, graph: Any, resolution: Any) -> Any:
            building.set()
            assert go.wait(10)
            return super().build(graph, resolution)

    handle = MiopenHandle(registry=host_registry(Slow()))
    conv = Conv(ones)
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(conv.forward, handle)
        assert building.wait(10)
        closing = pool.submit(handle.close)
        assert not closing.done()
        go.set()
        assert call.result(10).engine_name == "MIOPEN_ENGINE"
        closing.result(10)
    assert handle.plan_count == 0
