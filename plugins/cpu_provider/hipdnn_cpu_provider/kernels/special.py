"""Functions that numpy lacks, and forms of others that don't overflow on the way.

All take a float32 or float64 array and return one of the same type.
"""

from __future__ import annotations

import math

import numpy as np

_SPACING = 0.125
_ERF_IS_ONE = 6.0
"""From here on, erf rounds to one in float64."""
_TERMS = {np.dtype(np.float32): 7, np.dtype(np.float64): 13}


def _erf_expansions(terms: int) -> tuple[np.ndarray, np.ndarray]:
    """Points from 0 to `_ERF_IS_ONE`, and Taylor coefficients of erf there, [terms, points].

    The (n+1)-th derivative of erf is ``2/sqrt(pi) * (-1)^n * H_n(a) * exp(-a^2)`` with Hermite's
    polynomials ``H_(n+1) = 2 a H_n - 2 n H_(n-1)``.
    """
    points = np.arange(0.0, _ERF_IS_ONE + _SPACING, _SPACING)
    coefficients = np.empty((terms, points.size))
    coefficients[0] = [math.erf(point) for point in points]
    gauss = 2 / math.sqrt(math.pi) * np.exp(-points * points)
    previous, hermite = np.zeros_like(points), np.ones_like(points)
    for n in range(terms - 1):
        coefficients[n + 1] = (-1) ** n * gauss * hermite / math.factorial(n + 1)
        previous, hermite = hermite, 2 * points * hermite - 2 * n * previous
    return points, coefficients


_POINTS, _COEFFICIENTS = _erf_expansions(max(_TERMS.values()))


def erf(x: np.ndarray) -> np.ndarray:
    """The error function, within 2 units in the last place.

    A Taylor polynomial around the nearest multiple of 1/8, in float64. The first neglected term
    is below 1e-18 for float64 and below 1e-10 for float32.
    """
    magnitude = np.minimum(np.abs(x), _ERF_IS_ONE).astype(np.float64)
    nearest = np.rint(np.nan_to_num(magnitude) / _SPACING).astype(np.intp)
    distance = magnitude - _POINTS[nearest]
    terms = _TERMS[x.dtype]
    value: np.ndarray = _COEFFICIENTS[terms - 1][nearest]
    for coefficients in _COEFFICIENTS[: terms - 1][::-1]:
        value *= distance
        value += coefficients[nearest]
    signed: np.ndarray = np.copysign(value, x)
    return signed.astype(x.dtype)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """``1 / (1 + exp(-x))``, taking exp of what is not positive only."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small))


def softplus(x: np.ndarray) -> np.ndarray:
    """``log(1 + exp(x))``, taking exp of what is not positive only."""
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def gated(x: np.ndarray, gate: np.ndarray) -> np.ndarray:
    """``x * gate`` for a gate in [0, 1], where minus infinity times a closed gate is zero."""
    return np.asarray(np.where(np.isneginf(x), 0, x) * gate)


def gelu(x: np.ndarray) -> np.ndarray:
    """``x * Phi(x)`` with the normal distribution function Phi, through erf."""
    return gated(x, 0.5 * (1 + erf(x * math.sqrt(0.5))))


def gelu_approx_tanh(x: np.ndarray) -> np.ndarray:
    """``x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))``."""
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return gated(x, 0.5 * (1 + np.tanh(inner)))
