"""MIOpen's second Find API, for convolution fused with bias and activation.

It is the only fused API that obeys a handle's tuning policy. Compiling a fusion plan under Search
or SearchDbUpdate crashes 3.5.1 (in the default fusion find mode, which no call can change), and
miopenConvolutionBiasActivationForward finds no solver in a build without composable kernels.
"""

from __future__ import annotations

from contextlib import ExitStack
from ctypes import Array, byref, c_float, c_size_t, c_uint64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import library
from hipdnn_miopen_provider.native.enums import ProblemDirection, TensorArgument
from hipdnn_miopen_provider.native.memory import NO_MEMORY
from hipdnn_miopen_provider.native.owned import Owned
from hipdnn_miopen_provider.native.prepared import (
    WORKSPACE,
    WORKSPACE_SIZE,
    Later,
    PreparedCall,
    Slot,
)
from hipdnn_miopen_provider.native.prototypes import (
    FindOptionsT,
    ProblemT,
    SolutionT,
    TensorArgumentT,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """A solver with its tuned parameters, compiled; see ``run_solution``."""

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


def run_solution(
    handle: Handle, solution: FoundSolution, tensors: Mapping[TensorArgument, int]
) -> PreparedCall:
    """Prepares the run of a solution in a workspace of the size that it needs.

    The handle and the solution have to stay open.

    Args:
        handle: The handle that the solution was found on.
        solution: What to run.
        tensors: The bytes that each of the problem's tensors needs. Their memory is bound by the
            arguments' names, such as ``ConvolutionX``.
    """
    slots = {argument: Slot(argument.name, needed) for argument, needed in tensors.items()}
    return PreparedCall(
        "miopenRunSolution",
        *(handle.raw, solution.raw, len(slots), _TensorArguments(slots)),
        *(Slot(WORKSPACE, solution.workspace_size), WORKSPACE_SIZE),
    )


@dataclass(frozen=True)
class _TensorArguments(Later):
    """Stands for the array of a solution's tensors."""

    slots: Mapping[TensorArgument, Slot]

    @property
    def names(self) -> list[str]:
        """The tensors'."""
        return [slot.name for slot in self.slots.values()]

    def argument(self, memory: Mapping[str, DeviceMemory]) -> Array[TensorArgumentT]:
        """The array with the addresses of this memory."""
        return (TensorArgumentT * len(self.slots))(
            *(
                TensorArgumentT(argument, None, slot.argument(memory))
                for argument, slot in self.slots.items()
            )
        )


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
