"""Convolution, bias and activation in one graph.

MIOpen's second Find API looks for one fused solver, under any policy and in any find mode. Where it
has none, the three run one after the other, in place on y: rounded to y's type in between.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hipdnn_miopen_provider.kernel_defects import refuse_addition, refuse_clamp
from hipdnn_miopen_provider.native import (
    NO_MEMORY,
    DataType,
    FusedProblem,
    TensorArgument,
    TensorOp,
    convolution,
    find2,
    in_sequence,
    pointwise,
)
from hipdnn_miopen_provider.operation import (
    CallLauncher,
    Compilation,
    Launcher,
    Operation,
    Scratch,
    Solver,
)
from hipdnn_miopen_provider.tensors import Unsupported, in_memory_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hipdnn_miopen_provider.activation import Activation
    from hipdnn_miopen_provider.convolution import Convolution
    from hipdnn_miopen_provider.native import DeviceMemory, Handle
    from hipdnn_miopen_provider.operation import Run, WorkspaceNeed
    from hipdnn_miopen_provider.perf_db import BatchNormKey, ConvolutionKey
    from hipdnn_miopen_provider.tensors import TensorSpec


@dataclass(frozen=True)
class FusedConvolution(Operation):
    """y = activation(convolution(x, w) + bias), the bias or the activation possibly left out.

    Attributes:
        convolution: A forward convolution, whose y is the graph's.
        bias: [1, K, 1...], with its uid.
        activation: What follows; `None` for a bias alone.
    """

    convolution: Convolution
    bias: tuple[int, TensorSpec] | None
    activation: Activation | None
    name: ClassVar[str] = "fused convolution"
    has_workspace_limit: ClassVar[bool] = True
    exhaustive_find: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.activation is not None and self.convolution.y.dtype is DataType.BFloat16:
            raise Unsupported(
                "MIOpen's activation is not implemented for bfloat16, and it has no fused solver "
                "for every convolution"
            )
        if self.activation is not None:
            refuse_clamp(self.activation)
        if self.bias is not None:
            refuse_addition(self.bias[1].dtype)

    @property
    def tensors(self) -> Mapping[int, TensorSpec]:
        """x, w, y and the bias by uid."""
        return {**self.convolution.tensors, **dict([self.bias] if self.bias else [])}

    def workspace(self, handle: Handle, *, deterministic: bool) -> WorkspaceNeed:
        """Ask for the convolution's: a fused solver needs no more."""
        return self.convolution.workspace(handle, deterministic=deterministic)

    def concerns(self, key: ConvolutionKey | BatchNormKey) -> bool:
        """Whether a record is about the convolution: fused solvers share its key."""
        return self.convolution.concerns(key)

    def compile(self, compilation: Compilation) -> Launcher:
        """Look for a fused solver, or else compile the parts."""
        if self.activation is not None:
            with ExitStack() as attempt:
                trial = Compilation(compilation.order, attempt)
                launcher = self._fused(trial, self.activation)
                if launcher is not None:
                    compilation.solvers += trial.solvers
                    compilation.owned.enter_context(attempt.pop_all())
                    return launcher
        parts = "bias" if self.activation is None else "bias, then activation"
        if self.bias is None:
            parts = "activation"
        compilation.notes.append(
            f"MIOpen has no fused solver here: runs as convolution, then {parts}, each rounded to "
            "the type of the result"
        )
        return _PartsLauncher(self, compilation)

    def _fused(self, compilation: Compilation, activation: Activation) -> Launcher | None:
        order, owned, handle = compilation.order, compilation.owned, compilation.new_handle()
        uids = dict(
            zip(
                (
                    TensorArgument.ConvolutionX,
                    TensorArgument.ConvolutionW,
                    TensorArgument.ActivationY,
                ),
                self.convolution.uids,
                strict=True,
            )
        )
        with ExitStack() as during:  # MIOpen copies the descriptors into the problem
            plain = self.convolution.describe(
                during, order.find_mode, deterministic=order.deterministic
            )
            bias = None
            if self.bias is not None:
                uids[TensorArgument.Bias] = self.bias[0]
                bias = during.enter_context(self.bias[1].describe())
            descriptor = during.enter_context(activation.describe())
            problem = during.enter_context(FusedProblem(plain, bias, descriptor))
            asked = convolution.workspace_size(handle, plain)
            limit = asked if order.workspace_limit is None else min(asked, order.workspace_limit)
            scratch = during.enter_context(Scratch(self.sizes, limit))
            memory = {argument: scratch.memory[uid] for argument, uid in uids.items()}
            with compilation.under_policy(handle):
                found = find2.find_solutions(
                    handle, problem, memory, scratch.workspace, exhaustive=order.exhaustive
                )
            for solution in found:
                owned.enter_context(solution)
            best = next((s for s in found if s.workspace_size <= limit), None)
        if best is None:
            return None
        compilation.solvers.append(
            Solver(f"fused solver {best.solver_id}", best.milliseconds, best.workspace_size)
        )
        needed = {argument: self.sizes[uid] for argument, uid in uids.items()}
        return CallLauncher(
            handle,
            find2.run_solution(handle, best, needed).bind,
            {argument.name: uid for argument, uid in uids.items()},
            best.workspace_size,
        )


class _PartsLauncher(Launcher):
    """Convolution, then bias, then activation, in place on y."""

    def __init__(self, operation: FusedConvolution, compilation: Compilation) -> None:
        own = compilation.owned.enter_context
        self._convolution = operation.convolution.compile(compilation)
        self.workspace_size = self._convolution.workspace_size
        handle = compilation.new_handle()
        self.handles = (*self._convolution.handles, handle)
        y_uid = operation.convolution.uids[2]
        y = own(in_memory_order(operation.convolution.y).describe()), "y"
        self._behind: list[CallLauncher] = []
        if operation.bias is not None:
            uid, spec = operation.bias
            bias = own(in_memory_order(spec).describe()), "bias"
            add = pointwise.op_tensor(handle, TensorOp.Add, y, bias, y)
            self._behind.append(CallLauncher(handle, add.bind, {"y": y_uid, "bias": uid}))
        if operation.activation is not None:
            descriptor = own(operation.activation.describe())
            activate = pointwise.activation_forward(handle, descriptor, y, y)
            self._behind.append(CallLauncher(handle, activate.bind, {"y": y_uid}))
        with Scratch(operation.sizes) as scratch:  # compiles the kernels
            for launcher in self._behind:
                launcher.bind(scratch.memory)(NO_MEMORY)

    def bind(self, memory: Mapping[int, DeviceMemory]) -> Run:
        parts = [self._convolution, *self._behind]
        return in_sequence(*(part.bind(memory) for part in parts))
