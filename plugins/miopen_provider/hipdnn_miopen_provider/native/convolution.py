"""Convolution: forward, backward data and backward weights.

Tensors are always named x, w and y (for the backward directions y is dy, and x or w is the result);
the orders in which MIOpen's calls want them, which differ from direction to direction and call to
call, live in one table here.

MIOpen does not check that the tensors agree with each other, and runs kernels out of bounds if they
don't. ``ConvolutionProblem`` therefore does.
"""

from __future__ import annotations

from ctypes import byref, c_bool, c_float, c_int, c_size_t
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from hipdnn_miopen_provider.native import library
from hipdnn_miopen_provider.native.enums import ConvolutionAlgorithm
from hipdnn_miopen_provider.native.errors import MiopenError
from hipdnn_miopen_provider.native.memory import NO_MEMORY, check_size
from hipdnn_miopen_provider.native.prepared import WORKSPACE, WORKSPACE_SIZE, PreparedCall, Slot
from hipdnn_miopen_provider.native.prototypes import ConvAlgoPerfT, ConvSolutionT

if TYPE_CHECKING:
    from hipdnn_miopen_provider.native.descriptors import ConvolutionDescriptor, TensorDescriptor
    from hipdnn_miopen_provider.native.handle import Handle
    from hipdnn_miopen_provider.native.memory import DeviceMemory


class Direction(Enum):
    """A direction: the calls' stem, and the order of the tensors (two inputs, then the output).

    ``query_order`` is that of GetWorkSpaceSize, the solution calls and Immediate; ``run_order``
    that of Find and the run itself. They differ for the forward direction only.
    """

    FORWARD = ("Forward", "wxy", "xwy")
    BACKWARD_DATA = ("BackwardData", "ywx", "ywx")
    BACKWARD_WEIGHTS = ("BackwardWeights", "yxw", "yxw")

    def __init__(self, stem: str, query_order: str, run_order: str) -> None:
        self.stem = stem
        self.query_order = query_order
        self.run_order = run_order


@dataclass(frozen=True)
class ConvolutionProblem:
    """One convolution: direction, descriptors, and the check that these agree.

    Raises:
        ValueError: Types differ, or the dimensions of y are not those that x, w and the convolution
            give.
    """

    direction: Direction
    x: TensorDescriptor
    w: TensorDescriptor
    y: TensorDescriptor
    convolution: ConvolutionDescriptor

    def __post_init__(self) -> None:
        x, w, y = self.x, self.w, self.y
        if not x.dtype == w.dtype == y.dtype:
            types = {"x": x.dtype.name, "w": w.dtype.name, "y": y.dtype.name}
            raise ValueError(f"x, w and y of one convolution have one data type, got {types}")
        if not len(x.dims) == len(w.dims) == len(y.dims):
            ranks = {"x": len(x.dims), "w": len(w.dims), "y": len(y.dims)}
            raise ValueError(f"x, w and y of one convolution have one rank, got {ranks}")
        try:
            expected = self.convolution.output_dims(x, w)
        except MiopenError as error:
            raise ValueError(f"x {x.dims} and w {w.dims} don't go together: {error}") from error
        if y.dims != expected:
            raise ValueError(f"y has dims {y.dims}, but x and w give {expected}")

    def close(self) -> None:
        """Closes the descriptors."""
        for descriptor in (self.x, self.w, self.y, self.convolution):
            descriptor.close()

    def check_sizes(self, buffers: ConvolutionBuffers) -> None:
        """Raises ValueError if a buffer is smaller than its tensor."""
        for name in "xwy":
            check_size(name, getattr(buffers, name), getattr(self, name).nbytes)

    def tensors(self, order: str) -> list[TensorDescriptor]:
        """The descriptors in an order such as ``"wxy"``."""
        return [getattr(self, name) for name in order]


@dataclass(frozen=True)
class ConvolutionBuffers:
    """Device memory of a convolution's tensors, by the names of its descriptors."""

    x: DeviceMemory
    w: DeviceMemory
    y: DeviceMemory


class FindResult(NamedTuple):
    """One result of a Find: an algorithm, its time in ms, and the workspace it needs in bytes."""

    algorithm: ConvolutionAlgorithm
    milliseconds: float
    workspace_size: int


@dataclass(frozen=True)
class Solution:
    """One entry of the immediate mode's list.

    Attributes:
        solution_id: MIOpen's number of the solver.
        algorithm: The solver's algorithm.
        milliseconds: Measured if a find-db record exists, else an estimate or a negative number.
        workspace_size: Bytes it needs.
    """

    solution_id: int
    algorithm: ConvolutionAlgorithm
    milliseconds: float
    workspace_size: int


def workspace_size(handle: Handle, problem: ConvolutionProblem) -> int:
    """Bytes of workspace MIOpen asks for. Depends on the descriptor's find mode: set that first."""
    size = c_size_t()
    _query(handle, problem, "GetWorkSpaceSize", byref(size))
    return size.value


def workspace_size_range(handle: Handle, problem: ConvolutionProblem) -> tuple[int, int]:
    """Smallest and largest workspace of all solvers, in bytes.

    Raises:
        MissingSymbolError: This libMIOpen doesn't export the call (3.5.1 doesn't).
    """
    smallest, largest = c_size_t(), c_size_t()
    _query(handle, problem, "GetWorkSpaceSizeRange", byref(smallest), byref(largest))
    return smallest.value, largest.value


def solutions(handle: Handle, problem: ConvolutionProblem) -> list[Solution]:
    """The immediate mode's list: no measuring, no search; best guess first."""
    count = c_size_t()
    _query(handle, problem, "GetSolutionCount", byref(count))
    entries = (ConvSolutionT * max(count.value, 1))()
    _query(handle, problem, "GetSolution", count.value, byref(count), entries)
    return [
        Solution(
            entry.solution_id,
            ConvolutionAlgorithm(entry.algorithm),
            entry.time,
            entry.workspace_size,
        )
        for entry in entries[: count.value]
    ]


def solution_workspace_size(handle: Handle, problem: ConvolutionProblem, solution_id: int) -> int:
    """Bytes of workspace that one solver needs."""
    size = c_size_t()
    _query(handle, problem, "GetSolutionWorkspaceSize", solution_id, byref(size))
    return size.value


def compile_solution(handle: Handle, problem: ConvolutionProblem, solution_id: int) -> None:
    """Compiles one solver's kernels into the handle. The tuning policy plays no role."""
    _query(handle, problem, "CompileSolution", solution_id)


def find(
    handle: Handle,
    problem: ConvolutionProblem,
    buffers: ConvolutionBuffers,
    workspace: DeviceMemory = NO_MEMORY,
    *,
    exhaustive: bool = False,
    request: int = 5,
) -> list[FindResult]:
    """Finds algorithms, under the handle's tuning policy; the best first.

    Runs kernels on all buffers, the output among them. Solvers that need more than ``workspace``
    are left out; so are their perf-db records.

    Args:
        handle: A fresh one, if its policy is to be obeyed.
        problem: What to compute.
        buffers: Real memory: MIOpen refuses null pointers.
        workspace: Scratch memory.
        exhaustive: Search although the policy is None or DbUpdate.
        request: The most results to return; MIOpen has one for each algorithm.

    Raises:
        MiopenError: No solver could be compiled and run.
        ValueError: A buffer is smaller than its tensor.
    """
    problem.check_sizes(buffers)
    direction = problem.direction
    returned, results = c_int(), (ConvAlgoPerfT * request)()
    library.load().call(
        f"miopenFindConvolution{direction.stem}Algorithm",
        handle.raw,
        *_with_data(problem, buffers, direction.run_order),
        request,
        byref(returned),
        results,
        workspace.address,
        workspace.nbytes,
        c_bool(exhaustive),
    )
    return [
        FindResult(ConvolutionAlgorithm(result.algo), result.time, result.memory)
        for result in results[: returned.value]
    ]


def run(
    handle: Handle, problem: ConvolutionProblem, algorithm: ConvolutionAlgorithm
) -> PreparedCall:
    """Prepares the run of an algorithm that a Find on the same handle returned.

    Its tensors are x, w and y; alpha is 1 and beta 0. The handle and the problem's descriptors have
    to stay open. The call raises MiopenError if there was no such Find.
    """
    direction = problem.direction
    first, second, result = (
        (tensor.raw, Slot(name, tensor.nbytes))
        for name, tensor in zip(
            direction.run_order, problem.tensors(direction.run_order), strict=True
        )
    )
    return PreparedCall(
        f"miopenConvolution{direction.stem}",
        *(handle.raw, byref(c_float(1.0)), *first, *second),
        *(problem.convolution.raw, algorithm, byref(c_float(0.0)), *result),
        *(Slot(WORKSPACE, 0), WORKSPACE_SIZE),  # MIOpen itself checks what it needs
    )


def run_immediate(
    handle: Handle,
    problem: ConvolutionProblem,
    solution_id: int,
    buffers: ConvolutionBuffers,
    workspace: DeviceMemory = NO_MEMORY,
) -> None:
    """Runs one solver by its number, compiling it first if need be.

    Raises:
        MiopenError: The solver doesn't apply, or needs more workspace.
        ValueError: A buffer is smaller than its tensor.
    """
    problem.check_sizes(buffers)
    direction = problem.direction
    library.load().call(
        f"miopenConvolution{direction.stem}Immediate",
        handle.raw,
        *_with_data(problem, buffers, direction.query_order),
        workspace.address,
        workspace.nbytes,
        solution_id,
    )


def _query(handle: Handle, problem: ConvolutionProblem, call: str, *arguments: Any) -> None:
    first, second, result = problem.tensors(problem.direction.query_order)
    library.load().call(
        f"miopenConvolution{problem.direction.stem}{call}",
        handle.raw,
        first.raw,
        second.raw,
        problem.convolution.raw,
        result.raw,
        *arguments,
    )


def _with_data(problem: ConvolutionProblem, buffers: ConvolutionBuffers, order: str) -> list[Any]:
    """Descriptor and address of both inputs, the convolution, then those of the output."""
    first, second, result = [
        (getattr(problem, name).raw, getattr(buffers, name).address) for name in order
    ]
    return [*first, *second, problem.convolution.raw, *result]
