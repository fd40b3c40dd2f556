"""hipDNN's node methods: each adds an operation and returns the tensors that it writes.

Results are virtual, as in hipDNN, until `set_output(True)` says that the caller wants them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard, Unpack

from hipdnn_registry.errors import GraphError, near_spellings

from .builder import GraphBuilder, PendingNode
from .model import as_int, as_tuple, shown
from .nodes import (
    BatchnormBackwardNode,
    BatchnormInferenceNode,
    BatchnormInferenceVarianceNode,
    BatchnormNode,
    ConvolutionBwdNode,
    ConvolutionFwdNode,
    ConvolutionWrwNode,
    PointwiseNode,
)
from .operation_options import (
    BatchnormGradients,
    BatchnormTensors,
    ConvolutionOptions,
    NodeOptions,
    PointwiseOptions,
)
from .types import ConvMode, DataType, PointwiseMode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .node_model import Node
    from .tensor import TensorAttributes


def _refuse_unknown(method: str, options: Mapping[str, object], known: type) -> None:
    """Raise Python's `TypeError` in the name of the method that was called."""
    for option in options:
        if option not in known.__annotations__:
            raise TypeError(
                f"{method}() got an unexpected keyword argument {option!r}"
                + near_spellings(option, list(known.__annotations__))
            )


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _all_or_none(node: str, rule: str, tensors: Mapping[str, TensorAttributes | None]) -> None:
    missing = [port for port, tensor in tensors.items() if tensor is None]
    if 0 < len(missing) < len(tensors):
        raise GraphError(
            f"{', '.join(missing)} not set; give all of {', '.join(tensors)}, or none of them",
            rule=rule,
            node=node,
        )


class Operations(GraphBuilder):
    """The operations that a graph can be built of.

    Every method raises a `GraphError` if an input is no tensor, and a `TypeError` for an unknown
    option.
    """

    def conv_fprop(
        self,
        x: TensorAttributes,
        w: TensorAttributes,
        **options: Unpack[ConvolutionOptions],
    ) -> TensorAttributes:
        """Add a convolution of x [N, C, in...] with w [K, C/groups, r...]; return y [N, K, out...].

        The group count follows from the channels.
        """
        _refuse_unknown("conv_fprop", options, ConvolutionOptions)
        ports: dict[str, TensorAttributes | None] = {"x": x, "w": w}
        return self._convolution(ConvolutionFwdNode, "ConvolutionFprop", ports, "y", x, **options)

    def conv_dgrad(
        self,
        dy: TensorAttributes,
        w: TensorAttributes,
        **options: Unpack[ConvolutionOptions],
    ) -> TensorAttributes:
        """Add the gradient of `conv_fprop` by its image; return dx [N, C, in...].

        Options are those of the forward convolution. With a stride above 1 several images lead
        to one dy: call `set_dim` on the result. Without `set_dim` one group is assumed, since the
        number of groups does not follow from dy and w either: C is then w's dims[1].
        """
        _refuse_unknown("conv_dgrad", options, ConvolutionOptions)
        ports: dict[str, TensorAttributes | None] = {"dy": dy, "w": w}
        return self._convolution(ConvolutionBwdNode, "ConvolutionDgrad", ports, "dx", dy, **options)

    def conv_wgrad(
        self,
        dy: TensorAttributes,
        x: TensorAttributes,
        **options: Unpack[ConvolutionOptions],
    ) -> TensorAttributes:
        """Add the gradient of `conv_fprop` by its filter; return dw [K, C/groups, r...].

        Options are those of the forward convolution. Call `set_dim` on the result: neither filter
        extents nor groups follow from x and dy.
        """
        _refuse_unknown("conv_wgrad", options, ConvolutionOptions)
        ports: dict[str, TensorAttributes | None] = {"x": x, "dy": dy}
        return self._convolution(ConvolutionWrwNode, "ConvolutionWgrad", ports, "dw", x, **options)

    def _convolution(
        self,
        model: type[Node],
        kind: str,
        inputs: Mapping[str, TensorAttributes | None],
        output: str,
        image: TensorAttributes,
        *,
        padding: int | Sequence[int] = 0,
        pre_padding: int | Sequence[int] | None = None,
        post_padding: int | Sequence[int] | None = None,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        conv_mode: ConvMode = ConvMode.CROSS_CORRELATION,
        name: str = "",
        compute_data_type: DataType = DataType.UNSET,
    ) -> TensorAttributes:
        name = self._node_name(kind, name, inputs)

        def per_dimension(option: str, value: int | Sequence[int]) -> tuple[int, ...]:
            number = as_int(value)
            if not _is_int(number):
                entries = as_tuple(value)
                numbers = [as_int(e) for e in entries] if isinstance(entries, tuple) else []
                integers = tuple(entry for entry in numbers if _is_int(entry))
                if not integers or len(integers) < len(numbers):
                    raise GraphError(
                        f"{option} is {shown(value)}, but must be an integer, or a list of "
                        "one integer a spatial dimension",
                        rule="convolution.parameters",
                        node=name,
                    )
                return integers
            if image.dims is None:
                raise GraphError(
                    f"{option} is one number, which needs the rank of the image, whose dims are "
                    "not set yet; give one a spatial dimension",
                    rule="tensor.no_dims",
                    node=name,
                    tensor=image.label,
                )
            return (number,) * (len(image.dims) - 2)

        before = ("padding", padding) if pre_padding is None else ("pre_padding", pre_padding)
        behind = ("padding", padding) if post_padding is None else ("post_padding", post_padding)
        parameters = {
            "conv_mode": conv_mode,
            "pre_padding": per_dimension(*before),
            "post_padding": per_dimension(*behind),
            "stride": per_dimension("stride", stride),
            "dilation": per_dimension("dilation", dilation),
        }
        result = self._result(name, output)
        self._append(
            PendingNode(
                model, name, compute_data_type, inputs, {output: result}, parameters=parameters
            )
        )
        return result

    def batchnorm(
        self,
        x: TensorAttributes,
        scale: TensorAttributes,
        bias: TensorAttributes,
        epsilon: TensorAttributes,
        *,
        prev_running_mean: TensorAttributes | None = None,
        prev_running_variance: TensorAttributes | None = None,
        momentum: TensorAttributes | None = None,
        name: str = "",
        compute_data_type: DataType = DataType.UNSET,
    ) -> BatchnormTensors:
        """Add batch normalisation in training.

        The batch statistics `mean` and `inv_variance` are left out of the graph unless something
        reads them or `set_output` is called on them.

        Args:
            x: [N, C, spatial...].
            scale: [1, C, 1...] (spatial) or [1, C, spatial...] (per activation).
            bias: Of scale's shape.
            epsilon: Scalar added to the variance; see `scalar`.
            prev_running_mean: Of scale's shape; with the next two, running statistics are kept.
            prev_running_variance: Of scale's shape.
            momentum: Scalar weight of the batch in the running statistics.
            name: Node name.
            compute_data_type: Arithmetic; `UNSET` takes the graph's.

        Raises:
            GraphError: An input is no tensor, or only some of prev_running_mean,
                prev_running_variance and momentum are given.
        """
        running_inputs = {
            "prev_running_mean": prev_running_mean,
            "prev_running_variance": prev_running_variance,
            "momentum": momentum,
        }
        inputs = {"x": x, "scale": scale, "bias": bias, "epsilon": epsilon, **running_inputs}
        name = self._node_name("Batchnorm", name, inputs, may_be_none=running_inputs)
        _all_or_none(name, "batchnorm.running_statistics", running_inputs)
        running = prev_running_mean is not None
        result = BatchnormTensors(
            *(self._result(name, port) for port in ("y", "mean", "inv_variance")),
            *(
                self._result(name, port) if running else None
                for port in ("next_running_mean", "next_running_variance")
            ),
        )
        self._append(
            PendingNode(
                BatchnormNode,
                name,
                compute_data_type,
                inputs,
                result._asdict(),
                settings={"peer_stats_tensor_uid": ()},
                optional=frozenset({"mean", "inv_variance"}),
            )
        )
        return result

    def batchnorm_inference(
        self,
        x: TensorAttributes,
        mean: TensorAttributes,
        inv_variance: TensorAttributes,
        scale: TensorAttributes,
        bias: TensorAttributes,
        **options: Unpack[NodeOptions],
    ) -> TensorAttributes:
        """Add y = (x - mean) * inv_variance * scale + bias; inv_variance = 1/sqrt(var + eps)."""
        _refuse_unknown("batchnorm_inference", options, NodeOptions)
        ports: dict[str, TensorAttributes | None] = {
            "x": x,
            "mean": mean,
            "inv_variance": inv_variance,
            "scale": scale,
            "bias": bias,
        }
        return self._inference(BatchnormInferenceNode, "BatchnormInference", ports, **options)

    def batchnorm_inference_variance_ext(
        self,
        x: TensorAttributes,
        mean: TensorAttributes,
        variance: TensorAttributes,
        scale: TensorAttributes,
        bias: TensorAttributes,
        epsilon: TensorAttributes,
        **options: Unpack[NodeOptions],
    ) -> TensorAttributes:
        """Add y = (x - mean) / sqrt(variance + epsilon) * scale + bias."""
        _refuse_unknown("batchnorm_inference_variance_ext", options, NodeOptions)
        ports: dict[str, TensorAttributes | None] = {
            "x": x,
            "mean": mean,
            "variance": variance,
            "scale": scale,
            "bias": bias,
            "epsilon": epsilon,
        }
        return self._inference(
            BatchnormInferenceVarianceNode, "BatchnormInferenceVariance", ports, **options
        )

    def _inference(
        self,
        model: type[Node],
        kind: str,
        inputs: Mapping[str, TensorAttributes | None],
        *,
        name: str = "",
        compute_data_type: DataType = DataType.UNSET,
    ) -> TensorAttributes:
        name = self._node_name(kind, name, inputs)
        y = self._result(name, "y")
        self._append(PendingNode(model, name, compute_data_type, inputs, {"y": y}))
        return y

    def batchnorm_backward(
        self,
        dy: TensorAttributes,
        x: TensorAttributes,
        scale: TensorAttributes,
        *,
        mean: TensorAttributes | None = None,
        inv_variance: TensorAttributes | None = None,
        name: str = "",
        compute_data_type: DataType = DataType.UNSET,
    ) -> BatchnormGradients:
        """Add the gradients of batchnorm; mean and inv_variance are the forward pass's saved ones.

        Without them an engine recomputes the statistics from x, with epsilon 1e-5, since hipDNN's
        schema has no epsilon here.

        Raises:
            GraphError: An input is no tensor, or only one of mean and inv_variance is given.
        """
        saved = {"mean": mean, "inv_variance": inv_variance}
        inputs = {"dy": dy, "x": x, **saved, "scale": scale}
        name = self._node_name("BatchnormBackward", name, inputs, may_be_none=saved)
        _all_or_none(name, "batchnorm.saved_statistics", saved)
        result = BatchnormGradients(
            *(self._result(name, port) for port in BatchnormGradients._fields)
        )
        self._append(
            PendingNode(
                BatchnormBackwardNode,
                name,
                compute_data_type,
                inputs,
                result._asdict(),
                settings={"peer_stats_tensor_uid": ()},
            )
        )
        return result

    def pointwise(
        self,
        operation: PointwiseMode | str,
        in_0: TensorAttributes,
        in_1: TensorAttributes | None = None,
        in_2: TensorAttributes | None = None,
        **options: Unpack[PointwiseOptions],
    ) -> TensorAttributes:
        """Add an elementwise operation and return its result; operands broadcast.

        Args:
            operation: A `PointwiseMode` or its spelling, such as `"add"` or `"relu_fwd"`.
            in_0: First operand; for the backward modes the gradient of the result.
            in_1: Second operand; for the backward modes the operand of the forward mode.
            in_2: Third operand, for `binary_select`.
            **options: Name, arithmetic, and settings that the operation takes.
        """
        _refuse_unknown("pointwise", options, PointwiseOptions)
        inputs: dict[str, TensorAttributes | None] = {"in_0": in_0, "in_1": in_1, "in_2": in_2}
        name = self._node_name(
            "Pointwise", options.get("name", ""), inputs, may_be_none=("in_1", "in_2")
        )
        out = self._result(name, "out_0")
        settings = {
            field: options.get(field)
            for field in PointwiseOptions.__annotations__
            if field not in NodeOptions.__annotations__
        }
        self._append(
            PendingNode(
                PointwiseNode,
                name,
                options.get("compute_data_type", DataType.UNSET),
                inputs,
                {"out_0": out},
                settings={"operation": operation, "axis_tensor_uid": None, **settings},
            )
        )
        return out
