"""Buffers, copies, streams and events; memory is real here, so values are checked."""

from __future__ import annotations

import numpy as np
import pytest

from hipdnn_miopen_provider.native import (
    BorrowedMemory,
    ClosedError,
    Device,
    DeviceBuffer,
    Event,
    Handle,
    HipError,
    Stream,
    copy_on_device,
    copy_to_device,
    copy_to_host,
    hip,
)


def test_the_device_describes_itself() -> None:
    device = Device.query(0)
    assert (device.architecture, device.target) == ("gfx90a", "gfx90a:sramecc+:xnack-")
    assert (device.compute_units, device.total_memory) == (110, 64 << 30)
    assert hip.device_count() == 1
    with pytest.raises(HipError, match="hipErrorInvalidDevice"):
        Device.query(1)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.float32).reshape(2, 3, 4),
        np.arange(24, dtype=np.float16).reshape(2, 3, 4).transpose(0, 2, 1),
        np.asfortranarray(np.arange(12, dtype=np.int64).reshape(3, 4)),
        np.arange(6, dtype=np.float32)[::-1],
        np.zeros((0, 3), dtype=np.float32),
        np.array(2.5),
    ],
    ids=["packed", "permuted", "fortran", "reversed", "empty", "scalar"],
)
def test_a_dense_array_survives_the_way_there_and_back(array: np.ndarray) -> None:
    with DeviceBuffer.from_host(array) as buffer:
        assert buffer.nbytes == array.nbytes
        back = (
            np.empty_like(array) if array.strides[-1:] != (-4,) else np.empty(6, np.float32)[::-1]
        )
        copy_to_host(back, buffer)
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize(
    ("array", "complaint"),
    [
        (np.zeros((4, 4), np.float32)[:, ::2], "not one dense block of 32 bytes"),
        (np.broadcast_to(np.float32(1), (3, 3)), "not one dense block of 36 bytes"),
        (np.zeros(17, np.float32), "68 bytes don't fit: the device memory has 64"),
    ],
)
def test_an_array_that_can_not_be_copied_is_refused(array: np.ndarray, complaint: str) -> None:
    with DeviceBuffer(64) as buffer, pytest.raises(ValueError, match=complaint):
        copy_to_device(buffer, array)


def test_a_read_only_array_is_not_written_to() -> None:
    array = np.zeros(4, np.float32)
    array.flags.writeable = False
    with DeviceBuffer(16) as buffer, pytest.raises(ValueError, match="not writable"):
        copy_to_host(array, buffer)


def test_bytes_beside_a_copy_stay_as_they_are() -> None:
    result = np.empty(12, np.uint8)
    with DeviceBuffer(12) as buffer, Stream() as stream:
        buffer.fill(0xAA, stream)
        middle = BorrowedMemory(buffer.address + 4, 4, owner=buffer)
        copy_to_device(middle, np.arange(4, dtype=np.uint8))
        with DeviceBuffer.from_host(np.full(2, 0x55, np.uint8)) as source:
            copy_on_device(middle, source, 2, stream)
        stream.synchronize()
        copy_to_host(result, buffer)
    assert result.tolist() == [0xAA] * 4 + [0x55, 0x55, 2, 3] + [0xAA] * 4


def test_a_copy_out_of_bounds_is_caught_by_the_stand_in() -> None:
    """So that a wrong size anywhere in the provider can't pass unnoticed in this lane."""
    with DeviceBuffer(16) as buffer:
        too_long = BorrowedMemory(buffer.address + 8, 16)
        with pytest.raises(HipError, match="hipErrorInvalidValue"):
            copy_to_device(too_long, np.zeros(16, np.uint8))
        stale = BorrowedMemory(buffer.address, 16)
    with pytest.raises(HipError, match="hipMemcpy: hipErrorInvalidValue"):
        copy_to_device(stale, np.zeros(16, np.uint8))


def test_more_memory_than_the_device_has() -> None:
    with pytest.raises(HipError, match="hipMalloc: hipErrorOutOfMemory") as error:
        DeviceBuffer(65 << 30)
    assert error.value.call == "hipMalloc"
    with pytest.raises(ValueError, match="-1 bytes"):
        DeviceBuffer(-1)


def test_closing_is_idempotent_and_final() -> None:
    buffer = DeviceBuffer(16)
    free, _ = hip.memory_info()
    buffer.close()
    buffer.close()
    assert buffer.closed
    assert hip.memory_info()[0] == free + 16
    with pytest.raises(ClosedError, match="this DeviceBuffer has been closed"):
        _ = buffer.address


def test_a_forgotten_object_is_released_with_a_warning() -> None:
    free, _ = hip.memory_info()
    buffer = DeviceBuffer(4096)
    with pytest.warns(ResourceWarning, match="DeviceBuffer was not closed"):
        del buffer
    assert hip.memory_info()[0] == free


def test_events_order_and_time_a_stream() -> None:
    with Stream() as stream, Stream() as other, Event() as start, Event() as stop:
        start.record(stream)
        other.wait_for(start)
        stop.record(other)
        stop.synchronize()
        assert stop.milliseconds_since(start) > 0
    with pytest.raises(ClosedError):
        stream.synchronize()


def test_a_handle_takes_and_changes_its_stream() -> None:
    with Stream() as first, Stream() as second, Handle(first) as handle:
        assert handle.stream is first
        handle.stream = second
        assert handle.stream is second
        handle.stream = None
        assert handle.stream is None


def test_the_device_of_a_thread_is_restored() -> None:
    with pytest.raises(HipError, match="hipSetDevice: hipErrorInvalidDevice"), hip.on_device(7):
        pytest.fail("entered")
    with hip.on_device(0):
        assert hip.current_device() == 0
    assert hip.current_device() == 0
