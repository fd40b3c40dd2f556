"""A node with its tensors at hand, as the rules see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from hipdnn_registry.errors import GraphError
from hipdnn_registry.graph.tensor import packed_strides, stride_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hipdnn_registry.graph.node import Node
    from hipdnn_registry.graph.tensor import TensorAttributes


@dataclass(frozen=True, slots=True)
class Wiring:
    """A node and the tensors on its ports.

    Attributes:
        node: The node.
        inputs: The tensors that it reads, by port.
        outputs: The tensors that it writes, by port.
        input_uids: Port and uid of what it reads.
        output_uids: Port and uid of what it writes.
        port_names: The ports of both.
    """

    node: Node
    inputs: dict[str, TensorAttributes]
    outputs: dict[str, TensorAttributes]
    input_uids: tuple[tuple[str, int], ...]
    output_uids: tuple[tuple[str, int], ...]
    port_names: tuple[str, ...]

    def fail(self, rule: str, message: str, tensor: TensorAttributes | None = None) -> NoReturn:
        """Raise the `GraphError` that names this node and the tensor."""
        raise GraphError(
            message,
            rule=rule,
            node=self.node.name or self.node.type,
            tensor=tensor.label if tensor is not None else None,
        )

    def dims(self, tensor: TensorAttributes) -> tuple[int, ...]:
        """Return the extents of an input, which must be known by now."""
        if tensor.dims is None:
            self.fail("tensor.no_dims", "dims are not set", tensor)
        return tensor.dims

    def settle(
        self, tensor: TensorAttributes, dims: Sequence[int], like: TensorAttributes, why: str
    ) -> None:
        """Give an output its dims and strides, or check the dims that it has.

        Args:
            tensor: The output.
            dims: The extents that follow from the operation.
            like: The tensor whose stride order an output without strides follows.
            why: The formula or rule, for the message.
        """
        expected = tuple(dims)
        if tensor.dims is None:
            tensor.dims = expected
        elif tensor.dims != expected:
            self.fail(
                "tensor.dims",
                f"dims are {list(tensor.dims)}, but must be {list(expected)}: {why}",
                tensor,
            )
        if tensor.strides is None:
            order = None
            if like.dims is not None and like.strides is not None and len(like.dims) == len(dims):
                order = stride_order(like.dims, like.strides)
            tensor.strides = packed_strides(expected, order)

    def same_type(self, tensors: Sequence[TensorAttributes], what: str) -> None:
        """Check that the tensors share one data type."""
        first = tensors[0]
        for tensor in tensors[1:]:
            if tensor.data_type != first.data_type:
                self.fail(
                    "tensor.data_type",
                    f"data type is '{tensor.data_type}', but {what} must share one, and tensor "
                    f"{first.label} has '{first.data_type}'",
                    tensor,
                )

    def floating(self, tensors: Sequence[TensorAttributes]) -> None:
        """Check that the tensors hold floating-point numbers."""
        for tensor in tensors:
            if not tensor.data_type.is_floating:
                self.fail(
                    "tensor.data_type",
                    f"data type is '{tensor.data_type}', but must be a floating-point type",
                    tensor,
                )

    def floating_compute(self) -> None:
        """Check that the node computes in floating point."""
        if not self.node.compute_data_type.is_floating:
            self.fail(
                "node.compute_data_type",
                f"compute data type is '{self.node.compute_data_type}', but must be a "
                "floating-point type",
            )


Rule = Callable[[Wiring], None]
"""Checks a node's inputs and settles or checks its outputs; raises `GraphError`."""
