"""Nothing is left after many cycles: counted by the HIP stand-in and by the C library."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import warnings
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hipdnn_miopen_provider.native import (
    ActivationDescriptor,
    ActivationMode,
    BatchNormMode,
    ClosedError,
    ConvolutionDescriptor,
    DataType,
    DeviceBuffer,
    Direction,
    Event,
    Handle,
    MiopenError,
    Stream,
    TensorDescriptor,
    TuningPolicy,
    hip,
)
from tests.native.environment import run_child
from tests.native.observe import stderr_to
from tests.native.problems import batchnorm_case, convolution_case

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = ("device memory", "host memory", "streams", "events", "modules")


def live_objects() -> dict[str, int]:
    """What exists in the HIP stand-in now."""
    count = ctypes.CDLL("libamdhip64.so").standinLiveObjects
    count.restype = ctypes.c_size_t
    return {name: count(kind) for kind, name in enumerate(KINDS)}


class MallInfo2(ctypes.Structure):
    """glibc's ``struct mallinfo2``: ten sizes in bytes."""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")),
        *((name, ctypes.c_size_t) for name in ("usmblks", "fsmblks", "uordblks", "fordblks")),
        ("keepcost", ctypes.c_size_t),
    )


def allocated_bytes() -> int:
    """What malloc has given out and not got back, in all of the process's arenas."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = MallInfo2
    info = mallinfo2()
    return int(info.uordblks + info.hblkhd)


def one_cycle() -> None:
    with (
        Stream() as stream,
        Event(),
        Handle(stream) as handle,
        TensorDescriptor(DataType.Float, (1, 8, 8, 8)),
        ConvolutionDescriptor((1, 1), (1, 1), (1, 1)),
        DeviceBuffer.from_host(np.zeros(256, np.float32)),
        batchnorm_case((1, 2, 4, 4)) as batchnorm,
    ):
        batchnorm.infer(handle)


def descriptor_cycle() -> None:
    with (
        TensorDescriptor(DataType.Float, (1, 8, 8, 8)) as x,
        TensorDescriptor.for_batchnorm(x, BatchNormMode.Spatial),
        ConvolutionDescriptor((1, 1), (1, 1), (1, 1)),
        ActivationDescriptor(ActivationMode.RELU),
    ):
        pass


def failing_cycle() -> None:
    """Constructors that fail half way."""
    with pytest.raises(MiopenError):
        TensorDescriptor(DataType.Float, (1, 0, 8, 8))
    with pytest.raises(MiopenError):
        ConvolutionDescriptor((1, 1), (0, 0), (1, 1))
    with pytest.raises(ValueError, match="dense"):
        DeviceBuffer.from_host(np.zeros((4, 4), np.float32)[:, ::2])


@pytest.mark.parametrize(
    ("cycle", "times"), [(one_cycle, 1000), (failing_cycle, 1000), (descriptor_cycle, 1000)]
)
def test_many_cycles_leave_nothing(cycle: Callable[[], None], times: int) -> None:
    def run(times: int) -> None:
        with stderr_to(Path(os.devnull)):  # the log of a thousand cycles is of no use to anyone
            for _ in range(times):
                cycle()
        gc.collect()

    run(100)  # what is kept once: caches of the library, of Python, of the allocator
    objects, allocated, free = live_objects(), allocated_bytes(), hip.memory_info()[0]
    run(times)
    assert live_objects() == objects
    assert hip.memory_info()[0] == free
    assert allocated_bytes() - allocated < 10 * times


def test_finds_and_fused_finds_leave_nothing() -> None:
    def run(times: int) -> None:
        with (
            convolution_case(Direction.FORWARD, (1, 8, 8, 10), (8, 8, 3, 3)) as case,
            stderr_to(Path(os.devnull)),
        ):
            for _ in range(times):
                case.find(TuningPolicy.NONE)
                case.fused_find(TuningPolicy.NONE)
                case.fusion_plan(TuningPolicy.NONE)
        gc.collect()

    run(5)
    objects, allocated = live_objects(), allocated_bytes()
    run(50)
    assert live_objects() == objects
    assert allocated_bytes() - allocated < 40 * 50  # a table that has grown is no leak


def test_a_handle_that_was_forgotten_is_destroyed() -> None:
    before = live_objects()
    handle = Handle()
    with pytest.warns(ResourceWarning, match="Handle was not closed"):
        del handle
    assert live_objects() == before


def test_where_warnings_are_errors_a_forgotten_object_is_released_too() -> None:
    before = live_objects()
    complaints: list[object] = []
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("error", ResourceWarning)
        patch.setattr(sys, "unraisablehook", complaints.append)
        patch.setattr(sys, "excepthook", lambda *error: complaints.append(error))
        stream = Stream()
        del stream
    assert len(complaints) == 1
    assert live_objects() == before


def test_a_process_may_end_with_objects_open(tmp_path: Path) -> None:
    script = """
from hipdnn_miopen_provider.native import DeviceBuffer, Event, Handle, Stream
stream = Stream()
kept = [Handle(stream), DeviceBuffer(64), Event()]
"""
    done = run_child(tmp_path, script, {"MIOPEN_LOG_LEVEL": "3"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_forked_child_leaves_its_parents_objects_alone() -> None:
    before = live_objects()
    kept: list[Handle | DeviceBuffer] = [Handle(), DeviceBuffer(64)]
    during = live_objects()
    child = os.fork()
    if child == 0:  # as a forgetful program would end: dropping what it has
        try:
            kept.clear()
            weakref.finalize._exitfunc()  # type: ignore[attr-defined]  # what atexit calls
        finally:
            os._exit(0 if live_objects() == during else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for owned in kept:
        owned.close()
    assert live_objects() == before


def test_a_closed_handle_is_not_handed_to_miopen() -> None:
    handle = Handle()
    handle.close()
    with pytest.raises(ClosedError, match="this Handle has been closed"):
        _ = handle.tuning_policy
