"""hipDNN's node methods of convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard, Unpack

from hipdnn_registry.errors import GraphError

from .builder import GraphBuilder, PendingNode
from .model import as_int, as_tuple, shown
from .nodes import ConvolutionBwdNode, ConvolutionFwdNode, ConvolutionWrwNode
from .operation_options import ConvolutionOptions, refuse_unknown
from .types import ConvMode, DataType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .node import Node
    from .tensor import TensorAttributes


class ConvolutionOperations(GraphBuilder):
    """A convolution and its two gradients."""

    def conv_fprop(
        self,
        x: TensorAttributes,
        w: TensorAttributes,
        **options: Unpack[ConvolutionOptions],
    ) -> TensorAttributes:
        """Add a convolution of x [N, C, in...] with w [K, C/groups, r...]; return y [N, K, out...].

        The group count follows from the channels.
        """
        refuse_unknown("conv_fprop", options, ConvolutionOptions)
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
        refuse_unknown("conv_dgrad", options, ConvolutionOptions)
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
        refuse_unknown("conv_wgrad", options, ConvolutionOptions)
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


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
