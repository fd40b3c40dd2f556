"""A plan on the device: a launcher with handles of its own, behind a lock."""

from __future__ import annotations

import os
import threading
import weakref
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
from hipdnn_miopen_provider.progress import log
from hipdnn_registry import BufferKind, CompiledPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import ExitStack

    from hipdnn_miopen_provider.native import DeviceMemory, Handle
    from hipdnn_miopen_provider.operation import Launcher, Operation, Run


class MiopenPlan(CompiledPlan):
    """Enqueues a compiled operation. Any number of threads may execute it, on any streams.

    The order of the calls on one stream is that of the executions. What the plan owns (handles,
    descriptors, its workspace) is released as soon as nothing refers to it or to what `bind`
    returned, after the device has finished its work.

    Args:
        launcher: What to run.
        operation: What it computes.
        owned: Closes what the launcher needs.
        ordinal: The device.
        notes: How the plan came about.
    """

    buffer_kind: ClassVar[BufferKind] = BufferKind.DEVICE

    def __init__(
        self,
        launcher: Launcher,
        operation: Operation,
        owned: ExitStack,
        ordinal: int,
        notes: tuple[str, ...],
    ) -> None:
        self.notes = notes
        self.workspace_size = launcher.workspace_size
        self.device_memory = HipMemory(ordinal)
        self.in_place = operation.in_place
        self._sizes = operation.sizes
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
        self._kept = Kept(self, ordinal, owned)
        self._lock = threading.Lock()
        self._stream = 0
        self._own_workspace: DeviceBuffer | None = None
        self._own_workspace_free: Event | None = None

    def bind(
        self, memory: Mapping[int, DeviceMemory], workspace: DeviceMemory | None, stream: int
    ) -> Callable[[], None]:
        """Return the callable that enqueues it; without a workspace it brings its own."""
        run, lock = self.launcher.bind(memory), self._lock
        self._kept.used = True

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
        ordinal = self._kept.ordinal

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
            own = self._kept.owned.enter_context
            self._own_workspace_free = own(Event())
            self._own_workspace = own(DeviceBuffer(self.launcher.workspace_size))
        stream = BorrowedStream(self._stream) if self._stream else None
        hip.wait_for(stream, self._own_workspace_free)
        try:
            run(self._own_workspace)
        finally:
            self._own_workspace_free.record(stream)


class Kept:
    """Native objects that are closed when nobody refers to their user any more.

    Not by `__del__`: where the collector finds a cycle, that of the objects might come first.

    Args:
        user: Whose end is theirs; must not be referred to by them.
        ordinal: Their device.

    Attributes:
        owned: Closes them.
        ordinal: Their device.
        used: Whether work may have been enqueued with them, which has to end first.
    """

    def __init__(self, user: object, ordinal: int, owned: ExitStack) -> None:
        self.owned = owned
        self.ordinal = ordinal
        self.used = False
        self._creator = os.getpid()
        weakref.finalize(user, self._close)

    def _close(self) -> None:
        if os.getpid() != self._creator:  # a forked child must not touch its parent's objects
            return
        try:
            with hip.on_device(self.ordinal):
                if self.used:
                    hip.synchronize_device()
                self.owned.close()
        except NativeError as error:
            log.warning("native objects could not be released: %s", error)
