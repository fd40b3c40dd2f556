"""Building: shape and stride inference, defaults, freezing."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipdnn_registry import DataType, Graph, GraphError, GraphFrozenError
from hipdnn_registry.graph import (
    BatchnormNode,
    ConvolutionFwdNode,
    TensorAttributes,
    channels_last_order,
    packed_strides,
)
from hipdnn_registry.graph.tensor import stride_order
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


@pytest.mark.parametrize(
    ("dims", "strides", "expected"),
    [
        ((2, 4, 8, 6), None, (240, 48, 6, 1)),
        ((2, 4, 8, 6), (192, 1, 24, 4), (240, 1, 30, 5)),
        ((8, 1, 28, 28), None, (3920, 784, 28, 1)),
        ((8, 1, 28, 28), (784, 1, 28, 1), (3920, 784, 28, 1)),  # NHWC of one channel is NCHW, too
        ((8, 3, 1, 28), None, (140, 28, 28, 1)),
        ((1, 3, 8, 8), (192, 1, 24, 3), (320, 1, 40, 5)),
        ((2, 4, 8, 6), (400, 60, 7, 1), (240, 48, 6, 1)),  # gaps don't matter
        ((2, 4, 8, 6), (1, 96, 12, 2), (1, 96, 12, 2)),  # CHWN
    ],
)
def test_output_follows_the_layout_of_the_image(
    dims: tuple[int, ...], strides: tuple[int, ...] | None, expected: tuple[int, ...]
) -> None:
    graph = new_graph()
    x = graph.tensor(dims=dims, strides=strides)
    y = graph.conv_fprop(x, graph.tensor(dims=[5, dims[1], 1, 1])).set_output()
    z = graph.pointwise("add", graph.tensor(dims=[1, dims[1], 1, 1]), x).set_output()
    graph.validate()
    assert y.strides == expected
    assert z.strides == packed_strides(dims, stride_order(dims, x.strides or ()))


@given(st.lists(st.integers(1, 3), min_size=3, max_size=5))
def test_packed_layouts_are_passed_on(dims: list[int]) -> None:
    last = channels_last_order(len(dims))
    for order in (None, last):
        graph = new_graph()
        x = graph.tensor(dims=dims, strides=packed_strides(dims, order))
        w = graph.tensor(dims=[4, dims[1], *[1] * (len(dims) - 2)])
        y = graph.conv_fprop(x, w, padding=1)
        graph.pointwise("abs", y.set_output()).set_output()
        graph.validate()
        told = order if dims[1] > 1 and max(dims[2:]) > 1 else None
        for tensor in (t for t in graph.tensors.values() if t.uid in graph.output_uids):
            assert tensor.strides == packed_strides(tensor.dims or (), told)


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
        with pytest.raises(GraphFrozenError, match="copy") as caught:
            change()
        assert len(str(caught.value)) < 120, "the label says which, not all that it holds"
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
    with pytest.raises(TypeError, match=r"^conv_fprop\(\) .* 'strides'; did you mean 'stride'"):
        graph.conv_fprop(x, w, strides=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^pointwise\(\) .* 'relu_slope'"):
        graph.pointwise("relu_fwd", x, relu_slope=0.1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^batchnorm_inference\(\) .* 'nme'; did you mean 'name'"):
        graph.batchnorm_inference(x, x, x, x, x, nme="n")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^TensorAttributes\(\) .* 'dim'; did you mean 'dims'"):
        TensorAttributes(dim=[1, 2])
    with pytest.raises(AttributeError, match="no attribute 'dim'; did you mean 'dims'"):
        x.dim = (1, 2)
    graph.pointwise("relu", x)
    with pytest.raises(GraphError, match=r"inputs\.operation.*'relu'"):
        graph.validate()


Build = Callable[[Any, TensorAttributes], object]  # Any: what type checkers would refuse

NO_TENSORS: list[tuple[Build, str]] = [
    (lambda g, x: g.batchnorm(x, x, x, 1e-5), "'Batchnorm_0': input epsilon is 1e-05"),
    (lambda g, x: g.batchnorm(x, x, x, None), "input epsilon is None"),
    (lambda g, x: g.batchnorm(x, x, x, x, momentum=0.1), "input momentum is 0.1"),
    (lambda g, x: g.batchnorm_inference(x, None, x, x, x), "input mean is None"),
    (lambda g, x: g.batchnorm_backward(x, x, 1), "input scale is 1"),
    (lambda g, x: g.pointwise("add", x, 1.0), "'Pointwise_0': input in_1 is 1.0"),
    (lambda g, x: g.conv_fprop(x, np.ones((9, 9))), r"input w is array\(\[\[1\., .*\.\.\., but"),
    (lambda g, x: g.conv_fprop(None, x), "input x is None"),
    (lambda g, x: g.conv_dgrad("dy", x), "input dy is 'dy'"),
    (lambda g, x: g.conv_wgrad(x, None), "input x is None"),
    (lambda g, x: g.tensor([1, 4]), r"got \[1, 4\]; give extents as graph\.tensor\(dims="),
    (lambda g, x: g.tensor("x"), "got 'x'"),
    (lambda g, x: g.tensor(x, dims=np.ones(2), name="y"), "'x'.*got both: name, dims"),
]

BAD_VALUES: list[tuple[Build, str]] = [
    (lambda g, x: Graph(io_data_type="flot"), r"graph\.io_data_type: .*'half'.* it is 'flot'"),  # type: ignore[arg-type]
    (lambda g, x: Graph(compute_data_type=None), r"graph\.compute_data_type: .* it is None"),  # type: ignore[arg-type]
    (lambda g, x: Graph(3), r"graph\.name: .* it is 3"),  # type: ignore[arg-type]
    (lambda g, x: g.set_name(3), r"graph\.name: .* it is 3"),
    (lambda g, x: g.set_io_data_type(np.float32), r"graph\.io_data_type: .*numpy\.float32"),
    (lambda g, x: g.set_preferred_engine_id_ext(1.5), r"graph\.preferred_engine_id: .* is 1\.5"),
    (lambda g, x: g.scalar("1"), "value: .*valid number, but it is '1'"),
    (lambda g, x: g.scalar(None), "value can't be set to None"),
    (lambda g, x: g.scalar(10**400), "value: .*less than or equal to 9223372036854775807"),
    (lambda g, x: g.scalar(1e-5, "flot"), "data_type: .*'flot'"),
    (lambda g, x: g.scalar(1, "uint8"), "can't be of data type 'uint8', only of float, half"),
    (lambda g, x: g.tensor(dims="ab", name="t"), "tensor 't': dims: .*valid list, but it is 'ab'"),
    (lambda g, x: TensorAttributes(dims={1, 2}), r"dims: .*valid list, but it is \{1, 2\}"),
    (lambda g, x: x.set_dim(3), r"uid 5 \('x'\): dims: .*valid list, but it is 3"),  # type: ignore[arg-type]
    (lambda g, x: x.set_dim(None), "dims can't be set to None"),  # type: ignore[arg-type]
    (lambda g, x: x.set_dim("ab"), "dims: .*'ab'"),  # type: ignore[arg-type]
    (lambda g, x: x.set_stride([1, 2.5]), r"strides\[1\]: .* it is 2\.5"),  # type: ignore[list-item]
    (lambda g, x: x.set_uid("a"), "uid: .*'a'"),  # type: ignore[arg-type]
    (lambda g, x: x.set_name(3), "name: .* it is 3"),  # type: ignore[arg-type]
    (lambda g, x: x.set_data_type("flot"), "data_type: .*'half'.*'flot'"),  # type: ignore[arg-type]
    (lambda g, x: x.set_is_virtual("no"), "virtual: .*'no'"),  # type: ignore[arg-type]
    (lambda g, x: x.set_output("no"), "set_output takes True or False, but got 'no'"),  # type: ignore[arg-type]
    (lambda g, x: setattr(x, "dims", "x"), "dims: .*'x'"),
    (lambda g, x: g.conv_fprop(x, x, name=3), "name must be a str, but is 3"),
    *(
        (
            lambda g, x, option=option, value=value: g.conv_fprop(x, x, **{option: value}),
            f"'ConvolutionFprop_0': {option} is .*, but must be an integer, or a list",
        )
        for option in ("padding", "post_padding", "stride", "dilation")
        for value in (1.5, True, {1, 2}, "11", [1, 1.5], [])
    ),
    (lambda g, x: g.conv_fprop(x, x, padding=None), "padding is None"),
    (
        lambda g, x: g.batchnorm(x, x, x, x, prev_running_mean=x),
        "'Batchnorm_0': prev_running_variance, momentum not set",
    ),
    (lambda g, x: g.batchnorm_backward(x, x, x, mean=x), "inv_variance not set; give all of mean"),
]


@pytest.mark.parametrize(("build", "message"), NO_TENSORS + BAD_VALUES)
def test_a_wrong_argument_is_named_at_once(build: Build, message: str) -> None:
    graph = new_graph()
    x = graph.tensor(dims=[1, 4, 8, 8], name="x", uid=5)
    before = x.model_dump()
    with pytest.raises(GraphError, match=message) as caught:
        build(graph, x)
    assert "\n" not in str(caught.value)
    assert x.model_dump() == before


def test_numbers_of_numpy_are_taken() -> None:
    graph = new_graph()
    x = graph.tensor(dims=np.array([1, 4, 8, 8])).set_stride(np.array([256, 64, 8, 1]))  # type: ignore[arg-type]
    w = graph.tensor(dims=[np.int64(4), 4, 3, 3])  # type: ignore[list-item]
    y = graph.conv_fprop(x, w, padding=np.int64(1), stride=np.array([1, 2]))  # type: ignore[arg-type]
    y = graph.pointwise("mul", y, graph.scalar(np.float32(0.5)))  # type: ignore[arg-type]
    z = graph.pointwise("relu_fwd", y, relu_lower_clip=np.float32(0.25)).set_output()  # type: ignore[arg-type]
    graph.validate()
    assert z.dims == (1, 4, 8, 4)
    assert graph.to_dict()["nodes"][2]["inputs"]["relu_lower_clip"] == 0.25
