"""What the node methods of a graph take by keyword, and what those of several results return."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

from hipdnn_registry.errors import near_spellings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .tensor import TensorAttributes
    from .types import ConvMode, DataType


class NodeOptions(TypedDict, total=False):
    """What every node takes.

    Attributes:
        name: Node name; the default is hipDNN's, such as "ConvolutionFprop_0".
        compute_data_type: Type of the arithmetic; `UNSET` takes the graph's.
    """

    name: str
    compute_data_type: DataType


class ConvolutionOptions(NodeOptions, total=False):
    """How a filter moves over an image: one number, or one a spatial dimension.

    Attributes:
        padding: Zeros on both sides of the image; default 0.
        pre_padding: Zeros before the image, where they differ from `padding`.
        post_padding: Zeros behind the image, where they differ from `padding`.
        stride: Step of the filter; default 1.
        dilation: Distance between neighbouring filter taps; default 1.
        conv_mode: CROSS_CORRELATION (default), or CONVOLUTION, which flips the filter.
    """

    padding: int | Sequence[int]
    pre_padding: int | Sequence[int]
    post_padding: int | Sequence[int]
    stride: int | Sequence[int]
    dilation: int | Sequence[int]
    conv_mode: ConvMode


class PointwiseOptions(NodeOptions, total=False):
    """Settings of elementwise operations.

    Attributes:
        relu_lower_clip: Value at and below which a ReLU is flat or has its lower slope.
        relu_upper_clip: Value above which a ReLU is flat.
        relu_lower_clip_slope: Slope below the lower clip.
        swish_beta: beta of x * sigmoid(beta * x).
        elu_alpha: alpha of alpha * (exp(x) - 1).
        softplus_beta: beta of log(1 + exp(beta * x)) / beta.
    """

    relu_lower_clip: float | None
    relu_upper_clip: float | None
    relu_lower_clip_slope: float | None
    swish_beta: float | None
    elu_alpha: float | None
    softplus_beta: float | None


def refuse_unknown(method: str, options: Mapping[str, object], known: type) -> None:
    """Raise Python's `TypeError`, in the method's name, for an option that it does not take."""
    for option in options:
        if option not in known.__annotations__:
            raise TypeError(
                f"{method}() got an unexpected keyword argument {option!r}"
                + near_spellings(option, list(known.__annotations__))
            )


class BatchnormTensors(NamedTuple):
    """What `batchnorm` writes, in hipDNN's order; running statistics are `None` without them."""

    y: TensorAttributes
    mean: TensorAttributes
    inv_variance: TensorAttributes
    next_running_mean: TensorAttributes | None
    next_running_variance: TensorAttributes | None


class BatchnormGradients(NamedTuple):
    """What `batchnorm_backward` writes."""

    dx: TensorAttributes
    dscale: TensorAttributes
    dbias: TensorAttributes
