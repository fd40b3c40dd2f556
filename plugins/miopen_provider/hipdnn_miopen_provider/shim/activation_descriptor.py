"""`ActivationDescriptor`: what follows a fused convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hipdnn_miopen_provider.native import ActivationMode
from hipdnn_registry import PointwiseMode

from .arguments import enum_member, number
from .errors import UnsupportedOp

if TYPE_CHECKING:
    from collections.abc import Mapping

_WHERE = "ActivationDescriptor"


@dataclass(frozen=True, slots=True)
class ActivationDescriptor:
    """An activation: `miopenActivationDescriptor_t`. Immutable, and equal if its fields are.

    Args:
        mode: The function, or `miopenActivationMode_t`'s number.
        alpha: Its first parameter: where CLIPPEDRELU clips, the slope of LEAKYRELU below 0, the
            lower bound of CLAMP, the inner factor of TANH.
        beta: Its second: the upper bound of CLAMP, the outer factor of TANH.
        gamma: Its third.

    Raises:
        BadParm: Not a mode, or not finite numbers.
    """

    mode: ActivationMode
    alpha: float = 0.0
    beta: float = 0.0
    gamma: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", enum_member(ActivationMode, self.mode, _WHERE, "mode"))
        for name in ("alpha", "beta", "gamma"):
            object.__setattr__(self, name, number(getattr(self, name), _WHERE, name))


class PointwiseActivation(NamedTuple):
    """An activation as a graph's node; `None` for PASTHRU, which needs none."""

    operation: PointwiseMode | None
    settings: Mapping[str, float] = {}


def pointwise_of(activation: ActivationDescriptor, where: str) -> PointwiseActivation:
    """Return an activation in the terms of a graph.

    Raises:
        UnsupportedOp: Graphs have none like it.
    """
    mode, alpha, beta = activation.mode, activation.alpha, activation.beta
    relu = PointwiseMode.RELU_FWD
    if mode is ActivationMode.PASTHRU:
        return PointwiseActivation(None)
    if mode is ActivationMode.RELU:
        return PointwiseActivation(relu)
    if mode is ActivationMode.CLIPPEDRELU:
        return PointwiseActivation(relu, {"relu_upper_clip": alpha})
    if mode is ActivationMode.LEAKYRELU:
        return PointwiseActivation(relu, {"relu_lower_clip_slope": alpha})
    if mode is ActivationMode.CLAMP:
        return PointwiseActivation(relu, {"relu_lower_clip": alpha, "relu_upper_clip": beta})
    if mode is ActivationMode.LOGISTIC:
        return PointwiseActivation(PointwiseMode.SIGMOID_FWD)
    if mode is ActivationMode.TANH and (alpha, beta) == (1.0, 1.0):
        return PointwiseActivation(PointwiseMode.TANH_FWD)
    factors = f" with alpha {alpha:g} and beta {beta:g}" if mode is ActivationMode.TANH else ""
    raise UnsupportedOp(
        where,
        f"activation {mode.name}{factors} is not served; PASTHRU, RELU, CLIPPEDRELU, LEAKYRELU, "
        "CLAMP, LOGISTIC and TANH (alpha and beta 1) are",
    )
