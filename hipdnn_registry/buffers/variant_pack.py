"""Variant packs: a buffer for every tensor that takes one, checked before an engine sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.ma import MaskedArray

from hipdnn_registry.errors import VariantPackError, WorkspaceError, near_spellings
from hipdnn_registry.provider import BufferKind, DeviceBuffer

from .spec import BufferSpec, Placed, buffer_spec, share_memory, shown
from .streams import ADDRESS_END

if TYPE_CHECKING:
    from hipdnn_registry.graph import Graph


WORKSPACE_ALIGNMENT = 16
"""Bytes; every allocator gives at least as much."""


class VariantPackChecker:
    """Checks variant packs of one graph and hands out buffers by uid.

    Args:
        graph: The graph of the request.
        kind: What the plan takes.
        uid_map: Uid in the graph to uid in the plan, where they differ.
        in_place: Written and read tensors, by the plan's uids, that may be the same buffer.
    """

    def __init__(
        self,
        graph: Graph,
        kind: BufferKind,
        uid_map: Mapping[int, int] | None,
        in_place: Iterable[tuple[int, int]] = (),
    ) -> None:
        self._graph = graph
        self._specs = {t.uid: buffer_spec(t, graph) for t in graph.io_tensors if t.uid is not None}
        self._target = {uid: uid_map[uid] if uid_map else uid for uid in self._specs}
        self._by_key: dict[object, BufferSpec] = {}
        self._by_key.update(self._specs.items())
        for tensor in graph.io_tensors:  # a name that two tensors share can't be bound by
            if tensor.name and tensor.uid is not None:
                shared = sum(other.name == tensor.name for other in graph.io_tensors) > 1
                if not shared:
                    self._by_key[tensor.name] = self._specs[tensor.uid]
        self._on_host = kind is BufferKind.HOST
        self._in_place = frozenset(in_place)
        self._span = {self._target[uid]: spec.span for uid, spec in self._specs.items()}
        written = [uid for uid, spec in self._specs.items() if spec.written]
        self._apart = [
            (self._target[uid], self._target[other])
            for index, uid in enumerate(written)
            for other in (*written[index + 1 :], *(self._specs.keys() - set(written)))
        ]

    def check(self, pack: Mapping[Any, Any]) -> dict[int, Any]:
        """Return the buffers by the plan's uids.

        Raises:
            VariantPackError: Names the tensor and what is wrong: missing, extra, shape, dtype,
                strides, misaligned, read-only or overlapping; or the pack is no mapping.
        """
        if type(pack) is not dict and not isinstance(pack, Mapping):
            raise VariantPackError(
                f"variant pack is {shown(pack)}, but must be a mapping from uids or names to "
                "buffers"
            )
        buffers: dict[int, Any] = {}
        for key, value in pack.items():
            if type(key) is not str and type(key) is not int:  # 0.0 and False equal 0
                raise VariantPackError(
                    f"variant pack has the key {shown(key)}, but keys are uids (int) or names (str)"
                )
            spec = self._by_key.get(key)
            if spec is None:
                self._unknown(key)
            target = self._target[spec.uid]
            if target in buffers:
                raise VariantPackError(f"buffer of tensor {spec.label} is given twice")
            if self._on_host:
                buffers[target] = spec.array_of(value)
            else:
                buffers[target] = spec.address_of(value)
        if len(buffers) != len(self._specs):
            missing = [
                s.label for uid, s in self._specs.items() if self._target[uid] not in buffers
            ]
            raise VariantPackError(f"no buffer is given for tensor {', '.join(missing)}")
        if self._on_host:
            for first, second in self._apart:
                one, other = buffers[first], buffers[second]
                if np.may_share_memory(one, other) and share_memory(one, other):
                    same = one.ctypes.data == other.ctypes.data
                    if not same or (first, second) not in self._in_place:
                        self._overlapping(first, second)
        else:
            for first, second in self._apart:
                begin, start = buffers[first], buffers[second]
                if begin < start + self._span[second] and start < begin + self._span[first]:
                    if begin == start and (first, second) in self._in_place:
                        continue
                    one, other = self._spec_of(first), self._spec_of(second)
                    if share_memory(one.placed_at(begin), other.placed_at(start)):
                        self._overlapping(first, second)
        return buffers

    def check_workspace(self, workspace: Any, needed: int, buffers: Mapping[int, Any]) -> Any:
        """Check a caller's workspace, also against the buffers that `check` returned.

        Args:
            workspace: For host plans a contiguous, writable array of any type; for device plans a
                `DeviceBuffer`, a pair of address and size in bytes, or an address alone, whose
                size can't be checked.
            needed: Bytes that the plan needs; no more of the workspace are used.
            buffers: Buffers by the plan's uids.

        Returns:
            For host plans a one-dimensional uint8 view of `needed` bytes; for device plans the
            address.

        Raises:
            WorkspaceError: Too small, with both numbers; not a workspace; or it overlaps a buffer.
        """
        if self._on_host:
            memory = _host_workspace(workspace, needed)
            for target, buffer in buffers.items():
                if np.may_share_memory(memory, buffer) and share_memory(memory, buffer):
                    self._workspace_overlaps(target)
            return memory
        address = _device_workspace(workspace, needed)
        for target, begin in buffers.items():
            if begin < address + needed and address < begin + self._span[target]:
                placed = Placed(address, (needed,), (1,)).array()
                if share_memory(placed, self._spec_of(target).placed_at(begin)):
                    self._workspace_overlaps(target)
        return address

    def _workspace_overlaps(self, target: int) -> NoReturn:
        raise WorkspaceError(
            f"workspace overlaps the buffer of tensor {self._spec_of(target).label}, which would "
            "be overwritten"
        )

    def _spec_of(self, target: int) -> BufferSpec:
        return next(self._specs[uid] for uid, known in self._target.items() if known == target)

    def _overlapping(self, written: int, other: int) -> NoReturn:
        raise VariantPackError(
            f"buffer of tensor {self._spec_of(written).label}, which the plan writes, overlaps "
            f"the buffer of tensor {self._spec_of(other).label}"
        )

    def _unknown(self, key: object) -> NoReturn:
        taken = ", ".join(spec.label for spec in self._specs.values())
        for tensor in self._graph.tensors.values():
            if key in {tensor.uid, tensor.name}:
                if tensor.uid in self._specs:
                    problem = "has a name that another tensor has too; bind it by uid"
                else:
                    kind = "virtual" if tensor.virtual else "a constant"
                    problem = f"is {kind} and takes no buffer"
                raise VariantPackError(f"tensor {tensor.label} {problem}; buffers go to {taken}")
        hint = (
            near_spellings(key, [t.name for t in self._graph.io_tensors])
            if (isinstance(key, str))
            else ""
        )
        raise VariantPackError(
            f"the graph has no tensor {key!r}; buffers go to {taken}, by uid or name{hint}"
        )


def _host_workspace(workspace: Any, needed: int) -> np.ndarray[Any, Any]:
    if not isinstance(workspace, np.ndarray) or isinstance(workspace, MaskedArray):
        raise WorkspaceError(f"workspace is {shown(workspace)}, but must be a numpy array")
    if workspace.dtype.hasobject or not workspace.dtype.itemsize:
        raise WorkspaceError(
            f"workspace has dtype {workspace.dtype}, but must have one of numbers or bytes"
        )
    if not workspace.flags.c_contiguous or not workspace.flags.writeable:
        raise WorkspaceError("workspace must be contiguous and writable")
    _check_size(workspace.nbytes, needed)
    return np.ndarray((needed,), np.uint8, workspace)


def _device_workspace(workspace: Any, needed: int) -> int:
    if isinstance(workspace, DeviceBuffer):
        if not workspace.address:
            if needed:
                raise WorkspaceError(
                    f"workspace is a DeviceBuffer that is empty or has been closed, but the plan "
                    f"needs {needed} bytes"
                )
            return 0
        workspace = (workspace.address, workspace.size)
    pair = workspace if isinstance(workspace, tuple) else (workspace, needed)
    numbers = len(pair) == 2 and all(type(part) is int for part in pair)
    if not numbers or not 0 < pair[0] < ADDRESS_END:
        raise WorkspaceError(
            f"workspace is {shown(workspace)}, but must be a device address, a pair of address "
            "and size in bytes, or a DeviceBuffer"
        )
    address, size = pair
    if address % WORKSPACE_ALIGNMENT:
        raise WorkspaceError(
            f"workspace is at address {address:#x}, but must be at a multiple of "
            f"{WORKSPACE_ALIGNMENT} bytes: engines put numbers of any type there"
        )
    _check_size(size, needed)
    return int(address)


def _check_size(size: int, needed: int) -> None:
    if size < needed:
        raise WorkspaceError(f"workspace has {size} bytes, but the plan needs {needed}")
