"""bnorm: batch normalisation in training, inference or backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hipdnn_registry.graph.types import DataType

from .activation import add_activation
from .convolution import open_graph
from .shapes import Shape, is_channels_last

if TYPE_CHECKING:
    from hipdnn_registry.graph.graph import Graph
    from hipdnn_registry.graph.tensor import TensorAttributes

    from .flags import Flags

EPSILON = 1e-3
"""MIOpenDriver's constant for bnorm; no flag changes it."""

MOMENTUM = 0.1
"""Weight of the batch in the running statistics.

MIOpenDriver takes 1 / (iteration + 1), which no single graph has, and 0.1 where it replays one
(`--use_hip_graph 1`); 0.1 is what frameworks default to as well.
"""

_TRAINING, _INFERENCE = 1, 2


class BatchnormTypes(NamedTuple):
    """Data types of a base; statistics and the gradients of scale and bias are always float.

    Attributes:
        x: x, and y of the forward directions.
        scale: scale and bias.
        gradient: dy and dx.
    """

    x: DataType
    scale: DataType
    gradient: DataType


def batchnorm_graphs(
    flags: Flags, base: str, types: BatchnormTypes, *, logged: bool
) -> list[Graph]:
    """Return bnorm's graphs: forward, backward, or both in this order.

    Args:
        flags: The command's flags, of the table `BNORM`.
        base: The command's base, for the graphs' names.
        types: The base's data types.
        logged: Whether MIOpen printed the command.
    """
    forward, backward = flags.integer("forw"), flags.integer("back")
    if not forward and not backward:
        forward = _TRAINING  # as MIOpenDriver does
    inverse = flags.integer("inverse_variance")
    if inverse and forward != _INFERENCE:
        flags.fail("inverse_variance", "only inference (--forw 2) takes it", "driver.unsupported")
    if backward and flags.integer("activ_mode"):
        flags.fail(
            "activ_mode",
            "with --back 1 it must be 0: the gradient through an activation is not built",
            "driver.unsupported",
        )
    saved, running = _read_statistics(flags, logged=logged, backward=not forward)
    shape, parameters = read_shapes(flags)
    graphs = []
    if forward:
        graph = open_graph(f"{base}_{'train' if forward == _TRAINING else 'infer'}", types.x)
        x = shape.read_by(graph, "x")
        if forward == _TRAINING:
            y = _add_training(graph, x, parameters, types.scale, saved=saved, running=running)
        else:
            epsilon = None if inverse else EPSILON
            y = add_inference(graph, x, parameters, epsilon=epsilon, scale_type=types.scale)
        if flags.integer("activ_mode"):
            y = add_activation(
                graph,
                shape.give(y),
                flags,
                mode="activ_mode",
                alpha="activ_alpha",
                beta="activ_beta",
            )
        shape.output(y, "y")
        graphs.append(graph.validate())
    if backward:
        graph = open_graph(f"{base}_bwd", types.x)
        _add_backward(graph, shape, parameters, types, saved=saved)
        graphs.append(graph.validate())
    return graphs


def read_shapes(flags: Flags) -> tuple[Shape, Shape]:
    """Read the shapes of x and of its parameters.

    x is [N, C, H, W], or with a depth above 0 [N, C, D, H, W].
    """
    depth = flags.integer("in_d")
    spatial = (*((depth,) if depth else ()), flags.integer("in_h"), flags.integer("in_w"))
    dims = (flags.integer("batchsize"), flags.integer("in_channels"), *spatial)
    x = Shape.checked("x", dims, is_channels_last(flags, "layout", len(spatial)))
    return x, parameter_shape(x, per_channel=flags.integer("mode") == 1)


def parameter_shape(x: Shape, *, per_channel: bool) -> Shape:
    """Return the shape of scale, bias and statistics of x [N, C, spatial...].

    It is [1, C, 1...] per channel (MIOpen's mode 1, spatial), else [1, C, spatial...] in x's layout
    (mode 0, per activation).
    """
    channels, *spatial = x.dims[1:]
    if per_channel:
        return Shape((1, channels, *(1 for _ in spatial)))
    return Shape((1, channels, *spatial), x.channels_last)


def add_inference(
    graph: Graph,
    x: TensorAttributes,
    parameters: Shape,
    *,
    epsilon: float | None,
    scale_type: DataType = DataType.FLOAT,
) -> TensorAttributes:
    """Add inference and return y; without an epsilon it takes the inverse variance."""
    mean, variance, scale, bias = (
        parameters.read_by(graph, name, data_type)
        for name, data_type in (
            ("mean", DataType.FLOAT),
            ("variance" if epsilon is not None else "inv_variance", DataType.FLOAT),
            ("scale", scale_type),
            ("bias", scale_type),
        )
    )
    if epsilon is None:
        return graph.batchnorm_inference(x, mean, variance, scale, bias)
    return graph.batchnorm_inference_variance_ext(
        x, mean, variance, scale, bias, graph.scalar(epsilon, name="epsilon")
    )


def _read_statistics(flags: Flags, *, logged: bool, backward: bool) -> tuple[bool, bool]:
    """Read `-s` and `-r`: whether batch statistics are saved, and running ones kept.

    In backward, saved ones are read instead. MIOpen long printed the two flags the other way round:
    `-s 1` for running, `-r 1` for saved statistics. Since it prints `-I` too, it prints what the
    driver reads. A backward call has no running statistics, so there either flag was printed for
    saved ones.
    """
    save, run = flags.integer("save") == 1, flags.integer("run") == 1
    if logged and backward:
        return save or run, False
    if logged and not flags.given("inverse_variance"):
        return run, save
    return save, run


def _add_training(
    graph: Graph,
    x: TensorAttributes,
    parameters: Shape,
    scale_type: DataType,
    *,
    saved: bool,
    running: bool,
) -> TensorAttributes:
    def previous(name: str) -> TensorAttributes | None:
        return parameters.read_by(graph, name, DataType.FLOAT) if running else None

    result = graph.batchnorm(
        x,
        parameters.read_by(graph, "scale", scale_type),
        parameters.read_by(graph, "bias", scale_type),
        epsilon=graph.scalar(EPSILON, name="epsilon"),
        prev_running_mean=previous("prev_running_mean"),
        prev_running_variance=previous("prev_running_variance"),
        momentum=graph.scalar(MOMENTUM, name="momentum") if running else None,
    )
    for tensor, name, wanted in (
        (result.mean, "mean", saved),
        (result.inv_variance, "inv_variance", saved),
        (result.next_running_mean, "next_running_mean", running),
        (result.next_running_variance, "next_running_variance", running),
    ):
        if tensor is not None and wanted:
            parameters.output(tensor, name, DataType.FLOAT)
    return result.y


def _add_backward(
    graph: Graph, shape: Shape, parameters: Shape, types: BatchnormTypes, *, saved: bool
) -> None:
    dy = shape.read_by(graph, "dy", types.gradient)
    x = shape.read_by(graph, "x")
    scale = parameters.read_by(graph, "scale", types.scale)
    mean, inv_variance = (
        parameters.read_by(graph, name, DataType.FLOAT) if saved else None
        for name in ("mean", "inv_variance")
    )
    result = graph.batchnorm_backward(dy, x, scale, mean=mean, inv_variance=inv_variance)
    shape.output(result.dx, "dx", types.gradient)
    parameters.output(result.dscale, "dscale", DataType.FLOAT)
    parameters.output(result.dbias, "dbias", DataType.FLOAT)
