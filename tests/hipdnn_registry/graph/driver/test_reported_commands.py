"""Command lines that people pasted into public issues, against graphs worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from hipdnn_registry.errors import GraphError
from hipdnn_registry.graph.driver import graph_from_driver_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hipdnn_registry.graph import Graph

LINES = [
    line
    for line in (Path(__file__).parents[3] / "data" / "driver_commands.txt")
    .read_text()
    .splitlines()
    if line
]


def reported(issue: str, containing: str = "") -> str:
    """Return the one line of the data file that stems from an issue."""
    (line,) = [x for x in LINES if f"# {issue}" in x and containing in x]
    return line


class Window(NamedTuple):
    padding: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]


def tensors(graph: Graph) -> dict[str, tuple[Sequence[int], Sequence[int], str]]:
    """Return dims, strides and type of every tensor that takes a buffer, by name."""
    return {
        t.name: (list(t.dims or ()), list(t.strides or ()), str(t.data_type))
        for t in graph.io_tensors
    }


def window(graph: Graph) -> Window:
    node: Any = graph.nodes[0]
    parameters = node.parameters
    assert parameters.pre_padding == parameters.post_padding
    assert parameters.conv_mode == "CROSS_CORRELATION"
    return Window(parameters.pre_padding, parameters.stride, parameters.dilation)


def node_types(graph: Graph) -> list[str]:
    return [node.type.removesuffix("Attributes") for node in graph.nodes]


@pytest.mark.parametrize("line", LINES)
def test_is_read_or_refused_in_one_clear_sentence(line: str) -> None:
    command = line.removeprefix("! ")
    if line.startswith("!") and "nhwc" not in line:
        with pytest.raises(GraphError, match=r"flag --\w+ \(-\w\) is '?\d+'?"):
            graph_from_driver_command(command)
    else:
        (graph,) = graph_from_driver_command(command)
        assert graph.to_dict()["nodes"]


CONVOLUTIONS = [
    (
        reported("MIOpen PR#989"),
        "ConvolutionBwd",
        {
            "dy": ([64, 256, 56, 56], [802816, 3136, 56, 1], "half"),
            "w": ([256, 8, 3, 3], [72, 9, 3, 1], "half"),
            "dx": ([64, 256, 56, 56], [802816, 3136, 56, 1], "half"),
        },
        Window((1, 1), (1, 1), (1, 1)),
    ),
    (
        reported("MIOpen#1049"),
        "ConvolutionBwd",
        {
            "dy": ([36, 512, 10, 10], [51200, 100, 10, 1], "half"),
            "w": ([512, 256, 3, 3], [2304, 9, 3, 1], "half"),
            "dx": ([36, 256, 19, 19], [92416, 361, 19, 1], "half"),
        },
        Window((1, 1), (2, 2), (1, 1)),
    ),
    (
        reported("rocm-libraries#4100"),
        "ConvolutionFwd",
        {
            "x": ([1, 512, 1, 3006], [1539072, 3006, 3006, 1], "bfloat16"),
            "w": ([512, 512, 1, 7], [3584, 7, 7, 1], "bfloat16"),
            "y": ([1, 512, 1, 3006], [1539072, 3006, 3006, 1], "bfloat16"),
        },
        Window((0, 9), (1, 1), (1, 3)),
    ),
    (
        reported("rocm-libraries#5827"),
        "ConvolutionWrw",
        {
            "dy": ([2, 8, 1, 1], [8, 1, 8, 8], "bfloat16"),
            "x": ([2, 224, 1, 1], [224, 1, 224, 224], "bfloat16"),
            "dw": ([8, 224, 1, 1], [224, 1, 224, 224], "bfloat16"),
        },
        Window((0, 0), (1, 1), (1, 1)),
    ),
    (
        reported("MIOpen#1311").removeprefix("! "),
        "ConvolutionFwd",
        {
            "x": ([128, 512, 28, 28], [401408, 1, 14336, 512], "half"),
            "w": ([128, 512, 1, 1], [512, 1, 512, 512], "half"),
            "y": ([128, 128, 28, 28], [100352, 1, 3584, 128], "half"),
        },
        Window((0, 0), (1, 1), (1, 1)),
    ),
    (
        reported("rocm-libraries#3558"),
        "ConvolutionFwd",
        {
            "x": ([1, 64, 123, 352, 640], [1773404160, 27709440, 225280, 640, 1], "half"),
            "w": ([32, 64, 3, 3, 3], [1728, 27, 9, 3, 1], "half"),
            "y": ([1, 32, 121, 352, 640], [872284160, 27258880, 225280, 640, 1], "half"),
        },
        Window((0, 1, 1), (1, 1, 1), (1, 1, 1)),
    ),
    (
        reported("MIOpen#1753"),
        "ConvolutionWrw",
        {
            "dy": ([128, 128, 17, 17], [36992, 289, 17, 1], "float"),
            "x": ([128, 128, 17, 17], [36992, 289, 17, 1], "float"),
            "dw": ([128, 128, 7, 1], [896, 7, 1, 1], "float"),
        },
        Window((3, 0), (1, 1), (1, 1)),
    ),
]


@pytest.mark.parametrize(("line", "node", "expected", "parameters"), CONVOLUTIONS)
def test_convolution(
    line: str,
    node: str,
    expected: dict[str, tuple[list[int], list[int], str]],
    parameters: Window,
) -> None:
    (graph,) = graph_from_driver_command(line)
    assert node_types(graph) == [node]
    assert tensors(graph) == expected
    assert window(graph) == parameters
    assert graph.nodes[0].compute_data_type == "float"


def test_convolution_with_bias() -> None:
    (graph,) = graph_from_driver_command(reported("MIOpen#2001"))
    assert node_types(graph) == ["ConvolutionFwd", "Pointwise"]
    bias: Any = graph.nodes[1]
    assert bias.inputs.operation == "add"
    assert tensors(graph) == {
        "x": ([1, 1, 3, 3], [9, 9, 3, 1], "float"),
        "w": ([2, 1, 2, 2], [4, 4, 2, 1], "float"),
        "bias": ([1, 2, 1, 1], [2, 1, 1, 1], "float"),
        "y": ([1, 2, 2, 2], [8, 4, 2, 1], "float"),
    }


def test_convolution_with_bias_and_activation() -> None:
    (graph,) = graph_from_driver_command(reported("MIOpen#3086"))
    assert node_types(graph) == ["ConvolutionFwd", "Pointwise", "Pointwise"]
    pointwise: Any = graph.nodes[1:]
    assert [node.inputs.operation for node in pointwise] == ["add", "relu_fwd"]
    assert {name: dims for name, (dims, _, _) in tensors(graph).items()} == {
        "x": [128, 3, 32, 32],
        "w": [64, 3, 3, 3],
        "bias": [1, 64, 1, 1],
        "y": [128, 64, 32, 32],
    }


BATCHNORMS = [
    (
        reported("MIOpen#2012", "--forw 2"),
        "BatchnormInferenceAttributesVarianceExt",
        {
            "x": ([5, 33, 27, 1], "float"),
            **dict.fromkeys(("mean", "variance", "scale", "bias"), ([1, 33, 1, 1], "float")),
            "y": ([5, 33, 27, 1], "float"),
        },
    ),
    (
        reported("MIOpen#2012", "--forw 1"),
        "BatchnormAttributes",
        {
            "x": ([1, 32, 30, 1], "float"),
            "scale": ([1, 32, 1, 1], "float"),
            "bias": ([1, 32, 1, 1], "float"),
            "y": ([1, 32, 30, 1], "float"),
        },
    ),
    (
        reported("MIOpen#1549"),
        "BatchnormAttributes",
        {
            "x": ([256, 64, 112, 112], "half"),
            **dict.fromkeys(
                (
                    *("scale", "bias", "prev_running_mean", "prev_running_variance"),
                    *("mean", "inv_variance", "next_running_mean", "next_running_variance"),
                ),
                ([1, 64, 1, 1], "float"),
            ),
            "y": ([256, 64, 112, 112], "half"),
        },
    ),
    (
        reported("MIOpen#915"),
        "BatchnormBackwardAttributes",
        {
            **dict.fromkeys(("dy", "x", "dx"), ([38, 256, 20, 20], "half")),
            **dict.fromkeys(("scale", "dscale", "dbias"), ([1, 256, 1, 1], "float")),
        },
    ),
    (
        reported("MIOpen PR#3234"),
        "BatchnormBackwardAttributes",
        {
            **dict.fromkeys(("dy", "x", "dx"), ([8, 8, 12, 12, 12], "float")),
            **dict.fromkeys(
                ("scale", "mean", "inv_variance", "dscale", "dbias"), ([1, 8, 1, 1, 1], "float")
            ),
        },
    ),
]


@pytest.mark.parametrize(("line", "node", "expected"), BATCHNORMS)
def test_batchnorm(line: str, node: str, expected: dict[str, tuple[list[int], str]]) -> None:
    (graph,) = graph_from_driver_command(line)
    assert [n.type for n in graph.nodes] == [node]
    assert {name: (dims, kind) for name, (dims, _, kind) in tensors(graph).items()} == expected


def test_batchnorm_layout() -> None:
    (graph,) = graph_from_driver_command(reported("MIOpen PR#3234"))
    for name in ("dy", "x", "dx"):
        assert tensors(graph)[name][1] == [13824, 1, 1152, 96, 8]
