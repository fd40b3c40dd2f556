"""hipDNN's node methods: each adds an operation and returns the tensors that it writes.

Results are virtual, as in hipDNN, until `set_output(True)` says that the caller wants them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from .batchnorm_operations import BatchnormOperations
from .builder import PendingNode
from .convolution_operations import ConvolutionOperations
from .nodes import PointwiseNode
from .operation_options import NodeOptions, PointwiseOptions, refuse_unknown
from .types import DataType, PointwiseMode

if TYPE_CHECKING:
    from .tensor import TensorAttributes


class Operations(ConvolutionOperations, BatchnormOperations):
    """The operations that a graph can be built of.

    Every method raises a `GraphError` if an input is no tensor, and a `TypeError` for an unknown
    option.
    """

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
        refuse_unknown("pointwise", options, PointwiseOptions)
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
