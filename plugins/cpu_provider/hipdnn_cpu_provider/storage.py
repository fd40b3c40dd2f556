"""Where the virtual tensors of a graph live while a plan runs.

An elementwise operation may write over an operand that nobody reads later, so the operand can
live where the result does: a chain convolution, bias, activation runs in the caller's output
buffer alone. The other virtual tensors get places in the workspace, and two of them share a place
if one is dead before the other is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hipdnn_registry.graph import PointwiseNode

from .kernels.arena import aligned_bytes

if TYPE_CHECKING:
    from hipdnn_registry import Graph, TensorAttributes
    from hipdnn_registry.graph import Wiring


@dataclass(frozen=True, slots=True)
class Place:
    """A virtual tensor's place in the workspace: byte offset, shape, strides in bytes, type."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    def view(self, memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the tensor as a view of the workspace."""
        return np.ndarray(self.shape, self.dtype, memory.data, self.offset, self.strides)


@dataclass(frozen=True, slots=True)
class Storage:
    """Where every virtual tensor lives.

    Attributes:
        aliases: Virtual tensor to the tensor whose buffer it lives in.
        places: Virtual tensor to its place in the workspace.
        size: Bytes of workspace that the places take.
    """

    aliases: dict[int, int]
    places: dict[int, Place]
    size: int


def plan_storage(graph: Graph) -> Storage:
    """Decide where the virtual tensors of a validated graph live."""
    wirings = graph.structure.wirings
    last_read = {uid: step for step, wiring in enumerate(wirings) for _, uid in wiring.input_uids}
    written = {uid: step for step, wiring in enumerate(wirings) for _, uid in wiring.output_uids}
    aliases: dict[int, int] = {}
    for step in reversed(range(len(wirings))):
        for uid, target in _overwritable(wirings[step]):
            if last_read[uid] == step and uid not in aliases:
                aliases[uid] = aliases.get(target, target)
                break  # the result has room for one operand
    # A group of aliases lives from the first write of any to the last read of any of them.
    homes: dict[int, tuple[int, int]] = {}
    for uid, tensor in graph.tensors.items():
        home = aliases.get(uid, uid)
        if tensor.virtual and graph.tensors[home].virtual:
            first, last = homes.get(home, (len(wirings), -1))
            homes[home] = (min(first, written[uid]), max(last, last_read[uid]))
    places: dict[int, Place] = {}
    busy: list[tuple[int, int, int, int]] = []  # first step, last step, start, stop
    for home, (first, last) in sorted(homes.items(), key=lambda item: item[1]):
        tensor = graph.tensors[home]
        size = aligned_bytes(_span(tensor), tensor.data_type.numpy_dtype())
        start = _first_gap(
            sorted((a, b) for begin, end, a, b in busy if begin <= last and first <= end), size
        )
        busy.append((first, last, start, start + size))
        for uid in (home, *(uid for uid, target in aliases.items() if target == home)):
            places[uid] = _place(graph.tensors[uid], start)
    return Storage(
        aliases={uid: home for uid, home in aliases.items() if not graph.tensors[home].virtual},
        places=places,
        size=max((stop for *_, stop in busy), default=0),
    )


def _overwritable(wiring: Wiring) -> list[tuple[int, int]]:
    """Operand and result of an elementwise node, where they are alike in memory."""
    if not isinstance(wiring.node, PointwiseNode):
        return []
    out = wiring.outputs["out_0"]
    return [
        (tensor.uid, out.uid)
        for tensor in wiring.inputs.values()
        if tensor.virtual
        and tensor.uid is not None
        and out.uid is not None
        and (tensor.dims, tensor.strides, tensor.data_type)
        == (out.dims, out.strides, out.data_type)
    ]


def _span(tensor: TensorAttributes) -> int:
    return tensor.span_bytes * 8 // tensor.data_type.bits


def _first_gap(taken: list[tuple[int, int]], size: int) -> int:
    start = 0
    for begin, end in taken:
        if begin - start >= size:
            break
        start = max(start, end)
    return start


def _place(tensor: TensorAttributes, offset: int) -> Place:
    dtype = tensor.data_type.numpy_dtype()
    strides = tuple(stride * dtype.itemsize for stride in tensor.strides or ())
    return Place(offset, tensor.dims or (), strides, dtype)
