"""A plan on the device: a launcher with handles of its own, behind a lock."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

from hipdnn_miopen_provider.device_memory import HipMemory
from hipdnn_miopen_provider.native import (
    NO_MEMORY,
    BorrowedStream,
    DeviceBuffer,
    Event,
    NativeError,
    hip,
)
from hipdnn_miopen_provider.operation import Region
from hipdnn_registry import BufferKind, CompiledPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hipdnn_miopen_provider.native import DeviceMemory, Handle
    from hipdnn_miopen_provider.operation import Launcher, Run


class MiopenPlan(CompiledPlan):
    """Enqueues a compiled operation. Any number of threads may execute it, on any streams.

    The order of the calls on one stream is that of the executions. What the plan owns (handles,
    descriptors, its workspace) is released as soon as nothing refers to it or to what `bind`
    returned, after the device has finished its work.

    Args:
        launcher: What to run.
        sizes: Bytes of every tensor that takes a buffer, by uid.
        owned: Closes what the launcher needs.
        ordinal: The device.
        notes: How the plan came about.
    """

    buffer_kind: ClassVar[BufferKind] = BufferKind.DEVICE

    def __init__(
        self,
        launcher: Launcher,
        sizes: Mapping[int, int],
        owned: ExitStack,
        ordinal: int,
        notes: tuple[str, ...],
    ) -> None:
        self.notes = notes
        self.workspace_size = launcher.workspace_size
        self.device_memory = HipMemory(ordinal)
        self._sizes = dict(sizes)
        self._queue = LauncherQueue(launcher, owned, ordinal)
        # loops come back with the same addresses, and a binding is no more than addresses
        self._last: tuple[dict[int, Any], Any, int | None, Callable[[], None]] | None = None

    @property
    def handles(self) -> tuple[Handle, ...]:
        """The handles that it keeps."""
        return self._queue.launcher.handles

    def execute(
        self, buffers: Mapping[int, Any], workspace: Any | None, stream: int | None
    ) -> None:
        """Enqueue the plan on a stream; `None` is the null stream."""
        last = self._last
        if last is None or last[0] != buffers or last[1] != workspace or last[2] != stream:
            run = self.bind(buffers, workspace, stream)
            self._last = last = (dict(buffers), workspace, stream, run)
        last[3]()

    def bind(
        self, buffers: Mapping[int, Any], workspace: Any | None, stream: int | None
    ) -> Callable[[], None]:
        """Return a callable that enqueues the plan on these buffers."""
        sizes = self._sizes
        memory = {uid: Region(address, sizes[uid]) for uid, address in buffers.items()}
        given: DeviceMemory | None = NO_MEMORY
        if self.workspace_size:
            given = None if workspace is None else Region(workspace, self.workspace_size)
        return self._queue.bind(memory, given, stream or 0)


class LauncherQueue:
    """Lets one thread at a time enqueue a launcher, on the stream it wants.

    Apart from the plan so that what `bind` returns, which the plan remembers, doesn't refer back
    to it: device memory would wait for Python's collector.
    """

    def __init__(self, launcher: Launcher, owned: ExitStack, ordinal: int) -> None:
        self.launcher = launcher
        self._owned = owned
        self._ordinal = ordinal
        self._lock = threading.Lock()
        self._stream = 0
        self._own_workspace: DeviceBuffer | None = None
        self._own_workspace_free: Event | None = None
        weakref.finalize(self, release, owned, os.getpid(), ordinal)

    def bind(
        self, memory: Mapping[int, DeviceMemory], workspace: DeviceMemory | None, stream: int
    ) -> Callable[[], None]:
        """Return the callable that enqueues it; without a workspace it brings its own."""
        run, lock = self.launcher.bind(memory), self._lock

        def execute() -> None:
            with lock:
                if self._stream != stream:
                    self._set_stream(stream)
                if workspace is None:
                    self._run_in_own_workspace(run)
                else:
                    run(workspace)

        if not hip.several_devices():
            return execute
        ordinal = self._ordinal

        def execute_there() -> None:
            with hip.on_device(ordinal):
                execute()

        return execute_there

    def _set_stream(self, address: int) -> None:
        stream = BorrowedStream(address) if address else None
        for handle in self.launcher.handles:
            handle.stream = stream
        self._stream = address

    def _run_in_own_workspace(self, run: Run) -> None:
        """Run in a workspace that is kept, behind the run that used it last.

        That one may have been enqueued on another stream.
        """
        if self._own_workspace is None or self._own_workspace_free is None:
            self._own_workspace_free = self._owned.enter_context(Event())
            self._own_workspace = self._owned.enter_context(
                DeviceBuffer(self.launcher.workspace_size)
            )
        stream = BorrowedStream(self._stream) if self._stream else None
        hip.wait_for(stream, self._own_workspace_free)
        try:
            run(self._own_workspace)
        finally:
            self._own_workspace_free.record(stream)


def release(owned: ExitStack, creator: int, ordinal: int | None = None) -> None:
    """Close what nobody refers to any more, after the device has finished its work."""
    if os.getpid() != creator:  # a forked child must not touch its parent's device objects
        return
    with contextlib.suppress(NativeError):
        if ordinal is None:
            owned.close()
            return
        with hip.on_device(ordinal):
            hip.synchronize_device()  # the kernels of its handles may be running
            owned.close()
