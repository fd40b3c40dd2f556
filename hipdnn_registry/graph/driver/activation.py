"""MIOpen's activations as hipDNN's pointwise operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipdnn_registry.graph.types import PointwiseMode

if TYPE_CHECKING:
    from hipdnn_registry.graph.graph import Graph
    from hipdnn_registry.graph.tensor import TensorAttributes

    from .flags import Flags

_PASTHRU, _LOGISTIC, _TANH, _RELU, _SOFTRELU, _ABS, _POWER = range(7)
_CLIPPEDRELU, _LEAKYRELU, _ELU, _CLAMP = range(7, 11)

_PLAIN = {
    _PASTHRU: PointwiseMode.IDENTITY,
    _LOGISTIC: PointwiseMode.SIGMOID_FWD,
    _TANH: PointwiseMode.TANH_FWD,
    _RELU: PointwiseMode.RELU_FWD,
    _SOFTRELU: PointwiseMode.SOFTPLUS_FWD,
    _ABS: PointwiseMode.ABS,
}


def add_activation(
    graph: Graph, x: TensorAttributes, flags: Flags, *, mode: str, alpha: str, beta: str
) -> TensorAttributes:
    """Add the activation that three flags ask for (miopenActivationMode_t).

    0 PASTHRU: x; 1 LOGISTIC: 1 / (1 + exp(-x)); 2 TANH: beta * tanh(alpha * x); 3 RELU: max(0, x);
    4 SOFTRELU: log(1 + exp(x)); 5 ABS: |x|; 6 POWER: (alpha + beta * x)**gamma; 7 CLIPPEDRELU:
    min(alpha, max(0, x)); 8 LEAKYRELU: x, or alpha * x below 0; 9 ELU: x, or alpha * (exp(x) - 1)
    below 0; 10 CLAMP: max(alpha, min(beta, x)).

    Args:
        graph: Where to add it.
        x: Its operand.
        flags: The command's flags.
        mode: Name of the flag that holds the mode.
        alpha: Name of the flag that holds alpha.
        beta: Name of the flag that holds beta.

    Raises:
        GraphError: hipDNN has no such operation: POWER, a scaled TANH, or bounds that cross.
    """
    kind, a, b = flags.integer(mode), flags.number(alpha), flags.number(beta)
    if kind == _POWER:
        flags.fail(mode, "hipDNN has no operation (alpha + beta * x)**gamma", "driver.unsupported")
    if kind == _TANH and (a, b) != (1.0, 1.0):
        name = alpha if a != 1.0 else beta
        flags.fail(
            name,
            f"{mode} 2 is beta * tanh(alpha * x), and hipDNN's tanh has neither factor; "
            "both must be 1",
            "driver.unsupported",
        )
    if kind == _CLIPPEDRELU:
        if a < 0:
            flags.fail(alpha, f"it is the upper bound of {mode} 7, so it must not be negative")
        return graph.pointwise(PointwiseMode.RELU_FWD, x, relu_upper_clip=a)
    if kind == _CLAMP:
        if a > b:
            flags.fail(alpha, f"it is the lower bound of {mode} 10, so it must not exceed {b}")
        return graph.pointwise(PointwiseMode.RELU_FWD, x, relu_lower_clip=a, relu_upper_clip=b)
    if kind == _LEAKYRELU:
        return graph.pointwise(PointwiseMode.RELU_FWD, x, relu_lower_clip_slope=a)
    if kind == _ELU:
        return graph.pointwise(PointwiseMode.ELU_FWD, x, elu_alpha=a)
    return graph.pointwise(_PLAIN[kind], x)
