"""The convolution that the flags of conv and CBAInfer describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .shapes import Shape, is_channels_last

if TYPE_CHECKING:
    from hipdnn_registry.graph.graph import Graph
    from hipdnn_registry.graph.tensor import TensorAttributes

    from .flags import Flags


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution's tensors and parameters.

    Attributes:
        x: [N, C, in...].
        w: [K, C/groups, r...]; of a transposed convolution [C, K/groups, r...].
        y: [N, K, out...].
        padding: Zeros on both sides, one number a spatial dimension.
        stride: Steps of the filter.
        dilation: Distance between filter taps.
        transposed: Whether `-m trans` asks for the transposed convolution.
    """

    x: Shape
    w: Shape
    y: Shape
    padding: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool

    def add_fprop(
        self, graph: Graph, image: TensorAttributes, w: TensorAttributes
    ) -> TensorAttributes:
        """Add `conv_fprop` with these parameters."""
        return graph.conv_fprop(
            image, w, padding=self.padding, stride=self.stride, dilation=self.dilation
        )

    def add_dgrad(
        self, graph: Graph, gradient: TensorAttributes, w: TensorAttributes
    ) -> TensorAttributes:
        """Add `conv_dgrad` with these parameters."""
        return graph.conv_dgrad(
            gradient, w, padding=self.padding, stride=self.stride, dilation=self.dilation
        )

    def add_wgrad(
        self, graph: Graph, gradient: TensorAttributes, image: TensorAttributes
    ) -> TensorAttributes:
        """Add `conv_wgrad` with these parameters."""
        return graph.conv_wgrad(
            gradient, image, padding=self.padding, stride=self.stride, dilation=self.dilation
        )


class _Axis(NamedTuple):
    """One spatial dimension: the letter that its flags end in, and their values."""

    letter: str
    image: int
    taps: int
    padding: int
    stride: int
    dilation: int

    @property
    def reach(self) -> int:
        """Elements from the first to the last tap of the filter."""
        return self.dilation * (self.taps - 1) + 1


def read_convolution(flags: Flags, *, transposed: bool = False) -> Convolution:
    """Read the convolution.

    Raises:
        GraphError: Groups do not divide the channels, the result would be empty, an output padding
            is not below its stride, a layout is one of another number of dimensions.
    """
    axes = _read_axes(flags, transposed=transposed)
    batch, channels = flags.integer("batchsize"), flags.integer("in_channels")
    filters, groups = flags.integer("out_channels"), flags.integer("group_count")
    if channels % groups or filters % groups:
        flags.fail(
            "group_count",
            f"it must divide both {channels} input channels and {filters} output channels",
        )
    rows, columns = (channels, filters) if transposed else (filters, channels)
    dims = {
        "x": (batch, channels, *(axis.image for axis in axes)),
        "w": (rows, columns // groups, *(axis.taps for axis in axes)),
        "y": (
            batch,
            filters,
            *((_scattered if transposed else _gathered)(flags, axis) for axis in axes),
        ),
    }
    x, w, y = (
        Shape.checked(name, dims[name], is_channels_last(flags, flag, len(axes)))
        for name, flag in (("x", "in_layout"), ("w", "fil_layout"), ("y", "out_layout"))
    )
    return Convolution(
        x,
        w,
        y,
        padding=tuple(axis.padding for axis in axes),
        stride=tuple(axis.stride for axis in axes),
        dilation=tuple(axis.dilation for axis in axes),
        transposed=transposed,
    )


def read_input(flags: Flags) -> Shape:
    """Read the shape of x alone."""
    spatial = tuple(flags.integer(f"in_{letter}") for letter in _letters(flags))
    dims = (flags.integer("batchsize"), flags.integer("in_channels"), *spatial)
    return Shape.checked("x", dims, is_channels_last(flags, "in_layout", len(spatial)))


def _letters(flags: Flags) -> str:
    return "dhw" if flags.integer("spatial_dim") == 3 else "hw"


def _read_axes(flags: Flags, *, transposed: bool) -> list[_Axis]:
    names = ("in", "fil", "pad", "conv_stride", "dilation")
    axes = [
        _Axis(letter, *(flags.integer(f"{name}_{letter}") for name in names))
        for letter in _letters(flags)
    ]
    # As in MIOpenDriver, a padding mode counts for no other convolutions than these.
    undilated = all(axis.dilation == 1 for axis in axes) or all(axis.taps == 1 for axis in axes)
    if transposed or not undilated:
        return axes
    pad_mode = flags.text("pad_mode")
    if pad_mode == "same":
        return [axis._replace(padding=_same_padding(axis)) for axis in axes]
    if pad_mode == "valid":
        return [axis._replace(padding=0) for axis in axes]
    return axes


def _same_padding(axis: _Axis) -> int:
    """Return MIOpenDriver's padding for `--pad_mode same`.

    It is half of what makes the output ceil(in / stride) long, rounded down and the same on both
    sides: where the whole is odd, the output may be one element shorter than TensorFlow's.
    """
    return max(axis.taps - (axis.image % axis.stride or axis.stride), 0) // 2


def _gathered(flags: Flags, axis: _Axis) -> int:
    """Return the output extent of a convolution."""
    padded = axis.image + 2 * axis.padding
    if padded < axis.reach:
        flags.fail(
            f"in_{axis.letter}",
            f"with {axis.padding} of padding on both sides that is {padded}, but the filter "
            f"reaches over {axis.reach}, so the output extent is 0",
            "driver.empty_output",
        )
    return (padded - axis.reach) // axis.stride + 1


def _scattered(flags: Flags, axis: _Axis) -> int:
    """Return the output extent of a transposed convolution."""
    flag = f"trans_output_pad_{axis.letter}"
    output_padding = flags.integer(flag)
    if output_padding >= axis.stride:
        flags.fail(flag, f"it must be below the stride, {axis.stride}")
    full = axis.stride * (axis.image - 1) + axis.reach + output_padding
    extent = full - 2 * axis.padding
    if extent < 1:
        flags.fail(
            f"pad_{axis.letter}",
            f"on both sides it takes {2 * axis.padding} from the {full} elements that the "
            f"transposed convolution writes, so the output extent is {max(extent, 0)}",
            "driver.empty_output",
        )
    return extent
