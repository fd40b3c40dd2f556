"""Building: shape and stride inference, defaults, freezing."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from hipdnn_registry import DataType, Graph, GraphError, GraphFrozenError
from hipdnn_registry.graph import (
    BatchnormNode,
    ConvolutionFwdNode,
    TensorAttributes,
    channels_last_order,
    packed_strides,
)
from tests.graphs import batchnorm_graph, conv_graph, fused_graph, new_graph


def only(graph: Graph, name: str) -> TensorAttributes:
    (tensor,) = [t for t in graph.tensors.values() if t.name == name]
    return tensor


@pytest.mark.parametrize(
    ("x", "w", "options", "expected"),
    [
        ((1, 3, 32), (8, 3, 5), {}, (1, 8, 28)),
        ((2, 4, 8, 8), (6, 4, 3, 3), {"padding": 1}, (2, 6, 8, 8)),
        ((2, 4, 9, 7), (6, 4, 3, 3), {"stride": [2, 3]}, (2, 6, 4, 2)),
        ((2, 4, 9, 9), (6, 4, 3, 3), {"dilation": 2}, (2, 6, 5, 5)),
        ((2, 4, 8, 8), (6, 4, 2, 2), {"pre_padding": 0, "post_padding": 1}, (2, 6, 8, 8)),
        ((2, 4, 8, 8), (8, 1, 3, 3), {"padding": 1}, (2, 8, 8, 8)),
        ((1, 2, 5, 6, 7), (3, 2, 1, 2, 3), {}, (1, 3, 5, 5, 5)),
        ((1, 1, 1, 1), (1, 1, 1, 1), {"padding": 3}, (1, 1, 7, 7)),
    ],
)
def test_conv_fprop_infers_the_output(
    x: Sequence[int],
    w: Sequence[int],
    options: dict[str, int | list[int]],
    expected: tuple[int, ...],
) -> None:
    graph = new_graph()
    y = graph.conv_fprop(graph.tensor(dims=x), graph.tensor(dims=w), **options)  # type: ignore[arg-type]
    y.set_output()
    graph.validate()
    assert y.dims == expected
    assert y.strides == packed_strides(expected)
    assert y.data_type is DataType.FLOAT


def test_output_follows_the_layout_of_the_image() -> None:
    graph = new_graph()
    dims = (2, 4, 8, 6)
    x = graph.tensor(dims=dims, strides=packed_strides(dims, channels_last_order(4)))
    y = graph.conv_fprop(x, graph.tensor(dims=[5, 4, 1, 1])).set_output()
    graph.validate()
    assert y.strides == (8 * 6 * 5, 1, 6 * 5, 5)


def test_dgrad_infers_at_stride_1_and_asks_otherwise() -> None:
    def build(stride: int, dims: Sequence[int] | None) -> tuple[Graph, TensorAttributes]:
        graph = new_graph()
        dy = graph.tensor(dims=[2, 6, 4, 4], name="dy")
        dx = graph.conv_dgrad(dy, graph.tensor(dims=[6, 4, 3, 3]), padding=1, stride=stride)
        if dims:
            dx.set_dim(dims)
        dx.set_output()
        return graph, dx

    graph, dx = build(1, None)
    graph.validate()
    assert dx.dims == (2, 4, 4, 4)
    with pytest.raises(GraphError, match="several extents"):
        build(2, None)[0].validate()
    for extent in (7, 8):
        build(2, (2, 4, extent, extent))[0].validate()
    with pytest.raises(GraphError, match=r"dims are \[2, 6, 4, 4\], but must be \[2, 6, 5, 5\]"):
        build(2, (2, 4, 9, 9))[0].validate()


def test_wgrad_needs_the_filter_dims() -> None:
    graph = new_graph()
    x, dy = graph.tensor(dims=[2, 4, 8, 8]), graph.tensor(dims=[2, 6, 8, 8])
    dw = graph.conv_wgrad(dy, x, padding=1).set_output()
    with pytest.raises(GraphError, match="neither filter extents nor groups"):
        graph.validate()
    dw.set_dim([6, 2, 3, 3])  # two groups
    graph.validate()
    assert dw.strides == (18, 9, 3, 1)


def test_a_corrected_graph_infers_anew() -> None:
    graph = new_graph()
    x = graph.tensor(dims=[1, 4, 8, 8])
    y = graph.conv_fprop(x, graph.tensor(dims=[6, 3, 3, 3])).set_output()
    with pytest.raises(GraphError, match="do not divide"):
        graph.validate()
    assert x.strides is None, "an error takes back what was inferred"
    x.set_dim([1, 3, 10, 10])
    graph.validate()
    assert y.dims == (1, 6, 8, 8)


def test_a_validated_graph_is_frozen_and_its_copy_is_not() -> None:
    graph = conv_graph().validate()
    tensor = only(graph, "x")
    (node,) = graph.nodes
    assert isinstance(node, ConvolutionFwdNode)
    changes: list[Callable[[], object]] = [
        lambda: tensor.set_dim([1]),
        lambda: setattr(node.parameters, "stride", (2, 2)),
        lambda: graph.tensor(dims=[1]),
        lambda: graph.set_name("other"),
    ]
    for change in changes:
        with pytest.raises(GraphFrozenError, match="copy"):
            change()
    copy = graph.copy()
    copy.find_tensor("y").set_is_virtual(True)
    copy.pointwise("relu_fwd", copy.find_tensor("y")).set_output()
    assert len(copy.nodes) == 2
    assert len(graph.nodes) == 1


def test_tensors_are_found_by_uid_and_name() -> None:
    graph = new_graph()
    graph.tensor(dims=[2], name="x", uid=4)
    assert graph.find_tensor("x") is graph.find_tensor(4)
    graph.tensor(dims=[2], name="x")
    for key in ("x", "y", 5):
        with pytest.raises(KeyError, match="tensors of graph"):
            graph.find_tensor(key)


def test_graphs_travel_between_processes() -> None:
    graph = batchnorm_graph()
    assert pickle.loads(pickle.dumps(graph)).to_json() == graph.to_json()


def test_threads_may_validate_one_graph_at_once() -> None:
    for _ in range(20):
        graph = fused_graph()
        with ThreadPoolExecutor(8) as pool:
            keys = {f.result().content_key for f in [pool.submit(graph.validate) for _ in range(8)]}
        assert len(keys) == 1


def test_defaults_come_from_the_graph() -> None:
    graph = Graph(
        io_data_type=DataType.HALF,
        intermediate_data_type=DataType.FLOAT,
        compute_data_type=DataType.FLOAT,
    )
    x, w = graph.tensor(dims=[1, 4, 4, 4]), graph.tensor(dims=[4, 4, 1, 1])
    y = graph.conv_fprop(x, w)
    z = graph.pointwise("relu_fwd", y).set_output()
    graph.validate()
    assert (x.data_type, y.data_type, z.data_type) == ("half", "float", "half")
    assert {node.compute_data_type for node in graph.nodes} == {"float"}
    assert [node.name for node in graph.nodes] == ["ConvolutionFprop_0", "Pointwise_1"]
    assert y.name == "ConvolutionFprop_0::Y"


@pytest.mark.parametrize("missing", ["io", "intermediate", "compute"])
def test_a_type_that_nobody_set_is_named(missing: str) -> None:
    types = {f"{kind}_data_type": DataType.FLOAT for kind in ("io", "intermediate", "compute")}
    del types[f"{missing}_data_type"]
    graph = Graph(**types)
    x = graph.tensor(dims=[2, 2], name="x")
    graph.pointwise("abs", graph.pointwise("neg", x)).set_output()
    with pytest.raises(GraphError, match="data type is not set"):
        graph.validate()


def test_uids_are_assigned_around_those_given() -> None:
    graph = new_graph()
    x = graph.tensor(dims=[2], uid=1)
    y = graph.pointwise("neg", x)
    z = graph.pointwise("abs", y).set_output().set_uid(0)
    graph.validate()
    assert (x.uid, y.uid, z.uid) == (1, 2, 0)


def test_unread_batch_statistics_are_left_out() -> None:
    graph = new_graph()
    x = graph.tensor(dims=[2, 3, 4, 4])
    scale, bias = graph.tensor(dims=[1, 3, 1, 1]), graph.tensor(dims=[1, 3, 1, 1])
    result = graph.batchnorm(x, scale, bias, graph.scalar(1e-5))
    result.y.set_output()
    result.mean.set_output()
    (node,) = graph.nodes
    assert isinstance(node, BatchnormNode)
    assert node.outputs.mean_tensor_uid == result.mean.uid
    assert node.outputs.inv_variance_tensor_uid is None
    assert len(graph.tensors) == 6


def test_io_tensors_are_those_that_take_a_buffer() -> None:
    graph = batchnorm_graph()
    assert {tensor.name for tensor in graph.io_tensors} == {
        "x", "scale", "bias", "prev_mean", "prev_variance",
        "y", "mean", "inv_variance", "next_mean", "next_variance",
    }  # fmt: skip
    assert {t.name for t in graph.io_tensors if t.uid in graph.output_uids} == {
        "y", "mean", "inv_variance", "next_mean", "next_variance",
    }  # fmt: skip
    assert {tensor.name for tensor in fused_graph().io_tensors} == {
        "x", "w", "bias", "residual", "y",
    }  # fmt: skip


def test_misspelt_options_are_refused() -> None:
    graph = new_graph()
    x, w = graph.tensor(dims=[1, 1, 4, 4]), graph.tensor(dims=[1, 1, 1, 1])
    with pytest.raises(TypeError, match="strides"):
        graph.conv_fprop(x, w, strides=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="relu_slope"):
        graph.pointwise("relu_fwd", x, relu_slope=0.1)  # type: ignore[call-arg]
    graph.pointwise("relu", x)
    with pytest.raises(GraphError, match=r"inputs\.operation.*'relu'"):
        graph.validate()
