"""Graphs whose tensors don't agree never reach MIOpen, which would run kernels out of bounds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from hipdnn_registry import DataType, EngineRegistry, Graph, GraphError
from tests.graphs import batchnorm_graph, conv_graph, new_graph
from tests.native.engines import (
    BFLOAT16,
    ENGINE,
    HALF,
    bn_backward,
    bn_inference,
    conv_backward_data,
    conv_backward_weights,
    conv_bias_relu,
    conv_forward,
)
from tests.native.observe import observe

if TYPE_CHECKING:
    from collections.abc import Callable


def changed(graph: Graph, tensor: str, **fields: Any) -> Graph:
    """A copy of a graph in which one tensor is another."""
    copy = graph.copy()
    found = copy.find_tensor(tensor)
    for name, value in fields.items():
        setattr(found, name, value)
    if "dims" in fields:
        found.strides = None
    return copy


MISMATCHES: dict[str, Callable[[], Graph]] = {
    "channels of w": lambda: changed(conv_forward(), "w", dims=(8, 9, 3, 3)),
    "filters": lambda: changed(conv_forward(), "y", dims=(2, 9, 16, 16)),
    "batch of y": lambda: changed(conv_forward(), "y", dims=(3, 8, 16, 16)),
    "height of y": lambda: changed(conv_forward(), "y", dims=(2, 8, 17, 16)),
    "rank of x": lambda: changed(conv_forward(), "x", dims=(2, 8, 4, 4, 16)),
    "type of w": lambda: changed(conv_forward(), "w", data_type=HALF),
    "filter larger than the image": lambda: conv_graph((1, 8, 2, 2), (8, 8, 7, 7), padding=1),
    "dx": lambda: changed(conv_backward_data(), "dx", dims=(2, 8, 14, 16)),
    "dy of backward data": lambda: changed(conv_backward_data(), "dy", dims=(2, 9, 16, 16)),
    "dw": lambda: changed(conv_backward_weights(), "dw", dims=(4, 8, 5, 3)),
    "dy of backward weights": lambda: changed(conv_backward_weights(), "dy", dims=(3, 4, 12, 16)),
    "scale": lambda: changed(batchnorm_graph(), "scale", dims=(1, 4, 1, 1)),
    "bias of a batchnorm": lambda: changed(batchnorm_graph(), "bias", dims=(1, 3, 4, 4)),
    "running mean": lambda: changed(batchnorm_graph(), "prev_mean", dims=(1, 9, 1, 1)),
    "y of a batchnorm": lambda: changed(batchnorm_graph(), "y", dims=(2, 3, 4, 5)),
    "mean of inference": lambda: changed(bn_inference(), "mean", dims=(1, 9, 1, 1)),
    "dy of a batchnorm": lambda: changed(bn_backward(), "dy", dims=(4, 8, 16, 17)),
    "dscale": lambda: changed(bn_backward(), "dscale", dims=(1, 9, 1, 1)),
    "bias that doesn't broadcast": lambda: changed(conv_bias_relu(), "bias", dims=(1, 9, 1, 1)),
    "y of the fused": lambda: changed(conv_bias_relu(), "y", dims=(2, 8, 16, 17)),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_a_mismatch_is_an_error_of_the_graph(name: str, registry: EngineRegistry) -> None:
    with observe() as seen, pytest.raises(GraphError, match=r"tensor|node"):
        registry.create_execution_plan_ext(MISMATCHES[name](), ENGINE)
    assert seen.launches == 0
    assert "Convolution" not in seen.log


def in_integers() -> Graph:
    graph = new_graph(io=DataType.INT8)
    x, w = graph.tensor(dims=[2, 8, 8, 8]), graph.tensor(dims=[8, 8, 3, 3])
    graph.conv_fprop(x, w).set_output().set_data_type(DataType.INT8)
    return graph


DECLINED: dict[str, tuple[Callable[[], Graph], str]] = {
    "y of another type": (
        lambda: changed(conv_forward(), "y", data_type=HALF),
        "takes one data type for all tensors",
    ),
    "bias of another type": (
        lambda: changed(conv_bias_relu(), "bias", data_type=BFLOAT16),
        "a bias has .* and 'float'",
    ),
    "dy of another type": (
        lambda: changed(bn_backward(), "dy", data_type=HALF),
        "takes that of x, 'float'",
    ),
    "layouts that differ": (
        lambda: changed(conv_forward(), "y", strides=(2048, 1, 128, 8)),
        "must be packed in one layout",
    ),
    "a map as batchnorm bias": (
        lambda: changed(conv_bias_relu(), "bias", dims=(1, 8, 16, 16)),
        r"a bias has \[1, 8, 1, 1\]",
    ),
    "integers": (in_integers, "data type 'int8'"),
}


@pytest.mark.parametrize("name", DECLINED)
def test_what_is_a_graph_but_not_one_for_miopen_is_declined(
    name: str, registry: EngineRegistry
) -> None:
    make, reason = DECLINED[name]
    with observe() as seen:
        (answer, *_) = (a for a in registry.explain(make()).answers if a.engine.name == ENGINE)
    assert answer.info is None
    assert answer.exception is None
    assert seen.launches == 0
    assert re.search(reason, answer.reason), answer.reason
