"""What all nodes have in common: a name, a type, and ports that name tensors by uid."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from .model import Model
from .types import DataType

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT_SUFFIX = "_tensor_uid"


class Ports(Model):
    """The tensors that a node reads or writes."""

    def uids(self) -> Iterator[tuple[str, int]]:
        """Yield `(port name, uid)` for every port that is set, lists as `name.0`, `name.1`."""
        for field, value in self:
            if value is None or not field.endswith(PORT_SUFFIX):
                continue
            port = field.removesuffix(PORT_SUFFIX)
            if isinstance(value, (tuple, list)):
                for index, uid in enumerate(value):
                    yield f"{port}.{index}", uid
            else:
                yield port, value


class Node(Model):
    """An operation of a graph.

    Attributes:
        name: For people; does not count in the content key.
        type: hipDNN's name of the attributes table.
        compute_data_type: Type of the arithmetic; `UNSET` takes the graph's.
        inputs: Tensors read, and for some operations settings.
        outputs: Tensors written.
    """

    required_inputs: ClassVar[tuple[str, ...]] = ()
    required_outputs: ClassVar[tuple[str, ...]] = ()

    name: str = ""
    type: str
    compute_data_type: DataType = DataType.UNSET
    inputs: Ports
    outputs: Ports

    def _whose(self) -> dict[str, str]:
        return {"node": self.name or self.type}

    def freeze(self) -> None:
        """Freeze the node with its ports and parameters."""
        for _, value in self:
            if isinstance(value, Model):
                value.freeze()
        super().freeze()
