"""Convolution problems for the tests: strategies, tensors in any layout, and guarded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hipdnn_cpu_provider.kernels.conv_algorithms import Direction
from hipdnn_cpu_provider.kernels.geometry import ConvGeometry

LAYOUTS = ("packed", "channels_last", "strided", "permuted")
GUARD = 77.0


@dataclass(frozen=True)
class Problem:
    """Shapes and geometry of a convolution, and the layouts of x, w and y."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    geometry: ConvGeometry
    layouts: tuple[str, str, str] = ("packed", "packed", "packed")

    @property
    def y(self) -> tuple[int, ...]:
        return self.geometry.output_shape(self.x, self.w)


def memory_and_view(
    shape: tuple[int, ...], layout: str, dtype: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Memory full of guard values, and a view of ``shape`` into it."""
    rank = len(shape)
    match layout:
        case "packed":
            memory = np.full(shape, GUARD, dtype)
            return memory, memory
        case "channels_last":
            memory = np.full((shape[0], *shape[2:], shape[1]), GUARD, dtype)
            return memory, np.moveaxis(memory, -1, 1)
        case "strided":  # every second element, with a margin around every axis
            memory = np.full(tuple(2 * size + 3 for size in shape), GUARD, dtype)
            return memory, memory[tuple(slice(2, 2 + 2 * size, 2) for size in shape)]
        case "permuted":
            memory = np.full(shape[::-1], GUARD, dtype)
            return memory, memory.transpose(range(rank)[::-1])
    raise AssertionError(layout)


def tensor(rng: np.random.Generator, shape: tuple[int, ...], layout: str, dtype: Any) -> np.ndarray:
    """Random values of ``shape`` in ``layout``."""
    view = memory_and_view(shape, layout, dtype)[1]
    view[...] = rng.uniform(-1, 1, shape).astype(dtype)
    return view


def operands(
    problem: Problem, direction: Direction, dtypes: tuple[Any, Any, Any], seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The two inputs, the output and the memory behind the output; ``dtypes`` are of x, w, y."""
    rng = np.random.default_rng(seed)
    described = dict(
        zip(
            "xwy",
            zip((problem.x, problem.w, problem.y), problem.layouts, dtypes, strict=True),
            strict=True,
        )
    )
    order = {Direction.FPROP: "xwy", Direction.DGRAD: "ywx", Direction.WGRAD: "yxw"}[direction]
    a, b = (tensor(rng, *described[name]) for name in order[:2])
    memory, out = memory_and_view(*described[order[2]])
    return a, b, out, memory


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Any small problem of rank 1 to 3: groups, dilation, asymmetric padding, stride, layouts."""
    rank = draw(st.integers(1, 3))
    groups = draw(st.integers(1, 3))
    channels = draw(st.integers(1, 3))
    outputs = draw(st.integers(1, 3))
    axes = [
        (
            draw(st.integers(1, 7 if rank < 3 else 4)),  # size
            draw(st.integers(1, 4 if rank < 3 else 3)),  # taps
            draw(st.integers(1, 3)),  # stride
            draw(st.integers(1, 3)),  # dilation
            draw(st.integers(0, 4)),  # padding
            draw(st.integers(0, 4)),
        )
        for _ in range(rank)
    ]
    sizes, taps, strides, dilations, pre, post = zip(*axes, strict=True)
    short = [
        max(0, dilation * (tap - 1) + 1 - (size + before + after))
        for size, tap, dilation, before, after in zip(
            sizes, taps, dilations, pre, post, strict=True
        )
    ]
    post = tuple(after + lack for after, lack in zip(post, short, strict=True))
    layout = st.sampled_from(LAYOUTS)
    return Problem(
        x=(draw(st.integers(1, 3)), groups * channels, *sizes),
        w=(groups * outputs, channels, *taps),
        geometry=ConvGeometry(strides, dilations, pre, post, draw(st.booleans())),
        layouts=(draw(layout), draw(layout), draw(layout)),
    )


EDGE_CASES = {
    "padding exceeds the filter": Problem(
        (2, 3, 5, 4), (4, 3, 2, 3), ConvGeometry((1, 1), (1, 1), (4, 5), (3, 6))
    ),
    "filter covers the image": Problem((2, 3, 5, 4), (4, 3, 5, 4), ConvGeometry.uniform(2)),
    "stride exceeds the filter": Problem(
        (2, 3, 9, 8), (4, 3, 2, 1), ConvGeometry.uniform(2, stride=4)
    ),
    "one of everything": Problem((1, 1, 1), (1, 1, 1), ConvGeometry.uniform(1)),
    "one image, one channel": Problem(
        (1, 1, 6, 5), (1, 1, 3, 3), ConvGeometry.uniform(2, padding=1)
    ),
    "outer taps only meet padding": Problem(
        (2, 2, 3, 3), (3, 2, 3, 3), ConvGeometry.uniform(2, dilation=5, padding=5)
    ),
    "whole rows only meet padding": Problem(
        (1, 2, 2, 2), (3, 2, 1, 1), ConvGeometry.uniform(2, padding=3)
    ),
    "depthwise": Problem((2, 8, 7, 6), (8, 1, 3, 3), ConvGeometry.uniform(2, stride=2, padding=1)),
    "depthwise with multiplier": Problem(
        (2, 4, 7, 6), (12, 1, 3, 2), ConvGeometry.uniform(2, padding=1)
    ),
    "pointwise channels last": Problem(
        (3, 8, 5, 5), (6, 8, 1, 1), ConvGeometry.uniform(2), ("channels_last",) * 3
    ),
    "3x3 channels last": Problem(
        (3, 8, 9, 10), (6, 8, 3, 3), ConvGeometry.uniform(2, padding=1), ("channels_last",) * 3
    ),
    "3x3 by groups": Problem(
        (2, 8, 11, 9), (6, 4, 3, 3), ConvGeometry((1, 1), (1, 1), (1, 0), (2, 1))
    ),
    "many small images": Problem((40, 3, 4, 4), (5, 3, 3, 3), ConvGeometry.uniform(2, padding=1)),
    "patches": Problem((2, 3, 12, 12), (8, 3, 4, 4), ConvGeometry.uniform(2, stride=4)),
    "stride and dilation share a factor": Problem(
        (2, 3, 17), (4, 3, 4), ConvGeometry((4,), (6,), (3,), (5,))
    ),
    "volume": Problem(
        (2, 4, 5, 6, 7), (6, 2, 2, 3, 3), ConvGeometry((1, 2, 1), (2, 1, 1), (1, 0, 2), (0, 1, 1))
    ),
}
"""Problems that hit what random ones might miss."""
