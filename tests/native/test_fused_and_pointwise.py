"""Convolution + bias + activation by MIOpen's three APIs, and pointwise operations."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_provider.native import (
    ActivationMode,
    ClosedError,
    ConvolutionAlgorithm,
    DataType,
    DeviceBuffer,
    Direction,
    FusedProblem,
    FusionPlan,
    Handle,
    MiopenError,
    Status,
    TensorArgument,
    TensorOp,
    TuningPolicy,
    convolution,
    find2,
    pointwise,
)
from tests.native.environment import run_child
from tests.native.observe import Observation, observe
from tests.native.problems import Convolution, convolution_case, fresh_handle

if TYPE_CHECKING:
    from pathlib import Path

NONE, DB_UPDATE, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN = TuningPolicy


def fused_find(case: Convolution, policy: TuningPolicy, *, exhaustive: bool = False) -> Observation:
    with observe() as seen:
        assert case.fused_find(policy, exhaustive=exhaustive)
    return seen


@pytest.mark.parametrize("groups", [1, 2])
def test_the_second_find_api_obeys_every_policy(groups: int) -> None:
    """In the default find mode, and with the find-db knowing the problem."""
    w = (8, 8 // groups, 3, 3)
    with convolution_case(
        Direction.FORWARD, (2, 8, 16, 26), w, groups=groups, find_mode=None
    ) as case:
        for policy in (NONE, DB_UPDATE, DB_CLEAN):
            idle = fused_find(case, policy)
            assert (idle.searched, idle.perf_db_written) == ([], False)
            assert idle.launches
        first = fused_find(case, SEARCH)
        assert first.searched == ["ConvOclDirectFwdFused"]
        assert {solver for _, solver in first.added} == set(first.searched)
        for policy in (NONE, DB_UPDATE, SEARCH):
            loading = fused_find(case, policy)
            assert loading.loaded
            assert (loading.searched, loading.perf_db_written) == ([], False)
        for policy, exhaustive in ((DB_UPDATE, True), (SEARCH_DB_UPDATE, False)):
            again = fused_find(case, policy, exhaustive=exhaustive)
            assert again.searched == first.searched
            assert again.perf_db_written
        cleaned = fused_find(case, DB_CLEAN, exhaustive=True)
        assert cleaned.removed == first.added
        assert not cleaned.searched


def test_the_first_fused_find_on_a_handle_decides() -> None:
    """Why a plan needs a handle of its own."""
    with (
        convolution_case(Direction.FORWARD, (2, 8, 16, 36), (8, 8, 3, 3)) as case,
        fresh_handle(NONE) as handle,
    ):
        found = case.fused_find_on(handle)
        for policy in (SEARCH, SEARCH_DB_UPDATE, DB_CLEAN):
            handle.tuning_policy = policy
            with observe() as ignored:
                assert case.fused_find_on(handle) == found
            assert (ignored.searched, ignored.perf_db_written) == ([], False)


def test_a_fusion_plan_uses_the_record_that_a_fused_find_made() -> None:
    with convolution_case(Direction.FORWARD, (2, 8, 16, 38), (8, 8, 3, 3)) as case:
        recorded = fused_find(case, SEARCH)
        with observe() as seen:
            case.fusion_plan(NONE)
        assert seen.loaded == recorded.searched


def test_a_fused_problem_without_a_solver_has_no_solutions() -> None:
    with convolution_case(
        Direction.FORWARD, (2, 16, 16, 24), (16, 16, 3, 3), dtype=DataType.Half
    ) as case:
        assert case.fused_find(NONE) == []


@pytest.mark.parametrize("policy", [NONE, DB_UPDATE, DB_CLEAN])
def test_a_fusion_plan_runs_where_no_search_is_asked_for(policy: TuningPolicy) -> None:
    with convolution_case(Direction.FORWARD, (2, 8, 16, 28), (8, 8, 3, 3)) as case:
        with observe() as seen:
            case.fusion_plan(policy)
        assert (seen.launches, seen.searched) == (1, [])


FUSION_PLAN = """
from tests.native.problems import Direction, TuningPolicy, convolution_case
with convolution_case(Direction.FORWARD, (2, 8, 16, 24), (8, 8, 3, 3)) as case:
    case.fusion_plan(TuningPolicy({policy}))
print("survived")
"""


@pytest.mark.parametrize("policy", [SEARCH, SEARCH_DB_UPDATE])
def test_a_search_kills_a_process_that_compiles_a_fusion_plan(
    policy: TuningPolicy, tmp_path: Path
) -> None:
    """A defect of 3.5.1, and why the provider doesn't use fusion plans to tune.

    If this fails the library has been repaired: the provider may use them then.
    """
    died = run_child(tmp_path, FUSION_PLAN.format(policy=policy.value))
    assert died.returncode == -signal.SIGSEGV
    assert "Attempt to use empty AnyInvokeParams" in died.stderr
    survived = run_child(
        tmp_path, FUSION_PLAN.format(policy=policy.value), {"MIOPEN_FIND_MODE_FUSION": "NORMAL"}
    )
    assert survived.stdout == "survived\n", survived.stderr[-2000:]
    assert "Search Start" in survived.stderr


def test_a_fusion_plan_asks_for_the_unfused_convolutions_workspace() -> None:
    """Although its solver runs without any."""
    with (
        convolution_case(Direction.FORWARD, (2, 8, 16, 30), (8, 8, 3, 3)) as case,
        Handle() as handle,
        FusionPlan(handle, case.problem, case.bias[0], ActivationMode.RELU) as plan,
    ):
        asked = plan.workspace_size(ConvolutionAlgorithm.Direct)
        assert asked == convolution.workspace_size(handle, case.problem) > 0


def test_the_single_call_has_no_solver_in_this_build() -> None:
    with convolution_case(Direction.FORWARD, (2, 8, 16, 32), (8, 8, 3, 3)) as case:
        with pytest.raises(MiopenError) as error:
            case.fused_call(NONE)
        assert error.value.status == Status.UnsupportedOp


def test_a_fused_problem_that_can_not_be_made_leaves_nothing_behind() -> None:
    with convolution_case(Direction.FORWARD, (2, 8, 16, 34), (8, 8, 3, 3)) as case:
        problem = FusedProblem(case.problem, case.bias[0], case.relu)
        problem.close()
        case.relu.close()
        with pytest.raises(ClosedError, match="ActivationDescriptor has been closed"):
            FusedProblem(case.problem, case.bias[0], case.relu)


@pytest.mark.parametrize("policy", [NONE, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN])
def test_pointwise_operations_have_nothing_to_tune(policy: TuningPolicy) -> None:
    with convolution_case(Direction.FORWARD, (2, 8, 6, 8), (8, 8, 3, 3)) as case:
        x, y = (case.problem.x, "x"), (case.problem.y, "y")
        bias = (case.bias[0], "bias")
        memory = {"x": case.buffers.x, "y": case.buffers.y}
        for prepare, more in (
            (partial(pointwise.activation_forward, activation=case.relu, x=x, y=y), {}),
            (
                partial(pointwise.activation_backward, activation=case.relu, y=y, dy=y, x=x, dx=x),
                {},
            ),
            (
                partial(pointwise.op_tensor, operation=TensorOp.Add, a=x, b=bias, c=y),
                {"bias": case.bias[1]},
            ),
        ):
            with fresh_handle(policy) as handle, observe() as seen:
                prepare(handle).bind(**memory, **more)()
            assert seen.launches == 1
            assert not seen.perf_db_written


def test_memory_that_is_too_small_never_reaches_miopen() -> None:
    with (
        convolution_case(Direction.FORWARD, (2, 8, 16, 24), (8, 8, 3, 3)) as case,
        FusedProblem(case.problem, case.bias[0], case.relu) as problem,
        Handle() as handle,
        DeviceBuffer(31) as short,
        ExitStack() as stack,
    ):
        solutions = [
            stack.enter_context(each) for each in find2.find_solutions(handle, problem, {})
        ]
        run = find2.run_solution(handle, solutions[0], {TensorArgument.Bias: case.bias[0].nbytes})
        with pytest.raises(ValueError, match="Bias needs 32 bytes of device memory, got 31"):
            run.bind(Bias=short)
        with pytest.raises(TypeError, match="miopenRunSolution takes no x, but Bias"):
            run.bind(Bias=case.bias[1], x=case.buffers.x)
        x, y = (case.problem.x, "x"), (case.problem.y, "y")
        activate = pointwise.activation_forward(handle, case.relu, x, y)
        with pytest.raises(ValueError, match="y needs 24576 bytes of device memory, got 31"):
            activate.bind(x=case.buffers.x, y=short)
