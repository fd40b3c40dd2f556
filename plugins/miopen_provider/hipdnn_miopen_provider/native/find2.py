"""MIOpen's second Find API, for convolution fused with bias and activation.

It is the only fused API that obeys a handle's tuning policy. Compiling a fusion plan under Search
or SearchDbUpdate crashes 3.5.1 (in the default fusion find mode, which no call can change), and
miopenConvolutionBiasActivationForward finds no solver in a build without composable kernels.
"""

from __future__ import annotations

from contextlib import ExitStack
from ctypes import byref, c_float, c_size_t, c_uint64
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import library
from hipdnn_miopen_provider.native.enums import ProblemDirection, TensorArgument
from hipdnn_miopen_provider.native.library import SLOT
from hipdnn_miopen_provider.native.memory import NO_MEMORY
from hipdnn_miopen_provider.native.owned import Owned
from hipdnn_miopen_provider.native.prototypes import (
    FindOptionsT,
    ProblemT,
    SolutionT,
    TensorArgumentT,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hipdnn_miopen_provider.native.convolution import ConvolutionProblem
    from hipdnn_miopen_provider.native.descriptors import ActivationDescriptor, TensorDescriptor
    from hipdnn_miopen_provider.native.handle import Handle
    from hipdnn_miopen_provider.native.memory import DeviceMemory

_FORWARD = ProblemDirection.Forward


class FusedProblem(Owned[ProblemT]):
    """y = activation(convolution(x, w) + bias), as one problem; MIOpen copies the descriptors.

    Its tensors are ConvolutionX, ConvolutionW, Bias and ActivationY; what lies between is never
    stored.

    Args:
        convolution: A forward convolution.
        bias: Descriptor of the bias, dims [1, K, 1, 1]; None for no bias.
        activation: The activation and its parameters.
    """

    def __init__(
        self,
        convolution: ConvolutionProblem,
        bias: TensorDescriptor | None,
        activation: ActivationDescriptor,
    ) -> None:
        raw = ProblemT()
        miopen = library.load()
        miopen.call("miopenCreateConvProblem", byref(raw), convolution.convolution.raw, _FORWARD)
        super().__init__(raw, _destroy_problem)
        y = convolution.y
        try:
            _set(
                self,
                {
                    TensorArgument.ConvolutionX: convolution.x,
                    TensorArgument.ConvolutionW: convolution.w,
                    TensorArgument.ConvolutionY: y,
                },
            )
            if bias is not None:
                with _BiasProblem() as added:
                    tensors = {TensorArgument.BiasX: y, TensorArgument.BiasY: y}
                    _set(added, {**tensors, TensorArgument.Bias: bias})
                    miopen.call("miopenFuseProblems", raw, added.raw)
            with _ActivationProblem(activation) as applied:
                _set(applied, {TensorArgument.ActivationX: y, TensorArgument.ActivationY: y})
                miopen.call("miopenFuseProblems", raw, applied.raw)
        except BaseException:
            self.close()
            raise


class FoundSolution(Owned[SolutionT]):
    """A solver with its tuned parameters, compiled; see ``SolutionRunner``."""

    def __init__(self, raw: SolutionT) -> None:
        super().__init__(raw, _destroy_solution)

    @property
    def workspace_size(self) -> int:
        """Bytes of workspace that it needs."""
        size = c_size_t()
        library.load().call("miopenGetSolutionWorkspaceSize", self.raw, byref(size))
        return size.value

    @property
    def milliseconds(self) -> float:
        """Time that was measured when it was found."""
        time = c_float()
        library.load().call("miopenGetSolutionTime", self.raw, byref(time))
        return time.value

    @property
    def solver_id(self) -> int:
        """MIOpen's number of the solver."""
        number = c_uint64()
        library.load().call("miopenGetSolutionSolverId", self.raw, byref(number))
        return number.value


class SolutionRunner:
    """Runs a found solution on the handle it was found on, any number of times.

    The handle and the solution have to stay open. Not for several threads at once.

    Args:
        handle: The handle that the solution was found on.
        solution: What to run.
        arguments: The tensors that are given at each call, in this order.
    """

    def __init__(
        self, handle: Handle, solution: FoundSolution, arguments: Sequence[TensorArgument]
    ) -> None:
        self._tensors = (TensorArgumentT * len(arguments))(
            *(TensorArgumentT(argument, None, None) for argument in arguments)
        )
        # an item of the array refers to it, so that setting its buffer sets the array's
        self._items = list(self._tensors)
        self._call = library.load().prepare(
            "miopenRunSolution",
            *(handle.raw, solution.raw, len(arguments), self._tensors, SLOT, SLOT),
        )

    def __call__(self, *tensors: DeviceMemory, workspace: DeviceMemory = NO_MEMORY) -> None:
        """Enqueues the solution on the handle's stream.

        Raises:
            MiopenError: A tensor is missing, or the workspace is too small.
        """
        for item, memory in zip(self._items, tensors, strict=True):
            item.buffer = memory.address
        self._call(workspace.address, workspace.nbytes)


def find_solutions(
    handle: Handle,
    problem: FusedProblem,
    tensors: Mapping[TensorArgument, DeviceMemory],
    workspace: DeviceMemory = NO_MEMORY,
    *,
    exhaustive: bool = False,
    limit: int = 8,
) -> list[FoundSolution]:
    """Finds solvers under the handle's tuning policy, the fastest first. Runs them on ``tensors``.

    Args:
        handle: A fresh one, if its policy is to be obeyed.
        problem: What to compute.
        tensors: Memory of the problem's tensors. MIOpen allocates those that are left out itself.
        workspace: Scratch memory; solvers that need more are left out.
        exhaustive: Search although the policy is None or DbUpdate.
        limit: The most solutions to return.

    Returns:
        The solutions, to be closed by the caller; none if no fused solver applies.

    Raises:
        MiopenError: A solver failed to compile.
    """
    miopen = library.load()
    with ExitStack() as stack:
        options = stack.enter_context(_FindOptions())
        if exhaustive:
            miopen.call("miopenSetFindOptionTuning", options.raw, 1)
        miopen.call(
            "miopenSetFindOptionPreallocatedWorkspace",
            *(options.raw, workspace.address, workspace.nbytes),
        )
        for argument, memory in tensors.items():
            miopen.call(
                "miopenSetFindOptionPreallocatedTensor", options.raw, argument, memory.address
            )
        found, count = (SolutionT * limit)(), c_size_t()
        miopen.call(
            "miopenFindSolutions",
            *(handle.raw, problem.raw, options.raw, found, byref(count), limit),
        )
    # an item of the array would refer to it, not hold a copy
    return [FoundSolution(SolutionT(found[i].value)) for i in range(count.value)]


class _BiasProblem(Owned[ProblemT]):
    def __init__(self) -> None:
        raw = ProblemT()
        library.load().call("miopenCreateBiasProblem", byref(raw), _FORWARD)
        super().__init__(raw, _destroy_problem)


class _ActivationProblem(Owned[ProblemT]):
    def __init__(self, activation: ActivationDescriptor) -> None:
        raw = ProblemT()
        library.load().call("miopenCreateActivationProblem", byref(raw), activation.raw, _FORWARD)
        super().__init__(raw, _destroy_problem)


class _FindOptions(Owned[FindOptionsT]):
    def __init__(self) -> None:
        raw = FindOptionsT()
        library.load().call("miopenCreateFindOptions", byref(raw))
        super().__init__(raw, _destroy_options)


def _set(problem: Owned[ProblemT], tensors: Mapping[TensorArgument, TensorDescriptor]) -> None:
    for argument, descriptor in tensors.items():
        library.load().call(
            "miopenSetProblemTensorDescriptor", problem.raw, argument, descriptor.raw
        )


def _destroy_problem(raw: ProblemT) -> None:
    library.load().call("miopenDestroyProblem", raw)


def _destroy_options(raw: FindOptionsT) -> None:
    library.load().call("miopenDestroyFindOptions", raw)


def _destroy_solution(raw: SolutionT) -> None:
    library.load().call("miopenDestroySolution", raw)
