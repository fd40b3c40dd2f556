"""From a problem in MIOpen's terms to a graph in hipDNN's; tensors are named as the arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hipdnn_miopen_provider.native import DataType
from hipdnn_registry import DataType as GraphType
from hipdnn_registry import Graph

from .activation_descriptor import pointwise_of
from .plan_key import GraphKind

if TYPE_CHECKING:
    from hipdnn_registry import TensorAttributes
    from hipdnn_registry.graph.operation_options import ConvolutionOptions

    from .convolution_descriptor import ConvolutionFields
    from .plan_key import Problem
    from .tensor_descriptor import TensorDescriptor

TYPES = {
    DataType.Float: GraphType.FLOAT,
    DataType.Half: GraphType.HALF,
    DataType.BFloat16: GraphType.BFLOAT16,
}
"""The types that are served."""

IN_PLACE = (("next_mean", "running_mean"), ("next_variance", "running_variance"))
"""Written and read tensors of a graph that are one buffer of the caller's."""


def graph_of(problem: Problem, where: str) -> Graph:
    """Build the graph of a problem.

    Raises:
        UnsupportedOp: An activation that graphs don't have.
        GraphError: The tensors don't go together.
    """
    graph = _GraphOf(problem)
    kind = problem.kind
    if kind is GraphKind.CONV_BIAS_ACTIVATION:
        graph.fused(where)
    elif problem.convolution is not None:
        graph.convolution()
    elif kind is GraphKind.BATCHNORM_TRAINING:
        graph.training()
    elif kind is GraphKind.BATCHNORM_INFERENCE:
        graph.inference()
    else:
        graph.backward()
    graph.graph.validate()
    return graph.graph


class _GraphOf:
    """A graph being built of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.graph = Graph(
            problem.kind,
            io_data_type=GraphType.FLOAT,
            intermediate_data_type=GraphType.FLOAT,
            compute_data_type=GraphType.FLOAT,
        )
        self._problem = problem
        self._tensors: dict[str, TensorDescriptor] = dict(problem.tensors)

    # Tensors

    def _input(self, name: str) -> TensorAttributes:
        desc = self._tensors[name]
        return self.graph.tensor(
            dims=desc.dims, strides=desc.strides, data_type=TYPES[desc.dtype], name=name
        )

    def _optional(self, name: str) -> TensorAttributes | None:
        return self._input(name) if name in self._tensors else None

    def _scalar(self, name: str) -> TensorAttributes:
        return self.graph.scalar(dict(self._problem.scalars)[name], name=name)

    def _output(self, name: str, tensor: TensorAttributes | None) -> None:
        if tensor is not None and name in self._tensors:
            desc = self._tensors[name]
            tensor.set_output().set_name(name).set_data_type(TYPES[desc.dtype])
            tensor.set_dim(desc.dims).set_stride(desc.strides)

    # Convolutions

    def convolution(self) -> None:
        """Add the convolution of the call's direction.

        A transposed convolution is the plain one's gradient by its image, and the other way
        round: what the call names x is then y of the plain one.
        """
        kind, graph = self._problem.kind, self.graph
        fields = cast("ConvolutionFields", self._problem.convolution)
        options = _options(fields)
        if kind is GraphKind.CONV_WGRAD:
            x, dy = self._input("x"), self._input("dy")
            if fields.transposed:
                x, dy = dy, x
            self._output("dw", graph.conv_wgrad(dy, x, **options))
            return
        image, result = ("x", "y") if kind is GraphKind.CONV_FPROP else ("dy", "dx")
        operands = self._input(image), self._input("w")
        if (kind is GraphKind.CONV_FPROP) is not fields.transposed:
            self._output(result, graph.conv_fprop(*operands, **options))
        else:
            self._output(result, graph.conv_dgrad(*operands, **options))

    def fused(self, where: str) -> None:
        """Add a convolution, a bias and an activation."""
        graph, activation = self.graph, self._problem.activation
        fields = cast("ConvolutionFields", self._problem.convolution)
        x, w = self._input("x"), self._input("w")
        y = graph.conv_fprop(x, w, **_options(fields))
        y = graph.pointwise("add", y, self._input("bias"))
        if activation is not None:
            operation, settings = pointwise_of(activation, where)
            if operation is not None:
                y = graph.pointwise(operation, y, **settings)  # type: ignore[arg-type]  # floats
        self._output("y", y)

    # Batch normalizations

    def training(self) -> None:
        """Add a batchnorm by the batch's own statistics."""
        names = ("y", "save_mean", "save_inv_variance", "next_mean", "next_variance")
        has_running = "running_mean" in self._tensors
        result = self.graph.batchnorm(
            self._input("x"),
            self._input("scale"),
            self._input("bias"),
            self._scalar("epsilon"),
            prev_running_mean=self._optional("running_mean"),
            prev_running_variance=self._optional("running_variance"),
            momentum=self._scalar("exp_avg_factor") if has_running else None,
        )
        for name, tensor in zip(names, result, strict=True):
            self._output(name, tensor)

    def inference(self) -> None:
        """Add a batchnorm by given statistics."""
        x, mean, variance, scale, bias = (
            self._input(name) for name in ("x", "mean", "variance", "scale", "bias")
        )
        epsilon = self._scalar("epsilon")
        y = self.graph.batchnorm_inference_variance_ext(x, mean, variance, scale, bias, epsilon)
        self._output("y", y)

    def backward(self) -> None:
        """Add the gradients of a batchnorm."""
        result = self.graph.batchnorm_backward(
            self._input("dy"),
            self._input("x"),
            self._input("scale"),
            mean=self._optional("saved_mean"),
            inv_variance=self._optional("saved_inv_variance"),
        )
        for name, tensor in zip(("dx", "dscale", "dbias"), result, strict=True):
            self._output(name, tensor)


def _options(fields: ConvolutionFields) -> ConvolutionOptions:
    return {
        "padding": fields.pads,
        "stride": fields.strides,
        "dilation": fields.dilations,
    }
