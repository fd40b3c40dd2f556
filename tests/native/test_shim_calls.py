"""The shim's calls on the real library: geometry, find modes, workspaces, streams, failures."""

from __future__ import annotations

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hipdnn_miopen_provider import native
from hipdnn_miopen_provider.native import convolution, hip
from hipdnn_miopen_provider.provider import MiopenProvider
from hipdnn_miopen_provider.shim import (
    BadParm,
    BatchNormMode,
    ConvolutionAttribute,
    ConvolutionDescriptor,
    ConvolutionMode,
    DataType,
    FindMode,
    InternalError,
    MiopenHandle,
    MiopenStatusError,
    Status,
    TensorDescriptor,
    TensorLayout,
    TuningPolicy,
    UnsupportedOp,
    convolution_backward_data,
    convolution_backward_weights,
    convolution_forward,
    convolution_forward_get_workspace_size,
    derive_bn_tensor_descriptor,
)
from hipdnn_registry import EngineRegistry, HipdnnError
from tests.native.engines import DETERMINISTIC, miopen_plan, new_registry
from tests.native.environment import run_child
from tests.native.observe import observe, stderr_to
from tests.native.shim_lane import HEIGHT, Memory, find_of, spy_on_find_modes, spy_on_policies
from tests.native.test_leaks import live_objects
from tests.shim_calls import OPERATIONS, BatchNorm, Conv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hipdnn_registry import DeviceBuffer

NONE, DB_UPDATE, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN = TuningPolicy
TUNED = [name for name in OPERATIONS if name != "batchnorm inference"]


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory() as memory:
        yield memory


@pytest.fixture
def handle() -> Iterator[MiopenHandle]:
    with MiopenHandle(registry=new_registry()) as handle:
        yield handle


def conv(width: int, memory: Memory, **options: Any) -> Conv:
    return Conv(memory, width, HEIGHT, ConvolutionDescriptor((1, 1), (1, 1), (1, 1), **options))


# Geometry


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_grouped_and_transposed_convolutions(
    transposed: bool, groups: int, memory: Memory, handle: MiopenHandle
) -> None:
    """MIOpen keys a transposed convolution's records as the plain one's other direction."""
    mode = ConvolutionMode.Transpose if transposed else ConvolutionMode.Convolution
    descriptor = ConvolutionDescriptor((1, 1), (1, 1), (1, 1), mode, group_count=groups)
    width = 500 + 2 * groups + transposed
    case = Conv(memory, width, HEIGHT, descriptor, filter_dims=(8, 8 // groups, 3, 3))
    handle.set_tuning_policy(SEARCH)
    letters = ("B", "F", "W") if transposed else ("F", "B", "W")
    for call, letter in zip(
        (case.forward, case.backward_data, case.backward_weights), letters, strict=True
    ):
        with observe() as seen:
            call(handle)
        assert seen.launches
        assert seen.added
        ends = {key.partition("x0x0x")[2] for key, _ in seen.added}
        assert ends == {f"{groups}xNCHWxFP32x{letter}"}


def test_a_transposed_convolution_with_output_padding(memory: Memory, handle: MiopenHandle) -> None:
    descriptor = ConvolutionDescriptor(
        *((1, 1), (2, 2), (1, 1), ConvolutionMode.Transpose), output_padding=(1, 0)
    )
    x_desc, w_desc = (TensorDescriptor(DataType.Float, d) for d in ((2, 8, 8, 9), (8, 4, 3, 3)))
    y_desc = TensorDescriptor(DataType.Float, descriptor.get_forward_output_dim(x_desc, w_desc))
    assert y_desc.dims == (2, 4, 16, 17)
    x, w, y = memory(x_desc), memory(w_desc), memory(y_desc)
    with observe() as seen:
        convolution_forward(handle, x_desc, x, w_desc, w, descriptor, y_desc, y)
        convolution_backward_data(handle, y_desc, y, w_desc, w, descriptor, x_desc, x)
        convolution_backward_weights(handle, y_desc, y, x_desc, x, descriptor, w_desc, w)
    assert seen.launches


@pytest.mark.parametrize(
    ("dtype", "layout", "spatial"),
    [
        (DataType.Float, TensorLayout.NCDHW, (6, 7, 8)),
        (DataType.Half, TensorLayout.NCHW, (14, 15)),
        (DataType.Half, TensorLayout.NHWC, (14, 15)),
        (DataType.BFloat16, TensorLayout.NCHW, (14, 15)),
    ],
)
def test_types_and_layouts(
    dtype: DataType,
    layout: TensorLayout,
    spatial: tuple[int, ...],
    memory: Memory,
    handle: MiopenHandle,
) -> None:
    rank = len(spatial)
    x_desc = TensorDescriptor.with_layout(dtype, layout, (2, 8, *spatial))
    w_desc = TensorDescriptor.with_layout(dtype, layout, (8, 8, *[3] * rank))
    descriptor = ConvolutionDescriptor([1] * rank, [1] * rank, [1] * rank)
    x, w, y = memory(x_desc), memory(w_desc), memory(x_desc)
    handle.set_tuning_policy(SEARCH)
    with observe() as seen:
        convolution_forward(handle, x_desc, x, w_desc, w, descriptor, x_desc, y)
    assert seen.launches


@pytest.mark.parametrize("dtype", [DataType.Float, DataType.Half])
@pytest.mark.parametrize("mode", BatchNormMode)
def test_batchnorm_types_and_modes(
    dtype: DataType, mode: BatchNormMode, memory: Memory, handle: MiopenHandle
) -> None:
    norm = BatchNorm(memory, 14, mode=mode, dtype=dtype)
    handle.set_tuning_policy(SEARCH)
    for running in (True, False):
        with observe() as seen:
            norm.training(handle, running=running, save=running)
            norm.backward(handle, saved=running)
            norm.inference(handle)
        assert seen.launches >= 3
        if mode is BatchNormMode.PerActivation:
            assert not seen.searched


@pytest.mark.parametrize("mode", BatchNormMode)
@pytest.mark.parametrize("dims", [(2, 3, 4, 5), (2, 3, 4, 5, 6)])
def test_derived_descriptors_are_miopens(mode: BatchNormMode, dims: tuple[int, ...]) -> None:
    for dtype in DataType:
        ours = derive_bn_tensor_descriptor(TensorDescriptor(dtype, dims), mode)
        with (
            native.TensorDescriptor(dtype, dims) as x,
            native.TensorDescriptor.for_batchnorm(x, mode) as its,
        ):
            assert its.read() == (ours.dtype, ours.dims, ours.strides)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("mode", ConvolutionMode)
def test_output_dims_are_miopens(mode: ConvolutionMode, groups: int) -> None:
    x_dims, w_dims = (2, 8, 11, 13), (8, 8 // groups, 3, 2)
    for pads, strides, dilations in (((1, 0), (2, 1), (1, 2)), ((0, 2), (3, 2), (2, 1))):
        more = (1, 0) if mode is ConvolutionMode.Transpose else None
        geometry: Any = (pads, strides, dilations)
        ours = ConvolutionDescriptor(
            pads, strides, dilations, mode, group_count=groups, output_padding=more
        )
        x_desc, w_desc = (TensorDescriptor(DataType.Float, d) for d in (x_dims, w_dims))
        with (
            native.TensorDescriptor(DataType.Float, x_dims) as x,
            native.TensorDescriptor(DataType.Float, w_dims) as w,
            native.ConvolutionDescriptor(
                *geometry, groups=groups, mode=mode, output_padding=more
            ) as its,
        ):
            assert its.output_dims(x, w) == ours.get_forward_output_dim(x_desc, w_desc)


def test_running_statistics_are_updated_in_place(
    memory: Memory, handle: MiopenHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MIOpen gets the caller's buffers themselves, and not copies of the previous ones."""
    norm = BatchNorm(memory, 16)
    copies: list[tuple[Any, ...]] = []

    def counted(*what: Any) -> None:
        copies.append(what)
        native.copy_on_device(*what)

    monkeypatch.setattr(native.batchnorm, "copy_on_device", counted)
    with observe():
        norm.training(handle)
        assert copies  # of the first run, on buffers of its own
        copies.clear()
        norm.training(handle)
    assert copies == []


def test_the_deterministic_attribute(memory: Memory, handle: MiopenHandle) -> None:
    case = conv(520, memory)
    case.descriptor.set_convolution_attribute(ConvolutionAttribute.Deterministic, 1)
    handle.set_tuning_policy(SEARCH)
    with observe() as seen:
        assert case.forward(handle).engine_name == DETERMINISTIC
        assert case.fused(handle).engine_name == DETERMINISTIC
    assert seen.searched


# Find modes


@pytest.mark.parametrize("mode", FindMode)
def test_each_find_mode_reaches_miopen(
    mode: FindMode, memory: Memory, handle: MiopenHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, case = spy_on_find_modes(monkeypatch), conv(530 + 2 * mode, memory)
    case.descriptor.set_convolution_find_mode(mode)
    with observe() as seen:
        size = case.workspace_size(handle)
        plan = case.find(handle)
    assert found == [mode]
    assert size >= plan.workspace_size
    assert bool(seen.launches) is (mode is not FindMode.Fast)
    with observe() as running:
        assert case.forward(handle) is plan
    assert running.launches


def test_find_modes_under_a_policy(
    memory: Memory, handle: MiopenHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Normal is honoured, the default is what searches need, the others are declined."""
    found, case = spy_on_find_modes(monkeypatch), conv(546, memory)
    handle.set_tuning_policy(SEARCH_DB_UPDATE)
    with observe() as seen:
        case.forward(handle)
        for mode in (FindMode.Normal, FindMode.DynamicHybrid):
            case.descriptor.set_convolution_find_mode(mode)
            handle.set_tuning_policy(SEARCH_DB_UPDATE)
            case.forward(handle)
    assert found == [FindMode.Normal] * 3
    assert seen.searched
    case.descriptor.set_convolution_find_mode(FindMode.Fast)
    with observe() as nothing, pytest.raises(UnsupportedOp, match="Fast .2.*skip tuning policy"):
        case.forward(handle)
    assert not nothing.launches
    handle.set_tuning_policy(NONE)
    monkeypatch.setenv("HIPDNN_FORCE_BENCHMARKING", "1")  # comes to Search, too
    with pytest.raises(UnsupportedOp, match="miopen.find_mode is 2 .Fast., but with tuning"):
        case.forward(handle)
    case.descriptor.set_convolution_find_mode(FindMode.Normal)
    with pytest.raises(UnsupportedOp, match="find mode of its own, but .*ConvBiasActivation"):
        case.fused(handle)


# Workspaces and streams


@pytest.mark.parametrize("policy", TuningPolicy)
def test_asking_for_the_workspace_does_nothing(
    policy: TuningPolicy, memory: Memory, handle: MiopenHandle
) -> None:
    case = conv(550 + 2 * policy, memory)
    handle.set_tuning_policy(policy)
    with observe() as seen:
        size = case.workspace_size(handle)
    assert (seen.launches, seen.compilations, seen.perf_db_written) == (0, 0, False)
    assert not seen.find_db_written
    assert handle.plan_count == 0
    workspace = memory.take(max(size, 1))
    with observe():
        plan = case.find(handle, workspace=(workspace.address, size))
        assert case.forward(handle, workspace=(workspace.address, size)) is plan
    assert plan.workspace_size <= size


def test_a_workspace_bounds_miopens_choice(memory: Memory, handle: MiopenHandle) -> None:
    x_desc, w_desc = (
        TensorDescriptor(DataType.Float, d) for d in ((4, 64, 28, 28), (32, 64, 5, 5))
    )
    descriptor = ConvolutionDescriptor((2, 2), (1, 1), (1, 1))
    y_desc = TensorDescriptor(DataType.Float, descriptor.get_forward_output_dim(x_desc, w_desc))
    arguments = (x_desc, memory(x_desc), w_desc, memory(w_desc), descriptor, y_desc, memory(y_desc))
    descriptor.set_convolution_find_mode(FindMode.Normal)
    size = convolution_forward_get_workspace_size(handle, w_desc, x_desc, descriptor, y_desc)
    assert size > 0
    with observe():
        plan = convolution_forward(handle, *arguments, workspace=(0, 0))
    assert plan.workspace_size == 0
    assert any("workspace limit: 0 of the" in note for note in plan.notes)


def test_work_goes_to_the_handles_stream(memory: Memory, handle: MiopenHandle) -> None:
    case = conv(570, memory)
    with native.Stream() as stream, observe():
        for given, address in (
            (stream, stream.address),
            (None, 0),
            (stream.address, stream.address),
        ):
            handle.set_stream(given)
            plan = case.forward(handle)
            assert {hip.stream_address(h.stream) for h in miopen_plan(plan).handles} == {address}
        handle.set_stream(None)
        case.forward(handle)


# Failures


def closed(buffer: DeviceBuffer) -> DeviceBuffer:
    buffer.close()
    return buffer


UNUSABLE: dict[str, tuple[Callable[[Conv], dict[str, Any]], str]] = {
    "misaligned": (
        lambda case: {"x": case.x.address + 2},
        r"'x'\) is at address .*, but must be at a multiple of .* size, 4 bytes \(float32\)",
    ),
    "missing": (lambda _: {"w": None}, "w is None, but must be a buffer"),
    "closed": (lambda case: {"w": closed(case.w)}, "'w'.* is empty or has been closed"),
    "small": (lambda case: {"x": case.bias}, "'x'.* has 32 bytes, but needs"),
    "no address": (lambda _: {"y": 0}, "'y'.* is int 0, but must be on the device"),
    "overlapping": (lambda case: {"y": case.x}, "'y'.*, which the plan writes, overlaps .*'x'"),
    "workspace": (
        lambda case: {"workspace": (case.bias.address + 8, 1 << 30)},
        "workspace is at address .*, but must be at a multiple of 16",
    ),
}


@pytest.mark.parametrize("unusable", UNUSABLE)
def test_no_search_starts_for_buffers_that_are_refused(
    unusable: str, memory: Memory, handle: MiopenHandle
) -> None:
    case = conv(900 + 2 * list(UNUSABLE).index(unusable), memory)
    handle.set_tuning_policy(SEARCH_DB_UPDATE)
    change, problem = UNUSABLE[unusable]
    right = vars(case).copy()
    wrong = change(case)
    workspace = wrong.pop("workspace", None)
    vars(case).update(wrong)
    for act in (case.find, case.forward):
        with observe() as seen, pytest.raises(BadParm, match=problem):
            act(handle, workspace=workspace)
        assert not seen.searched
        assert seen.launches == seen.compilations == 0
        assert not seen.perf_db_written
        assert not seen.find_db_written
    assert handle.plan_count == 0
    vars(case).update(right)
    if unusable == "closed":
        case.w = memory(case.w_desc)
    with observe() as seen:
        case.find(handle)
    assert seen.searched, "what was refused has not acted"


def test_a_stream_that_is_none_fails_the_call_with_one_message(
    memory: Memory, handle: MiopenHandle
) -> None:
    case = conv(572, memory)
    handle.set_stream(0x1000)  # no hipStream_t that HIP made
    with observe(), pytest.raises(InternalError) as error:
        case.forward(handle)
    assert str(error.value) == (
        "miopenConvolutionForward: miopenStatusUnknownError (7); MIOPEN_LOG_LEVEL=5 tells more "
        "[miopenStatusInternalError (5)]"
    )
    handle.set_stream(None)
    with observe():
        case.forward(handle)


@pytest.mark.parametrize("failure", ["error", "interrupt", "out of memory"])
def test_an_exception_in_the_middle_of_a_search(
    failure: str, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy is restored on MIOpen's handle, and no half-built plan is kept."""
    seen_policies = spy_on_policies(monkeypatch)
    case, registry = conv(580, memory), new_registry()
    handle = MiopenHandle(registry=registry)
    handle.set_tuning_policy(SEARCH_DB_UPDATE)
    case.workspace_size(handle)  # a handle for queries is kept
    gc.collect()
    objects, cached = live_objects(), registry.cache_info().currsize
    errors: dict[str, tuple[BaseException, type[BaseException], Status | None]] = {
        "error": (
            native.MiopenError("miopenFind", 7, "miopenStatusUnknownError", ""),
            *(InternalError, Status.InternalError),
        ),
        "interrupt": (KeyboardInterrupt(), KeyboardInterrupt, None),
        "out of memory": (
            native.HipError("hipMalloc", 2, "hipErrorOutOfMemory", "out of memory"),
            *(MiopenStatusError, Status.AllocFailed),
        ),
    }
    raised, kind, status = errors.pop(failure)
    find = convolution.find

    def interrupted(*arguments: Any, **options: Any) -> Any:
        find(*arguments, **options)
        raise raised

    monkeypatch.setattr(convolution, "find", interrupted)
    for act in (case.find, case.forward):
        with observe() as seen, pytest.raises(kind) as error:
            act(handle)
        assert seen.searched
        assert getattr(error.value, "status", None) is status
        if failure != "interrupt":
            assert "under SEARCH_DB_UPDATE (4)" in str(error.value)
            assert isinstance(error.value, HipdnnError)
    del error
    raised.__traceback__ = raised.__context__ = None
    gc.collect()
    assert seen_policies == [(SEARCH_DB_UPDATE, NONE)] * 2
    assert (handle.plan_count, registry.cache_info().currsize) == (0, cached)
    assert handle.get_tuning_policy() is SEARCH_DB_UPDATE
    if failure != "interrupt":  # pytest holds on to that one's frames
        assert live_objects() == objects
    monkeypatch.setattr(convolution, "find", find)
    with observe() as good:
        case.forward(handle)
    assert good.searched, "what failed has not acted"
    handle.close()


@pytest.fixture
def without_policies() -> EngineRegistry:
    """The real engines, of a libMIOpen whose policy calls they are told not to see."""
    provider = MiopenProvider()
    provider.engines()[0]._machine.has_policies = False  # type: ignore[attr-defined]
    return EngineRegistry([provider], entry_points=False)


@pytest.mark.parametrize("operation", TUNED)
def test_an_engine_that_does_not_advertise_the_knob_is_not_used(
    operation: str, memory: Memory, without_policies: EngineRegistry
) -> None:
    call = memory.call(operation, 590)
    with MiopenHandle(registry=without_policies) as handle:
        for policy in (DB_UPDATE, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN):
            handle.set_tuning_policy(policy)
            with observe() as seen, pytest.raises(UnsupportedOp) as error:
                call(handle)
            for part in (f"({policy})", "MIOPEN_ENGINE", "miopen.tuning_policy", "[miopenStatusUn"):
                assert part in str(error.value)
            assert error.value.status is Status.UnsupportedOp
            assert (seen.launches, seen.perf_db_written) == (0, False)
        handle.set_tuning_policy(NONE)
        with observe() as plain:
            call(handle)
        assert plain.launches


def test_without_anything_to_tune_that_engine_will_do(
    memory: Memory, without_policies: EngineRegistry
) -> None:
    norm = BatchNorm(memory, 18, mode=BatchNormMode.PerActivation)
    with MiopenHandle(registry=without_policies) as handle, observe() as seen:
        for policy in TuningPolicy:
            handle.set_tuning_policy(policy)
            norm.training(handle)
            norm.backward(handle)
            norm.inference(handle)
            BatchNorm(memory, 18).inference(handle)
    assert seen.launches
    assert not seen.perf_db_written


def test_statistics_per_activation_are_laid_out_as_the_image(memory: Memory) -> None:
    """MIOpen derives a packed NCHW descriptor, and its kernels read NHWC all the same."""
    norm = BatchNorm(memory, 18, mode=BatchNormMode.PerActivation)
    norm.x_desc, nhwc = (
        TensorDescriptor.with_layout(desc.dtype, TensorLayout.NHWC, desc.dims)
        for desc in (norm.x_desc, norm.bn_desc)
    )
    with MiopenHandle(registry=new_registry()) as handle, observe() as seen:
        with pytest.raises(UnsupportedOp, match="in the order of x's memory, NHWC"):
            norm.training(handle)
        assert not seen.launches
        norm.bn_desc = nhwc
        norm.training(handle)
        norm.backward(handle)
        norm.inference(handle)
    assert seen.launches


# Threads and processes


def test_eight_threads_on_one_handle(memory: Memory, tmp_path: Path) -> None:
    """They take turns: each plan was built under one policy, the one of its call."""
    handle, start = MiopenHandle(registry=new_registry()), threading.Barrier(8)
    calls = [memory.call(operation, 596) for operation in OPERATIONS]

    def work(number: int) -> int:
        start.wait()
        for round_ in range(4):
            handle.set_tuning_policy(TuningPolicy(1 + (number + round_) % 5))
            plan = calls[(number + round_) % len(calls)](handle)
            policies = [note for note in plan.notes if note.startswith("tuning policy: ")]
            assert len(policies) <= 1
        return round_

    with stderr_to(tmp_path / "log"), ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [3] * 8
    handle.close()
    assert handle.plan_count == 0


def test_threads_with_handles_of_their_own(memory: Memory, tmp_path: Path) -> None:
    registry, start = new_registry(), threading.Barrier(5)
    finds = {policy: find_of("forward", memory, 598) for policy in TuningPolicy}

    def work(policy: TuningPolicy) -> None:
        with MiopenHandle(registry=registry) as handle:
            handle.set_tuning_policy(policy)
            start.wait()
            for _ in range(3):
                notes = finds[policy](handle).notes
                effective = NONE if policy is DB_UPDATE else policy
                assert notes[0].startswith(f"tuning policy: {effective.name} ({effective})")

    with stderr_to(tmp_path / "log"), ThreadPoolExecutor(5) as pool:
        list(pool.map(work, TuningPolicy))


def test_closing_a_handle_releases_its_plans(memory: Memory) -> None:
    registry = new_registry(plan_cache_size=0)
    with stderr_to(Path(os.devnull)):
        registry.get_engine_configs(_any_graph())
        case = conv(600, memory)
        gc.collect()
        before = live_objects()
        with MiopenHandle(registry=registry) as handle:
            case.forward(handle)
            case.fused(handle)
        gc.collect()
    assert live_objects() == before


def _any_graph() -> Any:
    from tests.native.engines import conv_forward

    return conv_forward(600)


ELSEWHERE = """
from hipdnn_miopen_provider.native import hip
from hipdnn_miopen_provider.shim import MiopenHandle
from tests.native.engines import miopen_plan, new_registry
from tests.native.shim_lane import Memory
with Memory() as memory, MiopenHandle(registry=new_registry()) as handle:
    call = memory.call("forward", 20)
    with hip.on_device(1):
        plan = call(handle)
        assert hip.current_device() == 1
    assert plan.device_memory._ordinal == 0
    assert call(handle) is plan
print("done")
"""


def test_a_handle_stays_on_its_device(tmp_path: Path) -> None:
    settings = {"MIOPEN_EMULATOR_DEVICES": "2", "MIOPEN_LOG_LEVEL": "3"}
    done = run_child(tmp_path, ELSEWHERE, settings)
    assert done.stdout == "done\n", done.stderr[-3000:]


NOWHERE = """
from hipdnn_miopen_provider.shim import MiopenHandle, NotInitialized
try:
    MiopenHandle()
except NotInitialized as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"MIOPEN_EMULATOR_DEVICES": "0"}, "no device: HIP 7"),
        ({"HIPDNN_MIOPEN_LIBRARY": "/nowhere/libMIOpen.so"}, "/nowhere/libMIOpen.so"),
        ({"HIPDNN_REGISTRY_BLOCK": "miopen"}, "provider 'miopen' is blocked"),
    ],
)
def test_without_miopen_the_reason_is_given(
    settings: dict[str, str], reason: str, tmp_path: Path
) -> None:
    done = run_child(tmp_path, NOWHERE, settings | {"MIOPEN_LOG_LEVEL": "3"})
    assert done.stdout.startswith("miopenCreate: the registry has no MIOPEN_ENGINE: "), done.stderr
    assert reason in done.stdout
    assert done.stdout.endswith("[miopenStatusNotInitialized (1)]\n")
