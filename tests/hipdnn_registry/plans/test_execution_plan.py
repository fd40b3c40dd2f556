"""Execution plans: variant packs, workspaces, binding, logging."""

from __future__ import annotations

import logging
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hipdnn_registry import (
    DataType,
    EngineRegistry,
    ExecutionPlan,
    InvalidInputError,
    VariantPackError,
    WorkspaceError,
)
from hipdnn_registry.graph import channels_last_order, packed_strides
from tests.graphs import new_graph, relu_graph
from tests.providers import AcmeProvider

Array = np.ndarray[Any, Any]


@pytest.fixture
def registry() -> EngineRegistry:
    return EngineRegistry([AcmeProvider()], entry_points=False)


@pytest.fixture
def plan(registry: EngineRegistry) -> ExecutionPlan:
    return registry.create_execution_plan_ext(relu_graph((4, 3)))


@pytest.fixture
def x() -> Array:
    return np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


class DLPackOnly:
    """A tensor of another library, as far as this one can tell."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def read_only(array: Array) -> Array:
    array = array.copy()
    array.flags.writeable = False
    return array


def test_buffers_by_uid_name_or_dlpack(plan: ExecutionPlan, x: Array) -> None:
    expected = np.maximum(x, 0)
    for pack_of in (
        lambda y: {"x": x, "y": y},
        lambda y: {0: x, 1: y},
        lambda y: {0: x, "y": y},
        lambda y: {0: DLPackOnly(x), 1: DLPackOnly(y)},
        lambda y: {"x": read_only(x), "y": y},
    ):
        y = np.full_like(x, np.nan)
        plan.execute(pack_of(y))
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("pack", "problem"),
    [
        (lambda x, y: {"x": x}, r"no buffer is given for tensor uid 1 \('y'\)"),
        (lambda x, y: {}, r"uid 0 \('x'\), uid 1 \('y'\)"),
        (lambda x, y: {"x": x, "y": y, "z": x}, "no tensor 'z'"),
        (lambda x, y: {"x": x, "Y": y}, "did you mean 'y'"),
        (lambda x, y: {"x": x, "y": y, 1: y}, "given twice"),
        (lambda x, y: {"x": x, "y": y, 7: y}, "no tensor 7"),
        (lambda x, y: {"x": x, 1.0: y}, r"key float 1.0, but keys are uids \(int\) or names"),
        (lambda x, y: {"x": x, True: y}, "key bool True"),
        (lambda x, y: {False: x, 1: y}, "key bool False"),
        (lambda x, y: None, "variant pack is NoneType None, but must be a mapping"),
        (lambda x, y: [x, y], "variant pack is list .*must be a mapping"),
        (lambda x, y: 3, "variant pack is int 3"),
        (lambda x, y: "xy", "variant pack is str 'xy'"),
        (lambda x, y: {"x": np.ma.masked_less(x, 0), "y": y}, "masked array"),
        (lambda x, y: {"x": x.T, "y": y}, r"shape \(3, 4\), but must have \(4, 3\)"),
        (lambda x, y: {"x": x.astype("d"), "y": y}, "dtype float64, but must have float32"),
        (lambda x, y: {"x": x.astype(">f4"), "y": y}, "dtype >f4"),
        (lambda x, y: {"x": np.asfortranarray(x), "y": y}, r"strides \(4, 16\).*\(12, 4\)"),
        (lambda x, y: {"x": x, "y": read_only(y)}, r"uid 1 \('y'\) is written.*read-only"),
        (lambda x, y: {"x": x, "y": x}, r"uid 1 \('y'\), which the plan writes, overlaps .*'x'"),
        (lambda x, y: {"x": x.tolist(), "y": y}, "must be a numpy array or a DLPack"),
        (lambda x, y: {"x": 4096, "y": y}, "int 4096"),
        (lambda x, y: {"x": DLPackOnly(x.astype(ml_dtypes.bfloat16)), "y": y}, "DLPack"),
    ],
)
def test_what_is_wrong_with_a_pack_is_named(
    plan: ExecutionPlan, x: Array, pack: Any, problem: str
) -> None:
    for act in (plan.execute, plan.bind):
        y = np.full_like(x, 7)
        with pytest.raises(VariantPackError, match=problem):
            act(pack(x, y))
        assert (y == 7).all(), "nothing is written on bad input"


def test_partial_overlap_and_interleaving(registry: EngineRegistry) -> None:
    memory = np.zeros(100, np.float32)
    graph = new_graph()
    x = graph.tensor(dims=[5, 4], strides=[8, 1], name="x")
    graph.pointwise("relu_fwd", x).set_output().set_stride([8, 1]).set_name("y")
    plan = registry.create_execution_plan_ext(graph)
    left, right = memory[:80].reshape(10, 8)[:5, :4], memory[:80].reshape(10, 8)[:5, 4:]
    plan.execute({"x": left, "y": right})  # between each other, never the same
    with pytest.raises(VariantPackError, match="overlaps"):
        plan.execute({"x": left, "y": memory[2:82].reshape(10, 8)[:5, :4]})


def test_virtual_and_constant_tensors_take_no_buffer(registry: EngineRegistry) -> None:
    graph = new_graph()
    x = graph.tensor(dims=[2], name="x")
    graph.pointwise("add", x, graph.scalar(1.0, name="one")).set_output().set_name("y")
    from hipdnn_registry.buffers.variant_pack import VariantPackChecker
    from hipdnn_registry.provider import BufferKind

    checker = VariantPackChecker(graph.validate(), BufferKind.HOST, None)
    buffers = {name: np.zeros(2, np.float32) for name in ("x", "y")}
    assert len(checker.check(buffers)) == 2
    with pytest.raises(VariantPackError, match=r"'one'\) is a constant and takes no buffer"):
        checker.check(buffers | {"one": np.ones(1, np.float32)})


def test_names_that_two_tensors_share_are_bound_by_uid() -> None:
    registry = EngineRegistry([AcmeProvider()], entry_points=False)
    plan = registry.create_execution_plan_ext(relu_graph((2,), names="aa"))
    x, y = np.array([-1, 1], np.float32), np.empty(2, np.float32)
    with pytest.raises(VariantPackError, match="bind it by uid"):
        plan.execute({"a": x, 1: y})
    plan.execute({0: x, 1: y})
    assert y.tolist() == [0, 1]


@pytest.mark.parametrize("data_type", ["half", "bfloat16", "double", "float"])
def test_layouts_and_types(registry: EngineRegistry, data_type: str) -> None:
    graph = new_graph(io=DataType(data_type))
    dims = (2, 3, 4, 1)
    x = graph.tensor(dims=dims, strides=packed_strides(dims, channels_last_order(4)), name="x")
    graph.pointwise("relu_fwd", x).set_output().set_name("y")
    plan = registry.create_execution_plan_ext(graph)
    dtype = DataType(data_type).numpy_dtype()
    nhwc = np.random.default_rng(1).standard_normal((2, 4, 1, 3)).astype(dtype)
    given, result = nhwc.transpose(0, 3, 1, 2), np.zeros_like(nhwc).transpose(0, 3, 1, 2)
    plan.execute({"x": given, "y": result})
    np.testing.assert_array_equal(result, np.maximum(given, 0))


def test_strides_of_extent_1_say_nothing(registry: EngineRegistry) -> None:
    plan = registry.create_execution_plan_ext(relu_graph((1, 3)))
    x = np.lib.stride_tricks.as_strided(np.arange(-1, 2, dtype=np.float32), (1, 3), (400, 4))
    y = np.empty((1, 3), np.float32)
    plan.execute({"x": x, "y": y})
    assert y.tolist() == [[0, 0, 1]]


def test_workspace(plan: ExecutionPlan, x: Array) -> None:
    pack = {"x": x, "y": np.empty_like(x)}
    assert plan.workspace_size == 80
    plan.execute(pack, np.empty(80, np.uint8))
    plan.execute(pack, np.empty((4, 5), np.float32))
    with pytest.raises(WorkspaceError, match="79 bytes, but the plan needs 80"):
        plan.execute(pack, np.empty(79, np.uint8))
    for bad in (
        np.empty(200, np.uint8)[::2],
        read_only(np.empty(80, np.uint8)),
        4096,
        np.empty(20, object),
        np.empty(20, "V0"),
        np.ma.zeros(80, np.uint8),
    ):
        with pytest.raises(WorkspaceError):
            plan.bind(pack, bad)


@pytest.mark.parametrize("name", ["x", "y"])
@pytest.mark.parametrize("start", [0, 79])
def test_a_workspace_shares_no_memory_with_a_buffer(
    plan: ExecutionPlan, x: Array, name: str, start: int
) -> None:
    """Of the memory that is handed over as workspace only the first 80 bytes are used."""
    memory = np.zeros(256, np.uint8)
    address = memory.ctypes.data
    shift = start + -(address + start) % 4  # 79 becomes 80: the first place without overlap
    inside = memory[shift : shift + 48].view(np.float32).reshape(4, 3)
    inside[:] = x
    pack = {"x": x, "y": np.zeros_like(x)} | {name: inside}
    for act in (plan.execute, plan.bind):
        if shift < 80:
            with pytest.raises(WorkspaceError, match=rf"overlaps the buffer .*\('{name}'\)"):
                act(pack, memory)
            np.testing.assert_array_equal(inside, x)
        else:
            act(pack, memory)


def test_a_workspace_may_lie_between_the_elements_of_a_buffer(registry: EngineRegistry) -> None:
    graph = new_graph()
    x = graph.tensor(dims=[2, 4], strides=[64, 1], name="x")
    graph.pointwise("relu_fwd", x).set_output().set_stride([4, 1]).set_name("y")
    plan = registry.create_execution_plan_ext(graph)
    memory = np.ones(128, np.float32)
    pack = {"x": memory.reshape(2, 64)[:, :4], "y": np.empty((2, 4), np.float32)}
    plan.execute(pack, memory[4:])
    with pytest.raises(WorkspaceError, match="'x'"):
        plan.execute(pack, memory[3:])


@pytest.mark.parametrize("stream", ["s", 1.5, True, -1, [], np.int64(1)])
def test_a_stream_is_a_handle(plan: ExecutionPlan, x: Array, stream: Any) -> None:
    for act in (plan.execute, plan.bind):
        with pytest.raises(InvalidInputError, match=f"stream is {type(stream).__name__} "):
            act({"x": x, "y": np.empty_like(x)}, stream=stream)


class RaisingDLPack:
    def __dlpack_device__(self) -> Any:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        raise KeyError("lost")


def test_what_a_foreign_tensor_raises_is_the_cause(plan: ExecutionPlan, x: Array) -> None:
    with pytest.raises(VariantPackError, match=r"'x'\) can't be read.*KeyError: 'lost'") as caught:
        plan.execute({"x": RaisingDLPack(), "y": np.empty_like(x)})
    assert isinstance(caught.value.__cause__, KeyError)


def test_engines_see_plain_arrays(plan: ExecutionPlan, x: Array) -> None:
    """A matrix multiplies otherwise."""

    class Named(np.ndarray[Any, Any]):
        def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("an engine saw the subclass")

    y = np.empty_like(x)
    plan.execute({"x": x.view(Named), "y": y})
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_a_bound_plan_runs_on_the_same_buffers(plan: ExecutionPlan, x: Array) -> None:
    y = np.empty_like(x)
    run = plan.bind({"x": x, "y": y})
    for scale in (1, -1):
        x *= scale
        run()
        np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_one_line_a_plan_at_info(
    registry: EngineRegistry, x: Array, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "hipdnn_registry"):
        plan = registry.create_execution_plan_ext(relu_graph((4, 3)), None, {"acme.tile": 4})
        plan.execute({"x": x, "y": np.empty_like(x)})
    created, executed = (record.getMessage() for record in caplog.records)
    for part in ("ACME_RELU", "acme 1.0", "acme.tile=4 (caller)", "built in", "ms"):
        assert part in created
    for part in ("executed ACME_RELU", "acme.tile=4 (caller)", " ms"):
        assert part in executed
