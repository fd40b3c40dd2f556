"""Device memory for callers that have nothing of their own, such as `hipdnn run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider import native
from hipdnn_miopen_provider.native import copy_to_device, copy_to_host, hip
from hipdnn_registry import DeviceBuffer, DeviceMemory

if TYPE_CHECKING:
    import numpy as np


class HipBuffer(DeviceBuffer):
    """Memory of a HIP device; released by `close`.

    Args:
        size: Bytes.

    Raises:
        HipError: Out of memory.
    """

    def __init__(self, size: int) -> None:
        self._owned = native.DeviceBuffer(size)
        self.address, self.size = self._owned.address, size

    def write(self, array: np.ndarray[Any, Any]) -> None:
        """Copy a contiguous host array in, and wait for it."""
        copy_to_device(self._owned, array)

    def read(self, array: np.ndarray[Any, Any]) -> None:
        """Copy as many bytes out as the array takes, and wait for them.

        Waits for all work of the device first: it may have been enqueued on any stream.
        """
        hip.synchronize_device()
        copy_to_host(array, self._owned)

    def close(self) -> None:
        """Release the memory; idempotent."""
        self.address = self.size = 0
        self._owned.close()


class HipMemory(DeviceMemory):
    """Memory of one device.

    Args:
        ordinal: HIP's number of the device.
    """

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal

    def allocate(self, size: int) -> HipBuffer:
        """Return `size` bytes on the device."""
        with hip.on_device(self._ordinal):
            return HipBuffer(size)

    def synchronize(self) -> None:
        """Wait for all that was enqueued on the device."""
        with hip.on_device(self._ordinal):
            hip.synchronize_device()
