"""Device memory: owned buffers, views of others' memory, and copies to and from the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hipdnn_miopen_provider.native import hip
from hipdnn_miopen_provider.native.owned import Owned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hipdnn_miopen_provider.native.hip import AnyStream


class DeviceMemory(Protocol):
    """Anything that can be handed to a MIOpen call: where it starts and how many bytes it has."""

    @property
    def address(self) -> int:
        """Address on the device; 0 for none."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""


@dataclass(frozen=True)
class BorrowedMemory:
    """Device memory that someone else owns.

    Attributes:
        address: Where it starts on the device.
        nbytes: Its size in bytes.
        owner: Kept alive as long as this view is.
    """

    address: int
    nbytes: int
    owner: object = None


NO_MEMORY = BorrowedMemory(0, 0)


def check_size(name: str, memory: DeviceMemory, needed: int) -> None:
    """Raises ValueError if a tensor's memory is smaller than ``needed`` bytes."""
    if memory.nbytes < needed:
        raise ValueError(f"{name} needs {needed} bytes of device memory, got {memory.nbytes}")


class DeviceBuffer(Owned[int]):
    """Device memory on the current device. A buffer of 0 bytes is allowed and has address 0.

    Args:
        nbytes: Size in bytes.

    Raises:
        HipError: Out of memory.
        ValueError: ``nbytes`` is negative.
    """

    def __init__(self, nbytes: int) -> None:
        if nbytes < 0:
            raise ValueError(f"a buffer can't have {nbytes} bytes")
        self.nbytes = nbytes
        super().__init__(int(hip.call("hipMalloc", nbytes)) if nbytes else 0, _free)

    @classmethod
    def from_host(cls, array: NDArray[Any]) -> DeviceBuffer:
        """A buffer with the array's bytes, in the array's memory order."""
        buffer = cls(array.nbytes)
        try:
            copy_to_device(buffer, array)
        except BaseException:
            buffer.close()
            raise
        return buffer

    @property
    def address(self) -> int:
        """Address on the device.

        Raises:
            ClosedError: The buffer has been closed.
        """
        address = self._raw  # read on every launch: one property deep, not two
        return self.raw if address is None else address

    def fill(self, byte: int, stream: AnyStream = None) -> None:
        """Sets every byte to ``byte`` (0..255)."""
        fill(self, byte, stream)


def fill(target: DeviceMemory, byte: int, stream: AnyStream = None) -> None:
    """Sets every byte of ``target`` to ``byte`` (0..255), in stream order."""
    if target.nbytes:
        hip.call("hipMemsetAsync", target.address, byte, target.nbytes, hip.stream_address(stream))


def copy_to_device(target: DeviceMemory, array: NDArray[Any]) -> None:
    """Copies an array's bytes to the start of ``target``, in the array's memory order.

    Returns when the copy is done: the host's memory is pageable, so HIP would wait anyway.

    Raises:
        ValueError: The array is larger than ``target``, or not one dense block.
    """
    source = _dense_block(array)
    _check_fits(array.nbytes, target.nbytes)
    if array.nbytes:
        kind = hip.bindings().hipMemcpyKind.hipMemcpyHostToDevice
        hip.call("hipMemcpy", target.address, source, array.nbytes, kind)


def copy_to_host(array: NDArray[Any], source: DeviceMemory) -> None:
    """Fills an array's memory from the start of ``source``. Waits for the null stream's work.

    Work on other streams has to be waited for by the caller.

    Raises:
        ValueError: The array is larger than ``source``, not writable, or not one dense block.
    """
    target = _dense_block(array)
    if not array.flags.writeable:
        raise ValueError("the array is not writable")
    _check_fits(array.nbytes, source.nbytes)
    if array.nbytes:
        kind = hip.bindings().hipMemcpyKind.hipMemcpyDeviceToHost
        hip.call("hipMemcpy", target, source.address, array.nbytes, kind)


def copy_on_device(
    target: DeviceMemory, source: DeviceMemory, nbytes: int, stream: AnyStream = None
) -> None:
    """Copies ``nbytes`` from the start of ``source`` to the start of ``target``, in stream order.

    Raises:
        ValueError: One of them is smaller than that.
    """
    _check_fits(nbytes, target.nbytes)
    _check_fits(nbytes, source.nbytes)
    if nbytes:
        kind = hip.bindings().hipMemcpyKind.hipMemcpyDeviceToDevice
        hip.call(
            "hipMemcpyAsync",
            target.address,
            source.address,
            nbytes,
            kind,
            hip.stream_address(stream),
        )


def _check_fits(nbytes: int, available: int) -> None:
    if nbytes > available:
        raise ValueError(f"{nbytes} bytes don't fit: the device memory has {available}")


def _dense_block(array: NDArray[Any]) -> int:
    """The address of an array's memory, which has to be one block without gaps or overlap."""
    steps: list[int] = [
        (n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)
    ]
    extent = array.itemsize + sum(abs(step) for step in steps)
    if array.size and extent != array.nbytes:
        raise ValueError(
            f"an array of shape {array.shape} and strides {array.strides} is not one dense block "
            f"of {array.nbytes} bytes; copy it first (numpy.ascontiguousarray)"
        )
    start: int = array.ctypes.data
    return start + sum(min(step, 0) for step in steps)


def _free(address: int) -> None:
    if address:
        hip.call("hipFree", address)
