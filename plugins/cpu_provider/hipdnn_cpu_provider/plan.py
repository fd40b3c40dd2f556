"""A compiled graph: steps over the caller's buffers and a workspace."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from hipdnn_registry import CompiledPlan

from .kernels.arena import Arena, workspace_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hipdnn_registry import Graph

    from .steps import Array, Step
    from .storage import Storage


_SPARE_WORKSPACES = 2


class CpuPlan(CompiledPlan):
    """Runs steps in order. Any number of threads may execute it, each in a workspace of its own.

    Where callers bring none, up to two workspaces are kept for the next runs, as long as the plan
    lives; an idle plan without runs keeps none.

    Args:
        graph: The graph; only its constants are kept.
        steps: One for each node, in topological order.
        storage: Where virtual tensors live.
        scratch_size: Bytes of scratch memory that the hungriest step takes.
        notes: How the plan came about.
    """

    def __init__(
        self,
        graph: Graph,
        steps: Sequence[Step],
        storage: Storage,
        scratch_size: int,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.notes = notes
        self.workspace_size = workspace_bytes(storage.size + scratch_size)
        self.in_place = tuple(_running_statistics(graph))
        self._steps = tuple(steps)
        self._storage = storage
        self._scratch_size = scratch_size
        self._constants = {
            uid: np.full(tensor.dims or (1,), tensor.value, tensor.data_type.numpy_dtype())
            for uid, tensor in graph.tensors.items()
            if tensor.is_constant
        }
        self._spare: deque[Array] = deque(maxlen=_SPARE_WORKSPACES)

    def execute(
        self, buffers: Mapping[int, Any], workspace: Any | None, stream: int | None
    ) -> None:
        """Run the steps; without a workspace, one that an earlier run left behind, or a new one."""
        del stream
        if workspace is not None or not self.workspace_size:
            self._run(*self._prepare(buffers, workspace))
            return
        try:
            workspace = self._spare.pop()
        except IndexError:
            workspace = np.empty(self.workspace_size, np.uint8)
        try:
            self._run(*self._prepare(buffers, workspace))
        finally:
            self._spare.append(workspace)

    def bind(
        self, buffers: Mapping[int, Any], workspace: Any | None, stream: int | None
    ) -> Callable[[], None]:
        """Lay out the workspace once, so that a run is only the steps."""
        del stream
        if workspace is None and self.workspace_size:
            workspace = np.empty(self.workspace_size, np.uint8)
        arrays, scratch = self._prepare(buffers, workspace)
        if len(self._steps) == 1:
            (step,) = self._steps
            return lambda: step(arrays, scratch)
        return lambda: self._run(arrays, scratch)

    def _run(self, arrays: Mapping[int, Array], scratch: Array) -> None:
        for step in self._steps:
            step(arrays, scratch)

    def _prepare(
        self, buffers: Mapping[int, Any], workspace: Array | None
    ) -> tuple[dict[int, Array], Array]:
        """Return every tensor's array by uid, and the scratch memory."""
        arrays: dict[int, Array] = {**buffers, **self._constants}
        for uid, home in self._storage.aliases.items():
            arrays[uid] = buffers[home]
        if workspace is None:
            return arrays, _NOTHING
        arena = Arena(workspace)
        byte = np.dtype(np.uint8)
        virtual = arena.take((self._storage.size,), byte)
        for uid, place in self._storage.places.items():
            arrays[uid] = place.view(virtual)
        return arrays, arena.take((self._scratch_size,), byte)


def _running_statistics(graph: Graph) -> Iterator[tuple[int, int]]:
    """The next and the previous ones: the kernels read them before they write."""
    for wiring in graph.structure.wirings:
        uids = dict((*wiring.input_uids, *wiring.output_uids))
        for name in ("running_mean", "running_variance"):
            if f"next_{name}" in uids:
                yield uids[f"next_{name}"], uids[f"prev_{name}"]


_NOTHING = np.empty(0, np.uint8)
