"""What a convolution is: its tensors' shapes and layouts, and how the filter moves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.lib.stride_tricks import as_strided

DATA_TYPES: tuple[np.dtype[Any], ...] = (
    np.dtype(np.float16),
    np.dtype(ml_dtypes.bfloat16),
    np.dtype(np.float32),
    np.dtype(np.float64),
)
"""The element types of every kernel in this package."""


def compute_dtype(*dtypes: np.dtype[Any], double: bool = False) -> np.dtype[Any]:
    """The type to compute in: float64 if asked for or if any tensor is, float32 otherwise.

    16-bit tensors are widened on the way in and rounded once on the way out. numpy has no fast
    16-bit arithmetic, and sums kept in 16 bits would lose most of their digits.
    """
    return np.dtype(np.float64 if double or np.dtype(np.float64) in dtypes else np.float32)


@dataclass(frozen=True)
class TensorSpec:
    """A tensor without its memory.

    Attributes:
        shape: Logical extents: [N, C, spatial...] for data, [K, C/groups, spatial...] for filters.
        strides: Distance between neighbours along each axis, in elements (NHWC is just strides).
        dtype: Element type, one of `DATA_TYPES`.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    def __post_init__(self) -> None:
        if len(self.strides) != len(self.shape):
            raise ValueError(f"strides {self.strides} and shape {self.shape} differ in rank")
        if self.dtype not in DATA_TYPES:
            allowed = ", ".join(str(dtype) for dtype in DATA_TYPES)
            raise ValueError(f"data type {self.dtype} is not supported (allowed: {allowed})")

    @classmethod
    def of(cls, array: np.ndarray) -> TensorSpec:
        """The spec of an existing array."""
        itemsize = array.dtype.itemsize
        return cls(array.shape, tuple(s // itemsize for s in array.strides), array.dtype)

    @classmethod
    def packed(
        cls, shape: tuple[int, ...], dtype: Any, *, channels_last: bool = False
    ) -> TensorSpec:
        """The spec of a packed tensor: NCHW-like, or NHWC-like with ``channels_last``."""
        order = list(range(len(shape)))
        if channels_last:
            order = [0, *range(2, len(shape)), 1]
        strides = [0] * len(shape)
        step = 1
        for axis in reversed(order):
            strides[axis] = step
            step *= shape[axis]
        return cls(shape, tuple(strides), np.dtype(dtype))

    def placeholder(self) -> np.ndarray:
        """An array of this shape and these strides over no memory: look at it, never touch it.

        Plans are made from views (slices, transposes) of placeholders, so that the same code
        derives the views when planning and when running.
        """
        itemsize = self.dtype.itemsize
        nothing = np.empty(1, self.dtype)
        return as_strided(nothing, self.shape, tuple(s * itemsize for s in self.strides))


@dataclass(frozen=True)
class ConvGeometry:
    """How the filter moves over the input; one entry per spatial axis in every tuple.

    Attributes:
        stride: Input elements between neighbouring outputs.
        dilation: Input elements between neighbouring filter taps.
        pre_padding: Zeros before the first input element.
        post_padding: Zeros after the last input element.
        flip: True for hipDNN's CONVOLUTION (the filter is reversed along every spatial axis),
            False for CROSS_CORRELATION.
    """

    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pre_padding: tuple[int, ...]
    post_padding: tuple[int, ...]
    flip: bool = False

    def __post_init__(self) -> None:
        rank = len(self.stride)
        if not 1 <= rank <= 3:
            raise ValueError(f"stride {self.stride} has {rank} entries (allowed: 1 to 3)")
        for name, least in (
            ("stride", 1),
            ("dilation", 1),
            ("pre_padding", 0),
            ("post_padding", 0),
        ):
            values = getattr(self, name)
            if len(values) != rank:
                raise ValueError(f"{name} {values} needs {rank} entries, as stride {self.stride}")
            if any(value < least for value in values):
                raise ValueError(f"{name} {values} has an entry below {least}")

    @classmethod
    def uniform(
        cls, rank: int, *, stride: int = 1, dilation: int = 1, padding: int = 0, flip: bool = False
    ) -> ConvGeometry:
        """The same stride, dilation and padding along each of ``rank`` axes."""
        return cls((stride,) * rank, (dilation,) * rank, (padding,) * rank, (padding,) * rank, flip)

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.stride)

    def output_shape(self, x: tuple[int, ...], w: tuple[int, ...]) -> tuple[int, ...]:
        """Shape [N, K, spatial...] of the output for input shape ``x`` and filter shape ``w``.

        Per axis ``(in + pre + post - dilation * (taps - 1) - 1) // stride + 1``.

        Raises:
            ValueError: Ranks differ, channels don't divide into groups, or the filter is larger
                than the padded input.
        """
        if len(x) != self.rank + 2 or len(w) != self.rank + 2:
            raise ValueError(
                f"x {x} and w {w} must have rank {self.rank + 2}, "
                f"as the geometry has {self.rank} spatial axes"
            )
        if min(*x, *w) < 1:
            raise ValueError(f"x {x} and w {w} must not have an empty axis")
        if x[1] % w[1] or w[0] % (x[1] // w[1]):
            raise ValueError(
                f"channels don't divide into groups: x has {x[1]}, w {w} has {w[1]} a group, "
                f"and {w[0]} outputs"
            )
        spatial = tuple(
            (size + pre + post - dilation * (taps - 1) - 1) // stride + 1
            for size, taps, stride, dilation, pre, post in zip(
                x[2:],
                w[2:],
                self.stride,
                self.dilation,
                self.pre_padding,
                self.post_padding,
                strict=True,
            )
        )
        if min(spatial) < 1:
            raise ValueError(f"filter {w} does not fit into the padded input {x}: {self}")
        return (x[0], w[0], *spatial)

    def check(self, x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...]) -> None:
        """Raise ValueError unless ``y`` is the shape of the output for ``x`` and ``w``."""
        expected = self.output_shape(x, w)
        if tuple(y) != expected:
            raise ValueError(f"y has shape {tuple(y)}, but x {x} and w {w} give {expected}")

    def flops(self, w: tuple[int, ...], y: tuple[int, ...]) -> int:
        """Floating-point operations (a multiply-add is two) of each of the three directions."""
        return 2 * math.prod(y) * math.prod(w[1:])
