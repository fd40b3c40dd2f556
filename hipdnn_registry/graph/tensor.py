"""`TensorAttributes`: what a graph knows of one tensor, and the arithmetic of strides."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, cast

from pydantic import Field, ValidationError

from hipdnn_registry.errors import GraphError, near_spellings

from .model import Bool, Int64, Ints, Model, Number, first_error, shown
from .types import VALUE_TYPE_OF, DataType, ValueType

if TYPE_CHECKING:
    from collections.abc import Sequence


class TensorAttributes(Model):
    """A tensor of a graph: hipDNN's `TensorAttributes`.

    The constructor, the setters and assignment raise a `GraphError` that names the tensor, the
    field and the value if the field can't take it; the constructor raises a `TypeError` for an
    unknown keyword.

    Attributes:
        uid: 64-bit identity within the graph; `None` until the graph assigns one.
        name: For people; does not count in the content key.
        data_type: Element type; `UNSET` takes the graph's io type, or its intermediate type for a
            virtual tensor.
        dims: Extents, `[N, C, spatial...]` for images and `[K, C/groups, spatial...]` for filters
            whatever the layout in memory is; `None` until inferred.
        strides: Distance in elements between neighbours along each dimension; the layout.
        virtual: An intermediate result that no buffer is bound to.
        value_type: Kind of `value`, for a pass-by-value constant.
        value: The constant itself.
        is_runtime_pass_by_value: A scalar whose value is given at execution.
        alignment: Alignment in bytes that the caller promises for the buffer.
    """

    uid: Int64 | None = None
    name: str = ""
    data_type: DataType = DataType.UNSET
    dims: Ints | None = None
    strides: Ints | None = None
    virtual: Bool = False
    value_type: ValueType | None = None
    value: Bool | Int64 | Number | None = Field(default=None, union_mode="left_to_right")
    is_runtime_pass_by_value: Bool = False
    alignment: Int64 = 16
    ragged_offset_tensor_uid: Int64 | None = None
    ragged_offset_multiplier: Int64 = 1

    if not TYPE_CHECKING:  # type checkers see the fields as keywords

        def __init__(self, /, **fields: Any) -> None:
            known = type(self).model_fields
            for field in fields:
                if field not in known:
                    raise TypeError(
                        f"TensorAttributes() got an unexpected keyword argument {field!r}"
                        + near_spellings(field, list(known))
                    )
            try:
                super().__init__(**fields)
            except ValidationError as error:
                name = fields.get("name")
                raise first_error(error, tensor=repr(name) if name else "without name") from None

        # Else pydantic would come by here when it reads JSON, whose unknown fields are kept.
        __init__.__pydantic_base_init__ = True

    def _whose(self) -> dict[str, str]:
        return {"tensor": self.label}

    @property
    def label(self) -> str:
        """How messages call the tensor: uid and name."""
        uid = "without uid" if self.uid is None else f"uid {self.uid}"
        return f"{uid} ('{self.name}')" if self.name else uid

    @property
    def is_constant(self) -> bool:
        """Whether the tensor is a compile-time constant and takes no buffer."""
        return self.value_type is not None

    @property
    def element_count(self) -> int:
        """Product of `dims`."""
        return math.prod(self.dims or ())

    @property
    def span_bytes(self) -> int:
        """Bytes from the first to behind the last element, gaps included; 0 for constants."""
        if self.is_constant or not self.dims or self.strides is None:
            return 0
        return (max_offset(self.dims, self.strides) + 1) * self.data_type.bits // 8

    # hipDNN's fluent setters, so that its samples read the same here.

    def set_uid(self, uid: int) -> Self:
        """Set the uid."""
        self.uid = uid
        return self

    def set_name(self, name: str) -> Self:
        """Set the name."""
        self.name = name
        return self

    def set_data_type(self, data_type: DataType) -> Self:
        """Set the element type."""
        self.data_type = data_type
        return self

    def set_dim(self, dims: Sequence[int]) -> Self:
        """Set the extents."""
        self._refuse_none("dims", dims)
        self.dims = cast("tuple[int, ...]", dims)  # the field makes it a tuple
        return self

    def set_stride(self, strides: Sequence[int]) -> Self:
        """Set the strides, in elements."""
        self._refuse_none("strides", strides)
        self.strides = cast("tuple[int, ...]", strides)
        return self

    def set_is_virtual(self, virtual: bool) -> Self:
        """Say whether the tensor is an intermediate result."""
        self.virtual = virtual
        return self

    def set_output(self, output: bool = True) -> Self:
        """Say that the caller wants the tensor: it is not virtual and takes a buffer."""
        if not isinstance(output, bool):
            raise GraphError(
                f"set_output takes True or False, but got {shown(output)}",
                rule="json.field",
                tensor=self.label,
            )
        return self.set_is_virtual(not output)

    def set_value(self, value: float, data_type: DataType = DataType.FLOAT) -> Self:
        """Make the tensor a pass-by-value scalar constant of shape [1]."""
        self.data_type = data_type
        kind = VALUE_TYPE_OF.get(self.data_type)  # as the field has it, not as it was given
        if kind is None:
            raise GraphError(
                f"a constant can't be of data type '{self.data_type}', only of "
                + ", ".join(VALUE_TYPE_OF),
                rule="tensor.value_type",
                tensor=self.label,
            )
        self._refuse_none("value", value)
        self.value, self.value_type = value, kind
        self.dims, self.strides = (1,), (1,)
        return self

    def _refuse_none(self, field: str, value: object) -> None:
        if value is None:
            raise GraphError(f"{field} can't be set to None", rule="json.field", tensor=self.label)


def uid_of(tensor: TensorAttributes) -> int:
    """Return the uid of a tensor that has one by now."""
    if tensor.uid is None:
        raise ValueError(f"tensor {tensor.label} has no uid yet")
    return tensor.uid


def packed_strides(dims: Sequence[int], order: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return strides without gaps.

    Args:
        dims: Extents.
        order: Dimensions from the slowest to the fastest; `None` is row-major (NCHW).
    """
    strides = [0] * len(dims)
    step = 1
    for axis in reversed(range(len(dims)) if order is None else order):
        strides[axis] = step
        step *= max(dims[axis], 1)
    return tuple(strides)


def channels_last_order(rank: int) -> tuple[int, ...]:
    """Return the stride order of NHWC and its N-D likes: N, spatial..., C."""
    return (0, *range(2, rank), 1)


def stride_order(dims: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Return the dimensions from the slowest to the fastest.

    The stride of an extent of 1 says nothing about a layout. What the others leave open is
    row-major if that agrees with them, else channels-last if that does; any other permutation is
    taken as it is, equal strides in the order of the dimensions.
    """
    rank = len(dims)
    for order in (tuple(range(rank)), channels_last_order(rank)):
        telling = [strides[axis] for axis in order if dims[axis] != 1]
        if telling == sorted(telling, reverse=True):
            return order
    return tuple(sorted(range(rank), key=lambda axis: (-strides[axis], axis)))


def max_offset(dims: Sequence[int], strides: Sequence[int]) -> int:
    """Return the offset of the last element, in elements; -1 if there is none."""
    if any(extent == 0 for extent in dims):
        return -1
    return sum((extent - 1) * stride for extent, stride in zip(dims, strides, strict=True))


def strides_overlap(dims: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two elements may share an address.

    The test is the usual one: from the fastest dimension up, each stride must reach beyond all
    that lies below it. Layouts that interleave without meeting fail it too; no library writes them.
    """
    extent_below = 0
    for extent, stride in sorted(
        (pair for pair in zip(dims, strides, strict=True) if pair[0] > 1), key=lambda p: p[1]
    ):
        if stride <= extent_below:
            return True
        extent_below += (extent - 1) * stride
    return False
