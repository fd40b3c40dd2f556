"""Convolutions under tuning policies: what a Find does to the perf-db, and when it obeys."""

from __future__ import annotations

from contextlib import ExitStack
from ctypes import byref, c_size_t
from dataclasses import replace

import pytest

from hipdnn_miopen_provider.database_files import FileKind, read_folder
from hipdnn_miopen_provider.native import (
    NO_MEMORY,
    BorrowedMemory,
    ConvolutionAttribute,
    ConvolutionDescriptor,
    ConvolutionProblem,
    DataType,
    DeviceBuffer,
    Direction,
    FindMode,
    Handle,
    MiopenError,
    MissingSymbolError,
    Status,
    TensorDescriptor,
    TuningPolicy,
    convolution,
    library,
)
from hipdnn_miopen_provider.perf_db import (
    ConvolutionKey,
    parse_convolution_key,
    parse_find_value,
    user_db_folder,
)
from tests.native.observe import Observation, observe
from tests.native.problems import Convolution, convolution_case, fresh_handle

NONE, DB_UPDATE, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN = TuningPolicy

# each test has dimensions of its own: the databases are the process's
TUNABLE = {
    "forward": (Direction.FORWARD, (2, 8, 16, 16), (8, 8, 3, 3), {}),
    "backward data": (Direction.BACKWARD_DATA, (2, 8, 16, 16), (8, 8, 3, 3), {}),
    "backward weights": (Direction.BACKWARD_WEIGHTS, (2, 8, 12, 16), (4, 8, 3, 3), {}),
    "grouped": (Direction.FORWARD, (2, 8, 16, 20), (4, 4, 3, 3), {"groups": 2}),
}


def observed_find(
    case: Convolution, policy: TuningPolicy, *, exhaustive: bool = False
) -> Observation:
    with observe() as seen:
        assert case.find(policy, exhaustive=exhaustive)
    return seen


@pytest.mark.parametrize("name", TUNABLE)
def test_each_policy_on_a_fresh_handle_in_normal_mode(name: str) -> None:
    direction, x, w, options = TUNABLE[name]
    with convolution_case(direction, x, w, **options) as case:  # type: ignore[arg-type]  # groups only
        untuned = observed_find(case, NONE)
        assert not untuned.searched
        assert not untuned.perf_db_written
        assert untuned.find_db_written

        for policy in (DB_UPDATE, DB_CLEAN):  # nothing recorded: neither does anything
            idle = observed_find(case, policy)
            assert (idle.searched, idle.perf_db_written) == ([], False)

        first = observed_find(case, SEARCH)
        assert first.searched
        assert {solver for _, solver in first.added} == set(first.searched)
        assert first.launches > untuned.launches

        for policy in (SEARCH, DB_UPDATE, NONE):  # recorded: all three load
            loading = observed_find(case, policy)
            assert sorted(set(loading.loaded)) == sorted(first.searched)
            assert (loading.searched, loading.perf_db_written) == ([], False)
            assert loading.launches == untuned.launches

        for policy, exhaustive in ((DB_UPDATE, True), (SEARCH_DB_UPDATE, False)):
            again = observed_find(case, policy, exhaustive=exhaustive)
            assert sorted(again.searched) == sorted(first.searched)
            assert again.perf_db_written
            assert not again.added | again.removed

        cleaned = observed_find(case, DB_CLEAN, exhaustive=True)
        assert cleaned.removed == first.added
        assert not cleaned.searched


@pytest.mark.parametrize(
    ("policy", "exhaustive", "searches"),
    [
        (NONE, True, True),
        (DB_UPDATE, True, True),
        (SEARCH, False, True),
        (SEARCH_DB_UPDATE, False, True),
        (DB_CLEAN, True, False),
    ],
)
def test_what_searches_with_an_empty_db(
    policy: TuningPolicy, exhaustive: bool, searches: bool
) -> None:
    height = 20 + 2 * policy
    with convolution_case(Direction.FORWARD, (1, 8, height, 16), (8, 8, 3, 3)) as case:
        seen = observed_find(case, policy, exhaustive=exhaustive)
        assert bool(seen.searched) is bool(seen.added) is searches


def test_cleaning_leaves_other_problems_alone() -> None:
    with (
        convolution_case(Direction.FORWARD, (1, 8, 12, 36), (8, 8, 3, 3)) as case,
        convolution_case(Direction.FORWARD, (1, 8, 12, 40), (8, 8, 3, 3)) as neighbour,
    ):
        kept = observed_find(neighbour, SEARCH).added
        observed_find(case, SEARCH)
        cleaned = observed_find(case, DB_CLEAN)
        assert cleaned.removed
        assert kept
        assert kept <= cleaned.perf_db


def test_a_used_handle_can_ignore_a_changed_policy() -> None:
    """Why a plan needs a handle of its own."""
    with convolution_case(Direction.FORWARD, (1, 3, 32, 32), (8, 3, 3, 3)) as case:
        with fresh_handle(NONE) as handle:
            case.find_on(handle)
            handle.tuning_policy = SEARCH
            case.find_on(handle)
            handle.tuning_policy = SEARCH_DB_UPDATE
            with observe() as ignored:
                case.find_on(handle)
        assert (ignored.launches, ignored.searched, ignored.perf_db_written) == (0, [], False)
        assert observed_find(case, SEARCH_DB_UPDATE).searched


@pytest.mark.parametrize("mode", [FindMode.DynamicHybrid, FindMode.Hybrid, None])
def test_other_find_modes_ignore_the_policy_once_the_find_db_knows_the_problem(
    mode: FindMode | None,
) -> None:
    """Why a plan needs NORMAL mode. None: the library's default."""
    x = (1, 8, 18, 16 + 2 * (mode or 0))
    with convolution_case(Direction.FORWARD, x, (8, 8, 3, 3), find_mode=mode) as case:
        observed_find(case, NONE)
        for exhaustive in (False, True):
            hit = observed_find(case, SEARCH_DB_UPDATE, exhaustive=exhaustive)
            assert (hit.launches, hit.searched, hit.perf_db_written) == (0, [], False)
        case.problem.convolution.find_mode = FindMode.Normal
        assert observed_find(case, SEARCH).searched


@pytest.mark.parametrize("direction", Direction)
def test_the_immediate_mode_never_tunes(direction: Direction) -> None:
    with convolution_case(direction, (1, 8, 22, 48), (8, 8, 3, 3)) as case:
        problem = case.problem
        for policy in TuningPolicy:
            with fresh_handle(policy) as handle, observe() as seen, ExitStack() as stack:
                best = convolution.solutions(handle, problem)[0]
                size = convolution.solution_workspace_size(handle, problem, best.solution_id)
                assert size == best.workspace_size
                scratch = stack.enter_context(DeviceBuffer(size))
                convolution.compile_solution(handle, problem, best.solution_id)
                convolution.run_immediate(handle, problem, best.solution_id, case.buffers, scratch)
            assert not seen.searched
            assert not seen.perf_db_written
            assert seen.launches


@pytest.mark.parametrize("direction", Direction)
def test_a_found_algorithm_runs_and_an_unknown_one_does_not(direction: Direction) -> None:
    with (
        convolution_case(direction, (1, 8, 22, 50), (8, 8, 3, 3)) as case,
        Handle() as handle,
        Handle() as other,
        DeviceBuffer(convolution.workspace_size(handle, case.problem)) as scratch,
    ):
        found = case.find_on(handle)
        call = convolution.run(handle, case.problem, found[0].algorithm)
        run = call.bind(**vars(case.buffers))
        for _ in range(2):
            with observe() as seen:
                run(scratch)
            assert seen.launches
        short = replace(case.buffers, x=BorrowedMemory(case.buffers.x.address, 4))
        with pytest.raises(ValueError, match="x needs 35200 bytes of device memory, got 4"):
            call.bind(**vars(short))
        elsewhere = convolution.run(other, case.problem, found[0].algorithm)
        with pytest.raises(MiopenError, match=f"miopenConvolution{direction.stem}: "):
            elsewhere.bind(**vars(case.buffers))(scratch)


def test_workspace_depends_on_the_find_mode() -> None:
    """Why the mode is set before workspace is asked for: NORMAL's answer covers every solver."""
    with (
        convolution_case(Direction.FORWARD, (4, 64, 28, 28), (32, 64, 5, 5), padding=2) as normal,
        convolution_case(
            Direction.FORWARD, (4, 64, 28, 28), (32, 64, 5, 5), padding=2, find_mode=None
        ) as default,
        Handle() as handle,
    ):
        assert default.problem.convolution.find_mode is FindMode.DynamicHybrid
        large = convolution.workspace_size(handle, normal.problem)
        small = convolution.workspace_size(handle, default.problem)
        assert 0 < small < large
        needed = [result.workspace_size for result in normal.find_on(handle, workspace=large)]
        assert max(needed) == large


@pytest.mark.parametrize("direction", Direction)
def test_every_query_knows_which_tensor_is_which(direction: Direction) -> None:
    """The calls take them in different orders; all have to mean the problem that Find solves."""
    with convolution_case(direction, (2, 6, 14, 22), (10, 6, 3, 5)) as case, Handle() as handle:
        found = case.find_on(handle)
        largest = max(result.workspace_size for result in found)
        assert convolution.workspace_size(handle, case.problem) == largest > 0
        listed = convolution.solutions(handle, case.problem)
        assert {solution.algorithm for solution in listed} == {r.algorithm for r in found}
        for solution in listed:
            size = solution.workspace_size
            assert size == convolution.solution_workspace_size(
                handle, case.problem, solution.solution_id
            )


def test_solvers_that_need_more_workspace_are_left_out() -> None:
    with convolution_case(Direction.FORWARD, (2, 8, 26, 20), (8, 8, 3, 3)) as case:
        everything = {result.algorithm for result in case.find(NONE)}
        with observe() as seen, Handle() as handle:
            found = convolution.find(handle, case.problem, case.buffers, NO_MEMORY)
        left = {result.algorithm for result in found}
        assert left < everything
        assert "IsEnoughWorkspace" in seen.log


def test_the_workspace_range_is_not_exported_by_this_release() -> None:
    with (
        convolution_case(Direction.FORWARD, (1, 8, 8, 8), (8, 8, 3, 3)) as case,
        Handle() as handle,
        pytest.raises(MissingSymbolError, match=r"libMIOpen 3\.5\.1 .*WorkSpaceSizeRange"),
    ):
        convolution.workspace_size_range(handle, case.problem)


def test_null_buffers_are_refused_by_miopen_and_small_ones_before_it() -> None:
    with (
        convolution_case(Direction.FORWARD, (1, 8, 8, 8), (8, 8, 3, 3)) as case,
        Handle() as handle,
    ):
        pretended = BorrowedMemory(0, 1 << 20)
        for name in "xwy":
            broken = replace(case.buffers, **{name: pretended})
            with pytest.raises(MiopenError) as error:
                convolution.find(handle, case.problem, broken)
            assert error.value.status == Status.BadParm
        short = BorrowedMemory(case.buffers.y.address, case.buffers.y.nbytes - 1)
        with pytest.raises(ValueError, match="y needs 2048 bytes of device memory, got 2047"):
            convolution.find(handle, case.problem, replace(case.buffers, y=short))


MISMATCHES: dict[str, tuple[dict[str, tuple[int, ...]], str]] = {
    "channels of w": ({"w": (8, 9, 3, 3)}, "don't go together"),
    "channels of y": ({"y": (1, 9, 8, 8)}, r"y has dims \(1, 9, 8, 8\)"),
    "batch of y": ({"y": (2, 8, 8, 8)}, "x and w give"),
    "height of y": ({"y": (1, 8, 9, 8)}, "x and w give"),
    "rank of x": ({"x": (1, 8, 8, 8, 8)}, "one rank"),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_tensors_that_do_not_agree_never_reach_miopen(name: str) -> None:
    """MIOpen itself takes them and launches kernels out of bounds."""
    changed, complaint = MISMATCHES[name]
    dims: dict[str, tuple[int, ...]] = {"x": (1, 8, 8, 8), "w": (8, 8, 3, 3), "y": (1, 8, 8, 8)}
    dims |= changed
    with ExitStack() as stack:
        tensors = {
            key: stack.enter_context(TensorDescriptor(DataType.Float, value))
            for key, value in dims.items()
        }
        descriptor = stack.enter_context(ConvolutionDescriptor((1, 1), (1, 1), (1, 1)))
        with pytest.raises(ValueError, match=complaint):
            ConvolutionProblem(Direction.FORWARD, **tensors, convolution=descriptor)


def test_tensors_of_different_types_never_reach_miopen() -> None:
    with (
        TensorDescriptor(DataType.Float, (1, 8, 8, 8)) as x,
        TensorDescriptor(DataType.Half, (8, 8, 3, 3)) as w,
        ConvolutionDescriptor((1, 1), (1, 1), (1, 1)) as descriptor,
        pytest.raises(ValueError, match=r"one data type, got .*'w': 'Half'"),
    ):
        ConvolutionProblem(Direction.FORWARD, x, w, x, descriptor)


def test_descriptors_read_back_and_refuse_nonsense() -> None:
    strides = (192, 1, 24, 3)
    with TensorDescriptor(DataType.BFloat16, (2, 3, 8, 8), strides) as tensor:
        assert tensor.read() == (DataType.BFloat16, (2, 3, 8, 8), strides)
        assert tensor.nbytes == 2 * 2 * 3 * 8 * 8
    for strides in ((192, 64, 8, 1), (192, 1, 24, 3), (1000, 100, 10, 1), (7, 5, 3, 2)):
        with TensorDescriptor(DataType.Float, (2, 3, 8, 8), strides) as tensor:
            counted = c_size_t()
            library.load().call("miopenGetTensorNumBytes", tensor.raw, byref(counted))
            assert tensor.nbytes == counted.value
    with pytest.raises(MiopenError, match="BadParm"):
        TensorDescriptor(DataType.Float, (1, 0, 4, 4))
    with pytest.raises(MiopenError, match="BadParm"):
        ConvolutionDescriptor((1, 1), (0, 1), (1, 1))
    with pytest.raises(ValueError, match="differ in length"):
        ConvolutionDescriptor((1, 1), (1,), (1, 1))
    with pytest.raises(ValueError, match=r"dims \(1, 2\) but strides \(1,\)"):
        TensorDescriptor(DataType.Float, (1, 2), (1,))
    with ConvolutionDescriptor((1, 1), (1, 1), (1, 1)) as descriptor:
        descriptor.set_attribute(ConvolutionAttribute.Deterministic, 1)
        assert descriptor.attribute(ConvolutionAttribute.Deterministic) == 1
        with pytest.raises(MiopenError, match="BadParm"):
            descriptor.find_mode = 4  # type: ignore[assignment]  # reserved by MIOpen


def test_both_key_styles_name_the_same_problem() -> None:
    with convolution_case(
        Direction.FORWARD, (3, 8, 14, 30), (12, 4, 3, 5), groups=2, stride=2, padding=2
    ) as case:
        seen = observed_find(case, SEARCH)
    ((perf_key),) = {key for key, _ in seen.added}
    decoded = parse_convolution_key(perf_key)
    assert (decoded.in_dims, decoded.filter_dims) == ((14, 30), (3, 5))
    assert (decoded.batch, decoded.in_channels, decoded.out_channels) == (3, 8, 12)
    assert (decoded.groups, decoded.strides, decoded.direction) == (2, (2, 2), "F")
    ((file, texts),) = [
        (file, solvers)
        for file in read_folder(user_db_folder())
        if file.name.kind is FileKind.FIND
        for key, solvers in file.records.items()
        if _is_of(decoded, key)
    ]
    assert (file.name.architecture, file.name.compute_units) == ("gfx90a", 110)
    values = [parse_find_value(text) for text in texts.values()]
    assert all(value.algorithm.startswith("miopenConvolutionFwdAlgo") for value in values)
    assert max(value.workspace_size for value in values) > 0


def _is_of(problem: ConvolutionKey, key: str) -> bool:
    """Whether a find-db key is a problem's; fused convolutions' keys have another form."""
    try:
        return parse_convolution_key(key) == problem
    except ValueError:
        return False
