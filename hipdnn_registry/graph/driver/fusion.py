"""CBAInfer: convolution, bias, batchnorm inference and activation in one graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .activation import add_activation
from .batchnorm import add_inference, parameter_shape, read_shapes
from .convolution import add_bias, open_graph
from .flags import Flags
from .geometry import read_convolution, read_input
from .tables import CBAINFER, LOGGED_NA

if TYPE_CHECKING:
    from hipdnn_registry.graph.graph import Graph
    from hipdnn_registry.graph.types import DataType

    from .command import Command

EPSILON = 1e-6
"""MIOpenDriver's constant for CBAInfer; no flag changes it."""

_MODES = ("cbna", "cna", "na", "cn", "cba", "ca", "cb")


def fusion_graphs(command: Command, io_type: DataType) -> list[Graph]:
    """Return the one graph of a CBAInfer command.

    The fusion mode `-F` says what follows what: c convolution, b bias, n batchnorm inference with
    estimated mean and variance, a activation.

    Args:
        command: The command.
        io_type: Type of every tensor but batchnorm's parameters, which are float.
    """
    if command.logged and ("-F", "2") in command.settings:
        return [_logged_na(command, io_type)]
    flags = Flags(command, CBAINFER)
    mode = _MODES[flags.integer("fusion_mode")]
    graph = open_graph(f"{command.base}_{mode}", io_type)
    if "c" in mode:
        convolution = read_convolution(flags)
        x, w = convolution.x.read_by(graph, "x"), convolution.w.read_by(graph, "w")
        shape = convolution.y
        y = shape.give(convolution.add_fprop(graph, x, w))
    else:
        shape = read_input(flags)
        y = shape.read_by(graph, "x")
    if "b" in mode:
        y = shape.give(add_bias(graph, y))
    if "n" in mode:
        parameters = parameter_shape(shape, per_channel=flags.integer("bnMode") == 1)
        y = shape.give(add_inference(graph, y, parameters, epsilon=EPSILON))
    if "a" in mode:
        y = add_activation(graph, y, flags, mode="activMode", alpha="alpha", beta="beta")
    shape.output(y, "y")
    return [graph.validate()]


def _logged_na(command: Command, io_type: DataType) -> Graph:
    """Return the graph of batchnorm and activation that MIOpen printed.

    There MIOpen writes bnorm's flags behind CBAInfer's base: `-m` is the batchnorm mode and `-D`
    the depth. It leaves out the activation; as a driver command the line runs CBAInfer's default.
    """
    flags = Flags(command, LOGGED_NA)
    shape, parameters = read_shapes(flags)
    graph = open_graph(f"{command.base}_na", io_type)
    epsilon = None if flags.integer("inverse_variance") else EPSILON
    y = shape.give(add_inference(graph, shape.read_by(graph, "x"), parameters, epsilon=epsilon))
    y = add_activation(graph, y, flags, mode="activ_mode", alpha="activ_alpha", beta="activ_beta")
    shape.output(y, "y")
    return graph.validate()
