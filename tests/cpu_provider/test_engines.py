"""The engines through the registry: whole graphs, knobs, memory, types, threads."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from hipdnn_cpu_provider.storage import plan_storage
from hipdnn_registry import (
    ConvMode,
    DataType,
    EngineRegistry,
    Graph,
    KnobError,
    NoEngineError,
    TensorAttributes,
    VariantPackError,
    graph_from_driver_command,
)
from tests.graphs import batchnorm_graph, conv_graph, fused_graph, new_graph, relu_graph

Array = np.ndarray[Any, Any]
GEMM, REFERENCE = "CPU_GEMM_ENGINE", "CPU_REFERENCE_ENGINE"
ENGINES = (GEMM, REFERENCE)
LIMIT, BENCHMARKING = "global.workspace_size_limit", "global.benchmarking"

# Results differ by rounding: of the arithmetic, and of the type that results are kept in.
TOLERANCE = {"float": 2e-5, "double": 1e-13, "half": 2e-3, "bfloat16": 1.6e-2}


@pytest.fixture(scope="module")
def registry() -> EngineRegistry:
    return EngineRegistry(allow=["cpu"])


def buffers_for(graph: Graph, seed: int = 0) -> dict[int, Array]:
    """Random inputs, variances positive, and outputs filled with NaN; in the graph's layouts."""
    random = np.random.default_rng(seed)
    buffers = {}
    for tensor in graph.io_tensors:
        assert tensor.uid is not None
        assert tensor.dims is not None
        assert tensor.strides is not None
        dtype = tensor.data_type.numpy_dtype()
        memory = np.full(tensor.span_bytes // dtype.itemsize, np.nan, dtype)
        strides = tuple(stride * dtype.itemsize for stride in tensor.strides)
        array = np.lib.stride_tricks.as_strided(memory, tensor.dims, strides)
        if tensor.uid not in graph.output_uids:
            array[...] = random.standard_normal(tensor.dims)
            if "var" in tensor.name:
                array[...] = np.abs(array) + 0.5
        buffers[tensor.uid] = array
    return buffers


def run(
    registry: EngineRegistry, graph: Graph, engine: str, knobs: Any = None, seed: int = 0
) -> dict[str, Array]:
    buffers = buffers_for(graph, seed)
    registry.create_execution_plan_ext(graph, engine, knobs, strict=True).execute(buffers)
    return {graph.tensors[uid].name: buffers[uid] for uid in buffers if uid in graph.output_uids}


def assert_engines_agree(
    registry: EngineRegistry, graph: Graph, knobs: Any = None, tolerance: float | None = None
) -> None:
    exact, fast = run(registry, graph, REFERENCE), run(registry, graph, GEMM, knobs)
    for name, expected in exact.items():
        expected64, got64 = expected.astype(np.float64), fast[name].astype(np.float64)
        assert np.isfinite(expected64).all()
        limit = tolerance or max(TOLERANCE[t.data_type] for t in graph.io_tensors)
        scale = max(float(np.abs(expected64).max()), 1e-3)
        assert np.abs(got64 - expected64).max() <= limit * scale, name


SMALL_LINES = [
    "conv -n 1 -c 1 -H 3 -W 3 -k 2 -y 2 -x 2 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 1 -b 1",
    "convfp16 -n 2 -c 64 -H 14 -W 14 -k 64 -y 3 -x 3 -p 1 -q 1 -g 32 -F 0",
    "convfp16 -n 2 -c 32 -H 19 -W 19 -k 64 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -F 2",
    "convbfp16 -n 1 -c 64 -H 1 -W 300 -k 64 -y 1 -x 7 -p 0 -q 9 -u 1 -v 1 -l 1 -j 3 -F 0",
    (
        "convbfp16 -n 2 -c 224 -H 1 -W 1 -k 8 -y 1 -x 1 -p 0 -q 0 --in_layout NHWC --fil_layout"
        " NHWC --out_layout NHWC -F 0"
    ),
    (
        "convfp16 -n 1 -c 8 --in_d 9 -H 10 -W 12 -k 4 --fil_d 3 -y 3 -x 3 --pad_d 0 -p 1 -q 1"
        " --conv_stride_d 1 --dilation_d 1 --spatial_dim 3 -F 0"
    ),
    "conv -x 1 -y 7 -W 17 -H 17 -c 16 -n 4 -k 16 -p 3 -q 0 -F 0",
    "conv -m trans -n 2 -c 6 -H 5 -W 7 -k 4 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -g 2 -F 0",
    "CBAInfer -F 4 -n 4 -c 3 -H 16 -W 16 -k 8 -y 3 -x 3 -p 1 -q 1",
    "CBAInfer -F 0 -n 2 -c 3 -H 8 -W 8 -k 8 -y 3 -x 3 -p 1 -q 1",
    "bnorm -n 5 -c 33 -H 27 -W 1 -m 1 --forw 2 -b 0 -s 1",
    "bnorm -n 4 -c 32 -H 30 -W 1 -m 1 --forw 1 -b 0 -s 1 -r 1",
    "bnorm -n 4 -c 8 -H 6 -W 6 -D 6 -m 1 --forw 0 -b 1 -s 1 -r 1 --layout NDHWC",
    "bnormfp16 -n 8 -c 16 -H 12 -W 12 -m 0 --forw 1 -b 0 -s 1 -r 1",
    "bnormfp16 -n 8 -c 16 -H 10 -W 10 -m 1 --forw 0 -b 1 -r 1 -V 1",
]


@pytest.mark.parametrize("line", SMALL_LINES)
def test_driver_lines_agree_with_the_reference(registry: EngineRegistry, line: str) -> None:
    for graph in graph_from_driver_command(line):
        assert_engines_agree(registry, graph)


@pytest.mark.parametrize("io", ["float", "half", "bfloat16", "double"])
@pytest.mark.parametrize("mode", list(ConvMode)[1:])
def test_types_and_modes(registry: EngineRegistry, io: str, mode: ConvMode) -> None:
    graph = new_graph(io=DataType(io))
    x = graph.tensor(dims=[2, 6, 9, 7], name="x")
    w = graph.tensor(dims=[8, 3, 3, 2], name="w")
    y = graph.conv_fprop(
        x, w, pre_padding=[1, 0], post_padding=[2, 1], stride=[2, 1], conv_mode=mode
    )
    y.set_output().set_name("y")
    assert_engines_agree(registry, graph)


@pytest.mark.parametrize("engine", ENGINES)
def test_conv_bias_relu_against_onnxruntime(registry: EngineRegistry, engine: str) -> None:
    graph = new_graph()
    x = graph.tensor(dims=[2, 4, 9, 9], name="x")
    w, bias = graph.tensor(dims=[6, 4, 3, 3], name="w"), graph.tensor(dims=[1, 6, 1, 1], name="b")
    y = graph.pointwise("add", graph.conv_fprop(x, w, padding=2, stride=2, dilation=2), bias)
    graph.pointwise("relu_fwd", y).set_output().set_name("y")
    buffers = buffers_for(graph)
    names = {graph.tensors[uid].name: array for uid, array in buffers.items()}
    registry.create_execution_plan_ext(graph, engine).execute(buffers)
    conv = helper.make_node(
        "Conv", ["x", "w", "b"], ["c"], pads=[2] * 4, strides=[2] * 2, dilations=[2] * 2
    )
    model = helper.make_model(
        helper.make_graph(
            [conv, helper.make_node("Relu", ["c"], ["y"])],
            "peer",
            [
                helper.make_tensor_value_info(n, TensorProto.FLOAT, names[n].shape)
                for n in ("x", "w")
            ]
            + [helper.make_tensor_value_info("b", TensorProto.FLOAT, [6])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, names["y"].shape)],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    given = {"x": names["x"], "w": names["w"], "b": names["b"].reshape(6)}
    (expected,) = session.run(None, given)
    np.testing.assert_allclose(names["y"], expected, atol=2e-5)


def test_a_chain_runs_in_the_output_alone(registry: EngineRegistry) -> None:
    graph = fused_graph().validate()
    storage = plan_storage(graph)
    assert (storage.places, storage.size) == ({}, 0)
    (output,) = graph.output_uids & {t.uid for t in graph.io_tensors}
    assert set(storage.aliases.values()) == {output}
    assert_engines_agree(registry, graph)


def test_dead_tensors_make_room() -> None:
    graph = new_graph()
    x = graph.tensor(dims=[64], name="x")
    y = x
    for _ in range(6):  # types alternate, so no operation can write over its operand
        y = graph.pointwise("neg", y).set_data_type(DataType.DOUBLE)
        y = graph.pointwise("neg", y)
    y.set_output()
    storage = plan_storage(graph.validate())
    assert len(storage.places) == 11
    assert storage.size == 64 * 8 + 64 * 4


@st.composite
def elementwise_graphs(draw: st.DrawFn) -> Graph:
    """Random programs over few tensors, in types that forbid and allow writing over operands."""
    graph = new_graph()
    dims = draw(st.sampled_from([[4], [2, 3], [2, 3, 4]]))
    tensors: list[TensorAttributes] = [
        graph.tensor(dims=dims, name=f"in{i}") for i in range(draw(st.integers(1, 2)))
    ]
    for index in range(draw(st.integers(2, 9))):
        operands = [draw(st.sampled_from(tensors[-4:])) for _ in range(draw(st.integers(1, 2)))]
        mode = draw(
            st.sampled_from(["add", "sub", "max_op"] if len(operands) == 2 else ["neg", "abs"])
        )
        result = graph.pointwise(mode, *operands).set_name(f"t{index}")
        result.set_data_type(draw(st.sampled_from([DataType.FLOAT, DataType.DOUBLE])))
        tensors.append(result)
    read = {id(t) for node in graph._pending for t in node.inputs.values()}
    graph._tensors = [t for t in graph._tensors if id(t) in read or t.virtual]
    for tensor in graph._tensors:
        if id(tensor) not in read or (draw(st.integers(0, 4)) == 0 and tensor.virtual):
            tensor.set_output()
    return graph


@settings(max_examples=150, deadline=None)
@given(graph=elementwise_graphs())
def test_no_tensor_is_overwritten_while_it_is_needed(graph: Graph) -> None:
    """Against the same graph with every tensor in a buffer of its own."""
    registry = EngineRegistry(allow=["cpu"])
    try:
        graph.validate()
    except Exception as error:
        assert "shares no tensor" in str(error)  # noqa: PT017 - the one thing chance may break
        return
    form = graph.to_dict()
    for tensor in form["tensors"]:
        tensor["virtual"] = False
    apart = run(registry, Graph.from_json(form), REFERENCE)
    for engine in ENGINES:
        for name, array in run(registry, graph, engine).items():
            np.testing.assert_array_equal(array, apart[name])


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_workspace_limit_is_honoured(registry: EngineRegistry, share: float) -> None:
    graph = conv_graph((2, 16, 12, 12), (16, 16, 3, 3))
    knob = registry.get_knobs_for_engine(graph, GEMM)[LIMIT]
    low, high = knob.constraint.min_value, knob.constraint.max_value  # type: ignore[union-attr]
    assert 0 < low < high == knob.default_value
    limit = int(low + share * (high - low))
    assert_engines_agree(registry, graph, {LIMIT: limit})
    plan = registry.create_execution_plan_ext(graph, GEMM, {LIMIT: limit})
    assert plan.workspace_size <= limit
    assert registry.estimate_workspace(graph, GEMM, {LIMIT: limit}) >= plan.workspace_size
    assert registry.get_engine_configs(graph)[0].estimated_workspace_size == high
    buffers = buffers_for(graph)
    plan.execute(buffers)  # whatever is imported or set up once
    workspace = np.empty(plan.workspace_size, np.uint8)
    tracemalloc.start()
    plan.execute(buffers, workspace)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 128 << 10, "temporaries beside the workspace"
    for bad in (low - 1, high + 1):
        with pytest.raises(KnobError, match=r"workspace_size_limit.*out of range"):
            registry.create_execution_plan_ext(graph, GEMM, {LIMIT: bad})


def test_benchmarking_measures_and_says_so(registry: EngineRegistry) -> None:
    graph = conv_graph((2, 16, 14, 14), (16, 16, 3, 3))
    by_shape = registry.create_execution_plan_ext(graph, GEMM)
    measured = registry.create_execution_plan_ext(graph, GEMM, {BENCHMARKING: 1})
    assert by_shape.notes[0].endswith("by shape")
    assert "measured: " in measured.notes[0]
    assert measured.notes[0].count(" ms") >= 2
    assert_engines_agree(registry, graph, {BENCHMARKING: 1})


def test_compute_type_double_is_honoured(registry: EngineRegistry) -> None:
    """Float tensors whose products cancel: float32 sums lose what float64 sums keep."""
    form = conv_graph((1, 1024, 1, 1), (1, 1024, 1, 1), padding=0).to_dict()
    results = {}
    for compute in ("float", "double"):
        form["nodes"][0]["compute_data_type"] = compute
        graph = Graph.from_json(form)
        x = np.tile(np.array([1e8, 1.0, -1e8, 1.0], np.float32), 256).reshape(1, 1024, 1, 1)
        w = np.ones_like(x)
        y = np.zeros((1, 1, 1, 1), np.float32)
        registry.create_execution_plan_ext(graph, GEMM).execute({"x": x, "w": w, "y": y})
        results[compute] = float(y.item())
    assert results["double"] == 512
    assert results["float"] != 512


def test_scalars_may_come_at_run_time(registry: EngineRegistry) -> None:
    form = batchnorm_graph().to_dict()
    for tensor in form["tensors"]:
        if tensor["name"] in {"epsilon", "momentum"}:
            del tensor["value"], tensor["value_type"]
    graph = Graph.from_json(form)
    constant, given = buffers_for(batchnorm_graph()), buffers_for(graph)
    names = {t.name: t.uid for t in graph.io_tensors}
    for tensor in batchnorm_graph().io_tensors:
        given[names[tensor.name]][...] = constant[tensor.uid]  # type: ignore[index]
    given[names["epsilon"]][...], given[names["momentum"]][...] = 1e-5, 0.1  # type: ignore[index]
    registry.create_execution_plan_ext(graph, GEMM).execute(given)
    registry.create_execution_plan_ext(batchnorm_graph(), GEMM).execute(constant)
    for tensor in batchnorm_graph().io_tensors:
        expected, got = constant[tensor.uid], given[names[tensor.name]]  # type: ignore[index]
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


def test_running_statistics_follow_hipdnn(registry: EngineRegistry) -> None:
    graph = batchnorm_graph((4, 2, 3, 3)).validate()
    buffers = buffers_for(graph)
    named = {graph.tensors[uid].name: array for uid, array in buffers.items()}
    registry.create_execution_plan_ext(graph, REFERENCE).execute(buffers)
    x = named["x"].astype(np.float64)
    mean = x.mean((0, 2, 3), keepdims=True)
    unbiased = x.var((0, 2, 3), keepdims=True, ddof=1)
    biased = x.var((0, 2, 3), keepdims=True)
    np.testing.assert_allclose(named["mean"], mean, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(named["inv_variance"], 1 / np.sqrt(biased + 1e-5), rtol=1e-5)
    for kind, batch in (("mean", mean), ("variance", unbiased)):
        expected = 0.9 * named[f"prev_{kind}"] + 0.1 * batch
        np.testing.assert_allclose(named[f"next_{kind}"], expected, rtol=1e-5, atol=1e-7)


def test_many_threads_one_plan(registry: EngineRegistry) -> None:
    graph = conv_graph((2, 8, 12, 12), (8, 8, 3, 3))
    plan = registry.create_execution_plan_ext(graph, GEMM)
    expected = {seed: run(registry, graph, REFERENCE, seed=seed)["y"] for seed in range(8)}

    def work(seed: int) -> None:
        buffers = buffers_for(graph, seed)
        run_bound = plan.bind(buffers)
        (y,) = (buffers[uid] for uid in buffers if uid in graph.output_uids)
        for turn in range(20):
            y[...] = np.nan
            if turn % 2:
                run_bound()
            else:
                plan.execute(buffers)
            np.testing.assert_allclose(y, expected[seed], atol=1e-4)

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, seed) for seed in range(8)]:
            future.result()


def _int32_relu() -> Graph:
    return new_graph_of("relu_fwd", DataType.INT32)


def new_graph_of(mode: str, data_type: DataType) -> Graph:
    graph = new_graph(io=data_type)
    graph.pointwise(mode, graph.tensor(dims=[2], name="x")).set_output()
    return graph


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (_int32_relu(), r"tensor uid 0 \('x'\) is 'int32'"),
        (new_graph_of("logical_not", DataType.FLOAT), "'logical_not' is not implemented"),
    ],
)
def test_a_decline_names_the_node_and_why(
    registry: EngineRegistry, graph: Graph, reason: str
) -> None:
    with pytest.raises(NoEngineError, match=reason) as caught:
        registry.create_execution_plan_ext(graph)
    assert set(caught.value.reasons) == set(ENGINES)
    assert all(r.startswith("node 'Pointwise_0'") for r in caught.value.reasons.values())


@pytest.mark.parametrize(
    ("line", "served"),
    [
        ("conv -n 2 -c 3 -H 9 -W 40 -k 4 -y 2 -x 3 -u 5 -v 7 -p 1 -q 0 -F 2", True),
        ("conv -n 1 -c 1 -H 9 -W 4413 -k 1 -y 1 -x 2 -u 1 -v 1575205 -l 1 -j 3 -F 2", True),
        ("conv -n 1 -c 1 -H 9 -W 9 -k 1 -y 1 -x 1 -p 3 -q 3 -u 9 -v 9 -F 2", True),
        ("conv -n 1 -c 1 -H 3000 -W 3000 -k 1 -y 1500 -x 1500 -u 1500 -v 1500 -F 2", False),
    ],
)
def test_strides_beyond_the_filter(registry: EngineRegistry, line: str, served: bool) -> None:
    """Positions that no tap reaches have gradient zero and cost nothing."""
    (graph,) = graph_from_driver_command(line)
    if served:
        assert_engines_agree(registry, graph)
        return
    (gemm, reference) = registry.explain(graph).answers
    assert "more than 4096 correlations" in gemm.reason
    assert reference.info is not None


def test_operations_that_are_only_stored_are_declined(registry: EngineRegistry) -> None:
    from pathlib import Path

    path = Path(__file__).parents[1] / "data" / "graphs" / "layernorm_training.json"
    graph = Graph.from_json(path.read_text())
    assert not registry.is_supported(graph)
    reasons = [answer.reason for answer in registry.explain(graph).answers]
    assert all("LayernormAttributes is not implemented" in reason for reason in reasons)


def test_the_fast_engine_comes_first(registry: EngineRegistry) -> None:
    for graph in (conv_graph(), relu_graph(), batchnorm_graph()):
        assert [info.engine_name for info in registry.get_engine_configs(graph)] == list(ENGINES)


@pytest.mark.parametrize("engine", ENGINES)
def test_running_statistics_may_be_updated_in_place(registry: EngineRegistry, engine: str) -> None:
    graph = batchnorm_graph()
    plan = registry.create_execution_plan_ext(graph, engine)
    apart = {graph.tensors[uid].name: array for uid, array in buffers_for(graph).items()}
    in_place = {name: array.copy() for name, array in apart.items()}
    plan.execute(apart)
    for name in ("mean", "variance"):
        in_place[f"next_{name}"] = in_place[f"prev_{name}"]
    plan.execute(in_place)
    for name, expected in apart.items():
        if not name.startswith("prev"):
            np.testing.assert_array_equal(in_place[name], expected, err_msg=name)
    with pytest.raises(VariantPackError, match="next_mean.*overlaps.*_variance"):
        plan.execute(in_place | {"next_mean": in_place["prev_variance"]})
    shifted = np.zeros(4, np.float32)
    windows = (shifted[:3].reshape(1, 3, 1, 1), shifted[1:].reshape(1, 3, 1, 1))
    with pytest.raises(VariantPackError, match="next_mean.*overlaps.*prev_mean"):
        plan.execute(in_place | dict(zip(("prev_mean", "next_mean"), windows, strict=True)))
