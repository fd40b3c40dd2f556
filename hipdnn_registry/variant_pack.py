"""Variant packs: a buffer for every tensor that takes one, checked before an engine sees them."""

from __future__ import annotations

import builtins
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .dlpack import DeviceTensor, device_tensor, is_on_device
from .errors import VariantPackError, WorkspaceError, near_spellings
from .graph import packed_strides
from .graph.tensor import max_offset
from .provider import BufferKind, DeviceBuffer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .graph import Graph, TensorAttributes

_MAX_OVERLAP_WORK = 10_000  # candidate solutions that numpy may try before it gives up


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """What the buffer of one tensor must be; strides in bytes."""

    uid: int
    label: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    written: bool

    def array_of(self, value: Any) -> np.ndarray[Any, Any]:
        """Return the caller's buffer as a numpy array of the right kind, without copying."""
        array = value if isinstance(value, np.ndarray) else self._from_dlpack(value)
        if array.shape != self.shape:
            self.fail(f"has shape {array.shape}, but must have {self.shape}")
        if array.dtype != self.dtype:
            self.fail(f"has dtype {array.dtype}, but must have {self.dtype}")
        if array.strides != self.strides:
            if not self._same_layout(array.strides):
                self.fail(
                    f"has strides {array.strides}, but must have {self.strides} (bytes): the "
                    "layouts of graph and buffer must agree"
                )
            # Strides of extent 1 say nothing; engines may rely on seeing the graph's.
            array = np.lib.stride_tricks.as_strided(
                array, strides=self.strides, writeable=array.flags.writeable
            )
        if not array.flags.aligned:
            self.fail("is not aligned to its elements")
        if self.written and not array.flags.writeable:
            self.fail("is written by the plan, but is read-only")
        return array

    @property
    def span(self) -> int:
        """Bytes from the first element's begin to the last one's end."""
        return max_offset(self.shape, self.strides) + self.dtype.itemsize

    @property
    def has_gaps(self) -> bool:
        """Whether there is memory between the elements that is not the tensor's."""
        return self.span > math.prod(self.shape) * self.dtype.itemsize

    def address_of(self, value: Any) -> int:
        """Return the device address of an address, a `DeviceBuffer` or a DLPack object."""
        if type(value) is int and value > 0:
            return value
        if isinstance(value, DeviceBuffer):
            if value.size < self.span:
                self.fail(f"has {value.size} bytes, but needs {self.span}")
            return value.address
        if is_on_device(value):
            return self._address_of_tensor(device_tensor(value))
        return self.fail(
            f"is {_shown(value)}, but must be on the device: an address, a DeviceBuffer or a "
            "DLPack object; nothing is copied there by itself"
        )

    def _address_of_tensor(self, tensor: DeviceTensor) -> int:
        if tensor.shape != self.shape:
            self.fail(f"has shape {tensor.shape}, but must have {self.shape}")
        if tensor.type_name != str(self.dtype):
            self.fail(f"has dtype {tensor.type_name}, but must have {self.dtype}")
        strides = tensor.strides or packed_strides(self.shape)
        if not self._same_layout(tuple(stride * self.dtype.itemsize for stride in strides)):
            self.fail(f"has strides {strides} (elements), but must have {self.strides} (bytes)")
        return tensor.address

    def fail(self, problem: str) -> NoReturn:
        """Raise the error that names the tensor."""
        raise VariantPackError(f"buffer of tensor {self.label} {problem}")

    def _same_layout(self, strides: tuple[int, ...]) -> bool:
        return all(
            given == wanted or extent == 1
            for given, wanted, extent in zip(strides, self.strides, self.shape, strict=True)
        )

    def _from_dlpack(self, value: Any) -> np.ndarray[Any, Any]:
        if not hasattr(value, "__dlpack__"):
            self.fail(
                f"is {_shown(value)}, but must be a numpy array or a DLPack object in host memory"
            )
        try:
            return np.from_dlpack(value)
        except (builtins.BufferError, TypeError, RuntimeError, ValueError) as error:
            self.fail(f"can't be read through DLPack in host memory: {error}")


def _shown(value: object) -> str:
    text = " ".join(repr(value).split())
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


class VariantPackChecker:
    """Checks variant packs of one graph and hands out buffers by uid.

    Args:
        graph: The graph of the request.
        kind: What the plan takes.
        uid_map: Uid in the graph to uid in the plan, where they differ.
    """

    def __init__(self, graph: Graph, kind: BufferKind, uid_map: Mapping[int, int] | None) -> None:
        self._graph = graph
        self._specs = {t.uid: _spec(t, graph) for t in graph.io_tensors if t.uid is not None}
        self._target = {uid: uid_map[uid] if uid_map else uid for uid in self._specs}
        self._by_key: dict[object, BufferSpec] = {}
        self._by_key.update(self._specs.items())
        for tensor in graph.io_tensors:  # a name that two tensors share can't be bound by
            if tensor.name and tensor.uid is not None:
                shared = sum(other.name == tensor.name for other in graph.io_tensors) > 1
                if not shared:
                    self._by_key[tensor.name] = self._specs[tensor.uid]
        self._on_host = kind is BufferKind.HOST
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
                strides, read-only or overlapping.
        """
        buffers: dict[int, Any] = {}
        for key, value in pack.items():
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
                if np.may_share_memory(buffers[first], buffers[second]):
                    self._check_overlap(buffers, first, second)
        else:
            for first, second in self._apart:
                begin, start = buffers[first], buffers[second]
                if begin < start + self._span[second] and start < begin + self._span[first]:
                    self._check_ranges(first, second)
        return buffers

    def _check_ranges(self, first: int, second: int) -> None:
        """Refuse ranges of addresses that meet; tensors with gaps may lie between each other."""
        by_target = {target: self._specs[uid] for uid, target in self._target.items()}
        one, other = by_target[first], by_target[second]
        if not one.has_gaps and not other.has_gaps:
            self._overlapping(one, other)

    def _check_overlap(self, buffers: dict[int, Any], first: int, second: int) -> None:
        shares_memory: Any = np.shares_memory  # its stub knows only two values of max_work
        try:
            shared = shares_memory(buffers[first], buffers[second], max_work=_MAX_OVERLAP_WORK)
        except np.exceptions.TooHardError:
            shared = True
        if shared:
            by_target = {target: self._specs[uid] for uid, target in self._target.items()}
            self._overlapping(by_target[first], by_target[second])

    def _overlapping(self, written: BufferSpec, other: BufferSpec) -> NoReturn:
        raise VariantPackError(
            f"buffer of tensor {written.label}, which the plan writes, overlaps the buffer of "
            f"tensor {other.label}"
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


def check_workspace(workspace: Any, needed: int, kind: BufferKind) -> Any:
    """Check a caller's workspace.

    Args:
        workspace: For host plans a contiguous, writable array of any type; for device plans a
            `DeviceBuffer`, a pair of address and size in bytes, or an address alone, whose size
            can't be checked.
        needed: Bytes that the plan needs.
        kind: What the plan takes.

    Returns:
        For host plans a one-dimensional uint8 view; for device plans the address.

    Raises:
        WorkspaceError: Too small, with both numbers, or not a workspace.
    """
    if kind is BufferKind.DEVICE:
        if isinstance(workspace, DeviceBuffer):
            workspace = (workspace.address, workspace.size)
        address, size = workspace if isinstance(workspace, tuple) else (workspace, needed)
        if not isinstance(address, int) or address <= 0:
            raise WorkspaceError(f"workspace is {_shown(address)}, but must be a device address")
    else:
        if not isinstance(workspace, np.ndarray):
            raise WorkspaceError(f"workspace is {_shown(workspace)}, but must be a numpy array")
        if not workspace.flags.c_contiguous or not workspace.flags.writeable:
            raise WorkspaceError("workspace must be contiguous and writable")
        address, size = workspace.reshape(-1).view(np.uint8), workspace.nbytes
    if size < needed:
        raise WorkspaceError(f"workspace has {size} bytes, but the plan needs {needed}")
    return address


def _spec(tensor: TensorAttributes, graph: Graph) -> BufferSpec:
    dims, strides = tensor.dims or (), tensor.strides or ()
    try:
        dtype = tensor.data_type.numpy_dtype()
    except TypeError as error:
        raise VariantPackError(f"tensor {tensor.label}: {error}") from None
    assert tensor.uid is not None  # noqa: S101 - the graph is validated
    return BufferSpec(
        uid=tensor.uid,
        label=tensor.label,
        shape=dims,
        strides=tuple(stride * dtype.itemsize for stride in strides),
        dtype=dtype,
        written=tensor.uid in graph.output_uids,
    )
