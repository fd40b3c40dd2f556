"""A plan's numbers are right in every way of running it, and under every tuning policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import pytest

from hipdnn_miopen_provider import native
from hipdnn_registry import (
    DeviceBuffer,
    EngineRegistry,
    ExecutionPlan,
    Graph,
    graph_from_driver_command,
)
from hipdnn_registry.testing.arrays import storage
from hipdnn_registry.testing.inputs import poisoned_outputs, random_inputs
from tests.numbers.cases import batchnorm, convolution, fusion
from tests.numbers.checking import (
    DETERMINISTIC,
    ENGINE,
    POLICY,
    Arrays,
    assert_right,
    check,
    reference_of,
)

LINES = {
    "forward": convolution("plain", "forward", "float", "NCHW"),
    "backward data": convolution("plain", "backward data", "float", "NCHW"),
    "backward weights": convolution("plain", "backward weights", "float", "NCHW"),
    "half NHWC": convolution("plain", "forward", "half", "NHWC"),
    "fused": fusion("bias and relu", "plain", "float", "NCHW"),
    "in parts": fusion("bias and sigmoid", "plain", "half", "NHWC"),
    "training": batchnorm("training", "4x6", "float", "NCHW"),
    "inference": batchnorm("inference, inverse variance", "4x6", "float", "NCHW"),
    "backward": batchnorm("backward", "4x6", "half", "NCHW"),
}


class Prepared(NamedTuple):
    """A plan with memory on its device."""

    registry: EngineRegistry
    plan: ExecutionPlan
    buffers: dict[Any, DeviceBuffer]
    workspace: DeviceBuffer | None

    @property
    def graph(self) -> Graph:
        return self.plan.graph

    def write(self, arrays: Arrays) -> None:
        for uid, array in arrays.items():
            self.buffers[uid].write(storage(array))

    def assert_right(self, inputs: Arrays) -> None:
        """Read the outputs, compare them, and poison them for the next run."""
        outputs = poisoned_outputs(self.graph)
        for uid, array in outputs.items():
            self.buffers[uid].read(storage(array))
        assert_right(self.plan, outputs, reference_of(self.registry, self.graph, inputs))
        self.write(poisoned_outputs(self.graph))


@contextmanager
def prepared(registry: EngineRegistry, kind: str) -> Iterator[Prepared]:
    (graph,) = graph_from_driver_command(LINES[kind])
    plan = registry.create_execution_plan_ext(graph, ENGINE)
    memory = plan.device_memory
    assert memory is not None
    with ExitStack() as stack:
        buffers = {
            tensor.uid: stack.enter_context(memory.allocate(tensor.span_bytes))
            for tensor in graph.io_tensors
        }
        size = plan.workspace_size
        workspace = stack.enter_context(memory.allocate(size)) if size else None
        given = Prepared(registry, plan, buffers, workspace)
        given.write(poisoned_outputs(graph))
        yield given


def execute(p: Prepared) -> None:
    p.plan.execute(p.buffers)


def execute_in_a_given_workspace(p: Prepared) -> None:
    p.plan.execute(p.buffers, p.workspace)


def bound(p: Prepared) -> None:
    p.plan.bind(p.buffers)()


def bound_to_a_given_workspace(p: Prepared) -> None:
    p.plan.bind(p.buffers, p.workspace)()


def on_a_stream(p: Prepared) -> None:
    with native.Stream() as stream:
        p.plan.execute(p.buffers, p.workspace, stream=stream.address)
        stream.synchronize()


def on_two_streams_at_once(p: Prepared) -> None:
    """Each waits for the plan's own workspace."""
    with native.Stream() as one, native.Stream() as other:
        p.plan.execute(p.buffers, stream=one.address)
        p.plan.execute(p.buffers, stream=other.address)
        one.synchronize()
        other.synchronize()


WAYS = (
    execute,
    execute_in_a_given_workspace,
    bound,
    bound_to_a_given_workspace,
    on_a_stream,
    on_two_streams_at_once,
)


@pytest.mark.parametrize("kind", LINES)
def test_every_way_of_running(registry: EngineRegistry, kind: str) -> None:
    """One after the other on the same memory, with other inputs each time."""
    with prepared(registry, kind) as p:
        for seed, run in enumerate(WAYS):
            inputs = random_inputs(p.graph, seed)
            p.write(inputs)
            run(p)
            p.assert_right(inputs)


def test_a_binding_reads_what_its_buffers_hold_then(registry: EngineRegistry) -> None:
    with prepared(registry, "forward") as p:
        run = p.plan.bind(p.buffers, p.workspace)
        for seed in range(3):
            inputs = random_inputs(p.graph, seed)
            p.write(inputs)
            run()
            p.assert_right(inputs)


def test_there_are_workspaces(registry: EngineRegistry) -> None:
    """Else the ways above say nothing about them."""
    with prepared(registry, "inference") as p:
        assert p.workspace is not None


@pytest.mark.parametrize("engine", [ENGINE, pytest.param(DETERMINISTIC, marks=pytest.mark.slow)])
@pytest.mark.parametrize("policy", range(6))
@pytest.mark.parametrize(
    "kind",
    [
        kind if kind in {"fused", "training"} else pytest.param(kind, marks=pytest.mark.slow)
        for kind in LINES
    ],
)
def test_every_policy(registry: EngineRegistry, kind: str, policy: int, engine: str) -> None:
    (graph,) = graph_from_driver_command(LINES[kind])
    if engine == DETERMINISTIC and kind in {"training", "inference", "backward"}:
        pytest.skip("MIOpen has a deterministic attribute for convolutions only")
    knobs = registry.get_engine_config(graph, engine).knobs
    if POLICY not in knobs:
        assert kind == "inference"
        pytest.skip("nothing to tune")
    check(registry, graph, engine, {POLICY: policy})


TUNED = {
    # small, and with a solver that has parameters on many devices; gfx90a's for instance
    "forward": convolution("plain", "forward", "float", "NCHW"),
    "backward data": convolution("1x1", "backward data", "float", "NCHW"),
    "backward weights": convolution("plain", "backward weights", "float", "NCHW"),
    "fused": fusion("bias and relu", "plain", "float", "NCHW"),
    "training": batchnorm("training", "14x14", "half", "NCHW"),
    "backward": batchnorm("backward", "14x14", "float", "NHWC"),
}


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind in {"fused", "backward"} else pytest.param(kind, marks=pytest.mark.slow)
        for kind in TUNED
    ],
)
def test_a_search_and_its_record(registry: EngineRegistry, kind: str) -> None:
    """A search runs, what it chose is right, and so it is when its record is loaded again."""
    (graph,) = graph_from_driver_command(TUNED[kind])
    check(registry, graph, ENGINE, {POLICY: 5})
    searched = check(registry, graph, ENGINE, {POLICY: 3})
    again = check(registry, graph, ENGINE, {POLICY: 4})
    loaded = check(registry, graph, ENGINE, {POLICY: 1})
    if not any("perf-db: added" in note for note in searched.notes):
        pytest.skip(f"no solver of this device has parameters: {searched.notes}")
    assert any("perf-db:" in note and "nothing" not in note for note in again.notes)
    assert not any("perf-db: added" in note for note in loaded.notes)
