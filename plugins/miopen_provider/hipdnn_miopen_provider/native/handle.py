"""MIOpen handles: one device, one stream, one tuning policy, and a cache of compiled kernels."""

from __future__ import annotations

from contextlib import contextmanager
from ctypes import byref, c_int
from functools import cache
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import hip, library
from hipdnn_miopen_provider.native.enums import TuningPolicy
from hipdnn_miopen_provider.native.owned import Owned
from hipdnn_miopen_provider.native.prototypes import HandleT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from hipdnn_miopen_provider.native.hip import AnyStream

_SET_POLICY = "miopenSetTuningPolicy"
_GET_POLICY = "miopenGetTuningPolicy"


class Handle(Owned[HandleT]):
    """A MIOpen handle on the current device.

    It keeps the invokers (compiled kernels and their launch recipe) of what has run on it, and
    MIOpen prefers those to obeying a changed policy: a policy is obeyed on a fresh handle only.

    Args:
        stream: Where its work is enqueued; None is the null stream. The stream has to outlive it.

    Raises:
        NativeUnavailableError: libMIOpen is missing.
        MiopenError: MIOpen could not make a handle.
    """

    def __init__(self, stream: AnyStream = None) -> None:
        raw = HandleT()
        self._stream = stream
        self._policy: TuningPolicy | None = None  # as it was made
        library.load().call("miopenCreateWithStream", byref(raw), hip.stream_address(stream))
        super().__init__(raw, _destroy)

    @property
    def stream(self) -> AnyStream:
        """The stream that its work is enqueued on."""
        return self._stream

    @stream.setter
    def stream(self, stream: AnyStream) -> None:
        library.load().call("miopenSetStream", self.raw, hip.stream_address(stream))
        self._stream = stream

    @property
    def tuning_policy(self) -> TuningPolicy:
        """The handle's own policy. The library's environment (MIOPEN_FIND_ENFORCE) doesn't show.

        Raises:
            MissingSymbolError: This libMIOpen has no tuning policies.
        """
        value = c_int()
        library.load().call(_GET_POLICY, self.raw, byref(value))
        return TuningPolicy(value.value)

    @tuning_policy.setter
    def tuning_policy(self, policy: TuningPolicy) -> None:
        library.load().call(_SET_POLICY, self.raw, policy)
        self._policy = policy

    def under_policy(self, policy: TuningPolicy | None) -> AbstractContextManager[None]:
        """Sets a policy within the block and restores the old one, also when the block fails.

        None changes nothing, for a libMIOpen that has no tuning policies.
        """
        if policy is None:
            return hip.UNCHANGED
        before = self._policy or _policy_of_new_handles()
        if before is policy:
            return hip.UNCHANGED
        return self._under_other_policy(policy, before)

    @contextmanager
    def _under_other_policy(self, policy: TuningPolicy, before: TuningPolicy) -> Iterator[None]:
        self.tuning_policy = policy
        try:
            yield
        finally:
            self.tuning_policy = before


@cache
def _policy_of_new_handles() -> TuningPolicy:
    with Handle() as handle:
        return handle.tuning_policy


def supports_tuning_policy() -> bool:
    """Whether the loaded libMIOpen has the tuning-policy calls."""
    miopen = library.load()
    return miopen.exports(_SET_POLICY) and miopen.exports(_GET_POLICY)


def _destroy(raw: HandleT) -> None:
    library.load().call("miopenDestroy", raw)
