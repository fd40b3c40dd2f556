"""Elementwise operations on their own: activations, and addition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hipdnn_miopen_provider.native import NO_MEMORY, TensorOp, pointwise
from hipdnn_miopen_provider.operation import Compilation, Launcher, Operation, Scratch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hipdnn_miopen_provider.activation import Activation
    from hipdnn_miopen_provider.native import DeviceMemory, Handle, TensorDescriptor
    from hipdnn_miopen_provider.operation import Run
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

        def run(memory: Mapping[int, DeviceMemory]) -> None:
            x, y = (memory[uid] for uid in self.uids)
            pointwise.activation_forward(handle, descriptor, (tensor, x), (tensor, y))

        return _compiled(self, handle, run)


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

        def run(memory: Mapping[int, DeviceMemory]) -> None:
            first, second, y = (memory[uid] for uid in self.uids)
            add(handle, (a, first), (b, second), y)

        return _compiled(self, handle, run)


def add(
    handle: Handle,
    a: tuple[TensorDescriptor, DeviceMemory],
    b: tuple[TensorDescriptor, DeviceMemory],
    y: DeviceMemory,
) -> None:
    """Enqueue y = a + b; y has a's descriptor, and may be a."""
    pointwise.op_tensor(handle, TensorOp.Add, a, b, (a[0], y))


class _PointwiseLauncher(Launcher):
    def __init__(self, handle: Handle, run: _OnMemory) -> None:
        self.handles = (handle,)
        self._run = run

    def bind(self, memory: Mapping[int, DeviceMemory]) -> Run:
        run = self._run

        def enqueue(_: DeviceMemory = NO_MEMORY) -> None:
            run(memory)

        return enqueue


if TYPE_CHECKING:
    from collections.abc import Callable

    _OnMemory = Callable[[Mapping[int, DeviceMemory]], None]


def _compiled(operation: Operation, handle: Handle, run: _OnMemory) -> Launcher:
    with Scratch(operation.sizes) as scratch:
        run(scratch.memory)
    return _PointwiseLauncher(handle, run)
