"""Shim calls on the real library: device buffers, and what MIOpen's own handles and Finds said."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Self

import pytest

from hipdnn_miopen_provider.device_memory import HipMemory
from hipdnn_miopen_provider.native import FindMode, FindResult, Handle, TuningPolicy, convolution
from hipdnn_miopen_provider.shim import (
    find_convolution_backward_data,
    find_convolution_backward_weights,
    find_convolution_forward,
)
from tests.shim_calls import Conv, call_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hipdnn_miopen_provider.native import ConvolutionProblem
    from hipdnn_miopen_provider.shim import MiopenHandle, TensorDescriptor
    from hipdnn_registry import DeviceBuffer, ExecutionPlan

HEIGHT = 16


class Memory:
    """Allocates device buffers for descriptors, and releases them at the end of a block."""

    def __init__(self) -> None:
        self._memory, self._owned = HipMemory(0), ExitStack()

    def __call__(self, desc: TensorDescriptor) -> DeviceBuffer:
        return self.take(desc.nbytes)

    def take(self, nbytes: int) -> DeviceBuffer:
        return self._owned.enter_context(self._memory.allocate(nbytes))

    def call(self, operation: str, width: int) -> Callable[[MiopenHandle], ExecutionPlan]:
        return call_of(operation, self, width, HEIGHT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._owned.close()


Policies = list[tuple[TuningPolicy, TuningPolicy]]


def spy_on_policies(monkeypatch: pytest.MonkeyPatch) -> Policies:
    """Return what real handles will have said of themselves: (within a build, after it)."""
    seen: Policies = []
    under_policy = Handle.under_policy

    @contextmanager
    def spied(handle: Handle, policy: TuningPolicy) -> Iterator[None]:
        within = TuningPolicy.NONE
        try:
            with under_policy(handle, policy):
                within = handle.tuning_policy
                yield
        finally:
            seen.append((within, handle.tuning_policy))

    monkeypatch.setattr(Handle, "under_policy", spied)
    return seen


def spy_on_find_modes(monkeypatch: pytest.MonkeyPatch) -> list[FindMode]:
    """Return what real descriptors will have said of themselves when a Find was made."""
    modes: list[FindMode] = []
    find = convolution.find

    def watched(
        handle: Handle, problem: ConvolutionProblem, *rest: Any, **named: Any
    ) -> list[FindResult]:
        modes.append(problem.convolution.find_mode)
        return find(handle, problem, *rest, **named)

    monkeypatch.setattr(convolution, "find", watched)
    return modes


def find_of(operation: str, memory: Memory, width: int) -> Callable[..., ExecutionPlan]:
    """The Find of a convolution's compute call, to be made on handles."""
    conv = Conv(memory, width, HEIGHT)
    function, arguments = {
        "forward": (find_convolution_forward, conv.forward_arguments),
        "backward data": (find_convolution_backward_data, conv.backward_data_arguments),
        "backward weights": (find_convolution_backward_weights, conv.backward_weights_arguments),
    }[operation]

    def find(handle: MiopenHandle, **options: Any) -> ExecutionPlan:
        return function(handle, *arguments, **options)

    return find
