"""Pointwise operations, by hipDNN's names.

Where the mathematical result is infinite or undefined (1/0, log(-1), exp(1000)) the result is an
infinity or NaN, without a warning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from . import special
from .blocking import boxes, largest_block
from .geometry import compute_dtype
from .operands import store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BLOCK_ELEMENTS = 1 << 14
TEMPORARY_BYTES = 2 << 20
"""What `pointwise` takes for temporaries at most, whatever the size of its tensors."""


@dataclass(frozen=True)
class PointwiseParameters:
    """hipDNN's scalar attributes of a pointwise node; None is the default given here.

    Attributes:
        relu_lower_clip: Where ReLU's lower branch begins, 0.
        relu_upper_clip: ReLU's largest output, none.
        relu_lower_clip_slope: Slope of the lower branch, 0.
        elu_alpha: Minus ELU's limit at minus infinity, 1.
        swish_beta: Factor inside of Swish's sigmoid, 1.
        softplus_beta: Softplus' sharpness, 1.
    """

    relu_lower_clip: float | None = None
    relu_upper_clip: float | None = None
    relu_lower_clip_slope: float | None = None
    elu_alpha: float | None = None
    swish_beta: float | None = None
    softplus_beta: float | None = None

    @property
    def relu(self) -> tuple[float, float, float]:
        """Lower clip, upper clip and slope, with their defaults."""
        upper = math.inf if self.relu_upper_clip is None else self.relu_upper_clip
        return self.relu_lower_clip or 0.0, upper, self.relu_lower_clip_slope or 0.0


_Params = PointwiseParameters


def _relu(x: np.ndarray, p: _Params) -> np.ndarray:
    lower, upper, slope = p.relu
    if not slope:  # by far the most common one, and a third of the work
        flat: np.ndarray = np.maximum(x, lower)
        if upper < math.inf:
            np.minimum(flat, upper, out=flat)
        return flat
    below: np.ndarray = lower + slope * (np.minimum(x, lower) - lower)
    return np.where(x > lower, np.minimum(x, upper), below)


def _relu_bwd(x: np.ndarray, dy: np.ndarray, p: _Params) -> np.ndarray:
    lower, upper, slope = p.relu
    slopes = np.where(x <= lower, slope, np.where(x > upper, 0.0, 1.0)).astype(x.dtype)
    return np.asarray(dy * slopes)


def _sigmoid_bwd(x: np.ndarray, dy: np.ndarray, _: _Params) -> np.ndarray:
    return np.asarray(dy * (special.sigmoid(x) * special.sigmoid(-x)))


def _tanh_bwd(x: np.ndarray, dy: np.ndarray, _: _Params) -> np.ndarray:
    # 1 - tanh^2 as a product: it must not cancel where tanh is near one.
    small = np.exp(-2 * np.abs(x))
    return np.asarray(dy * (4 * small / np.square(1 + small)))


def _elu(x: np.ndarray, p: _Params) -> np.ndarray:
    alpha = 1.0 if p.elu_alpha is None else p.elu_alpha
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _swish(x: np.ndarray, p: _Params) -> np.ndarray:
    beta = 1.0 if p.swish_beta is None else p.swish_beta
    return (
        special.gated(x, special.sigmoid(beta * x)) if beta > 0 else x * special.sigmoid(beta * x)
    )


def _softplus(x: np.ndarray, p: _Params) -> np.ndarray:
    beta = 1.0 if p.softplus_beta is None else p.softplus_beta
    return special.softplus(beta * x) / beta


def _unary(function: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda x, _: function(x)


def _binary(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda a, b, _: function(a, b)


_UFUNCS: dict[str, np.ufunc] = {
    "abs": np.abs,
    "add": np.add,
    "div": np.divide,
    "max_op": np.maximum,
    "min_op": np.minimum,
    "mul": np.multiply,
    "neg": np.negative,
    "sub": np.subtract,
}
"""Modes that numpy can write to their place without a temporary, if no type is to be changed."""

_UNARY: dict[str, Callable[..., np.ndarray]] = {
    "abs": _unary(np.abs),
    "ceil": _unary(np.ceil),
    "elu_fwd": _elu,
    "erf": _unary(special.erf),
    "exp": _unary(np.exp),
    "floor": _unary(np.floor),
    "gelu_approx_tanh_fwd": _unary(special.gelu_approx_tanh),
    "gelu_fwd": _unary(special.gelu),
    "identity": _unary(lambda x: x),
    "log": _unary(np.log),
    "neg": _unary(np.negative),
    "reciprocal": _unary(np.reciprocal),
    "relu_fwd": _relu,
    "rsqrt": _unary(lambda x: 1 / np.sqrt(x)),
    "sigmoid_fwd": _unary(special.sigmoid),
    "sin": _unary(np.sin),
    "softplus_fwd": _softplus,
    "sqrt": _unary(np.sqrt),
    "swish_fwd": _swish,
    "tan": _unary(np.tan),
    "tanh_fwd": _unary(np.tanh),
}
_BINARY: dict[str, Callable[..., np.ndarray]] = {
    "add": _binary(np.add),
    "add_square": _binary(lambda a, b: a + b * b),
    "div": _binary(np.divide),
    "max_op": _binary(np.maximum),
    "min_op": _binary(np.minimum),
    "mul": _binary(np.multiply),
    "relu_bwd": _relu_bwd,
    "sigmoid_bwd": _sigmoid_bwd,
    "sub": _binary(np.subtract),
    "tanh_bwd": _tanh_bwd,
}
INPUTS: dict[str, int] = dict.fromkeys(_UNARY, 1) | dict.fromkeys(_BINARY, 2)
"""Number of inputs of each mode. Backward modes take (x, dy), the forward input first."""


def pointwise(
    mode: str,
    inputs: Sequence[np.ndarray],
    out: np.ndarray,
    parameters: PointwiseParameters | None = None,
    *,
    double: bool = False,
) -> None:
    """Write ``mode`` of ``inputs``, broadcast to its shape, into ``out``.

    Computes in float64 if any tensor is float64 and in float32 otherwise, a block at a time:
    temporaries take no more than `TEMPORARY_BYTES`.

    Args:
        mode: A key of `INPUTS`.
        inputs: As many as the mode takes; for a backward mode x, then dy, and the result is
            ``dy * f'(x)``. At a kink of ReLU, x belongs to the branch below it.
        out: The output; may be one of the inputs.
        parameters: The scalar attributes.
        double: Compute in float64 in any case.

    Raises:
        ValueError: Unknown mode, wrong number of inputs, or shapes that don't broadcast.
    """
    function = _UNARY.get(mode) or _BINARY.get(mode)
    if function is None:
        raise ValueError(f"unknown pointwise mode {mode!r} (allowed: {', '.join(sorted(INPUTS))})")
    if len(inputs) != INPUTS[mode]:
        raise ValueError(f"pointwise {mode} takes {INPUTS[mode]} inputs, got {len(inputs)}")
    parameters = parameters or PointwiseParameters()
    dtype = compute_dtype(out.dtype, *(a.dtype for a in inputs), double=double)
    operands = [np.broadcast_to(array, out.shape) for array in inputs]
    block = largest_block(out.shape, lambda b: math.prod(b) <= BLOCK_ELEMENTS)
    ufunc = _UFUNCS.get(mode) if {dtype} == {a.dtype for a in (out, *inputs)} else None
    with np.errstate(all="ignore"):
        for box in boxes(out.shape, block):
            if ufunc is not None:
                ufunc(*(operand[box] for operand in operands), out=out[box])
                continue
            values = [operand[box].astype(dtype, copy=False) for operand in operands]
            store(out[box], function(*values, parameters))
