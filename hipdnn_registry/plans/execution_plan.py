"""`ExecutionPlan`: one engine with its settings, ready to run.

What an engine compiled is shared by all requests with an equal graph; the `ExecutionPlan` is the
light part that belongs to one request: its graph with names and uids, what was dropped from its
settings, and who decided each of the others.
"""

from __future__ import annotations

import logging
import time
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsInt

from hipdnn_registry.buffers.checked_pack import CheckedPack
from hipdnn_registry.buffers.streams import stream_handle
from hipdnn_registry.discovery.contract import CODE_ERRORS, breach, guarded
from hipdnn_registry.errors import ExecutionError, HipdnnError, described
from hipdnn_registry.provider import BufferKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hipdnn_registry.buffers.variant_pack import VariantPackChecker
    from hipdnn_registry.discovery.catalog import RegisteredEngine
    from hipdnn_registry.graph import Graph
    from hipdnn_registry.knobs.knob import KnobSetting
    from hipdnn_registry.provider import (
        BehaviorNote,
        CompiledPlan,
        DeviceMemory,
        EffectiveSetting,
        Resolution,
    )

_log = logging.getLogger("hipdnn_registry.plan")


class SharedPlan(NamedTuple):
    """A compiled plan with the uids of the graph it was built from, in canonical order."""

    compiled: CompiledPlan
    uids: tuple[int, ...]
    build_seconds: float


class ExecutionPlan:
    """One engine with its knob settings for one graph; immutable, and safe to run in parallel.

    Attributes:
        graph: The graph of the request.
        dropped_knobs: Settings that the engine does not advertise for this graph.
        behavior_notes: hipDNN's behaviour notes of the engine for this graph.
        from_cache: Whether the plan cache had it.
    """

    graph: Graph
    dropped_knobs: tuple[KnobSetting, ...]
    behavior_notes: tuple[BehaviorNote, ...]
    from_cache: bool
    _engine: RegisteredEngine
    _resolution: Resolution
    _shared: SharedPlan
    _compiled: CompiledPlan
    _checked: CheckedPack | None

    def __init__(
        self,
        graph: Graph,
        engine: RegisteredEngine,
        resolution: Resolution,
        dropped_knobs: tuple[KnobSetting, ...],
        behavior_notes: tuple[BehaviorNote, ...],
        shared: SharedPlan,
        from_cache: bool,
    ) -> None:
        self.__dict__.update(
            graph=graph,
            dropped_knobs=dropped_knobs,
            behavior_notes=behavior_notes,
            from_cache=from_cache,
            _engine=engine,
            _resolution=resolution,
            _shared=shared,
            _compiled=shared.compiled,
            _checked=None,
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an ExecutionPlan is immutable; {name} can't be set to {value!r:.60}")

    @property
    def engine_id(self) -> int:
        """HipDNN's id of the engine."""
        return self._engine.engine_id

    @property
    def engine_name(self) -> str:
        """Name of the engine."""
        return self._engine.name

    @property
    def provider_name(self) -> str:
        """Name of the engine's provider."""
        return self._engine.info.name

    @property
    def provider_version(self) -> str:
        """Version of the engine's provider."""
        return self._engine.info.version

    @property
    def build_seconds(self) -> float:
        """How long it took to build, now or when it entered the cache."""
        return self._shared.build_seconds

    @property
    def settings(self) -> Mapping[str, EffectiveSetting]:
        """Effective value of every knob of the engine, with who decided it."""
        return MappingProxyType(self._resolution.settings)

    @property
    def workspace_size(self) -> int:
        """Bytes of workspace that `execute` needs."""
        return self._compiled.workspace_size

    @property
    def buffer_kind(self) -> BufferKind:
        """What the plan takes: host arrays, or addresses on a device."""
        return self._compiled.buffer_kind

    @property
    def device_memory(self) -> DeviceMemory | None:
        """Access to the memory of the plan's device; `None` for a plan on the host."""
        return self._compiled.device_memory

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about how the plan came about; of a cached one, about its building then."""
        return (*self._resolution.notes, *self._compiled.notes)

    def execute(
        self,
        variant_pack: Mapping[Any, Any],
        workspace: Any | None = None,
        *,
        stream: SupportsInt | None = None,
    ) -> None:
        """Run the plan.

        Args:
            variant_pack: A buffer for every tensor that is neither virtual nor constant, by uid or
                by name: numpy arrays or DLPack objects in host memory, or for an engine on a
                device DLPack objects there, `DeviceBuffer`s, or bare addresses. Shape, dtype and
                strides must be the tensor's.
            workspace: `workspace_size` bytes of scratch memory; `None`: the plan brings its own.
            stream: Handle of the stream to enqueue on, for an engine on a device: a number, or an
                object that `int` makes one of, such as hip-python's.

        Raises:
            VariantPackError: A buffer is missing, extra, of the wrong shape, dtype or strides,
                read-only, misaligned, or overlaps one that the plan writes. Engines that can
                update the running statistics of a batchnorm in place take one buffer for both
                sides of them.
            WorkspaceError: The workspace is too small (names both numbers), misaligned on a device
                (multiples of 16 bytes are due), or overlaps a buffer.
            InvalidInputError: The stream is no handle.
            ExecutionError: The engine failed.
        """
        known = self._checked
        if known is not None and known.is_of(variant_pack, workspace, stream):
            self._run(known.buffers, known.workspace, known.stream)
        else:
            handle = stream_handle(stream)
            self._run(*self._check(variant_pack, workspace, handle), handle)

    def bind(
        self,
        variant_pack: Mapping[Any, Any],
        workspace: Any | None = None,
        *,
        stream: SupportsInt | None = None,
    ) -> Callable[[], None]:
        """Check buffers once and return a callable for hot loops that runs the plan on them.

        The callable checks nothing, logs nothing and lets the engine's own errors through. The
        same callable must not run in two threads at once: both would write the same buffers.
        Arguments and errors are those of `execute`.
        """
        handle = stream_handle(stream)
        buffers, given = self._check(variant_pack, workspace, handle)
        run = guarded(self._engine, "bind", self._compiled.bind, buffers, given, handle)
        if not callable(run):
            breach(self._engine, "bind", f"returned {run!r}, which can't be called")
        if self.buffer_kind is BufferKind.HOST:
            return run
        # An address alone keeps no memory alive.
        owners = (dict(variant_pack), workspace)

        def run_on_device(_: object = owners) -> None:
            run()

        return run_on_device

    def _check(
        self, pack: Mapping[Any, Any], workspace: Any, stream: int | None
    ) -> tuple[Mapping[int, Any], Any]:
        """Return buffers by the plan's uids, and the workspace, as the engine takes them."""
        buffers = self._checker.check(pack)
        given = workspace
        if workspace is not None:
            given = self._checker.check_workspace(workspace, self.workspace_size, buffers)
        if self.buffer_kind is BufferKind.DEVICE:
            known = CheckedPack.of(pack, workspace, stream, buffers, given)
            self.__dict__["_checked"] = known  # one assignment: other threads see all or nothing
        return buffers, given

    def _run(self, buffers: Mapping[int, Any], workspace: Any, stream: int | None) -> None:
        start = time.perf_counter()
        try:
            self._compiled.execute(buffers, workspace, stream)
        except HipdnnError:
            raise
        except CODE_ERRORS as error:
            raise ExecutionError(f"engine {self.engine_name} failed: {described(error)}") from error
        if _log.isEnabledFor(logging.INFO):
            _log.info(
                "executed %s on graph %s with %s in %.3f ms",
                self.engine_name,
                self.graph.content_key.digest[:12],
                self._shown_settings(),
                (time.perf_counter() - start) * 1e3,
            )

    def _shown_settings(self) -> str:
        shown = [f"{k}={s.value!r} ({s.detail or s.source})" for k, s in self.settings.items()]
        return ", ".join(shown) or "no knobs"

    @cached_property
    def _checker(self) -> VariantPackChecker:
        from hipdnn_registry.buffers.variant_pack import VariantPackChecker

        own = self.graph.content_key.uids
        uid_map = (
            None if own == self._shared.uids else dict(zip(own, self._shared.uids, strict=True))
        )
        compiled = self._compiled
        return VariantPackChecker(self.graph, compiled.buffer_kind, uid_map, compiled.in_place)

    def __repr__(self) -> str:
        dropped = f", dropped {[str(k) for k in self.dropped_knobs]}" if self.dropped_knobs else ""
        return (
            f"<ExecutionPlan {self.engine_name} ({self.provider_name} {self.provider_version}): "
            f"{self._shown_settings()}{dropped}, workspace {self.workspace_size} bytes>"
        )
