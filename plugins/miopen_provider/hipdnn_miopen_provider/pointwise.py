"""Elementwise operations on their own: activations, and addition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hipdnn_miopen_provider.native import NO_MEMORY, TensorOp, pointwise
from hipdnn_miopen_provider.operation import (
    CallLauncher,
    Compilation,
    Launcher,
    Operation,
    Scratch,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hipdnn_miopen_provider.activation import Activation
    from hipdnn_miopen_provider.native import Handle, PreparedCall
    from hipdnn_miopen_provider.tensors import TensorSpec


@dataclass(frozen=True)
class ActivationForward(Operation):
    """y = activation(x); `uids` are those of x and y."""

    activation: Activation
    x: TensorSpec
    uids: tuple[int, int]
    name: ClassVar[str] = "activation"

    @property
    def tensors(self) -> Mapping[int, TensorSpec]:
        """X and y by uid."""
        return dict.fromkeys(self.uids, self.x)

    def compile(self, compilation: Compilation) -> Launcher:
        """Run it once, so that its kernel is compiled."""
        owned, handle = compilation.owned, compilation.new_handle()
        tensor = owned.enter_context(self.x.describe())
        descriptor = owned.enter_context(self.activation.describe())

        call = pointwise.activation_forward(handle, descriptor, (tensor, "x"), (tensor, "y"))
        return _compiled(self, handle, call, dict(zip("xy", self.uids, strict=True)))


@dataclass(frozen=True)
class Addition(Operation):
    """y = a + b, with extents of 1 in b broadcast; `uids` are those of a, b and y.

    a and b are packed in the order of their dims: of other strides MIOpen's kernel for a bias takes
    the channels' alone, and adds to the wrong elements.
    """

    a: TensorSpec
    b: TensorSpec
    uids: tuple[int, int, int]
    name: ClassVar[str] = "addition"

    @property
    def tensors(self) -> Mapping[int, TensorSpec]:
        """a, b and y by uid."""
        return dict(zip(self.uids, (self.a, self.b, self.a), strict=True))

    def compile(self, compilation: Compilation) -> Launcher:
        """Run it once, so that its kernel is compiled."""
        owned, handle = compilation.owned, compilation.new_handle()
        a, b = (owned.enter_context(spec.describe()) for spec in (self.a, self.b))

        call = pointwise.op_tensor(handle, TensorOp.Add, (a, "a"), (b, "b"), (a, "y"))
        return _compiled(self, handle, call, dict(zip("aby", self.uids, strict=True)))


def _compiled(
    operation: Operation, handle: Handle, call: PreparedCall, uids: Mapping[str, int]
) -> Launcher:
    launcher = CallLauncher(handle, call.bind, uids)
    with Scratch(operation.sizes) as scratch:
        launcher.bind(scratch.memory)(NO_MEMORY)
    return launcher
