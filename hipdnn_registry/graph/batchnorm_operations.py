"""hipDNN's node methods of batch normalisations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from hipdnn_registry.errors import GraphError

from .builder import GraphBuilder, PendingNode
from .nodes import (
    BatchnormBackwardNode,
    BatchnormInferenceNode,
    BatchnormInferenceVarianceNode,
    BatchnormNode,
)
from .operation_options import BatchnormGradients, BatchnormTensors, NodeOptions, refuse_unknown
from .types import DataType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .node import Node
    from .tensor import TensorAttributes


class BatchnormOperations(GraphBuilder):
    """Batch normalisation in training, in inference, and its gradients."""

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
        refuse_unknown("batchnorm_inference", options, NodeOptions)
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
        refuse_unknown("batchnorm_inference_variance_ext", options, NodeOptions)
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

        Without them an engine recomputes the statistics from x, with epsilon `BACKWARD_EPSILON`
        (1e-5), since hipDNN's schema has no epsilon here.

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


def _all_or_none(node: str, rule: str, tensors: Mapping[str, TensorAttributes | None]) -> None:
    missing = [port for port, tensor in tensors.items() if tensor is None]
    if 0 < len(missing) < len(tensors):
        raise GraphError(
            f"{', '.join(missing)} not set; give all of {', '.join(tensors)}, or none of them",
            rule=rule,
            node=node,
        )
