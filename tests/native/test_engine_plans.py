"""Plans in use: buffers, streams, threads, the cache, and what they leave behind."""

from __future__ import annotations

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hipdnn_miopen_provider import native
from hipdnn_miopen_provider.native import TuningPolicy, convolution, hip, library
from hipdnn_miopen_provider.progress import TuningProgress, TuningStage
from hipdnn_miopen_provider.provider import MiopenProvider
from hipdnn_registry import (
    EngineRegistry,
    ExecutionError,
    Graph,
    VariantPackError,
    WorkspaceError,
)
from tests.graphs import batchnorm_graph, conv_graph, relu_graph
from tests.native.engines import (
    BENCHMARKING,
    ENGINE,
    LIMIT,
    POLICY,
    TUNABLE,
    bn_inference,
    bn_training_relu,
    buffers_for,
    conv_forward,
    miopen_plan,
    new_registry,
    run,
)
from tests.native.environment import run_child
from tests.native.observe import observe, stderr_to
from tests.native.test_leaks import allocated_bytes, live_objects

if TYPE_CHECKING:
    from collections.abc import Callable


# Values that need no kernel


def test_device_memory_copies_there_and_back(registry: EngineRegistry) -> None:
    memory = registry.create_execution_plan_ext(relu_graph((2, 3)), ENGINE).device_memory
    assert memory is not None
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    back = np.zeros_like(values)
    with memory.allocate(values.nbytes) as buffer:
        buffer.write(values)
        buffer.read(back)
    memory.synchronize()
    np.testing.assert_array_equal(back, values)


@pytest.mark.parametrize("graph", [lambda: batchnorm_graph((2, 3, 4, 6)), bn_training_relu])
def test_running_statistics_are_handed_over(
    graph: Callable[[], Graph], registry: EngineRegistry
) -> None:
    """This libMIOpen has no call with separate running statistics: the previous are copied first.

    Kernels don't run here, so the copies are all that changes.
    """
    plan = registry.create_execution_plan_ext(graph(), ENGINE)
    with buffers_for(plan) as buffers:
        content: dict[int | None, Any] = {}
        for number, tensor in enumerate(plan.graph.io_tensors):
            content[tensor.uid] = np.full(tensor.dims or (), number + 1, np.float32)
            buffers[tensor.uid].write(content[tensor.uid])
        plan.execute(buffers)
        for tensor in plan.graph.io_tensors:
            source = plan.graph.find_tensor(tensor.name.replace("next", "prev")).uid
            found = np.empty_like(content[tensor.uid])
            buffers[tensor.uid].read(found)
            np.testing.assert_array_equal(found, content[source], err_msg=tensor.name)


def test_running_statistics_may_be_one_buffer(registry: EngineRegistry) -> None:
    plan = registry.create_execution_plan_ext(batchnorm_graph((2, 3, 4, 6)), ENGINE)
    by_name = {t.name: t.uid for t in plan.graph.io_tensors}
    with buffers_for(plan) as buffers, observe() as seen:
        for name in ("mean", "variance"):
            buffers[by_name[f"next_{name}"]] = buffers[by_name[f"prev_{name}"]]
        plan.execute(buffers)
        plan.bind(buffers)()
        buffers[by_name["next_mean"]] = buffers[by_name["prev_variance"]]
        with pytest.raises(VariantPackError, match="next_mean.*overlaps.*_variance"):
            plan.execute(buffers)
    assert seen.launches == 2


def test_nothing_beside_the_tensors_is_touched(registry: EngineRegistry) -> None:
    plan = registry.create_execution_plan_ext(batchnorm_graph((2, 3, 4, 6)), ENGINE)
    assert plan.device_memory is not None
    guard = 256
    sizes = {t.uid: t.span_bytes for t in plan.graph.io_tensors}
    total = sum(size + guard for size in sizes.values()) + guard
    with plan.device_memory.allocate(total) as arena:
        arena.write(np.full(total, 0x5A, np.uint8))
        addresses, at = {}, guard
        for uid, size in sizes.items():
            addresses[uid] = arena.address + at
            at += size + guard
        plan.execute(addresses)
        after = np.empty(total, np.uint8)
        arena.read(after)
    assert (after == 0x5A).all()  # the running statistics too: a copy of the same bytes


def test_building_takes_and_gives_back_a_bounded_amount_of_device_memory(
    registry: EngineRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One set of the tensors and the workspace that MIOpen asks for."""
    graph = conv_graph((4, 64, 28, 28), (32, 64, 5, 5), padding=2)
    need = registry.estimate_workspace(graph, ENGINE, {POLICY: 3})
    bound = sum(tensor.span_bytes for tensor in graph.io_tensors) + need
    least, before = [], hip.memory_info()[0]
    find = convolution.find

    def watched(*arguments: Any, **options: Any) -> Any:
        least.append(hip.memory_info()[0])
        return find(*arguments, **options)

    monkeypatch.setattr(convolution, "find", watched)
    with observe():
        plan = new_registry().create_execution_plan_ext(graph, ENGINE, {POLICY: 3})
    assert [before - free for free in least] == [bound]
    assert hip.memory_info()[0] == before
    assert plan.workspace_size <= need


# What execute demands


def test_a_workspace_that_is_too_small_is_refused_with_both_numbers(
    registry: EngineRegistry,
) -> None:
    plan = registry.create_execution_plan_ext(bn_inference(), ENGINE)
    assert plan.workspace_size == 32
    assert plan.device_memory is not None
    with (
        buffers_for(plan) as buffers,
        plan.device_memory.allocate(16) as small,
        pytest.raises(WorkspaceError, match="workspace has 16 bytes, but the plan needs 32"),
    ):
        plan.execute(buffers, small)


def test_host_arrays_are_never_copied_to_the_device(registry: EngineRegistry) -> None:
    plan = registry.create_execution_plan_ext(relu_graph((2, 3)), ENGINE)
    with pytest.raises(VariantPackError, match="must be on the device"):
        plan.execute({"x": np.zeros((2, 3), np.float32), "y": np.zeros((2, 3), np.float32)})


def test_equal_graphs_share_a_plan_under_their_own_uids(registry: EngineRegistry) -> None:
    first = registry.create_execution_plan_ext(relu_graph((2, 4)), ENGINE)
    second = registry.create_execution_plan_ext(relu_graph((2, 4), 70, "pq"), ENGINE)
    assert second.from_cache
    assert miopen_plan(first) is miopen_plan(second)
    with buffers_for(second) as buffers, observe() as seen:
        assert set(buffers) == {70, 71}
        second.execute(buffers)
        second.execute({"p": buffers[70], "q": buffers[71]})
    assert seen.launches == 2


def test_each_execution_goes_to_its_own_stream(registry: EngineRegistry) -> None:
    plan = registry.create_execution_plan_ext(bn_inference(), ENGINE)
    (handle,) = miopen_plan(plan).handles
    with native.Stream() as one, native.Stream() as other, buffers_for(plan) as buffers:
        for stream in (one.address, other.address, None, one.address):
            plan.execute(buffers, stream=stream)
            assert hip.stream_address(handle.stream) == (stream or 0)
        bound = plan.bind(buffers, stream=other.address)
        plan.execute(buffers)
        bound()
        assert hip.stream_address(handle.stream) == other.address
        plan.execute(buffers)


# Threads, processes


def test_eight_threads_build_and_execute_under_mixed_policies(tmp_path: Path) -> None:
    registry = new_registry()
    graphs = [make(80) for make in TUNABLE.values()]
    start = threading.Barrier(8)

    def work(number: int) -> int:
        start.wait()
        done = 0
        for round_ in range(3):
            graph = graphs[(number + round_) % len(graphs)]
            policy = 1 + (number + round_) % 5
            plan = registry.create_execution_plan_ext(graph, ENGINE, {POLICY: policy})
            assert plan.notes[0].startswith(f"tuning policy: {TuningPolicy(policy).name}")
            run(plan)
            done += 1
        return done

    with stderr_to(tmp_path / "log"), ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [3] * 8


def test_one_plan_in_eight_threads_on_streams_of_their_own(registry: EngineRegistry) -> None:
    plan = registry.create_execution_plan_ext(bn_inference(18), ENGINE)

    def work(_: int) -> None:
        with native.Stream() as stream, buffers_for(plan) as buffers:
            bound = plan.bind(buffers, stream=stream.address)
            for _ in range(50):
                bound()
            stream.synchronize()

    with stderr_to(Path(os.devnull)), ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


# What is left


@pytest.mark.parametrize(
    ("make", "policy", "times"),
    [
        (bn_inference, None, 1000),
        (conv_forward, 1, 100),
        pytest.param(conv_forward, 1, 1000, marks=pytest.mark.slow),
        pytest.param(TUNABLE["fused"], 1, 1000, marks=pytest.mark.slow),
        pytest.param(TUNABLE["batchnorm training"], 1, 1000, marks=pytest.mark.slow),
    ],
)
def test_many_plans_leave_nothing(
    make: Callable[[int], Graph], policy: int | None, times: int
) -> None:
    registry, graph = new_registry(plan_cache_size=0), make(26)
    settings = {} if policy is None else {POLICY: policy}

    def build(count: int) -> None:
        with stderr_to(Path(os.devnull)):
            for _ in range(count):
                plan = registry.create_execution_plan_ext(graph, ENGINE, settings)
                run(plan)
        del plan
        gc.collect()

    build(20)
    objects, allocated, free = live_objects(), allocated_bytes(), hip.memory_info()[0]
    build(times)
    assert live_objects() == objects
    assert hip.memory_info()[0] == free
    assert allocated_bytes() - allocated < 100 * times


def test_a_plan_that_is_dropped_is_released_without_the_collector() -> None:
    """Device memory does not make Python's collector run."""
    registry = new_registry(plan_cache_size=0)
    with stderr_to(Path(os.devnull)):
        registry.get_engine_configs(bn_inference(44))  # a handle for queries is kept
        before = live_objects()
        gc.disable()
        try:
            plan = registry.create_execution_plan_ext(bn_inference(44), ENGINE)
            run(plan)
            assert live_objects()["device memory"] == before["device memory"] + 1  # its workspace
            with buffers_for(plan) as buffers:
                bound = plan.bind(buffers)
                del plan
                bound()
                del bound
            assert live_objects()["device memory"] == before["device memory"]
            assert live_objects()["events"] == before["events"]
        finally:
            gc.enable()


def calls_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of all calls of the libraries from now on."""
    names: list[str] = []
    miopen, of_miopen, of_hip = library.load(), library.load().call, hip.call

    def miopen_call(name: str, *arguments: Any) -> None:
        names.append(name)
        of_miopen(name, *arguments)

    def hip_call(name: str, *arguments: Any) -> Any:
        names.append(name)
        return of_hip(name, *arguments)

    monkeypatch.setattr(miopen, "call", miopen_call)
    monkeypatch.setattr(hip, "call", hip_call)
    return names


def test_plans_of_a_graph_take_over_its_descriptors_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The query makes them; a second plan that lives beside the first needs its own."""
    registry, graph = new_registry(plan_cache_size=0), conv_forward(45)
    settings = {POLICY: TuningPolicy.NONE.value}
    registry.get_engine_configs(graph)
    made = "miopenCreateTensorDescriptor"
    with stderr_to(Path(os.devnull)):
        calls = calls_of(monkeypatch)
        first = registry.create_execution_plan_ext(graph, ENGINE, settings)
        assert calls.count(made) == 0
        second = registry.create_execution_plan_ext(graph, ENGINE, settings)
        assert calls.count(made) == 3
        run(first)
        run(second)
        del first, second
        assert calls.count("miopenDestroyTensorDescriptor") == 3
        calls.clear()
        run(registry.create_execution_plan_ext(graph, ENGINE, settings))
    assert calls.count(made) == 0
    del registry
    gc.collect()
    assert calls.count("miopenDestroyTensorDescriptor") == 12  # 2 engines, 2 find modes, x, w and y


def test_the_device_is_waited_for_before_handles_that_were_used_are_destroyed(
    registry: EngineRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stderr_to(Path(os.devnull)):
        plans = [registry.create_execution_plan_ext(conv_forward(46), ENGINE) for _ in range(2)]
        registry.clear()
        run(plans[0])
        calls = calls_of(monkeypatch)
        del plans
    assert calls.count("miopenDestroy") == 1
    assert calls[: calls.index("miopenDestroy")] == ["hipDeviceSynchronize"]


def test_a_failed_build_leaves_nothing(
    registry: EngineRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a handle, not a buffer, not a cache entry; and says what is in the perf-db."""
    graph = conv_forward(28)
    gc.collect()
    objects, cached = live_objects(), registry.cache_info().currsize
    find = convolution.find

    def interrupted(*arguments: Any, **options: Any) -> Any:
        find(*arguments, **options)
        raise failure

    monkeypatch.setattr(convolution, "find", interrupted)
    refused = native.MiopenError("miopenFind", 7, "miopenStatusUnknownError", "")
    for failure in (refused, KeyboardInterrupt()):
        expected = ExecutionError if failure is refused else KeyboardInterrupt
        with observe() as seen, pytest.raises(expected) as error:
            registry.create_execution_plan_ext(graph, ENGINE, {POLICY: 4})
        assert seen.searched
        text = str(error.value) if failure is refused else error.value.__notes__[0]
        word = "added" if seen.added else "rewritten"
        assert f"MIOpen left the user's perf-db with {word} ConvHipImplicitGemm" in text
        if failure is refused:
            assert text.startswith("convolution of graph")
            assert "under SEARCH_DB_UPDATE (4): miopenFind: miopenStatusUnknownError (7)" in text
    del error
    gc.collect()
    assert live_objects() == objects
    assert registry.cache_info().currsize == cached
    monkeypatch.undo()
    with observe():
        run(registry.create_execution_plan_ext(graph, ENGINE, {POLICY: 4}))


def test_too_small_a_limit_is_one_clear_error(
    registry: EngineRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MIOpen returns an empty list where no solver fits."""
    monkeypatch.setattr(convolution, "find", lambda *_, **__: [])
    with observe(), pytest.raises(ExecutionError, match="no solver within 0 bytes.*raise global"):
        new_registry().create_execution_plan_ext(conv_forward(30), ENGINE, {LIMIT: 0})


EXITS = """
from tests.native.engines import *
registry = new_registry()
for graph in (conv_forward(), bn_inference(), conv_bias_relu()):
    run(registry.create_execution_plan_ext(graph, ENGINE))
"""


def test_a_process_may_end_with_plans_in_the_cache(tmp_path: Path) -> None:
    done = run_child(tmp_path, EXITS, {"MIOPEN_LOG_LEVEL": "3"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_forked_child_leaves_its_parents_plans_alone(registry: EngineRegistry) -> None:
    with stderr_to(Path(os.devnull)):
        plan = registry.create_execution_plan_ext(conv_forward(34), ENGINE)
    before = live_objects()
    child = os.fork()
    if child == 0:
        try:
            registry.clear()
            del plan
            gc.collect()
        finally:
            os._exit(0 if live_objects() == before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    run(plan)


# Progress


def test_progress_is_logged_and_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hipdnn_miopen_provider.progress.HEARTBEAT_SECONDS", 0.02)
    told: list[TuningProgress] = []
    provider = MiopenProvider(on_progress=told.append)
    registry = EngineRegistry([provider], entry_points=False)
    with caplog.at_level("INFO", logger="hipdnn_registry.miopen"), observe():
        registry.create_execution_plan_ext(conv_forward(32), ENGINE, {BENCHMARKING: 1})
        registry.create_execution_plan_ext(conv_forward(32), ENGINE, {POLICY: 1})
    assert told[0].stage is TuningStage.STARTED
    assert told[-1].stage is TuningStage.ENDED
    assert {progress.stage for progress in told[1:-1]} == {TuningStage.RUNNING}
    assert "user perf-db: added ConvHipImplicitGemm" in told[-1].detail
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert lines[0].startswith("tuning started: convolution of graph ")
    assert lines[0].endswith("under SEARCH (3)")
    assert lines[1].startswith("tuning ended after ")
