"""Which algorithms can compute a convolution, what memory they take, and which to try first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from .arena import Arena, payload_bytes, workspace_bytes
from .conv_gemm import GemmCorrelation
from .conv_wgrad import GemmWeightGradient
from .conv_winograd import WinogradCorrelation, applies
from .correlation import Correlation, backward_data, forward
from .geometry import ConvGeometry, TensorSpec, compute_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


class Direction(StrEnum):
    """The three convolutions, with the order in which `Algorithm.run` takes their tensors."""

    FPROP = "fprop"
    """(x, w) -> y."""
    DGRAD = "dgrad"
    """(dy, w) -> dx."""
    WGRAD = "wgrad"
    """(dy, x) -> dw."""


class _Kernel(Protocol):
    min_bytes: int
    max_bytes: int

    @property
    def cost(self) -> float: ...

    def run(self, problem: Correlation, arena: Arena, budget: int) -> None: ...


@dataclass(frozen=True)
class Algorithm:
    """One way to compute one convolution.

    Attributes:
        name: ``im2col_gemm``, ``tap_gemm`` or ``winograd``.
        direction: Which of the three convolutions.
        geometry: How the filter moves.
        operands: Specs of the two inputs and the output, in the order of `run`.
        min_workspace: Bytes without which it cannot run.
        max_workspace: Bytes beyond which it does not get faster.
        cost: Estimated time with that much workspace, see `costs`.
    """

    name: str
    direction: Direction
    geometry: ConvGeometry
    operands: tuple[TensorSpec, TensorSpec, TensorSpec]
    min_workspace: int
    max_workspace: int
    cost: float
    _kernels: tuple[_Kernel, ...]

    def run(self, a: np.ndarray, b: np.ndarray, out: np.ndarray, workspace: np.ndarray) -> None:
        """Write the convolution of ``a`` and ``b`` into ``out``.

        Any number of threads may call it at once, each with its own workspace and output.

        Args:
            a: x in the forward direction, dy in both backward ones.
            b: w, or x when computing the gradient of the weights.
            out: y, dx or dw; overlaps neither ``a`` nor ``b``.
            workspace: At least `min_workspace` bytes, one-dimensional ``uint8``; every temporary
                that grows with the problem is in there.

        Raises:
            ValueError: An array's shape, strides or type is not the planned one, an array is not
                aligned to its type, or the workspace is too small.
        """
        for array, spec in zip((a, b, out), self.operands, strict=True):
            if TensorSpec.of(array) != spec:
                raise ValueError(f"{self.name} was planned for {spec}, got {TensorSpec.of(array)}")
            if not array.flags.aligned:
                raise ValueError(f"an array of {array.dtype} must be aligned to its elements")
        if workspace.nbytes < self.min_workspace:
            raise ValueError(
                f"{self.name} needs {self.min_workspace} bytes of workspace, got {workspace.nbytes}"
            )
        budget = payload_bytes(workspace.nbytes)
        problems = _lower(self.direction, a, b, out, self.geometry)
        for kernel, problem in zip(self._kernels, problems, strict=True):
            kernel.run(problem, Arena(workspace), budget)


def _lower(
    direction: Direction, a: np.ndarray, b: np.ndarray, out: np.ndarray, geometry: ConvGeometry
) -> Sequence[Correlation]:
    if direction == Direction.DGRAD:
        return backward_data(a, b, out, geometry)
    if direction == Direction.WGRAD:
        return [forward(b, out, a, geometry)]
    return [forward(a, b, out, geometry)]


def algorithms(
    direction: Direction,
    a: TensorSpec,
    b: TensorSpec,
    out: TensorSpec,
    geometry: ConvGeometry,
    *,
    double: bool = False,
) -> tuple[Algorithm, ...]:
    """All algorithms for a convolution, the one expected to be fastest first.

    Args:
        direction: Which convolution; it says what ``a``, ``b`` and ``out`` are.
        a: First input.
        b: Second input.
        out: Output.
        geometry: How the filter moves.
        double: Compute in float64 even if no tensor is float64.

    Raises:
        ValueError: The shapes don't belong together.
    """
    x, w, y = {
        Direction.FPROP: (a, b, out),
        Direction.DGRAD: (out, b, a),
        Direction.WGRAD: (b, out, a),
    }[direction]
    geometry.check(x.shape, w.shape, y.shape)
    compute = compute_dtype(a.dtype, b.dtype, out.dtype, double=double)
    samples = _lower(direction, a.placeholder(), b.placeholder(), out.placeholder(), geometry)
    candidates: list[tuple[str, tuple[_Kernel, ...]]] = []
    for name, by_tap in (("im2col_gemm", False), ("tap_gemm", True)):
        if by_tap and all(sample.tap_count <= 1 for sample in samples):
            continue
        kind = GemmWeightGradient if direction == Direction.WGRAD else GemmCorrelation
        candidates.append((name, tuple(kind(s, compute, by_tap=by_tap) for s in samples)))
    if direction != Direction.WGRAD and all(applies(sample, compute) for sample in samples):
        candidates.append(("winograd", tuple(WinogradCorrelation(s) for s in samples)))
    found = [
        Algorithm(
            name,
            direction,
            geometry,
            (a, b, out),
            workspace_bytes(max(kernel.min_bytes for kernel in kernels)),
            workspace_bytes(max(kernel.max_bytes for kernel in kernels)),
            sum(kernel.cost for kernel in kernels),
            kernels,
        )
        for name, kernels in candidates
    ]
    return tuple(sorted(found, key=lambda algorithm: algorithm.cost))
