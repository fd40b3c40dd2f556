"""A graph's tensors in MIOpen's terms: type, dims and packed strides of one layout.

MIOpen knows no tensors of one spatial dimension. [N, C, L] becomes [N, C, 1, L], as PyTorch and
MIOpenDriver do it, so that their perf-db records serve here and the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.native import DataType, TensorDescriptor
from hipdnn_registry import DataType as GraphType
from hipdnn_registry.graph import channels_last_order, packed_strides

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from hipdnn_registry import TensorAttributes

TYPES = {
    GraphType.FLOAT: DataType.Float,
    GraphType.HALF: DataType.Half,
    GraphType.BFLOAT16: DataType.BFloat16,
}

_INT32_MAX = 2**31 - 1


class Unsupported(Exception):  # noqa: N818 - an answer about a graph, not an error
    """MIOpen, or this provider, can't run a graph; the text is the reason, for people."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor as MIOpen gets it.

    Attributes:
        dtype: Type of the elements.
        dims: Extents in logical order, at least four.
        strides: In elements, packed.
        nbytes: Bytes of memory.
    """

    dtype: DataType
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    nbytes: int

    def describe(self) -> TensorDescriptor:
        """Make the descriptor, to be closed by the caller."""
        return TensorDescriptor(self.dtype, self.dims, self.strides)


def type_of(tensor: TensorAttributes) -> DataType:
    """Return MIOpen's type of a tensor."""
    found = TYPES.get(tensor.data_type)
    if found is None:
        raise Unsupported(
            f"tensor {tensor.label} has data type '{tensor.data_type}', but MIOpen's engines take "
            f"{', '.join(sorted(TYPES))}"
        )
    return found


def numpy_type(dtype: DataType) -> np.dtype[Any]:
    """Return numpy's type of the elements."""
    (graph_type,) = (graph for graph, native in TYPES.items() if native is dtype)
    return graph_type.numpy_dtype()


def specs(tensors: Sequence[TensorAttributes], *, rank: int = 4) -> list[TensorSpec]:
    """Return the tensors of one computation, all in one layout.

    Args:
        tensors: The tensors.
        rank: Those of fewer dims get extents of 1 behind the channels up to this rank.

    Raises:
        Unsupported: They are not all packed NCHW or all packed NHWC (or their 1-D and 3-D
            likes), or they are too large for MIOpen's 32-bit descriptors.
    """
    channels_last = not all(_is_packed(tensor, channels_last=False) for tensor in tensors)
    if channels_last:
        for tensor in tensors:
            if not _is_packed(tensor, channels_last=True):
                first = tensors[0]
                raise Unsupported(
                    f"tensor {tensor.label} has dims {list(tensor.dims or ())} and strides "
                    f"{list(tensor.strides or ())}; all tensors must be packed in one layout, NCHW "
                    f"or NHWC (tensor {first.label} has strides {list(first.strides or ())})"
                )
    return [_spec(tensor, rank, channels_last=channels_last) for tensor in tensors]


def in_memory_order(spec: TensorSpec) -> TensorSpec:
    """Return the same memory with its dims in the order in which they lie there.

    Elementwise operations may take [N, C, H, W] of NHWC tensors for packed [N, H, W, C].
    """
    if not is_channels_last(spec):
        return spec
    batch, channels, *spatial = spec.dims
    dims = (batch, *spatial, channels)
    return TensorSpec(spec.dtype, dims, packed_strides(dims), spec.nbytes)


def is_channels_last(spec: TensorSpec) -> bool:
    """Whether a tensor is laid out as NHWC and not at the same time as NCHW."""
    return spec.strides != packed_strides(spec.dims)


def layout_name(spec: TensorSpec) -> str:
    """Return MIOpen's name of a layout, as its databases have it."""
    depth = "D" if len(spec.dims) == 5 else ""
    return f"N{depth}HWC" if is_channels_last(spec) else f"NC{depth}HW"


def pad_spatial(values: Sequence[int], fill: int) -> tuple[int, ...]:
    """Give a one-dimensional convolution's parameters an entry for the unit dimension."""
    return (fill, *values) if len(values) == 1 else tuple(values)


def _is_packed(tensor: TensorAttributes, *, channels_last: bool) -> bool:
    dims, strides = tensor.dims or (), tensor.strides or ()
    order = channels_last_order(len(dims)) if channels_last and len(dims) > 2 else None
    packed = packed_strides(dims, order)
    return all(
        extent == 1 or stride == wanted
        for extent, stride, wanted in zip(dims, strides, packed, strict=True)
    )


def _spec(tensor: TensorAttributes, rank: int, *, channels_last: bool) -> TensorSpec:
    dims = tensor.dims or ()
    dims = (*dims[:2], *[1] * (rank - len(dims)), *dims[2:])
    strides = packed_strides(dims, channels_last_order(len(dims)) if channels_last else None)
    if max(*dims, *strides) > _INT32_MAX:
        raise Unsupported(
            f"tensor {tensor.label} of dims {list(tensor.dims or ())} has a stride of "
            f"{max(*dims, *strides)}, but MIOpen's descriptors hold 32-bit numbers"
        )
    dtype = type_of(tensor)
    return TensorSpec(dtype, dims, strides, tensor.element_count * dtype.itemsize)
