"""bnorm: directions, statistics (typed and as MIOpen prints them), types, layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hipdnn_registry.errors import GraphError
from hipdnn_registry.graph.driver import graph_from_driver_command

if TYPE_CHECKING:
    from hipdnn_registry.graph import Graph

LOGGED = "MIOpen(HIP): Command [LogCmdBNorm] ./bin/MIOpenDriver "
SAVED = {"mean", "inv_variance"}
RUNNING = {
    *("prev_running_mean", "prev_running_variance"),
    *("next_running_mean", "next_running_variance"),
}


def only(text: str) -> Graph:
    (graph,) = graph_from_driver_command(text)
    return graph


def names(graph: Graph) -> set[str]:
    return {tensor.name for tensor in graph.io_tensors}


def types(graph: Graph) -> dict[str, str]:
    return {tensor.name: str(tensor.data_type) for tensor in graph.io_tensors}


def constants(graph: Graph) -> dict[str, object]:
    return {t.name: t.value for t in graph.tensors.values() if t.is_constant}


@pytest.mark.parametrize(
    ("flags", "statistics"),
    [
        ("", set()),
        ("-s 1", SAVED),
        ("-r 1", RUNNING),
        ("-s 1 -r 1", SAVED | RUNNING),
        ("-s 1 -s 0", set()),
    ],
)
@pytest.mark.parametrize("direction", ["", "--forw 1", "--forw 1 -b 0", "-F 1", "--forw 0 -b 0"])
def test_training_statistics(direction: str, flags: str, statistics: set[str]) -> None:
    graph = only(f"MIOpenDriver bnorm {direction} {flags}")
    assert [node.type for node in graph.nodes] == ["BatchnormAttributes"]
    assert names(graph) == {"x", "scale", "bias", "y"} | statistics
    momentum = {"momentum": 0.1} if "prev_running_mean" in statistics else {}
    assert constants(graph) == {"epsilon": 1e-3, **momentum}


@pytest.mark.parametrize(
    ("flags", "statistics"),
    [
        ("", set()),
        ("-s 1", RUNNING),
        ("-r 1", SAVED),
        ("-s 1 -r 1 --layout NCHW", SAVED | RUNNING),
        # Releases that print -I print -s and -r as the driver reads them.
        ("-I 0 -s 1", SAVED),
        ("-I 0 -r 1", RUNNING),
    ],
)
def test_printed_training_statistics_mean_the_opposite(flags: str, statistics: set[str]) -> None:
    graph = only(f"{LOGGED} bnorm -n 4 -c 8 -H 2 -W 2 -m 1 --forw 1 -b 0 {flags}")
    assert names(graph) == {"x", "scale", "bias", "y"} | statistics


@pytest.mark.parametrize(
    ("text", "saved"),
    [
        ("bnorm --forw 0 -b 1", False),
        ("bnorm --forw 0 -b 1 -s 1", True),
        ("bnorm --forw 0 -b 1 -r 1", False),
        (f"{LOGGED} bnorm --forw 0 -b 1", False),
        (f"{LOGGED} bnorm --forw 0 -b 1 -r 1", True),
        (f"{LOGGED} bnorm --forw 0 -b 1 -s 1", True),
    ],
)
def test_backward_reads_saved_statistics(text: str, saved: bool) -> None:
    graph = only(text)
    assert [node.type for node in graph.nodes] == ["BatchnormBackwardAttributes"]
    expected = {"dy", "x", "scale", "dx", "dscale", "dbias"}
    assert names(graph) == expected | (SAVED if saved else set())


def test_forward_and_backward_are_two_graphs() -> None:
    graphs = graph_from_driver_command("bnormbfp16 --forw 1 --back 1 -s 1")
    assert [graph.name for graph in graphs] == ["bnormbfp16_train", "bnormbfp16_bwd"]


def test_inference_by_inverse_variance() -> None:
    graph = only("bnorm --forw 2 -r 1 -I 1")
    assert [node.type for node in graph.nodes] == ["BatchnormInferenceAttributes"]
    assert names(graph) == {"x", "mean", "inv_variance", "scale", "bias", "y"}


@pytest.mark.parametrize(
    ("flags", "x", "scale"),
    [
        ("-m 0", (2, 3, 4, 5), (1, 3, 4, 5)),
        ("-m 1", (2, 3, 4, 5), (1, 3, 1, 1)),
        ("-m 0 -D 6", (2, 3, 6, 4, 5), (1, 3, 6, 4, 5)),
        ("-m 1 -D 6", (2, 3, 6, 4, 5), (1, 3, 1, 1, 1)),
        ("-m 1 -D 0", (2, 3, 4, 5), (1, 3, 1, 1)),
    ],
)
@pytest.mark.parametrize("forward", [1, 2])
def test_shapes(flags: str, x: tuple[int, ...], scale: tuple[int, ...], forward: int) -> None:
    graph = only(f"bnorm -n 2 -c 3 -H 4 -W 5 --forw {forward} -s 1 -r 1 {flags}")
    for tensor in graph.io_tensors:
        assert tensor.dims == (x if tensor.name in {"x", "y"} else scale)


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("", {"x": (60, 20, 5, 1), "scale": (60, 20, 5, 1)}),
        ("-L NHWC", {"x": (60, 1, 15, 3), "scale": (60, 1, 15, 3)}),
        ("--layout nhwc", {"x": (60, 1, 15, 3), "scale": (60, 1, 15, 3)}),
        ("-D 2 -L NDHWC", {"x": (120, 1, 60, 15, 3), "scale": (120, 1, 60, 15, 3)}),
        ("-m 1 -L NHWC", {"x": (60, 1, 15, 3), "scale": (3, 1, 1, 1)}),
    ],
)
def test_layout(flag: str, expected: dict[str, tuple[int, ...]]) -> None:
    graph = only(f"bnorm -n 2 -c 3 -H 4 -W 5 -b 1 {flag}")
    strides = {tensor.name: tensor.strides for tensor in graph.io_tensors}
    assert strides["x"] == strides["dy"] == strides["dx"] == expected["x"]
    assert strides["scale"] == strides["dscale"] == strides["dbias"] == expected["scale"]


@pytest.mark.parametrize(
    ("base", "x", "scale", "gradient"),
    [
        ("bnorm", "float", "float", "float"),
        ("bnormfp16", "half", "float", "half"),
        ("bnormbfp16", "bfloat16", "float", "bfloat16"),
        ("bnormfp16fp32", "half", "half", "float"),
        ("bnormbfp16fp32", "bfloat16", "bfloat16", "float"),
    ],
)
def test_data_types(base: str, x: str, scale: str, gradient: str) -> None:
    forward, backward = graph_from_driver_command(f"{base} --forw 1 -b 1 -s 1 -r 1")
    assert types(forward) == {
        **dict.fromkeys(("x", "y"), x),
        **dict.fromkeys(("scale", "bias"), scale),
        **dict.fromkeys(SAVED | RUNNING, "float"),
    }
    assert types(backward) == {
        **dict.fromkeys(("dy", "dx"), gradient),
        "x": x,
        "scale": scale,
        **dict.fromkeys(SAVED | {"dscale", "dbias"}, "float"),
    }
    for graph in (forward, backward):
        assert {str(node.compute_data_type) for node in graph.nodes} == {"float"}


@pytest.mark.parametrize("forward", [1, 2])
def test_fused_activation(forward: int) -> None:
    graph = only(f"bnormfp16 --forw {forward} -m 1 -f 7 -x 6 -y 1 -z 0")
    activation: Any = graph.nodes[1]
    assert activation.inputs.relu_upper_clip == 6.0
    assert [str(t.data_type) for t in graph.tensors.values() if t.virtual] == ["float"]
    assert types(graph)["y"] == "half"


def test_printed_fusion_of_batchnorm_and_activation_has_the_flags_of_bnorm() -> None:
    line = "./bin/MIOpenDriver CBAInfer -F 2 -n 64 -c 64 -H 56 -W 56 -m 1"
    printed = only(f"MIOpen(HIP): Command [LogCmdFusion] {line}")
    typed = only(line)
    for graph, scale, activation in (
        (printed, (1, 64, 1, 1), "relu_fwd"),  # -m 1 is the batchnorm mode
        (typed, (1, 64, 56, 56), "sigmoid_fwd"),  # -m 1 is the activation mode
    ):
        assert {t.dims for t in graph.io_tensors if t.name == "scale"} == {scale}
        node: Any = graph.nodes[1]
        assert node.inputs.operation == activation


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("-F 4", r"--forw \(-F\) is '4', but must be an integer from 0 to 2"),
        ("-b 2", r"--back \(-b\) is '2'"),
        ("-m 2", r"--mode \(-m\) is '2', but must be an integer from 0 to 1"),
        ("-A 2", r"--alpha \(-A\) is '2', but must be 1: .*unscaled"),
        ("-B 0.5", r"--beta \(-B\) is '0.5', but must be 0"),
        ("-D 3 -L NHWC", r"--layout \(-L\) is 'NHWC'.*NCDHW or NDHWC"),
        ("-L NCDHW", r"--layout \(-L\) is 'NCDHW'.*NCHW or NHWC"),
        ("--forw 1 -I 1", r"--inverse_variance \(-I\) is 1: only inference"),
        ("-b 1 -f 3", r"--activ_mode \(-f\) is 3: with --back 1 it must be 0"),
        ("--in_layout NHWC", r"base 'bnorm' has no flag '--in_layout'"),
    ],
)
def test_refusals(flags: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        graph_from_driver_command(f"bnorm {flags}")
