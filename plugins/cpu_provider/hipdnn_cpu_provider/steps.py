"""Nodes as steps: functions of the arrays of a run, with the kernels and settings bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hipdnn_registry import ConvMode, DataType
from hipdnn_registry.graph import (
    BACKWARD_EPSILON,
    BatchnormBackwardNode,
    BatchnormInferenceNode,
    BatchnormInferenceVarianceNode,
    BatchnormNode,
    ConvolutionBwdNode,
    ConvolutionFwdNode,
    PointwiseNode,
)

from .kernels import batchnorm as bn
from .kernels.conv_algorithms import Direction
from .kernels.geometry import ConvGeometry, TensorSpec
from .kernels.pointwise import PointwiseParameters, pointwise

if TYPE_CHECKING:
    from hipdnn_registry import TensorAttributes
    from hipdnn_registry.graph import ConvolutionNode, Wiring

Array = np.ndarray[Any, Any]
Arrays = Mapping[int, Array]
Step = Callable[[Arrays, Array], None]
"""Runs one node on the arrays by uid, with scratch memory."""


class ConvolutionProblem:
    """A convolution node in the terms of the kernels.

    Attributes:
        name: The node's name.
        direction: Which of the three.
        uids: The operands and the result, in the order of the direction.
        tensors: Their attributes.
        specs: The same as shapes, strides and types.
        geometry: How the filter moves.
        compute: Type of the arithmetic.
    """

    def __init__(self, wiring: Wiring) -> None:
        node = cast("ConvolutionNode", wiring.node)
        self.name = node.name
        self.direction, ports = _direction(node)
        tensors = {**wiring.inputs, **wiring.outputs}
        self.tensors = tuple(tensors[port] for port in ports)
        self.uids = tuple(uid for tensor in self.tensors if (uid := tensor.uid) is not None)
        self.specs = tuple(_spec(tensor) for tensor in self.tensors)
        parameters = node.parameters
        self.geometry = ConvGeometry(
            parameters.stride,
            parameters.dilation,
            parameters.pre_padding,
            parameters.post_padding,
            flip=parameters.conv_mode is ConvMode.CONVOLUTION,
        )
        self.double = node.compute_data_type is DataType.DOUBLE


def _direction(node: ConvolutionNode) -> tuple[Direction, tuple[str, str, str]]:
    if isinstance(node, ConvolutionFwdNode):
        return Direction.FPROP, ("x", "w", "y")
    if isinstance(node, ConvolutionBwdNode):
        return Direction.DGRAD, ("dy", "w", "dx")
    return Direction.WGRAD, ("dy", "x", "dw")


def _spec(tensor: TensorAttributes) -> TensorSpec:
    return TensorSpec(tensor.dims or (), tensor.strides or (), tensor.data_type.numpy_dtype())


def other_step(wiring: Wiring, *, double: bool) -> Step:
    """Return the step of a node that is no convolution.

    Args:
        wiring: The node with its tensors.
        double: Compute in float64 whatever the graph says.
    """
    node = wiring.node
    double = double or node.compute_data_type is DataType.DOUBLE
    uids = dict((*wiring.input_uids, *wiring.output_uids))
    if isinstance(node, PointwiseNode):
        return _pointwise_step(node, uids, double=double)
    run = {
        BatchnormNode: _batchnorm,
        BatchnormInferenceNode: _batchnorm_inference,
        BatchnormInferenceVarianceNode: _batchnorm_inference_variance,
        BatchnormBackwardNode: _batchnorm_backward,
    }[type(node)]
    return partial(run, uids, double)


def _pointwise_step(node: PointwiseNode, uids: dict[str, int], *, double: bool) -> Step:
    settings = node.inputs
    mode = settings.operation.value
    parameters = PointwiseParameters(
        relu_lower_clip=settings.relu_lower_clip,
        relu_upper_clip=settings.relu_upper_clip,
        relu_lower_clip_slope=settings.relu_lower_clip_slope,
        elu_alpha=settings.elu_alpha,
        swish_beta=settings.swish_beta,
        softplus_beta=settings.softplus_beta,
    )
    operands = [uids[port] for port in ("in_0", "in_1", "in_2") if port in uids]
    if mode.endswith("_bwd"):  # hipDNN's order is the gradient first, the kernels' the operand
        operands.reverse()
    out = uids["out_0"]

    def run(arrays: Arrays, scratch: Array) -> None:
        del scratch
        inputs = [arrays[uid] for uid in operands]
        pointwise(mode, inputs, arrays[out], parameters, double=double)

    return run


def _batchnorm(uids: dict[str, int], double: bool, arrays: Arrays, scratch: Array) -> None:
    del scratch
    found = {port: arrays[uid] for port, uid in uids.items()}
    running = None
    if "momentum" in found:
        running = bn.RunningStatistics(
            found["prev_running_mean"],
            found["prev_running_variance"],
            found["next_running_mean"],
            found["next_running_variance"],
            float(found["momentum"].item()),
        )
    bn.batchnorm(
        found["x"],
        found["scale"],
        found["bias"],
        float(found["epsilon"].item()),
        found["y"],
        mean=found.get("mean"),
        inv_variance=found.get("inv_variance"),
        running=running,
        double=double,
    )


def _batchnorm_inference(
    uids: dict[str, int], double: bool, arrays: Arrays, scratch: Array
) -> None:
    del scratch
    ports = ("x", "mean", "inv_variance", "scale", "bias", "y")
    bn.batchnorm_inference(*(arrays[uids[port]] for port in ports), double=double)


def _batchnorm_inference_variance(
    uids: dict[str, int], double: bool, arrays: Arrays, scratch: Array
) -> None:
    del scratch
    found = {port: arrays[uid] for port, uid in uids.items()}
    bn.batchnorm_inference_variance(
        found["x"],
        found["mean"],
        found["variance"],
        found["scale"],
        found["bias"],
        float(found["epsilon"].item()),
        found["y"],
        double=double,
    )


def _batchnorm_backward(uids: dict[str, int], double: bool, arrays: Arrays, scratch: Array) -> None:
    del scratch
    saved = None
    if "mean" in uids:
        saved = (arrays[uids["mean"]], arrays[uids["inv_variance"]])
    ports = ("x", "dy", "scale", "dx", "dscale", "dbias")
    bn.batchnorm_backward(
        *(arrays[uids[port]] for port in ports),
        saved=saved,
        epsilon=BACKWARD_EPSILON,
        double=double,
    )
