"""What is computed: MIOpenDriver lines, small, so that anyone can repeat one with the driver."""

from __future__ import annotations

from typing import Any

from hipdnn_registry import DataType, Graph
from hipdnn_registry.graph import channels_last_order, packed_strides
from tests.graphs import new_graph

CONVOLUTIONS = {
    "plain": "-n 2 -c 4 -H 9 -W 7 -k 6 -y 3 -x 3 -p 1 -q 1",
    "1x1": "-n 2 -c 8 -H 5 -W 6 -k 6 -y 1 -x 1",
    "1x1 strided": "-n 2 -c 8 -H 7 -W 9 -k 4 -y 1 -x 1 -u 2 -v 2",
    "5x5": "-n 1 -c 3 -H 10 -W 8 -k 4 -y 5 -x 5 -p 2 -q 2",
    "strided": "-n 2 -c 4 -H 11 -W 9 -k 4 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2",
    "dilated": "-n 2 -c 4 -H 10 -W 9 -k 4 -y 3 -x 3 -p 2 -q 2 -l 2 -j 2",
    "asymmetric": "-n 1 -c 4 -H 10 -W 11 -k 8 -y 3 -x 2 -p 0 -q 2 -u 2 -v 1 -l 1 -j 2",
    "grouped": "-n 2 -c 8 -H 8 -W 7 -k 6 -y 3 -x 3 -p 1 -q 1 -g 2",
    "depthwise": "-n 2 -c 6 -H 7 -W 7 -k 6 -y 3 -x 3 -p 1 -q 1 -g 6",
    "transposed": "-m trans -n 2 -c 6 -H 5 -W 7 -k 4 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -g 2",
    "1-D": "-n 2 -c 4 -H 1 -W 19 -k 6 -y 1 -x 5 -q 2 -v 2",
    "3-D": (
        "-n 1 -c 4 --in_d 5 -H 6 -W 7 -k 6 --fil_d 3 -y 3 -x 3 --pad_d 1 -p 1 -q 0 "
        "--conv_stride_d 2 --dilation_d 1 --spatial_dim 3"
    ),
    "3-D grouped": (
        "-n 2 -c 4 --in_d 4 -H 5 -W 6 -k 8 --fil_d 2 -y 3 -x 3 --pad_d 0 -p 1 -q 1 "
        "--conv_stride_d 1 --dilation_d 1 --spatial_dim 3 -g 2"
    ),
}
WITH_SOLVERS = ("plain", "1x1", "1x1 strided", "5x5", "strided", "dilated", "grouped", "3-D")
"""Convolutions of which every solver is looked at."""

DIRECTIONS = {"forward": 1, "backward data": 2, "backward weights": 4}
TYPES = {"float": "", "half": "fp16", "bfloat16": "bfp16"}
LAYOUTS = ("NCHW", "NHWC")

FUSIONS = {
    "bias and relu": "-F 4 -m 3",
    "bias and clipped relu": "-F 4 -m 7 -A 0.5",
    "bias and leaky relu": "-F 4 -m 8 -A 0.25",
    "bias and sigmoid": "-F 4 -m 1",
    "bias and tanh": "-F 4 -m 2 -A 1 -B 1",
    "relu": "-F 5 -m 3",
    "bias": "-F 6",
}

SPATIAL = {
    "training": "--forw 1 -s 1 -r 1",
    "training, nothing kept": "--forw 1",
    "training, running only": "--forw 1 -r 1",
    "training, relu": "--forw 1 -s 1 -r 1 --activ_mode 3",
    "training, clipped relu": "--forw 1 -s 1 -r 1 --activ_mode 7 --activ_alpha 0.5",
    "training, clamp": "--forw 1 -s 1 -r 1 --activ_mode 10 --activ_alpha -0.25 --activ_beta 0.5",
    "inference": "--forw 2",
    "inference, inverse variance": "--forw 2 -I 1",
    "inference, relu": "--forw 2 --activ_mode 3",
    "backward": "-b 1 -s 1",
    "backward, nothing saved": "-b 1",
}
PER_ACTIVATION = (
    "training",
    "training, relu",
    "inference",
    "inference, inverse variance",
    "inference, relu",
    "backward",
    "backward, nothing saved",
)

IMAGES = {
    "4x6": "-n 8 -c 4 -H 4 -W 6",
    "14x14": "-n 8 -c 3 -H 14 -W 14",
    "24x24": "-n 2 -c 3 -H 24 -W 24",
    "36x36": "-n 2 -c 2 -H 36 -W 36",
    "80x80": "-n 1 -c 2 -H 80 -W 80",
    "3-D": "-n 8 -c 4 -D 3 -H 4 -W 5",
    "large batch": "-n 70 -c 2 -H 14 -W 14",
}
"""H * W from less than a wave to more than a work-group: MIOpen chooses variants by that and N."""

ODD_IMAGES = {
    "5x5": "-n 8 -c 5 -H 5 -W 5",
    "7x9": "-n 3 -c 5 -H 7 -W 9",
    "25x25": "-n 2 -c 3 -H 25 -W 25",
    "25x25, batch 32": "-n 32 -c 2 -H 25 -W 25",
    "33x33": "-n 2 -c 3 -H 33 -W 33",
    "65x65": "-n 1 -c 2 -H 65 -W 65",
}
"""H * W is no multiple of four: one of MIOpen's variants is wrong then, see docs/findings.md."""


ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "relu": ("relu_fwd", {}),
    "clipped relu": ("relu_fwd", {"relu_upper_clip": 0.5}),
    "clamp": ("relu_fwd", {"relu_lower_clip": -0.25, "relu_upper_clip": 0.5}),
    "leaky relu": ("relu_fwd", {"relu_lower_clip_slope": 0.125}),
    "sigmoid": ("sigmoid_fwd", {}),
    "tanh": ("tanh_fwd", {}),
}
ADDITIONS = {
    "alike": ((2, 3, 4, 5), (2, 3, 4, 5)),
    "bias": ((2, 3, 4, 5), (1, 3, 1, 1)),
    "image": ((2, 3, 4, 5), (1, 3, 4, 5)),
    "scalar": ((2, 3, 4, 5), (1, 1, 1, 1)),
    "rows": ((2, 3, 4, 5), (2, 1, 4, 1)),
    "bias of a volume": ((2, 3, 4, 5, 2), (1, 3, 1, 1, 1)),
    "rank three": ((2, 3, 5), (1, 3, 1)),
    "matrices": ((4, 6), (1, 6)),
}


def convolution(kind: str, direction: str, io: str, layout: str) -> str:
    """The line of a convolution."""
    flags = CONVOLUTIONS[kind]
    named = layout if "spatial_dim 3" not in flags else {"NCHW": "NCDHW", "NHWC": "NDHWC"}[layout]
    tensors = " ".join(f"--{tensor}_layout {named}" for tensor in ("in", "fil", "out"))
    return f"conv{TYPES[io]} {flags} {tensors} -F {DIRECTIONS[direction]}"


def fusion(kind: str, convolved: str, io: str, layout: str) -> str:
    """The line of a convolution with what follows it."""
    tensors = " ".join(f"--{tensor}_layout {layout}" for tensor in ("in", "fil", "out"))
    return f"CBAInfer{TYPES[io]} {CONVOLUTIONS[convolved]} {tensors} {FUSIONS[kind]}"


def batchnorm(kind: str, image: str, io: str, layout: str, *, per_activation: bool = False) -> str:
    """The line of a batch normalization."""
    shape = (IMAGES | ODD_IMAGES)[image]
    named = layout if "-D" not in shape else {"NCHW": "NCDHW", "NHWC": "NDHWC"}[layout]
    mode = int(not per_activation)
    return f"bnorm{TYPES[io]} {shape} -m {mode} {SPATIAL[kind]} --layout {named}"


def batchnorm_relu_backward(io: DataType, dims: tuple[int, ...] = (4, 3, 8, 8)) -> Graph:
    """The gradient through relu(batchnorm_inference(x)), which no driver line describes."""
    graph = new_graph("batchnorm + relu backward", io)
    dy, x = (graph.tensor(dims=dims, name=name) for name in ("dy", "x"))
    mean, inv_variance, scale, bias = (
        graph.tensor(dims=(1, dims[1], 1, 1), name=name, data_type=DataType.FLOAT)
        for name in ("mean", "inv_variance", "scale", "bias")
    )
    y = graph.batchnorm_inference(x, mean, inv_variance, scale, bias)
    dy = graph.pointwise("relu_bwd", dy, y)
    result = graph.batchnorm_backward(dy, x, scale, mean=mean, inv_variance=inv_variance)
    for tensor, name in zip(result, ("dx", "dscale", "dbias"), strict=True):
        tensor.set_output().set_name(name)
        tensor.set_data_type(io if name == "dx" else DataType.FLOAT)
    return graph


def activation(kind: str, io: DataType, dims: tuple[int, ...] = (2, 3, 4, 5)) -> Graph:
    """An activation on its own."""
    mode, clips = ACTIVATIONS[kind]
    graph = new_graph(kind, io)
    x = graph.tensor(dims=dims, name="x")
    graph.pointwise(mode, x, **clips).set_output().set_name("y")
    return graph


def addition(kind: str, io: DataType, *, channels_last: bool) -> Graph:
    """a + b, b broadcast or not."""
    graph = new_graph(kind, io)
    a, b = (
        graph.tensor(
            dims=dims,
            strides=packed_strides(dims, channels_last_order(len(dims)) if channels_last else None),
            name=name,
        )
        for name, dims in zip("ab", ADDITIONS[kind], strict=True)
    )
    graph.pointwise("add", a, b).set_output().set_name("y")
    return graph
