"""HIP through hip-python: devices, streams and events.

hip-python is imported at the first call, never when this module is: ``rocm.bindings.hip``, or
``hip.hip`` of releases before 7.14. Both load libamdhip64 at their first call.
"""

from __future__ import annotations

import importlib
import re
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.native.errors import HipError, NativeUnavailableError
from hipdnn_miopen_provider.native.owned import Owned

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from types import ModuleType

_MODULES = ("rocm.bindings.hip", "hip.hip")
_NO_DEVICE = "hipErrorNoDevice"


@cache
def bindings() -> ModuleType:
    """hip-python's HIP module.

    Raises:
        NativeUnavailableError: Neither of its names can be imported.
    """
    failures = []
    for name in _MODULES:
        try:
            return importlib.import_module(name)
        except ImportError as error:
            failures.append(f"{name}: {error}")
    raise NativeUnavailableError(
        f"hip-python can't be imported ({'; '.join(failures)}); "
        "`pip install hip-python` or hipdnn-miopen-provider[hip] brings it"
    )


def call(name: str, *arguments: Any) -> Any:
    """Calls a HIP function and checks its status.

    Args:
        name: Name of the function, as in ``hip_runtime_api.h``.
        arguments: As hip-python takes them; addresses as integers.

    Returns:
        The function's one output, a tuple of several, or None.

    Raises:
        NativeUnavailableError: hip-python or libamdhip64 is missing.
        HipError: HIP returned an error.
    """
    hip = bindings()
    try:
        status, *outputs = getattr(hip, name)(*arguments)
    except RuntimeError as error:  # what hip-python raises when dlopen or dlsym fails
        reason = re.sub(r"\bb'([^']*)'", r"\1", str(error))  # it formats bytes
        raise NativeUnavailableError(f"libamdhip64 can't be used: {reason}") from error
    if int(status) != 0:
        raise HipError(
            name,
            int(status),
            str(hip.hipGetErrorName(status)[1]),
            str(hip.hipGetErrorString(status)[1]),
        )
    if not outputs:
        return None
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def device_count() -> int:
    """Number of devices that HIP sees; 0 if none.

    Raises:
        NativeUnavailableError: hip-python or libamdhip64 is missing.
        HipError: HIP failed for another reason than a missing device.
    """
    try:
        return int(call("hipGetDeviceCount"))
    except HipError as error:
        if error.name == _NO_DEVICE:
            return 0
        raise


def runtime_version() -> int:
    """HIP's version number, such as 70253211 for 7.2.53211."""
    return int(call("hipRuntimeGetVersion"))


@dataclass(frozen=True)
class Device:
    """What a device is. ``Device.query`` asks HIP.

    Attributes:
        ordinal: HIP's number of it.
        name: Marketing name.
        target: Full target id, such as ``gfx90a:sramecc+:xnack-``.
        compute_units: Number of compute units; with the architecture it names MIOpen's databases.
        total_memory: Bytes of device memory.
    """

    ordinal: int
    name: str
    target: str
    compute_units: int
    total_memory: int

    @property
    def architecture(self) -> str:
        """The target without its features: ``gfx90a``."""
        return self.target.partition(":")[0]

    @classmethod
    def query(cls, ordinal: int) -> Device:
        """Asks HIP about a device.

        Raises:
            HipError: There is no such device.
        """
        hip = bindings()
        try:
            properties = call("hipGetDeviceProperties", ordinal)
        except TypeError:  # hip-python before 7.14 fills a struct of the caller's
            properties = hip.hipDeviceProp_t()
            call("hipGetDeviceProperties", properties, ordinal)
        return cls(
            ordinal=ordinal,
            name=_text(properties.name),
            target=_text(properties.gcnArchName),
            compute_units=int(properties.multiProcessorCount),
            total_memory=int(properties.totalGlobalMem),
        )


@cache
def several_devices() -> bool:
    """Whether the calling thread's device may be another than the first."""
    return device_count() > 1


def current_device() -> int:
    """The calling thread's device."""
    return int(call("hipGetDevice")) if several_devices() else 0


def on_device(ordinal: int) -> AbstractContextManager[None]:
    """Makes ``ordinal`` the calling thread's device within the block, and restores the old one."""
    before = current_device()
    return UNCHANGED if before == ordinal else _on_other_device(ordinal, before)


UNCHANGED = nullcontext()
"""A block in which nothing is to be set, nor restored."""


@contextmanager
def _on_other_device(ordinal: int, before: int) -> Iterator[None]:
    call("hipSetDevice", ordinal)
    try:
        yield
    finally:
        call("hipSetDevice", before)


def synchronize_device() -> None:
    """Waits for all work of the calling thread's device."""
    call("hipDeviceSynchronize")


def memory_info() -> tuple[int, int]:
    """Free and total bytes of the calling thread's device."""
    free, total = call("hipMemGetInfo")
    return int(free), int(total)


class Stream(Owned[int]):
    """A HIP stream of the current device. Where a stream is asked for, None is the null stream."""

    def __init__(self) -> None:
        super().__init__(int(call("hipStreamCreate")), _destroy_stream)

    @property
    def address(self) -> int:
        """``hipStream_t`` as a number."""
        return self.raw

    def synchronize(self) -> None:
        """Waits until all work enqueued so far is done."""
        call("hipStreamSynchronize", self.address)

    def wait_for(self, event: Event) -> None:
        """Makes later work of this stream wait for ``event``."""
        wait_for(self, event)


class Event(Owned[int]):
    """A HIP event, to time work or to order streams."""

    def __init__(self) -> None:
        super().__init__(int(call("hipEventCreate")), _destroy_event)

    @property
    def address(self) -> int:
        """``hipEvent_t`` as a number."""
        return self.raw

    def record(self, stream: AnyStream = None) -> None:
        """Records the event behind the work enqueued on ``stream`` so far."""
        call("hipEventRecord", self.address, stream_address(stream))

    def synchronize(self) -> None:
        """Waits until the event has happened."""
        call("hipEventSynchronize", self.address)

    def milliseconds_since(self, start: Event) -> float:
        """Device time from ``start`` to this event; both must have happened."""
        return float(call("hipEventElapsedTime", start.address, self.address))


@dataclass(frozen=True)
class BorrowedStream:
    """A stream that someone else owns, who keeps it alive; ``address`` is its ``hipStream_t``."""

    address: int


AnyStream = Stream | BorrowedStream | None
"""A stream to enqueue on; None is the null stream."""


def wait_for(stream: AnyStream, event: Event) -> None:
    """Makes later work of a stream wait for ``event``; one never recorded has happened."""
    call("hipStreamWaitEvent", stream_address(stream), event.address, 0)


def stream_address(stream: AnyStream) -> int:
    """``hipStream_t`` as a number; 0 is the null stream."""
    return 0 if stream is None else stream.address


def _destroy_stream(address: int) -> None:
    call("hipStreamDestroy", address)


def _destroy_event(address: int) -> None:
    call("hipEventDestroy", address)
