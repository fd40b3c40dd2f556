"""conv and CBAInfer: defaults, spellings, directions, paddings, layouts, activations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.helper
import onnx.shape_inference
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hipdnn_registry.errors import GraphError
from hipdnn_registry.graph.driver import graph_from_driver_command
from hipdnn_registry.graph.driver.tables import BNORM, CBAINFER, CONV

if TYPE_CHECKING:
    from hipdnn_registry.graph import Graph
    from hipdnn_registry.graph.driver.flags import Flag


def only(text: str) -> Graph:
    (graph,) = graph_from_driver_command(text)
    return graph


def dims(graph: Graph) -> dict[str, tuple[int, ...]]:
    return {tensor.name: tensor.dims or () for tensor in graph.io_tensors}


def keys(text: str) -> list[str]:
    return [graph.content_key.digest for graph in graph_from_driver_command(text)]


def test_defaults_are_those_of_the_driver() -> None:
    graphs = graph_from_driver_command("conv")
    x, w, y = (100, 3, 32, 32), (32, 3, 3, 3), (100, 32, 30, 30)
    assert [dims(graph) for graph in graphs] == [
        {"x": x, "w": w, "y": y},
        {"dy": y, "w": w, "dx": x},
        {"dy": y, "x": x, "dw": w},
    ]
    assert dims(only("conv -F 1 -_ 3"))["y"] == (100, 32, 30, 30, 30)
    assert dims(only("CBAInfer -F 5"))["y"] == (32, 32, 30, 30)


@pytest.mark.parametrize(
    ("mask", "directions"),
    [
        (0, ["fwd", "bwd", "wrw"]),
        (1, ["fwd"]),
        (2, ["bwd"]),
        (3, ["fwd", "bwd"]),
        (4, ["wrw"]),
        (5, ["fwd", "wrw"]),
        (6, ["bwd", "wrw"]),
        (7, ["fwd", "bwd", "wrw"]),
    ],
)
def test_direction_mask(mask: int, directions: list[str]) -> None:
    graphs = graph_from_driver_command(f"convbfp16 -F {mask}")
    assert [graph.name for graph in graphs] == [f"convbfp16_{name}" for name in directions]


# Words that are allowed, for flags that take no number.
_VALUES = {
    **dict.fromkeys(("layout", "in_layout", "out_layout", "fil_layout"), "NHWC"),
    **dict.fromkeys(("in_cast_type", "out_cast_type", "wei_cast_type"), "-1"),
    "mode": "trans",
    "pad_mode": "same",
}


@pytest.mark.parametrize(
    ("base", "flag"),
    [
        pytest.param(base, flag, id=f"{base.split()[0]}-{flag.name}")
        for base, table in (
            ("conv -n 6 -c 6 -k 6 -H 40 -W 40 -u 2 -v 2", CONV),
            ("CBAInfer -n 6 -c 6 -k 6 -H 40 -W 40 --in_d 9", CBAINFER),
            ("bnorm --forw 2", BNORM),
        )
        for flag in table
    ],
)
def test_short_and_long_names_are_the_same_flag(base: str, flag: Flag) -> None:
    if isinstance(flag.default, str):
        value = _VALUES.get(flag.name, "some/file")
    else:
        value = f"{min(max(flag.default + 1, flag.low), flag.high):g}"
    expected = keys(f"{base} --{flag.name} {value}")
    assert keys(f"{base} --{flag.name}={value}") == expected
    for letter in flag.letters:
        assert keys(f"{base} -{letter} {value}") == expected


def test_run_flags_do_not_change_the_graph() -> None:
    plain = "conv -n 2 -c 4 -k 4"
    run = (
        "-i 3 -V 0 -t 1 -w 2 -P 0 -o 1 -s 1 -S -1 -C /tmp/cache -d x.bin -e w.bin -D dy.bin "
        "-a b.bin -G 1 -N 1 -M 0 -& 3 -~ 2 -J 1 --solution ConvDirectNaiveConvFwd"
    )
    assert keys(f"{plain} {run}") == keys(plain)


def test_of_a_repeated_flag_the_last_counts() -> None:
    # As pasted into MIOpen pull request 1532.
    graph = only(
        "conv -x 20 -y 5 -W 700 -H 161 -c 1 -n 4 -k 32 -p 0 -q 0 -u 2 -v 2 -l 1 -j 1 -g 1 -F 0 "
        "-V 1 -m trans -s 0 -S 0 -w 2 -t 1 -i 1 -F 1 -w 1"
    )
    assert graph.nodes[0].type == "ConvolutionBwdAttributes"
    assert dims(graph) == {"x": (4, 1, 161, 700), "w": (1, 32, 5, 20), "y": (4, 32, 325, 1418)}


def test_transposed_convolution_runs_the_adjoint_operations() -> None:
    text = (
        "conv -m trans -n 2 -c 6 -k 4 -g 2 -H 5 -W 7 -y 3 -x 4 -p 1 -q 0 -u 2 -v 3 -l 2 -Y 1 -X 2"
    )
    forward, backward_data, backward_weights = graph_from_driver_command(text)
    # Height 2 * (5 - 1) + 2 * (3 - 1) + 1 - 2 * 1 + 1; width 3 * (7 - 1) + (4 - 1) + 1 + 2.
    x, w, y = (2, 6, 5, 7), (6, 2, 3, 4), (2, 4, 12, 24)
    for graph, node, expected in (
        (forward, "ConvolutionBwdAttributes", {"dy": x, "w": w, "dx": y}),
        (backward_data, "ConvolutionFwdAttributes", {"x": y, "w": w, "y": x}),
        (backward_weights, "ConvolutionWrwAttributes", {"x": y, "dy": x, "dw": w}),
    ):
        (wiring,) = graph.structure.wirings
        assert wiring.node.type == node
        ports = {**wiring.inputs, **wiring.outputs}
        assert {port: tensor.dims for port, tensor in ports.items()} == expected
    assert set(dims(forward)) == {"x", "w", "y"}
    assert set(dims(backward_data)) == {"dy", "w", "dx"}
    assert set(dims(backward_weights)) == {"dy", "x", "dw"}


def test_transposed_convolution_with_bias() -> None:
    graph = only("conv -m trans -n 1 -c 2 -k 3 -H 4 -W 4 -b 1 -F 1")
    assert [node.type for node in graph.nodes] == [
        "ConvolutionBwdAttributes",
        "PointwiseAttributes",
    ]
    assert dims(graph)["bias"] == (1, 3, 1, 1)
    assert dims(graph)["y"] == (1, 3, 6, 6)


@pytest.mark.parametrize(
    ("flags", "padding", "output"),
    [
        ("-H 14 -W 9 -y 3 -x 5 --pad_mode same", (1, 2), (14, 9)),
        ("-H 14 -W 9 -y 3 -x 5 -u 2 -v 4 --pad_mode same", (0, 2), (6, 3)),
        ("-H 20 -W 20 -u 2 -v 2 --pad_mode same", (0, 0), (9, 9)),  # odd: 1 in all, rounded down
        ("-H 14 -W 9 -y 1 -x 1 -u 3 -v 3 --pad_mode same", (0, 0), (5, 3)),
        ("-H 14 -W 9 -p 5 -q 6 --pad_mode valid", (0, 0), (12, 7)),
        ("-H 14 -W 9 -p 1 -q 2 --pad_mode default", (1, 2), (14, 11)),
        ("-H 14 -W 9 -p 2 -q 2 -l 2 -j 2 --pad_mode same", (2, 2), (14, 9)),  # dilated: as given
    ],
)
def test_padding_mode(flags: str, padding: tuple[int, ...], output: tuple[int, ...]) -> None:
    graph = only(f"conv -n 1 -F 1 {flags}")
    parameters: Any = graph.nodes[0]
    assert parameters.parameters.pre_padding == parameters.parameters.post_padding == padding
    assert dims(graph)["y"][2:] == output


@pytest.mark.parametrize("spatial", [2, 3])
@pytest.mark.parametrize("layout", ["", "in_layout", "fil_layout", "out_layout"])
def test_layout_flags_set_the_strides_of_their_tensor(spatial: int, layout: str) -> None:
    channels_last = "NHWC" if spatial == 2 else "NDHWC"
    flag = f"--{layout} {channels_last}" if layout else ""
    graph = only(
        f"convfp16 -F 1 -b 1 -n 2 -c 3 -k 5 --in_d 4 -H 6 -W 7 --fil_d 2 --spatial_dim {spatial} "
        f"{flag}"
    )
    for tensor in graph.io_tensors:
        extents = tensor.dims or ()
        last = {"x": "in_layout", "w": "fil_layout", "y": "out_layout"}.get(tensor.name) == layout
        if last and layout:
            stored = np.empty((extents[0], *extents[2:], extents[1]), np.int8)
            array = np.moveaxis(stored, -1, 1)
        else:
            array = np.empty(extents, np.int8)
        assert tensor.strides == array.strides


def operations(graph: Graph) -> list[str]:
    names = {
        "ConvolutionFwdAttributes": "conv",
        "BatchnormInferenceAttributesVarianceExt": "norm",
        "PointwiseAttributes": "",
    }
    nodes: Any = graph.nodes
    return [names[node.type] or str(node.inputs.operation) for node in nodes]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (0, ["conv", "add", "norm", "relu_fwd"]),
        (1, ["conv", "norm", "relu_fwd"]),
        (2, ["norm", "relu_fwd"]),
        (3, ["conv", "norm"]),
        (4, ["conv", "add", "relu_fwd"]),
        (5, ["conv", "relu_fwd"]),
        (6, ["conv", "add"]),
    ],
)
@pytest.mark.parametrize("letter", ["F", "J"])
def test_fusion_mode(mode: int, expected: list[str], letter: str) -> None:
    graph = only(f"CBAInferfp16 -{letter} {mode} -n 2 -c 3 -k 5 -H 8 -W 9 -M 1")
    assert operations(graph) == expected
    assert {str(t.data_type) for t in graph.tensors.values() if t.virtual} <= {"float"}
    parameter = ((1, 5 if "conv" in expected else 3, 1, 1), "float")
    operands: dict[str, dict[str, Any]] = {
        "conv": {"w": ((5, 3, 3, 3), "half")},
        "add": {"in_1": ((1, 5, 1, 1), "half")},
        "norm": {
            "epsilon": ((1,), "float"),
            **dict.fromkeys(("mean", "variance", "scale", "bias"), parameter),
        },
        "relu_fwd": {},
    }
    for wiring, operation in zip(graph.structure.wirings, expected, strict=True):
        inputs = {port: (t.dims, str(t.data_type)) for port, t in wiring.inputs.items()}
        assert operands[operation].items() == inputs.items() - {
            (port, inputs[port]) for port in ("x", "in_0") if port in inputs
        }
    ends = {t.name: (t.dims, str(t.data_type)) for t in graph.io_tensors if t.name in {"x", "y"}}
    assert ends == {
        "x": ((2, 3, 8, 9), "half"),
        "y": ((2, 5, 6, 7) if "conv" in expected else (2, 3, 8, 9), "half"),
    }


def test_fused_batchnorm_per_activation() -> None:
    graph = only("CBAInfer -F 3 -n 2 -c 3 -k 5 -H 8 -W 9")
    assert dims(graph)["scale"] == dims(graph)["mean"] == (1, 5, 6, 7)
    (epsilon,) = [t.value for t in graph.tensors.values() if t.name == "epsilon"]
    assert epsilon == 1e-6


def test_fusion_with_same_padding_groups_and_clipped_relu() -> None:
    # As pasted into MIOpen pull request 3802.
    graph = only(
        "CBAInferbfp16 --spatial_dim 2 --batchsize 4 --in_channels 8 --out_channels 16 "
        "--group_count 4 --in_h 20 --in_w 20 --fil_h 3 --fil_w 3 --conv_stride_h 2 "
        "--conv_stride_w 2 --pad_mode same --dilation_h 1 --dilation_w 1 --in_layout NHWC "
        "--fil_layout NHWC --out_layout NHWC --alpha 1 --beta 1 --activMode 7 -F 4 -t 1"
    )
    assert dims(graph) == {
        "x": (4, 8, 20, 20),
        "w": (16, 2, 3, 3),
        "bias": (1, 16, 1, 1),
        "y": (4, 16, 9, 9),
    }
    activation: Any = graph.nodes[-1]
    assert activation.inputs.relu_upper_clip == 1.0
    assert {str(t.data_type) for t in graph.io_tensors} == {"bfloat16"}


@pytest.mark.parametrize(
    ("flags", "operation", "settings_"),
    [
        ("-m 0", "identity", {}),
        ("-m 1", "sigmoid_fwd", {}),
        ("-m 2 -B 1", "tanh_fwd", {}),
        ("-m 3 -A 7", "relu_fwd", {}),
        ("-m 4", "softplus_fwd", {}),
        ("-m 5", "abs", {}),
        ("-m 7 -A 6", "relu_fwd", {"relu_upper_clip": 6.0}),
        ("-m 8 -A .125", "relu_fwd", {"relu_lower_clip_slope": 0.125}),
        ("-m 9 -A 2e-1", "elu_fwd", {"elu_alpha": 0.2}),
        ("-m 10 -A -2 -B 3.", "relu_fwd", {"relu_lower_clip": -2.0, "relu_upper_clip": 3.0}),
    ],
)
def test_activation(flags: str, operation: str, settings_: dict[str, float]) -> None:
    node: Any = only(f"CBAInfer -F 5 -n 1 {flags}").nodes[-1]
    given_ = {
        name: getattr(node.inputs, name)
        for name in (
            *("relu_lower_clip", "relu_upper_clip", "relu_lower_clip_slope"),
            *("swish_beta", "elu_alpha", "softplus_beta"),
        )
    }
    assert node.inputs.operation == operation
    assert {name: value for name, value in given_.items() if value is not None} == settings_


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("-m 6", r"--activMode \(-m\) is 6.*gamma"),
        ("-m 2", r"--beta \(-B\) is 0\.0 by default.*must be 1"),
        ("-m 2 -A 3 -B 1", r"--alpha \(-A\) is 3\.0:.*must be 1"),
        ("-m 7 -A -1", r"--alpha \(-A\) is -1\.0:.*must not be negative"),
        ("-m 10 -A 2 -B 1", r"--alpha \(-A\) is 2\.0:.*must not exceed 1\.0"),
        ("-m 11", r"--activMode \(-m\) is '11'.*from 0 to 10"),
    ],
)
def test_activation_that_no_graph_expresses(flags: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        graph_from_driver_command(f"CBAInfer -F 5 -n 1 {flags}")


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[dict[str, int], bool]:
    """Flags of a convolution that has an output, and whether it is transposed."""
    transposed = draw(st.booleans())
    spatial = draw(st.sampled_from([2, 3]))
    groups = draw(st.integers(1, 3))
    flags = {
        "spatial_dim": spatial,
        "group_count": groups,
        "batchsize": draw(st.integers(1, 3)),
        "in_channels": groups * draw(st.integers(1, 4)),
        "out_channels": groups * draw(st.integers(1, 4)),
    }
    for axis in "dhw"[3 - spatial :]:
        taps, dilation = draw(st.integers(1, 5)), draw(st.integers(1, 3))
        reach = dilation * (taps - 1) + 1
        stride = draw(st.integers(1, 3))
        padding = draw(st.integers(0, (reach - 1) // 2 if transposed else 4))
        flags |= {
            f"fil_{axis}": taps,
            f"dilation_{axis}": dilation,
            f"conv_stride_{axis}": stride,
            f"pad_{axis}": padding,
            f"in_{axis}": draw(st.integers(1 if transposed else max(1, reach - 2 * padding), 20)),
        }
        if transposed:
            flags[f"trans_output_pad_{axis}"] = draw(st.integers(0, stride - 1))
    return flags, transposed


def onnx_output(flags: dict[str, int], x: Any, w: Any, *, transposed: bool) -> list[int]:
    """Return the shape that ONNX infers for Conv or ConvTranspose."""
    axes = "dhw"[3 - flags["spatial_dim"] :]
    attributes: dict[str, Any] = {
        "group": flags["group_count"],
        "strides": [flags[f"conv_stride_{axis}"] for axis in axes],
        "dilations": [flags[f"dilation_{axis}"] for axis in axes],
        "pads": [flags[f"pad_{axis}"] for axis in axes] * 2,
    }
    if transposed:
        attributes["output_padding"] = [flags[f"trans_output_pad_{axis}"] for axis in axes]
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node(
                "ConvTranspose" if transposed else "Conv", ["x", "w"], ["y"], **attributes
            )
        ],
        "convolution",
        [
            onnx.helper.make_tensor_value_info("x", kind, x),
            onnx.helper.make_tensor_value_info("w", kind, w),
        ],
        [onnx.helper.make_tensor_value_info("y", kind, None)],
    )
    inferred = onnx.shape_inference.infer_shapes(onnx.helper.make_model(graph))
    return [d.dim_value for d in inferred.graph.output[0].type.tensor_type.shape.dim]


@given(convolutions())
@settings(max_examples=150, deadline=None)
def test_shapes_are_those_of_onnx(case: tuple[dict[str, int], bool]) -> None:
    flags, transposed = case
    words = " ".join(f"--{name} {value}" for name, value in flags.items())
    forward, backward_data, backward_weights = graph_from_driver_command(
        f"MIOpenDriver conv -m {'trans' if transposed else 'conv'} {words}"
    )
    x, w, y = (dims(forward)[name] for name in "xwy")
    assert math.prod(w[:2]) * flags["group_count"] == flags["in_channels"] * flags["out_channels"]
    assert list(y) == onnx_output(flags, x, w, transposed=transposed)
    assert dims(backward_data) == {"dy": y, "w": w, "dx": x}
    assert dims(backward_weights) == {"dy": y, "x": x, "dw": w}
