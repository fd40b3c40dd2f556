"""Every rule of validation is broken once; the error names node, tensor and rule."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from hipdnn_registry import Graph, GraphError
from tests.graphs import batchnorm_graph, conv_graph, fused_graph, new_graph

Form = dict[str, Any]
_CUSTOM: Form = {
    "name": "custom",
    "type": "CustomOpAttributes",
    "inputs": {"x_tensor_uid": 0},
    "outputs": {},
}
Change = Callable[[Form], object]


def tensor(form: Form, name: str) -> Form:
    (found,) = [t for t in form["tensors"] if t["name"] == name]
    assert isinstance(found, dict)
    return found


CONV: list[tuple[str, Change, str]] = [
    ("tensor.duplicate_uid", lambda f: tensor(f, "w").update(uid=tensor(f, "x")["uid"]), "'x'"),
    ("tensor.unknown_uid", lambda f: f["nodes"][0]["inputs"].update(w_tensor_uid=77), "77"),
    ("tensor.unused", lambda f: f["tensors"].append(tensor(f, "x") | {"uid": 9}), "uid 9"),
    ("tensor.unread_virtual", lambda f: tensor(f, "y").update(virtual=True), "'y'"),
    ("tensor.virtual_input", lambda f: tensor(f, "x").update(virtual=True), "'x'"),
    ("tensor.dims", lambda f: tensor(f, "y").update(dims=[2, 6, 8, 7]), r"\[2, 6, 8, 7\]"),
    ("tensor.dims", lambda f: tensor(f, "x").update(dims=[2, 4, 0, 8]), "at least 1"),
    ("tensor.dims", lambda f: tensor(f, "y").update(dims=[2, 0, 8, 8]), "at least 1"),
    ("tensor.dims", lambda f: tensor(f, "w").update(dims=[]), "at least 1"),
    ("tensor.strides", lambda f: tensor(f, "x").update(strides=[64, 8, 1]), "rank"),
    ("tensor.strides", lambda f: tensor(f, "x").update(strides=[256, 64, 8, -1]), "negative"),
    ("tensor.overlap", lambda f: tensor(f, "y").update(strides=[384, 63, 8, 1]), "share addr"),
    ("tensor.overlap", lambda f: tensor(f, "y").update(strides=[384, 64, 0, 1]), "share addr"),
    ("tensor.size", lambda f: tensor(f, "x").update(dims=[2**62, 4, 8, 8]), "2.*63"),
    (
        "tensor.size",
        lambda f: tensor(f, "x").update(dims=[1, 4, 8, 8], strides=[2**60, 64, 8, 1]),
        f"a stride of {2**60} is more than",
    ),
    ("tensor.alignment", lambda f: tensor(f, "x").update(alignment=3), "power of two"),
    ("tensor.data_type", lambda f: tensor(f, "w").update(data_type="half"), "share one"),
    ("tensor.data_type", lambda f: tensor(f, "y").update(data_type="int32"), "floating"),
    ("tensor.value", lambda f: tensor(f, "x").update(value=1.0), "together"),
    (
        "tensor.constant_output",
        lambda f: tensor(f, "y").update(value=1.0, value_type="Float32Value"),
        "constant",
    ),
    ("node.compute_data_type", lambda f: f["nodes"][0].update(compute_data_type="int32"), "int32"),
    (
        "convolution.rank",
        lambda f: tensor(f, "w").update(dims=[6, 4, 3], strides=[12, 3, 1]),
        "has 3 dims",
    ),
    (
        "convolution.parameters",
        lambda f: f["nodes"][0]["parameters"].update(stride=[1]),
        r"stride \[1\] has 1 entries",
    ),
    (
        "convolution.parameters",
        lambda f: f["nodes"][0]["parameters"].update(dilation=[1, 0]),
        "below 1",
    ),
    (
        "convolution.parameters",
        lambda f: f["nodes"][0]["parameters"].update(pre_padding=[0, -1]),
        "below 0",
    ),
    (
        "convolution.groups",
        lambda f: tensor(f, "w").update(dims=[6, 3, 3, 3], strides=[27, 9, 3, 1]),
        "groups of 3",
    ),
    (
        "convolution.groups",
        lambda f: tensor(f, "w").update(dims=[5, 2, 3, 3], strides=[18, 9, 3, 1]),
        "5 filters .* 2 groups",
    ),
    (
        "convolution.empty",
        lambda f: f["nodes"][0]["parameters"].update(dilation=[1, 9]),
        "spatial dimension 1.*output extent is 0",
    ),
    (
        "convolution.mode",
        lambda f: f["nodes"][0]["parameters"].update(conv_mode="NOT_SET"),
        "NOT_SET",
    ),
    ("json.field", lambda f: f["nodes"][0]["parameters"].update(stride=[1, "2"]), "stride.*'2'"),
    ("json.field", lambda f: f["nodes"][0]["parameters"].update(stride=[1, True]), "True"),
    (
        "json.field",
        lambda f: f["nodes"][0]["parameters"].update(conv_mode="convolution"),
        "'CROSS_CORRELATION' or 'CONVOLUTION', but it is 'convolution'",
    ),
    ("json.field", lambda f: tensor(f, "x").update(dims=3), "dims: input should be a valid list"),
    ("json.field", lambda f: f["tensors"].append(3), r"tensors\[3\]: .* of TensorAttributes"),
    ("json.field", lambda f: f["nodes"][0]["inputs"].pop("w_tensor_uid"), "w_tensor_uid is miss"),
    ("json.field", lambda f: tensor(f, "x").update(data_type="float32"), "float32"),
    ("json.field", lambda f: tensor(f, "x").update(dims=[2**64]), str(2**64)),
    ("json.field", lambda f: f.pop("tensors"), "tensors is missing"),
    ("json.field", lambda f: f["tensors"][1].pop("uid"), r"tensors\[1\].uid is missing \('"),
    ("json.field", lambda f: f["tensors"][0].clear(), r"tensors\[0\].uid is missing"),
    ("json.field", lambda f: f.update(nodes=[]), "nodes"),
    ("json.node_type", lambda f: f["nodes"][0].update(type="ConvolutionFwd"), "did you mean"),
    ("json.node", lambda f: f["nodes"].append(7), "7"),
    ("node.no_output", lambda f: f["nodes"].append(_CUSTOM), "writes no"),
]

BATCHNORM: list[tuple[str, Change, str]] = [
    ("batchnorm.epsilon", lambda f: _unbind(f, "inputs", "epsilon"), "epsilon is missing"),
    (
        "batchnorm.running_statistics",
        lambda f: _unbind(f, "inputs", "momentum"),
        "momentum not set",
    ),
    ("batchnorm.epsilon", lambda f: tensor(f, "epsilon").update(value=-1.0), "negative"),
    (
        "batchnorm.epsilon",
        lambda f: [
            tensor(f, "epsilon").update(dims=[2], strides=[1]),
            [tensor(f, "epsilon").pop(key) for key in ("value", "value_type")],
        ],
        "scalar",
    ),
    (
        "tensor.value_type",
        lambda f: tensor(f, "epsilon").update(value_type="Float64Value"),
        "does not fit",
    ),
    ("tensor.value", lambda f: tensor(f, "epsilon").update(value=True), "True"),
    ("json.field", lambda f: tensor(f, "epsilon").update(value="1"), "valid number, but it is '1'"),
    (
        "batchnorm.scale",
        lambda f: tensor(f, "scale").update(dims=[1, 1, 4, 4], strides=[16, 16, 4, 1]),
        "per activation",
    ),
    (
        "tensor.dims",
        lambda f: tensor(f, "bias").update(dims=[1, 3, 4, 4], strides=[48, 16, 4, 1]),
        "shape of scale",
    ),
    ("tensor.data_type", lambda f: tensor(f, "scale").update(data_type="int8"), "floating"),
]

FUSED: list[tuple[str, Change, str]] = [
    (
        "graph.cycle",
        lambda f: [
            f["nodes"][1]["inputs"].update(
                in_1_tensor_uid=f["nodes"][3]["outputs"]["out_0_tensor_uid"]
            ),
            f["tensors"].remove(tensor(f, "bias")),
        ],
        "cycle",
    ),
    (
        "tensor.two_writers",
        lambda f: f["nodes"][3]["outputs"].update(
            out_0_tensor_uid=f["nodes"][1]["outputs"]["out_0_tensor_uid"]
        ),
        "written by node",
    ),
    (
        "pointwise.operands",
        lambda f: [
            f["nodes"][1]["inputs"].update(in_1_tensor_uid=None),
            f["tensors"].remove(tensor(f, "bias")),
        ],
        "in_1 is missing",
    ),
    (
        "pointwise.operands",
        lambda f: f["nodes"][3]["inputs"].update(in_1_tensor_uid=tensor(f, "bias")["uid"]),
        "in_1 is set",
    ),
    (
        "pointwise.broadcast",
        lambda f: tensor(f, "bias").update(dims=[1, 5, 1, 1], strides=[5, 1, 1, 1]),
        "do not broadcast",
    ),
    (
        "pointwise.clips",
        lambda f: f["nodes"][3]["inputs"].update(relu_lower_clip=2.0, relu_upper_clip=1.0),
        "above",
    ),
    ("json.field", lambda f: f["nodes"][3]["inputs"].update(relu_lower_clip="0"), "clip: .* '0'"),
    ("json.field", lambda f: f["nodes"][3]["inputs"].update(relu_lower_clip=True), "clip: .* True"),
    ("pointwise.operation", lambda f: f["nodes"][3]["inputs"].update(operation="unset"), "not set"),
]


def _unbind(form: Form, side: str, port: str) -> None:
    uid = form["nodes"][0][side].pop(f"{port}_tensor_uid")
    form["tensors"] = [t for t in form["tensors"] if t["uid"] != uid]


def _matmul(**changes: object) -> Form:
    return {
        "name": "mm",
        "type": "MatmulAttributes",
        "inputs": {"a_tensor_uid": 0, "b_tensor_uid": 1},
        "outputs": {"c_tensor_uid": 2},
    } | changes


@pytest.mark.parametrize(
    ("graph", "rule", "change", "message"),
    [
        (build(), rule, change, message)
        for build, table in (
            (conv_graph, CONV),
            (batchnorm_graph, BATCHNORM),
            (fused_graph, FUSED),
        )
        for rule, change, message in table
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_rule_is_named(graph: Graph, rule: str, change: Change, message: str) -> None:
    form = graph.to_dict()
    Graph.from_json(copy.deepcopy(form))  # sound before the change
    change(form)
    with pytest.raises(GraphError, match=message) as caught:
        Graph.from_json(form)
    assert caught.value.rule == rule
    assert f"[{rule}]" in str(caught.value)


def test_the_error_names_node_and_tensor() -> None:
    form = conv_graph().to_dict()
    tensor(form, "y")["dims"] = [1, 1, 1, 1]
    with pytest.raises(GraphError) as caught:
        Graph.from_json(form)
    assert caught.value.node == "ConvolutionFprop_0"
    assert caught.value.tensor == "uid 2 ('y')"
    assert str(caught.value).startswith("node 'ConvolutionFprop_0', tensor uid 2 ('y'): dims are")


def test_required_ports_of_operations_that_are_only_stored() -> None:
    form = {
        "tensors": [
            {"uid": uid, "dims": [2, 2], "strides": [2, 1], "data_type": "float"}
            for uid in range(3)
        ],
        "nodes": [_matmul(compute_data_type="float")],
    }
    Graph.from_json(form)
    form["nodes"][0]["inputs"].pop("b_tensor_uid")
    with pytest.raises(GraphError, match="input b is missing"):
        Graph.from_json(form)


def test_two_graphs_in_one_are_refused() -> None:
    graph = new_graph()
    for _ in range(2):
        graph.pointwise("abs", graph.tensor(dims=[2])).set_output()
    with pytest.raises(GraphError, match="shares no tensor"):
        graph.validate()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"tensors": NaN, "nodes": []}', "[" * 100_000, '"x"', "\x00"],
)
def test_text_that_is_no_graph(text: str) -> None:
    with pytest.raises(GraphError, match=r"\[json\."):
        Graph.from_json(text)


def test_an_empty_graph() -> None:
    with pytest.raises(GraphError, match="no nodes"):
        new_graph().validate()


def test_nodes_are_sorted_whatever_their_order() -> None:
    form = fused_graph().to_dict()
    names = [node["name"] for node in form["nodes"]]
    form["nodes"].reverse()
    graph = Graph.from_json(json.dumps(form))
    assert [node.name for node in graph.nodes] == names
