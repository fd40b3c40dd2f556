"""hipDNN's elementwise activations as MIOpen's modes and parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import ActivationDescriptor, ActivationMode
from hipdnn_miopen_provider.tensors import Unsupported
from hipdnn_registry import PointwiseMode

if TYPE_CHECKING:
    from hipdnn_registry.graph import PointwiseNode

_PLAIN = {PointwiseMode.SIGMOID_FWD: "LOGISTIC", PointwiseMode.TANH_FWD: "TANH"}
_RELU = {PointwiseMode.RELU_FWD, PointwiseMode.RELU_BWD}

ACTIVATIONS = frozenset({*_PLAIN, PointwiseMode.RELU_FWD})
"""The forward activations."""


@dataclass(frozen=True, slots=True)
class Activation:
    """A mode and its parameters, in the meaning of miopenSetActivationDescriptor."""

    mode: ActivationMode
    alpha: float = 0.0
    beta: float = 0.0

    def describe(self) -> ActivationDescriptor:
        """Make the descriptor, to be closed by the caller."""
        return ActivationDescriptor(self.mode, self.alpha, self.beta)


def activation_of(node: PointwiseNode) -> Activation:
    """Return MIOpen's activation of a node.

    RELU is max(0, x); CLIPPEDRELU min(alpha, max(0, x)); LEAKYRELU x, below 0 alpha * x; CLAMP
    max(alpha, min(beta, x)); TANH beta * tanh(alpha * x).

    Raises:
        Unsupported: MIOpen has none like it.
    """
    settings = node.inputs
    mode = settings.operation
    if mode in _PLAIN:
        return Activation(ActivationMode[_PLAIN[mode]], 1.0, 1.0)
    if mode not in _RELU:
        raise Unsupported(
            f"node '{node.name}': operation '{mode}' is none of MIOpen's activations "
            f"({', '.join(sorted(ACTIVATIONS))})"
        )
    lower, upper = settings.relu_lower_clip or 0.0, settings.relu_upper_clip
    slope = settings.relu_lower_clip_slope or 0.0
    if slope and (lower or upper is not None):
        raise Unsupported(
            f"node '{node.name}': MIOpen has no ReLU with a slope ({slope}) and clips "
            f"({lower}, {upper}) at once"
        )
    if slope:
        return Activation(ActivationMode.LEAKYRELU, slope)
    if upper is None:
        if lower:
            raise Unsupported(
                f"node '{node.name}': MIOpen has no ReLU with a lower clip ({lower}) alone"
            )
        return Activation(ActivationMode.RELU)
    if lower:
        return Activation(ActivationMode.CLAMP, lower, upper)
    return Activation(ActivationMode.CLIPPEDRELU, upper)
