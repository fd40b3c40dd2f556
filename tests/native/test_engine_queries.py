"""What MIOpen's engines say of graphs: knobs, workspace, and why they decline."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from hipdnn_registry import (
    ConvMode,
    DataType,
    EngineRegistry,
    Graph,
    PointwiseMode,
    ProviderStatus,
)
from tests.graphs import batchnorm_graph, conv_graph, new_graph, relu_graph
from tests.native.engines import (
    BENCHMARKING,
    BFLOAT16,
    DETERMINISTIC,
    ENGINE,
    FIND_MODE,
    FLOAT,
    HALF,
    LIMIT,
    POLICY,
    TUNABLE,
    bn_backward,
    bn_backward_relu,
    bn_inference,
    bn_training_relu,
    conv_bias_relu,
    conv_forward,
    new_registry,
    run,
)
from tests.native.observe import observe

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_provider_says_what_it_stands_on(registry: EngineRegistry) -> None:
    (record,) = (r for r in registry.providers() if r.name == "miopen")
    assert record.status is ProviderStatus.LOADED
    assert record.engines == (ENGINE, DETERMINISTIC)
    assert record.info is not None
    assert record.info.libraries["MIOpen"] == "3.5.1"
    assert record.info.libraries["HIP"] == "7.2.53211"
    assert record.info.libraries["MIOpen library"].endswith("libMIOpen.so.1")


def test_names_and_ids_are_hipdnns(registry: EngineRegistry) -> None:
    ids = {info.engine_name: info.engine_id for info in registry.get_engine_configs(conv_forward())}
    assert ids == {ENGINE: 1563989756945604898, DETERMINISTIC: -6748551569128940061}


@pytest.mark.parametrize("operation", TUNABLE)
def test_knobs_where_there_is_something_to_tune(operation: str, registry: EngineRegistry) -> None:
    is_batchnorm = operation.startswith("batchnorm")
    infos = registry.get_engine_configs(TUNABLE[operation]())
    assert [i.engine_name for i in infos] == [ENGINE] + [DETERMINISTIC] * (not is_batchnorm)
    for info in infos:
        expected = [BENCHMARKING, *([] if is_batchnorm else [LIMIT]), POLICY]
        if operation in {"forward", "backward data", "backward weights"}:
            expected.append(FIND_MODE)
        assert list(info.knobs.ids) == expected
        assert info.knobs[POLICY].default_value == 0
        assert not info.defects


NOTHING_TO_TUNE: dict[str, Callable[[], Graph]] = {
    "inference": bn_inference,
    "inference with variance": lambda: bn_inference(inverse=False),
    "inference + relu": lambda: bn_inference(activation="relu_fwd"),
    "per activation": lambda: batchnorm_graph(per_activation=True),
    "per activation NHWC": lambda: channels_last(batchnorm_graph(per_activation=True)),
    "relu": relu_graph,
}


@pytest.mark.parametrize("name", NOTHING_TO_TUNE)
def test_no_policy_where_there_is_nothing_to_tune(name: str, registry: EngineRegistry) -> None:
    graph = NOTHING_TO_TUNE[name]()
    (info,) = registry.get_engine_configs(graph)
    assert info.engine_name == ENGINE
    assert list(info.knobs.ids) == [BENCHMARKING]  # as hipDNN's provider: on every graph
    note = "global.benchmarking: libMIOpen 3.5.1 has nothing to tune here"
    for benchmarking in (0, 1):
        settings = {BENCHMARKING: benchmarking}
        plan = registry.create_execution_plan_ext(graph, ENGINE, settings, strict=True)
        assert (note in plan.notes) is (benchmarking == 1)


def pointwise(mode: str, a: list[int], b: list[int] | None = None, io: DataType = FLOAT) -> Graph:
    graph = new_graph(mode, io)
    operands = [graph.tensor(dims=dims) for dims in (a, b) if dims is not None]
    graph.pointwise(mode, *operands).set_output()
    return graph


def channels_last(graph: Graph, *names: str) -> Graph:
    """The same graph with every tensor of four dims in NHWC, or those of these names."""
    copy = graph.copy()
    for tensor in graph.tensors.values():
        chosen = not names or tensor.name in names
        if chosen and tensor.dims is not None and len(tensor.dims) == 4:
            _, c, h, w = tensor.dims
            strides = (h * w * c, 1, w * c, c)
            copy.find_tensor(tensor.uid or 0).set_stride(strides)
    return copy


def conv_3d(io: DataType = FLOAT) -> Graph:
    return conv_graph((2, 8, 6, 10, 12), (4, 8, 3, 3, 3), io=io)


SERVED: dict[str, Callable[[], Graph]] = {
    **{f"{name}": graph for name, graph in TUNABLE.items()},
    **NOTHING_TO_TUNE,
    "1-D": lambda: conv_graph((2, 8, 32), (4, 8, 3)),
    "3-D": conv_3d,
    "grouped": lambda: conv_graph((2, 8, 16, 20), (4, 4, 3, 3)),
    "depthwise": lambda: conv_graph((2, 8, 16, 20), (8, 1, 3, 3)),
    "dilated": lambda: conv_graph((2, 8, 16, 20), (4, 8, 3, 3), padding=2, dilation=2),
    "strided": lambda: conv_graph((2, 8, 17, 21), (4, 8, 3, 5), padding=(1, 2), stride=(2, 1)),
    "half": lambda: conv_graph((2, 16, 16, 20), (16, 16, 3, 3), io=HALF),
    "bfloat16": lambda: conv_graph((2, 16, 16, 20), (16, 16, 3, 3), io=BFLOAT16),
    "NHWC": lambda: channels_last(conv_graph((2, 8, 16, 20), (8, 8, 3, 3), io=HALF)),
    "fused without bias": lambda: conv_bias_relu(18, bias=False),
    "fused without activation": lambda: conv_bias_relu(18, activation=None),
    "fused, clipped": lambda: conv_bias_relu(20, relu_upper_clip=6.0),
    "fused, leaky": lambda: conv_bias_relu(20, relu_lower_clip_slope=0.1),
    "fused tanh": lambda: conv_bias_relu(20, activation="tanh_fwd"),
    "fused 1-D": lambda: conv_bias_relu(24, spatial=()),
    "fused 3-D": lambda: conv_bias_relu(12, spatial=(6, 10)),
    "fused half": lambda: conv_bias_relu(22, io=HALF),
    "fused NHWC": lambda: channels_last(conv_bias_relu(22)),
    "training without running statistics": lambda: batchnorm_graph((4, 8, 6, 8), running=False),
    "training, 2 dims": lambda: batchnorm_graph((16, 8)),
    "training, 3 dims": lambda: batchnorm_graph((16, 8, 10)),
    "training, 5 dims": lambda: batchnorm_graph((2, 8, 4, 6, 8)),
    "training + relu": bn_training_relu,
    "training + relu without running": lambda: bn_training_relu(18, running=False),
    "inference with variance + relu": lambda: bn_inference(inverse=False, activation="relu_fwd"),
    "backward through relu": bn_backward_relu,
    "training NHWC": lambda: channels_last(batchnorm_graph((4, 8, 6, 8))),
    "tanh": lambda: pointwise("tanh_fwd", [2, 8, 4, 5]),
    "sigmoid half": lambda: pointwise("sigmoid_fwd", [2, 8, 4, 5], io=HALF),
    "add": lambda: pointwise("add", [2, 8, 4, 5], [2, 8, 4, 5]),
    "add, broadcast first": lambda: pointwise("add", [1, 8, 1, 1], [2, 8, 4, 5], HALF),
    "add, 2 dims": lambda: pointwise("add", [2, 8], [2, 8]),
}


@pytest.mark.parametrize("name", SERVED)
def test_is_served_planned_and_executed(name: str, registry: EngineRegistry) -> None:
    with observe() as seen:
        plan = registry.create_execution_plan_ext(SERVED[name](), ENGINE)
        assert plan.workspace_size <= registry.estimate_workspace(plan.graph, ENGINE)
    with observe() as seen:
        run(plan)
    assert seen.launches
    unfused = [note for note in plan.notes if "no fused solver" in note]
    if name in {"fused half", "fused 3-D"}:
        assert "runs as convolution, then bias, then activation" in unfused[0]
    if name in {"fused", "fused, clipped"}:
        assert not unfused


@pytest.mark.parametrize("name", [name for name in SERVED if name not in NOTHING_TO_TUNE])
def test_what_a_plan_says_of_the_perf_db_is_what_happened(
    name: str, registry: EngineRegistry
) -> None:
    """The records that concern a graph are found by MIOpen's keys, whatever its layout and rank."""
    graph = SERVED[name]()
    if POLICY not in registry.get_knobs_for_engine(graph, ENGINE):
        return
    with observe() as seen:
        plan = registry.create_execution_plan_ext(graph, ENGINE, {POLICY: 4})
    (told,) = [note for note in plan.notes if note.startswith("user perf-db: ")]
    assert ("added" in told) is bool(seen.added)
    assert ("no change" in told) is (not seen.perf_db_written)
    with observe() as seen:
        plan = registry.create_execution_plan_ext(graph, ENGINE, {POLICY: 5})
    (told,) = [note for note in plan.notes if note.startswith("user perf-db: ")]
    assert ("removed" in told) is bool(seen.removed)


def asymmetric() -> Graph:
    graph = new_graph()
    x, w = graph.tensor(dims=[2, 8, 8, 8], name="x"), graph.tensor(dims=[8, 8, 3, 3], name="w")
    graph.conv_fprop(x, w, pre_padding=[1, 1], post_padding=[2, 1], name="lopsided").set_output()
    return graph


def flipped() -> Graph:
    graph = new_graph()
    x, w = graph.tensor(dims=[2, 8, 8, 8], name="x"), graph.tensor(dims=[8, 8, 3, 3], name="w")
    graph.conv_fprop(x, w, conv_mode=ConvMode.CONVOLUTION, name="flipped").set_output()
    return graph


def in_double() -> Graph:
    graph = new_graph()
    x, w = graph.tensor(dims=[2, 8, 8, 8], name="x"), graph.tensor(dims=[8, 8, 3, 3], name="w")
    graph.conv_fprop(x, w, compute_data_type=DataType.DOUBLE).set_output()
    return graph


def strided_by_gaps() -> Graph:
    graph = conv_forward().copy()
    graph.find_tensor("x").set_stride([4096, 512, 32, 2])
    return graph


def stored_intermediate() -> Graph:
    graph = conv_bias_relu().copy()
    for tensor in list(graph._tensors):
        if tensor.virtual and "Conv" in tensor.name:
            tensor.set_output()
    return graph


def two_activations() -> Graph:
    graph = new_graph()
    y = graph.conv_fprop(graph.tensor(dims=[2, 8, 8, 8]), graph.tensor(dims=[8, 8, 3, 3]))
    y = graph.pointwise("relu_fwd", y)
    graph.pointwise("tanh_fwd", y, name="second").set_output()
    return graph


def channel_bias() -> Graph:
    graph = new_graph()
    y = graph.conv_fprop(graph.tensor(dims=[2, 8, 8, 8]), graph.tensor(dims=[8, 8, 3, 3]))
    y = graph.pointwise("add", y, graph.tensor(dims=[1, 1, 6, 6], name="map"))
    graph.pointwise("relu_fwd", y).set_output()
    return graph


def mixed_batchnorm() -> Graph:
    graph = batchnorm_graph().copy()
    graph.find_tensor("scale").set_data_type(HALF)
    return graph


def runtime_epsilon() -> Graph:
    graph = new_graph()
    scale, bias = (graph.tensor(dims=[1, 3, 1, 1]) for _ in range(2))
    epsilon = graph.tensor(dims=[1], name="epsilon")
    graph.batchnorm(graph.tensor(dims=[2, 3, 4, 4]), scale, bias, epsilon).y.set_output()
    return graph


DECLINED: dict[str, tuple[Callable[[], Graph], str]] = {
    "asymmetric padding": (
        asymmetric,
        r"node 'lopsided': padding is \[1, 1\] before and \[2, 1\] behind.*symmetric",
    ),
    "flipped filter": (flipped, "node 'flipped': conv_mode is CONVOLUTION"),
    "compute type": (in_double, "compute data type is 'double', but MIOpen computes in 'float'"),
    "type": (
        lambda: conv_graph(io=DataType.DOUBLE),
        r"tensor uid \d+ \('x'\) has data type 'double'.*take bfloat16, float, half",
    ),
    "strides with gaps": (
        strided_by_gaps,
        r"tensor uid \d+ \('x'\) has dims .* strides \[4096, 512, 32, 2\].*packed in one layout",
    ),
    "stored intermediate": (stored_intermediate, r"lies between fused nodes.*not virtual"),
    "two activations": (two_activations, "node 'second': behind a convolution MIOpen takes a bias"),
    "bias of another shape": (channel_bias, r"\('map'\) has dims \[1, 1, 6, 6\].*a bias has"),
    "bfloat16 activation": (
        lambda: conv_bias_relu(io=BFLOAT16),
        "activation is not implemented for bfloat16",
    ),
    "bfloat16 bias": (
        lambda: conv_bias_relu(activation=None, io=BFLOAT16),
        "addition does not compile for bfloat16",
    ),
    "clamp": (
        lambda: conv_bias_relu(relu_lower_clip=0.5, relu_upper_clip=6.0),
        "CLAMP .* does not compile",
    ),
    "sums across channels": (
        lambda: bn_backward(257, saved=False),
        r"sums the wrong elements here \(N \* H \* W = 16448 is no multiple of 4096",
    ),
    "slope and clip": (
        lambda: conv_bias_relu(relu_lower_clip_slope=0.1, relu_upper_clip=6.0),
        r"no ReLU with a slope \(0.1\) and clips",
    ),
    "scale in half": (mixed_batchnorm, r"\('scale'\) has data type 'half'.*in 'float'"),
    "runtime epsilon": (runtime_epsilon, r"epsilon \(tensor .*must be a constant"),
    "statistics of another layout": (
        lambda: channels_last(batchnorm_graph(per_activation=True), "x", "y"),
        r"has dims \[1, 3, 4, 4\] and strides \[48, 16, 4, 1\], but .* in the order .* NHWC",
    ),
    "other shapes later": (
        lambda: Graph.from_json(conv_graph().to_dict() | {"is_override_shape_enabled": True}),
        "may be given other shapes later",
    ),
    "another operation": (
        lambda: pointwise("gelu_fwd", [2, 8, 4, 5]),
        "operation 'gelu_fwd' is not served; MIOpen's engines take add, relu_fwd",
    ),
    "too large for 32 bits": (
        lambda: conv_graph((2, 65536, 256, 256), (8, 65536, 1, 1), padding=0),
        r"has a stride of 4294967296, but MIOpen's descriptors hold 32-bit numbers",
    ),
}


@pytest.mark.parametrize("name", DECLINED)
def test_declines_with_a_reason(name: str, registry: EngineRegistry) -> None:
    graph, reason = DECLINED[name]
    with observe() as seen:
        explanation = registry.explain(graph())
    (answer,) = (a for a in explanation.answers if a.engine.name == ENGINE)
    assert answer.info is None
    assert answer.exception is None
    assert re.search(reason, answer.reason), answer.reason
    assert seen.launches == 0


def test_the_deterministic_engine_serves_convolutions_only(registry: EngineRegistry) -> None:
    (answer,) = (
        a for a in registry.explain(batchnorm_graph()).answers if a.engine.name == DETERMINISTIC
    )
    assert "deterministic attribute for convolutions only; use MIOPEN_ENGINE" in answer.reason


def test_a_query_launches_nothing_and_writes_nothing(registry: EngineRegistry) -> None:
    graphs = [graph(40) for graph in TUNABLE.values()]
    with observe() as seen:
        for graph in graphs:
            assert registry.get_engine_configs(graph)
    assert (seen.launches, seen.perf_db_written, seen.find_db_written) == (0, False, False)


# Workspace


def large_filter() -> Graph:
    """A convolution for which NORMAL mode asks for more than the default mode."""
    return conv_graph((4, 64, 28, 28), (32, 64, 5, 5), padding=2)


def test_the_offer_covers_every_policy(registry: EngineRegistry) -> None:
    graph = large_filter()
    (info, _) = registry.get_engine_configs(graph)
    estimates = {
        policy: registry.estimate_workspace(graph, ENGINE, {POLICY: policy})
        for policy in range(1, 6)
    }
    assert estimates[1] < estimates[2] == estimates[3] == estimates[4] == estimates[5]
    assert info.estimated_workspace_size == estimates[3] == info.knobs[LIMIT].default_value
    for policy in (1, 3):
        with observe() as seen:
            plan = new_registry().create_execution_plan_ext(graph, ENGINE, {POLICY: policy})
        assert plan.workspace_size <= estimates[policy]
        assert "Skipping config due to workspace" not in seen.log
        assert "IsEnoughWorkspace" not in seen.log
        assert f"workspace: {plan.workspace_size} bytes" in plan.notes


def test_every_bound_of_the_workspace_limit(registry: EngineRegistry) -> None:
    graph = large_filter()
    constraint = registry.get_knobs_for_engine(graph, ENGINE)[LIMIT].constraint
    least, most = constraint.min_value, constraint.max_value  # type: ignore[union-attr]
    assert 0 <= least < most
    for policy in (1, 3):
        for limit in (least, (least + most) // 2, most):
            settings = {LIMIT: limit, POLICY: policy}
            assert registry.estimate_workspace(graph, ENGINE, settings) <= limit
            with observe():
                plan = registry.create_execution_plan_ext(graph, ENGINE, settings)
                run(plan)
            assert plan.workspace_size <= limit
            dropped = [note for note in plan.notes if note.startswith("workspace limit")]
            asked = registry.estimate_workspace(graph, ENGINE, {POLICY: policy})
            assert bool(dropped) is (limit < asked)
            if dropped:
                assert f"{limit} of the {asked} bytes that MIOpen asks for; dropped: " in dropped[0]


def test_the_conversion_of_an_inverse_variance_takes_workspace(registry: EngineRegistry) -> None:
    (inverse,) = registry.get_engine_configs(bn_inference())
    (direct,) = registry.get_engine_configs(bn_inference(inverse=False))
    assert (inverse.estimated_workspace_size, direct.estimated_workspace_size) == (4 * 8, 0)


def test_every_pointwise_mode_is_served_or_declined_in_a_sentence(
    registry: EngineRegistry,
) -> None:
    for mode in PointwiseMode:
        if mode is PointwiseMode.UNSET:
            continue
        graph = new_graph()
        operands = [graph.tensor(dims=[2, 8, 4, 5]) for _ in range(mode.arity)]
        graph.pointwise(mode, *operands).set_output()
        (answer, _) = registry.explain(graph).answers
        assert answer.exception is None
        served = mode.value in {"add", "relu_fwd", "sigmoid_fwd", "tanh_fwd"}
        assert (answer.info is not None) is served
