"""Tensors between the nodes of a fused graph, which MIOpen never stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipdnn_miopen_provider.tensors import TYPES, Unsupported

if TYPE_CHECKING:
    from hipdnn_registry import TensorAttributes
    from hipdnn_registry.graph import Wiring


def check_intermediate(tensor: TensorAttributes, reader: Wiring) -> None:
    """Check that a tensor between two fused nodes is never stored, and read by the second.

    Raises:
        Unsupported: It is an output of the graph, of a strange type, or read elsewhere.
    """
    if all(tensor is not read for read in reader.inputs.values()):
        raise Unsupported(
            f"node '{reader.node.name}' does not read tensor {tensor.label}: MIOpen's engines take "
            "chains of nodes"
        )
    if not tensor.virtual:
        raise Unsupported(
            f"tensor {tensor.label} lies between fused nodes, where MIOpen stores nothing, but is "
            "not virtual"
        )
    if tensor.data_type not in TYPES:
        raise Unsupported(
            f"tensor {tensor.label} lies between fused nodes and has data type "
            f"'{tensor.data_type}', but MIOpen computes in 'float'"
        )


def uid(tensor: TensorAttributes) -> int:
    """Return the uid of a validated graph's tensor."""
    assert tensor.uid is not None  # noqa: S101 - validation gave it one
    return tensor.uid
