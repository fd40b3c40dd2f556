"""Plans on a device, whose memory is here the host's behind bare addresses."""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

from hipdnn_registry import (
    BufferKind,
    CompiledPlan,
    DeviceBuffer,
    DeviceMemory,
    EngineOffer,
    EngineRegistry,
    ExecutionPlan,
    Graph,
    InvalidInputError,
    Resolution,
    VariantPackError,
    WorkspaceError,
)
from hipdnn_registry.buffers.dlpack import _DLManagedTensorVersioned, _DLTensor, _is_valid, _pointer
from hipdnn_registry.graph import PointwiseNode
from tests.graphs import relu_graph
from tests.providers import AcmeProvider, ReluEngine

Array = np.ndarray[Any, Any]
ROCM = 10  # kDLROCM


class HostBuffer(DeviceBuffer):
    def __init__(self, size: int) -> None:
        self.memory = np.zeros(size, np.uint8)
        self.address, self.size = self.memory.ctypes.data, size

    def write(self, array: Array) -> None:
        self.memory[: array.nbytes] = array.reshape(-1).view(np.uint8)

    def read(self, array: Array) -> None:
        array.reshape(-1).view(np.uint8)[:] = self.memory[: array.nbytes]

    def close(self) -> None:
        self.memory = self.memory[:0]
        self.address = self.size = 0


class HostMemory(DeviceMemory):
    def allocate(self, size: int) -> HostBuffer:
        return HostBuffer(size)

    def synchronize(self) -> None:
        pass


class DevicePlan(CompiledPlan):
    buffer_kind: ClassVar[BufferKind] = BufferKind.DEVICE
    device_memory = HostMemory()
    workspace_size = 16

    def __init__(self, graph: Graph) -> None:
        (node,) = graph.nodes
        assert isinstance(node, PointwiseNode)
        self.x, self.y = node.inputs.in_0_tensor_uid, node.outputs.out_0_tensor_uid
        self.count = graph.tensors[self.x].element_count
        self.streams: list[int | None] = []

    def execute(
        self, buffers: Mapping[int, Any], workspace: Any | None, stream: int | None
    ) -> None:
        self.streams.append(stream)
        x, y = (
            np.ctypeslib.as_array((ctypes.c_float * self.count).from_address(buffers[uid]))
            for uid in (self.x, self.y)
        )
        np.maximum(x, 0, out=y)


class DeviceEngine(ReluEngine):
    def query(self, graph: Graph) -> EngineOffer:
        return EngineOffer(self.knobs, workspace_size=640, buffer_kind=BufferKind.DEVICE)

    def build(self, graph: Graph, resolution: Resolution) -> CompiledPlan:
        return DevicePlan(graph)


class OnDevice:
    """A DLPack object that says it is in the memory of a ROCm device."""

    def __init__(self, array: Array, *, versioned: bool) -> None:
        self.array, self.versioned = array, versioned

    def __dlpack_device__(self) -> tuple[int, int]:
        return ROCM, 0

    def __dlpack__(self) -> Any:
        version = (1, 0) if self.versioned else None
        capsule: Any = self.array.__dlpack__(max_version=version)
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        assert _is_valid(capsule, name)
        at = _pointer(capsule, name)
        tensor = (
            _DLManagedTensorVersioned.from_address(at).tensor
            if self.versioned
            else _DLTensor.from_address(at)
        )
        tensor.device_type = ROCM
        return capsule


@pytest.fixture
def plan() -> ExecutionPlan:
    registry = EngineRegistry([AcmeProvider(DeviceEngine())], entry_points=False)
    return registry.create_execution_plan_ext(relu_graph((2, 3)))


@pytest.fixture
def x() -> Array:
    return np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def test_through_device_buffers(plan: ExecutionPlan, x: Array) -> None:
    assert plan.buffer_kind is BufferKind.DEVICE
    assert plan.device_memory is not None
    memory, y = plan.device_memory, np.zeros_like(x)
    with memory.allocate(24) as source, memory.allocate(24) as target:
        source.write(x)
        plan.execute({"x": source, "y": target.address}, memory.allocate(16), stream=77)
        memory.synchronize()
        target.read(y)
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_the_same_buffers_again_are_known_and_changed_ones_are_checked(
    plan: ExecutionPlan, x: Array
) -> None:
    a, b, c, small = HostBuffer(x.nbytes), HostBuffer(x.nbytes), HostBuffer(x.nbytes), HostBuffer(4)
    workspace = HostBuffer(16)
    a.write(x)
    out = np.empty_like(x)
    pack = {"x": a, "y": b}
    for _ in range(3):
        b.write(np.full_like(x, 9))
        plan.execute(pack, workspace)
        b.read(out)
        np.testing.assert_array_equal(out, np.maximum(x, 0))
    pack["y"] = c
    plan.execute(pack, workspace)
    c.read(out)
    np.testing.assert_array_equal(out, np.maximum(x, 0))
    for wrong, problem in (
        ({"x": a, "y": small}, "has 4 bytes"),
        ({"x": a}, "no buffer is given"),
        ({"x": a, "y": a}, "overlaps"),
        ({"x": a, "y": c, "z": b}, "no tensor 'z'"),
        ({"x": a, "y": None}, "must be on the device"),
    ):
        plan.execute(pack, workspace)
        with pytest.raises(VariantPackError, match=problem):
            plan.execute(wrong, workspace)
    plan.execute(pack, workspace)
    with pytest.raises(WorkspaceError, match="4 bytes"):
        plan.execute(pack, small)
    for stream in (-1, 1 << 64):
        with pytest.raises(InvalidInputError, match=f"stream is int {stream}, but .*of 64 bits"):
            plan.execute(pack, workspace, stream=stream)
    workspace.close()
    with pytest.raises(WorkspaceError, match="empty or has been closed, but the plan needs 16"):
        plan.execute(pack, workspace)
    c.close()
    for act in (plan.execute, plan.bind):
        with pytest.raises(VariantPackError, match=r"'y'.* is a DeviceBuffer that .* been closed"):
            act(pack)


def test_a_plan_keeps_no_buffer_alive_that_it_knows(plan: ExecutionPlan, x: Array) -> None:
    pack = {"x": HostBuffer(x.nbytes), "y": HostBuffer(x.nbytes)}
    plan.execute(pack)
    kept = [weakref.ref(buffer) for buffer in pack.values()]
    pack.clear()
    assert [ref() for ref in kept] == [None, None]
    with pytest.raises(VariantPackError, match="must be on the device"):
        plan.execute({"x": None, "y": None})


def test_a_workspace_that_has_gone_is_not_given_again(plan: ExecutionPlan, x: Array) -> None:
    pack = {"x": HostBuffer(x.nbytes), "y": HostBuffer(x.nbytes)}
    given: list[Any] = []
    compiled = plan._compiled
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            compiled, "execute", lambda buffers, workspace, stream: given.append(workspace)
        )
        workspace = HostBuffer(16)
        plan.execute(pack, workspace)
        del workspace
        plan.execute(pack)
    assert given[0]
    assert given[1] is None


@pytest.mark.parametrize("versioned", [False, True])
def test_through_dlpack_on_the_device(plan: ExecutionPlan, x: Array, versioned: bool) -> None:
    y = np.zeros_like(x)
    pack = {"x": OnDevice(x, versioned=versioned), "y": OnDevice(y, versioned=versioned)}
    plan.execute(pack)
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_a_bound_plan_keeps_its_buffers(plan: ExecutionPlan, x: Array) -> None:
    run = plan.bind({"x": OnDevice(x.copy(), versioned=True), "y": OnDevice(x * 0, versioned=True)})
    gc.collect()
    run()


def test_a_bound_plan_keeps_its_workspace(plan: ExecutionPlan) -> None:
    workspace = HostBuffer(16)
    alive = weakref.ref(workspace)
    run = plan.bind({"x": HostBuffer(24), "y": HostBuffer(24)}, workspace)
    del workspace
    gc.collect()
    assert alive() is not None
    run()


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (lambda x: x, "must be on the device.*nothing is copied"),
        (lambda x: 0, "int 0"),
        (lambda x: -5, "int -5"),
        (lambda x: 1 << 64, f"int {1 << 64}, but must be .* an address of 64 bits"),
        (lambda x: True, "bool True"),
        (lambda x: HostBuffer(23), "has 23 bytes, but needs 24"),
        (lambda x: OnDevice(x.T, versioned=True), "has shape"),
        (lambda x: OnDevice(x.astype("f8"), versioned=True), "has dtype float64"),
        (lambda x: OnDevice(x.astype("i4"), versioned=False), "has dtype int32"),
        (lambda x: OnDevice(np.asfortranarray(x), versioned=True), "has strides"),
    ],
)
def test_what_is_wrong_is_named(plan: ExecutionPlan, x: Array, wrong: Any, problem: str) -> None:
    with pytest.raises(VariantPackError, match=rf"uid 0 \('x'\).*{problem}"):
        plan.execute({"x": wrong(x), "y": HostBuffer(24)})


@pytest.mark.parametrize("shift", [1, 2, 3])
@pytest.mark.parametrize("kind", ["address", "DeviceBuffer", "DLPack"])
def test_a_misaligned_address_is_refused(plan: ExecutionPlan, kind: str, shift: int) -> None:
    buffer, y = HostBuffer(32), HostBuffer(24)
    address = buffer.address + shift
    wrong: Any = address
    if kind == "DLPack":
        floats = buffer.memory[shift : shift + 24].view(np.float32)
        wrong = OnDevice(floats.reshape(2, 3), versioned=True)
    elif kind == "DeviceBuffer":
        wrong, buffer.address = buffer, address
    problem = rf"'x'\) is at address {address:#x}, but .*elements' size, 4 bytes \(float32\)"
    for act in (plan.execute, plan.bind):
        with pytest.raises(VariantPackError, match=problem):
            act({"x": wrong, "y": y})


def test_overlapping_ranges(plan: ExecutionPlan) -> None:
    buffer = HostBuffer(48)
    plan.execute({"x": buffer.address, "y": buffer.address + 24})
    for shift in (0, 4, 20):
        with pytest.raises(VariantPackError, match="overlaps"):
            plan.execute({"x": buffer.address, "y": buffer.address + shift})


def test_workspaces(plan: ExecutionPlan) -> None:
    pack = {"x": HostBuffer(24), "y": HostBuffer(24)}
    for good in (HostBuffer(16), (4096, 16), 4096):
        plan.execute(pack, good)
    for bad in (HostBuffer(15), (4096, 15)):
        with pytest.raises(WorkspaceError, match="15 bytes, but the plan needs 16"):
            plan.execute(pack, bad)
    for wrong in (np.zeros(16, np.uint8), (4096, 16, 1), (4096, "16"), True, 0, 1.5, 1 << 64):
        with pytest.raises(WorkspaceError, match="must be a device address"):
            plan.execute(pack, wrong)


@pytest.mark.parametrize("kind", ["address", "pair", "DeviceBuffer"])
@pytest.mark.parametrize("shift", [1, 4, 8, 15])
def test_a_misaligned_workspace_is_refused(plan: ExecutionPlan, kind: str, shift: int) -> None:
    memory, pack = HostBuffer(64), {"x": HostBuffer(24), "y": HostBuffer(24)}
    memory.address += shift
    wrong = {"address": memory.address, "pair": (memory.address, 48), "DeviceBuffer": memory}[kind]
    problem = f"workspace is at address {memory.address:#x}, but must be at a multiple of 16 bytes"
    for act in (plan.execute, plan.bind):
        with pytest.raises(WorkspaceError, match=problem):
            act(pack, wrong)


class ForeignStream:
    """As hip-python's ihipStream_t."""

    def __int__(self) -> int:
        return 4711


def test_a_stream_may_be_what_stands_for_its_handle(plan: ExecutionPlan) -> None:
    pack = {"x": HostBuffer(24), "y": HostBuffer(24)}
    plan.execute(pack, stream=ForeignStream())
    plan.execute(pack, stream=4711)
    plan.bind(pack, stream=ForeignStream())()
    compiled = plan._compiled
    assert isinstance(compiled, DevicePlan)
    assert compiled.streams == [4711, 4711, 4711]
    for wrong in (np.int64(1), np.zeros(1), 1.0, "1", object()):
        with pytest.raises(InvalidInputError, match="stream is .*an object that int"):
            plan.execute(pack, stream=wrong)  # type: ignore[arg-type]


def test_equal_is_not_the_same(plan: ExecutionPlan) -> None:
    """A pack that passed the checks vouches for no other that only compares equal to it."""
    x, y = (plan.graph.find_tensor(name).uid for name in "xy")
    assert {x, y} == {0, 1}
    buffers = {0: HostBuffer(24), 1: HostBuffer(24)}
    for _ in range(2):
        plan.execute(buffers, stream=0)
        for stream in (False, 0.0):
            with pytest.raises(InvalidInputError, match="must be None or a stream's handle"):
                plan.execute(buffers, stream=stream)
        with pytest.raises(VariantPackError, match="False"):
            plan.execute({False: buffers[0], True: buffers[1]}, stream=0)


@pytest.mark.parametrize("name", ["x", "y"])
def test_a_workspace_overlaps_no_buffer(plan: ExecutionPlan, name: str) -> None:
    """Whatever the workspace's size: the plan uses 16 bytes of it."""
    buffer = HostBuffer(64)
    pack = {"x": HostBuffer(24), "y": HostBuffer(24)} | {name: buffer.address + 16}
    for good in (buffer, buffer.address, (buffer.address, 64), buffer.address + 48):
        plan.execute(pack, good)
    for bad in (buffer.address + 16, (buffer.address + 32, 16)):
        for act in (plan.execute, plan.bind):
            with pytest.raises(WorkspaceError, match=rf"overlaps the buffer .*\('{name}'\)"):
                act(pack, bad)


class Raising:
    def __init__(self, device: tuple[int, int] | None) -> None:
        self.device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.device is None:
            raise KeyError("no device")
        return self.device

    def __dlpack__(self) -> Any:
        raise LookupError("no tensor")


@pytest.mark.parametrize("value", [Raising(None), Raising((ROCM, 0))])
def test_what_a_foreign_tensor_raises_is_the_cause(plan: ExecutionPlan, value: Raising) -> None:
    with pytest.raises(VariantPackError, match=r"'x'\) can't be read.*Error: '?no ") as caught:
        plan.execute({"x": value, "y": HostBuffer(24)})
    assert isinstance(caught.value.__cause__, LookupError)
