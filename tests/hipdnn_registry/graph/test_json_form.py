"""hipDNN's JSON form: what it writes is read, and comes back unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hipdnn_registry import DataType, Graph, PointwiseMode
from hipdnn_registry.graph import NODE_TYPES, PointwiseNode
from hipdnn_registry.graph.rules import RULES
from tests.graphs import batchnorm_graph, conv_graph, fused_graph

GRAPHS = sorted((Path(__file__).parents[2] / "data" / "graphs").glob("*.json"))


@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: path.stem)
def test_graphs_that_hipdnn_wrote_survive(path: Path) -> None:
    form = json.loads(path.read_text())
    assert json.loads(Graph.from_json(path.read_text()).to_json()) == form


def test_hipdnn_graphs_are_understood() -> None:
    conv = Graph.from_json(next(p for p in GRAPHS if "conv_bias" in p.stem).read_text())
    assert [node.type for node in conv.nodes] == ["ConvolutionFwdAttributes", "PointwiseAttributes"]
    pointwise = conv.nodes[1]
    assert isinstance(pointwise, PointwiseNode)
    assert pointwise.inputs.operation is PointwiseMode.ADD
    assert pointwise.compute_data_type is DataType.FLOAT, "the graph's, since the node has none"
    layernorm = Graph.from_json(next(p for p in GRAPHS if "layernorm" in p.stem).read_text())
    assert layernorm.tensors[4].value == 1e-05
    assert layernorm.tensors[4].is_constant


@pytest.mark.parametrize("build", [conv_graph, fused_graph, batchnorm_graph])
def test_built_graphs_survive(build: Any) -> None:
    graph = build()
    text = graph.to_json()
    again = Graph.from_json(text)
    assert again.to_json() == text
    assert again.content_key == graph.content_key


def test_every_field_that_a_reader_needs_is_written() -> None:
    form = batchnorm_graph(running=False).to_dict()
    for tensor in form["tensors"]:
        assert tensor.keys() >= {"uid", "name", "data_type", "dims", "strides", "virtual"}
    epsilon = next(t for t in form["tensors"] if t["name"] == "epsilon")
    assert (epsilon["value_type"], epsilon["value"]) == ("Float32Value", 1e-5)
    (node,) = form["nodes"]
    assert node["inputs"]["peer_stats_tensor_uid"] == []
    assert node["inputs"]["momentum_tensor_uid"] is None
    relu = fused_graph().to_dict()["nodes"][3]
    assert relu["inputs"]["operation"] == "relu_fwd"
    assert relu["inputs"]["relu_lower_clip"] is None


def test_fields_of_a_newer_hipdnn_survive() -> None:
    form = conv_graph().to_dict()
    form["graph_hint"] = {"speed": "high"}
    form["tensors"][0]["reordering_type"] = "int8x32"
    form["nodes"][0]["fast_math"] = True
    form["nodes"][0]["parameters"]["algorithm"] = None
    form["nodes"][0]["inputs"]["bias_scale"] = [1, 2]
    assert Graph.from_json(form).to_dict() == form


@pytest.mark.parametrize("kind", [kind for kind, model in NODE_TYPES.items() if model not in RULES])
def test_node_types_that_are_only_stored_round_trip(kind: str) -> None:
    model = NODE_TYPES[kind]
    inputs = model.required_inputs or ("x",)
    outputs = model.required_outputs or ("y",)
    ports = {port: uid for uid, port in enumerate((*inputs, *outputs))}
    form = {
        "name": "g",
        "compute_data_type": "float",
        "io_data_type": "half",
        "intermediate_data_type": "unset",
        "tensors": [
            {"uid": uid, "name": port, "dims": [2, 3], "strides": [3, 1], "data_type": "half"}
            for port, uid in ports.items()
        ],
        "nodes": [
            {
                "name": "n",
                "type": kind,
                "compute_data_type": "float",
                "inputs": {f"{port}_tensor_uid": ports[port] for port in inputs}
                | {"mask_tensor_uid": None},
                "outputs": {f"{port}_tensor_uid": ports[port] for port in outputs},
                "attributes": {"dropout_probability": 0.1, "mode": "NOT_SET"},
            }
        ],
    }
    assert Graph.from_json(form).to_dict() == form


@pytest.mark.parametrize(("spelling", "mode"), [("max", PointwiseMode.MAX), ("min_op", "min_op")])
def test_both_spellings_of_max_and_min(spelling: str, mode: str) -> None:
    form = fused_graph().to_dict()
    form["nodes"][1]["inputs"]["operation"] = spelling
    node = Graph.from_json(form).nodes[1]
    assert isinstance(node, PointwiseNode)
    assert node.inputs.operation == mode


@pytest.mark.parametrize("enabled", [True, False])
def test_whether_shapes_may_be_overridden(enabled: bool) -> None:
    form = conv_graph().to_dict() | {"is_override_shape_enabled": enabled}
    assert Graph.from_json(form).is_override_shape_enabled is enabled
    assert conv_graph().is_override_shape_enabled is False
