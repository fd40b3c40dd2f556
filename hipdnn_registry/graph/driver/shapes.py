"""Shapes and layouts as flags give them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hipdnn_registry.errors import GraphError
from hipdnn_registry.graph.tensor import channels_last_order, packed_strides
from hipdnn_registry.graph.types import DataType

if TYPE_CHECKING:
    from hipdnn_registry.graph.graph import Graph
    from hipdnn_registry.graph.tensor import TensorAttributes

    from .flags import Flags

_BYTES_AN_ELEMENT, _MAX_BYTES = 8, 2**63 - 1


@dataclass(frozen=True, slots=True)
class Shape:
    """Extents of a tensor without gaps, and the order that they are stored in.

    Attributes:
        dims: [N, C, spatial...] or the like.
        channels_last: Whether the order is NHWC's or NDHWC's, rather than NCHW's or NCDHW's.
    """

    dims: tuple[int, ...]
    channels_last: bool = False

    @classmethod
    def checked(cls, name: str, dims: tuple[int, ...], channels_last: bool) -> Shape:
        """Return a shape, or raise a `GraphError` if the tensor fits no address space."""
        if math.prod(dims) * _BYTES_AN_ELEMENT > _MAX_BYTES:
            raise GraphError(
                f"tensor '{name}' {list(dims)} has more than 2**63 bytes", rule="driver.size"
            )
        return cls(dims, channels_last)

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements."""
        order = channels_last_order(len(self.dims)) if self.channels_last else None
        return packed_strides(self.dims, order)

    def read_by(
        self, graph: Graph, name: str, data_type: DataType = DataType.UNSET
    ) -> TensorAttributes:
        """Add an input of this shape to a graph; `UNSET` takes the graph's io type."""
        return graph.tensor(dims=self.dims, strides=self.strides, data_type=data_type, name=name)

    def give(self, tensor: TensorAttributes) -> TensorAttributes:
        """Give a result of a node this shape."""
        return tensor.set_dim(self.dims).set_stride(self.strides)

    def output(
        self, tensor: TensorAttributes, name: str, data_type: DataType = DataType.UNSET
    ) -> TensorAttributes:
        """Make a result of a node an output of the graph."""
        return self.give(tensor).set_name(name).set_data_type(data_type).set_output()


def is_channels_last(flags: Flags, flag: str, spatial_dims: int) -> bool:
    """Return whether a layout flag says NHWC (2-D) or NDHWC (3-D); the default is NCHW or NCDHW.

    Raises:
        GraphError: The layout is one of another number of dimensions.
    """
    layout = flags.text(flag)
    if layout and len(layout) != spatial_dims + 2:
        allowed = "NCHW or NHWC" if spatial_dims == 2 else "NCDHW or NDHWC"
        flags.fail(
            flag, f"with {spatial_dims} spatial dimensions it must be {allowed}", "driver.layout"
        )
    return layout.endswith("C")
