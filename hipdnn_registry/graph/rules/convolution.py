"""Shapes of the three convolution directions.

With x [N, C, in...], w [K, C/groups, r...], y [N, K, out...], in each spatial dimension

    out = (in + pre_padding + post_padding - dilation * (r - 1) - 1) // stride + 1

hipDNN's schema has no group count: groups = C / w.dims[1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hipdnn_registry.graph.types import ConvMode, DataType

if TYPE_CHECKING:
    from hipdnn_registry.graph.nodes import ConvolutionNode, ConvParameters
    from hipdnn_registry.graph.tensor import TensorAttributes
    from hipdnn_registry.graph.wiring import Wiring

SUPPORTED_RANKS = range(3, 6)


def apply_fprop(wiring: Wiring) -> None:
    """Settle y by x and w."""
    x, w, y = wiring.inputs["x"], wiring.inputs["w"], wiring.outputs["y"]
    _check_operands(wiring, x, w)
    _check_types(wiring, (x, w), y)
    wiring.settle(y, _forward_dims(wiring, x, w), like=x, why=_FORMULA)


def apply_dgrad(wiring: Wiring) -> None:
    """Settle dx by dy and w; it must be given where the stride leaves its extents open."""
    dy, w, dx = wiring.inputs["dy"], wiring.inputs["w"], wiring.outputs["dx"]
    _check_rank(wiring, dy, w)
    _check_types(wiring, (dy, w), dx)
    if dx.dims is None:
        dx.dims = _dgrad_dims(wiring, dy, w, dx)
    wiring.settle(dx, dx.dims, like=dy, why="as given")
    _check_operands(wiring, dx, w)
    _check_forward(wiring, dx, w, dy)


def apply_wgrad(wiring: Wiring) -> None:
    """Check dw; its dims must be given, since groups don't follow from them."""
    x, dy, dw = wiring.inputs["x"], wiring.inputs["dy"], wiring.outputs["dw"]
    _check_rank(wiring, x, dy)
    _check_types(wiring, (x, dy), dw)
    if dw.dims is None:
        wiring.fail(
            "tensor.no_dims",
            "dims are not set, and neither filter extents nor groups follow from x and dy; "
            "set them with set_dim([K, C/groups, ...])",
            dw,
        )
    wiring.settle(dw, dw.dims, like=x, why="as given")
    _check_operands(wiring, x, dw)
    _check_forward(wiring, x, dw, dy)


_FORMULA = "[N, K, (in + pre_padding + post_padding - dilation * (filter - 1) - 1) // stride + 1]"


def _parameters(wiring: Wiring) -> ConvParameters:
    return cast("ConvolutionNode", wiring.node).parameters


def _check_rank(wiring: Wiring, first: TensorAttributes, second: TensorAttributes) -> int:
    rank = len(wiring.dims(first))
    if rank not in SUPPORTED_RANKS:
        wiring.fail(
            "convolution.rank",
            f"has {rank} dims {list(wiring.dims(first))}, but a convolution takes 3 to 5: "
            "two and one to three spatial ones",
            first,
        )
    if len(wiring.dims(second)) != rank:
        wiring.fail(
            "convolution.rank",
            f"has {len(wiring.dims(second))} dims, but tensor {first.label} has {rank}",
            second,
        )
    parameters = _parameters(wiring)
    for name, least in (("pre_padding", 0), ("post_padding", 0), ("stride", 1), ("dilation", 1)):
        values: tuple[int, ...] = getattr(parameters, name)
        if len(values) != rank - 2:
            wiring.fail(
                "convolution.parameters",
                f"{name} {list(values)} has {len(values)} entries, but there are {rank - 2} "
                "spatial dimensions",
            )
        if min(values) < least:
            wiring.fail(
                "convolution.parameters",
                f"{name} {list(values)} has an entry below {least}",
            )
    if parameters.conv_mode is ConvMode.NOT_SET:
        wiring.fail(
            "convolution.mode", "conv_mode is NOT_SET, but must be CROSS_CORRELATION or CONVOLUTION"
        )
    return rank


def _check_types(
    wiring: Wiring, inputs: tuple[TensorAttributes, ...], output: TensorAttributes
) -> None:
    wiring.same_type(inputs, "the operands of a convolution")
    if inputs[0].data_type is DataType.INT8:  # quantised convolutions accumulate in int32
        return
    wiring.floating((*inputs, output))
    wiring.floating_compute()


def _check_operands(wiring: Wiring, x: TensorAttributes, w: TensorAttributes) -> None:
    """Check rank, parameters and groups of image and filter."""
    _check_rank(wiring, x, w)
    channels, (filters, group_channels) = wiring.dims(x)[1], wiring.dims(w)[:2]
    if channels % group_channels:
        wiring.fail(
            "convolution.groups",
            f"{channels} channels of tensor {x.label} do not divide into groups of "
            f"{group_channels}, the filter's dims[1]",
            w,
        )
    groups = channels // group_channels
    if filters % groups:
        wiring.fail(
            "convolution.groups",
            f"{filters} filters do not divide into {groups} groups "
            f"({channels} channels / {group_channels} a group)",
            w,
        )


def _forward_dims(wiring: Wiring, x: TensorAttributes, w: TensorAttributes) -> tuple[int, ...]:
    parameters = _parameters(wiring)
    dims = [wiring.dims(x)[0], wiring.dims(w)[0]]
    for axis, (extent, taps, pre, post, stride, dilation) in enumerate(
        zip(
            wiring.dims(x)[2:],
            wiring.dims(w)[2:],
            parameters.pre_padding,
            parameters.post_padding,
            parameters.stride,
            parameters.dilation,
            strict=True,
        )
    ):
        reach = dilation * (taps - 1) + 1
        if extent + pre + post < reach:
            wiring.fail(
                "convolution.empty",
                f"spatial dimension {axis}: the filter reaches over {reach} elements, but the "
                f"padded image has only {extent} + {pre} + {post} = {extent + pre + post}, "
                "so the output extent is 0",
                x,
            )
        dims.append((extent + pre + post - reach) // stride + 1)
    return tuple(dims)


def _check_forward(
    wiring: Wiring, x: TensorAttributes, w: TensorAttributes, y: TensorAttributes
) -> None:
    """Check that a forward convolution of x and w has the shape of y."""
    wiring.settle(y, _forward_dims(wiring, x, w), like=x, why=_FORMULA)


def _dgrad_dims(
    wiring: Wiring, dy: TensorAttributes, w: TensorAttributes, dx: TensorAttributes
) -> tuple[int, ...]:
    parameters = _parameters(wiring)
    if any(stride != 1 for stride in parameters.stride):
        wiring.fail(
            "tensor.no_dims",
            f"dims are not set, and with stride {list(parameters.stride)} several extents lead "
            "to this dy; set them with set_dim([N, C, ...])",
            dx,
        )
    spatial = tuple(
        extent + dilation * (taps - 1) - pre - post
        for extent, taps, pre, post, dilation in zip(
            wiring.dims(dy)[2:],
            wiring.dims(w)[2:],
            parameters.pre_padding,
            parameters.post_padding,
            parameters.dilation,
            strict=True,
        )
    )
    if min(spatial) < 1:
        wiring.fail(
            "convolution.empty",
            f"dims would be [{wiring.dims(dy)[0]}, C, {', '.join(map(str, spatial))}]: the "
            "padding leaves no image",
            dx,
        )
    return (wiring.dims(dy)[0], wiring.dims(w)[1], *spatial)
