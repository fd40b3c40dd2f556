"""`TensorDescriptor`: type, dims and strides of a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from hipdnn_miopen_provider.native import BatchNormMode, DataType
from hipdnn_registry.graph import packed_strides

from .arguments import enum_member, instance, integers
from .errors import BadParm

_WHERE = "TensorDescriptor"
_MAX_RANK = 5
_INT64_MAX = 2**63 - 1


class TensorLayout(IntEnum):
    """`miopenTensorLayout_t`."""

    NCHW = 0
    NHWC = 1
    CHWN = 2
    NCHWc4 = 3
    NCHWc8 = 4
    CHWNc4 = 5
    CHWNc8 = 6
    NCDHW = 7
    NDHWC = 8

    @property
    def vector_length(self) -> int:
        """Channels in one vector; 1 where the layout is not vectorised."""
        return int(self.name[-1]) if self.name[-1].isdigit() else 1

    @property
    def dimensions(self) -> str:
        """Its letters from the slowest to the fastest dimension, the vector left out."""
        return self.name.rstrip("c48")


@dataclass(frozen=True, slots=True)
class TensorDescriptor:
    """A tensor: `miopenTensorDescriptor_t`. Immutable, and equal if its fields are.

    Args:
        dtype: Type of the elements, or `miopenDataType_t`'s number.
        dims: Extents in logical order ([N, C, [D,] H, W], filters [K, C/groups, ...]), whatever the
            layout; one to five.
        strides: Distances in elements, in the order of `dims`; `None` is packed in that order.
        vector_length: Channels in one vector of a vectorised layout, which every call declines.

    Raises:
        BadParm: Not a type, not positive integers, or lengths that differ.
    """

    dtype: DataType
    dims: tuple[int, ...]
    strides: tuple[int, ...] = None  # type: ignore[assignment]  # a tuple once it is made
    vector_length: int = 1

    def __post_init__(self) -> None:
        dims = integers(self.dims, _WHERE, "dims", least=1)
        if len(dims) > _MAX_RANK:
            raise BadParm(_WHERE, f"dims is {list(dims)}, but MIOpen has up to {_MAX_RANK}")
        strides = (
            packed_strides(dims)
            if self.strides is None
            else integers(self.strides, _WHERE, "strides", least=1)
        )
        if len(strides) != len(dims):
            raise BadParm(
                _WHERE,
                f"strides is {list(strides)}, but must have an entry for each of the dims "
                f"{list(dims)}",
            )
        if max(*dims, *strides) > _INT64_MAX:
            raise BadParm(_WHERE, f"dims {list(dims)} or strides {list(strides)}: beyond 64 bits")
        if type(self.vector_length) is not int or self.vector_length not in {1, 4, 8}:
            raise BadParm(_WHERE, f"vector_length is {self.vector_length!r}, but must be 1, 4 or 8")
        for name, value in (
            ("dtype", enum_member(DataType, self.dtype, _WHERE, "dtype")),
            ("dims", dims),
            ("strides", strides),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def with_layout(
        cls, dtype: DataType, layout: TensorLayout, dims: tuple[int, ...]
    ) -> TensorDescriptor:
        """Make a packed one of a layout, as `miopenSetNdTensorDescriptorWithLayout` does.

        Args:
            dtype: Type of the elements.
            layout: The layout. The vectorised ones can be described, and are declined by calls.
            dims: Extents in logical order, N, C, [D,] H, W.

        Raises:
            BadParm: The layout has another number of dims.
        """
        layout = enum_member(TensorLayout, layout, _WHERE, "layout")
        extents = integers(dims, _WHERE, "dims", least=1)
        letters, logical = layout.dimensions, "NCDHW" if "D" in layout.name else "NCHW"
        if len(extents) != len(logical):
            raise BadParm(
                _WHERE, f"dims is {list(extents)}, but {layout.name} has {len(logical)} dims"
            )
        strides = packed_strides(extents, [logical.index(letter) for letter in letters])
        return cls(dtype, extents, strides, layout.vector_length)

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the end of the last: what a buffer must have."""
        last = sum((d - 1) * s for d, s in zip(self.dims, self.strides, strict=True))
        return (last + 1) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype.name} {list(self.dims)} with strides {list(self.strides)}"


def derive_bn_tensor_descriptor(x_desc: TensorDescriptor, mode: BatchNormMode) -> TensorDescriptor:
    """Return the descriptor of scale, bias and statistics: `miopenDeriveBNTensorDescriptor`.

    [1, C, 1, 1] for spatial mode and [1, C, H, W] per activation; packed, and float whatever the
    type of x.

    Raises:
        BadParm: Not a descriptor, not a mode, or fewer than two dims.
    """
    where = "miopenDeriveBNTensorDescriptor"
    dims = instance(TensorDescriptor, x_desc, where, "x_desc").dims
    mode = enum_member(BatchNormMode, mode, where, "mode")
    if len(dims) < 2:
        raise BadParm(where, f"x_desc has dims {list(dims)}, but needs at least [N, C]")
    spatial = mode is BatchNormMode.Spatial
    derived = (1, dims[1], *([1] * (len(dims) - 2) if spatial else dims[2:]))
    return TensorDescriptor(DataType.Float, derived)
