"""MIOpen's statuses as exceptions, each also one of the registry's own errors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from hipdnn_miopen_provider.native import HipError, MiopenError, Status
from hipdnn_registry import (
    ExecutionError,
    HipdnnError,
    InvalidInputError,
    KnobError,
    ProviderUnavailableError,
    UnsupportedGraphError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_OUT_OF_MEMORY = "hipErrorOutOfMemory"


class MiopenStatusError(HipdnnError):
    """A call returned a status other than success.

    Attributes:
        status: `miopenStatus_t`.
        entry_point: MIOpen's name of the call, or what was being made or set.
    """

    status: ClassVar[Status]

    def __init__(self, entry_point: str, reason: str) -> None:
        self.entry_point = entry_point
        super().__init__(
            f"{entry_point}: {reason} [miopenStatus{self.status.name} ({self.status.value})]"
        )


class NotInitialized(MiopenStatusError, ProviderUnavailableError):  # noqa: N818 - MIOpen's name
    """There is no MIOpen to forward to: no library, no device, no such engine."""

    status = Status.NotInitialized


class BadParm(MiopenStatusError, InvalidInputError):  # noqa: N818 - MIOpen's name
    """An argument is wrong: names it, its value and what is allowed."""

    status = Status.BadParm


class AllocFailed(MiopenStatusError, ExecutionError):  # noqa: N818 - MIOpen's name
    """The device is out of memory."""

    status = Status.AllocFailed


class InternalError(MiopenStatusError, ExecutionError):
    """MIOpen, HIP or the engine failed."""

    status = Status.InternalError


class UnsupportedOp(MiopenStatusError, UnsupportedGraphError):  # noqa: N818 - MIOpen's name
    """The call is declined: says why, and what to do instead where there is something."""

    status = Status.UnsupportedOp


@contextmanager
def translated(entry_point: str) -> Iterator[None]:
    """Give what the registry and its engines raise within the block MIOpen's statuses.

    The original error is the cause. What is no error of theirs, such as an interrupt, passes.
    """
    try:
        yield
    except MiopenStatusError:
        raise
    except (UnsupportedGraphError, KnobError) as error:  # settings that don't go together
        raise UnsupportedOp(entry_point, str(error)) from error
    except InvalidInputError as error:
        raise BadParm(entry_point, str(error)) from error
    except HipdnnError as error:
        raise _failure(entry_point, error) from error


def _failure(entry_point: str, error: HipdnnError) -> MiopenStatusError:
    reason = str(error).removeprefix(f"{entry_point}: ")  # MIOpen's function often has that name
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, HipError) and cause.name == _OUT_OF_MEMORY:
            return AllocFailed(entry_point, reason)
        if isinstance(cause, MiopenError):
            known = {kind.status: kind for kind in (BadParm, AllocFailed, UnsupportedOp)}
            return known.get(Status(cause.status), InternalError)(entry_point, reason)
        cause = cause.__cause__
    return InternalError(entry_point, reason)
