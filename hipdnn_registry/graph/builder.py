"""The building half of `Graph`: tensors, and nodes that wait to be turned into models.

Until the graph is validated a node is kept with the tensors themselves, so names, uids, dims and
types of a tensor can be set after the node that uses it was added, as in hipDNN.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from hipdnn_registry.errors import GraphError

from .model import first_error, shown
from .node import PORT_SUFFIX, Node
from .tensor import TensorAttributes
from .types import DataType

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_ALWAYS_WRITTEN = {"uid", "name", "dims", "strides", "data_type", "virtual", "alignment"}


@dataclass(frozen=True, slots=True)
class PendingNode:
    """A node whose tensors have no uids yet.

    Attributes:
        model: Its model.
        name: Its name.
        compute_data_type: Its arithmetic.
        inputs: Tensors read, by port; `None` for a port that is not used.
        outputs: Tensors written, by port.
        settings: What the JSON form keeps among the inputs.
        parameters: What the JSON form keeps under "parameters".
        optional: Output ports that are left out if nothing reads them and nobody asked for them.
    """

    model: type[Node]
    name: str
    compute_data_type: DataType
    inputs: Mapping[str, TensorAttributes | None]
    outputs: Mapping[str, TensorAttributes | None]
    settings: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] | None = None
    optional: frozenset[str] = frozenset()


class GraphBuilder:
    """Collects tensors and nodes; `Graph` adds what can be asked of them."""

    def __init__(self) -> None:
        self._tensors: list[TensorAttributes] = []
        self._loaded_nodes: list[Node] = []
        self._pending: list[PendingNode] = []

    def _check_open(self) -> None:
        """Raise if the graph can't be changed any more."""

    def tensor(
        self,
        attributes: TensorAttributes | None = None,
        *,
        dims: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        data_type: DataType = DataType.UNSET,
        name: str = "",
        uid: int | None = None,
    ) -> TensorAttributes:
        """Add an input tensor, by attributes or by keywords.

        Args:
            attributes: A tensor made elsewhere; then no keyword is taken.
            dims: Extents, such as [N, C, H, W] or [K, C/groups, R, S].
            strides: Strides in elements; `None` is packed, row-major.
            data_type: Element type; `UNSET` takes the graph's io type.
            name: For people, and to bind buffers by.
            uid: Identity; `None` takes the lowest free one.

        Raises:
            GraphError: A keyword is malformed, or there are attributes and keywords.
        """
        fields: dict[str, Any] = {"name": name, "data_type": data_type}
        fields |= {
            key: value
            for key, value in (("dims", dims), ("strides", strides), ("uid", uid))
            if value is not None
        }
        if attributes is None:
            return self._add(TensorAttributes(**fields))
        if not isinstance(attributes, TensorAttributes):
            raise GraphError(
                f"graph.tensor() takes a TensorAttributes or keywords, but got "
                f"{shown(attributes)}; give extents as graph.tensor(dims=[...])",
                rule="tensor.attributes",
            )
        given = [key for key, value in fields.items() if not _is_default(value)]
        if given:
            raise GraphError(
                f"graph.tensor() takes a TensorAttributes or keywords, but got both: "
                f"{', '.join(given)}; set them on the attributes",
                rule="tensor.attributes",
                tensor=attributes.label,
            )
        return self._add(attributes)

    def scalar(
        self, value: float, data_type: DataType = DataType.FLOAT, *, name: str = ""
    ) -> TensorAttributes:
        """Add a pass-by-value constant of dims [1], such as batchnorm's epsilon.

        Raises:
            GraphError: The value is no number, or the type has no constants.
        """
        return self._add(TensorAttributes(name=name).set_value(value, data_type))

    def _add(self, tensor: TensorAttributes) -> TensorAttributes:
        self._check_open()
        if not any(tensor is known for known in self._tensors):
            self._tensors.append(tensor)
        return tensor

    def _node_name(
        self,
        kind: str,
        name: str,
        inputs: Mapping[str, TensorAttributes | None],
        may_be_none: Collection[str] = (),
    ) -> str:
        """Return a new node's name, by default hipDNN's, once its inputs are known as tensors."""
        if not isinstance(name, str):
            raise GraphError(f"a node's name must be a str, but is {shown(name)}", rule="node.name")
        name = name or f"{kind}_{len(self._pending) + len(self._loaded_nodes)}"
        for port, tensor in inputs.items():
            if isinstance(tensor, TensorAttributes) or (tensor is None and port in may_be_none):
                continue
            raise GraphError(
                f"input {port} is {shown(tensor)}, but must be a tensor of the graph, as "
                "graph.tensor(...), graph.scalar(...) and the operations return it",
                rule="node.input",
                node=name,
            )
        return name

    def _result(self, node: str, port: str) -> TensorAttributes:
        return TensorAttributes(name=f"{node}::{port.upper()}", virtual=True)

    def _append(self, node: PendingNode) -> None:
        for tensor in (*node.inputs.values(), *node.outputs.values()):
            if tensor is not None:
                self._add(tensor)
        self._pending.append(node)

    def _adopt(self, tensors: list[TensorAttributes], nodes: list[Node]) -> None:
        self._tensors, self._loaded_nodes = list(tensors), list(nodes)

    def _materialize(self) -> tuple[list[TensorAttributes], list[Node]]:
        """Give every tensor a uid and turn the pending nodes into models."""
        left_out = self._left_out()
        tensors = [tensor for tensor in self._tensors if id(tensor) not in left_out]
        taken = {tensor.uid for tensor in tensors}
        free = (uid for uid in range(2 * len(tensors) + 1) if uid not in taken)
        for tensor in tensors:
            if tensor.uid is None:
                tensor.uid = next(free)
        for pending in self._pending:
            for built in (*pending.inputs.values(), *pending.outputs.values()):
                if built is not None:
                    built.model_fields_set.update(_ALWAYS_WRITTEN)
        return tensors, [*self._loaded_nodes, *(_model_of(p, left_out) for p in self._pending)]

    def _left_out(self) -> set[int]:
        """The identities of optional results that nobody wants."""
        read = {id(tensor) for pending in self._pending for tensor in pending.inputs.values()}
        return {
            id(tensor)
            for pending in self._pending
            for port, tensor in pending.outputs.items()
            if port in pending.optional
            and tensor is not None
            and tensor.virtual
            and id(tensor) not in read
        }


def _is_default(value: object) -> bool:
    return isinstance(value, str) and value in {"", DataType.UNSET}


def _model_of(pending: PendingNode, left_out: set[int]) -> Node:
    def ports(tensors: Mapping[str, TensorAttributes | None]) -> dict[str, Any]:
        return {
            f"{port}{PORT_SUFFIX}": None if id(tensor) in left_out else getattr(tensor, "uid", None)
            for port, tensor in tensors.items()
        }

    form: dict[str, Any] = {
        "name": pending.name,
        "type": pending.model.model_fields["type"].default,
        "compute_data_type": pending.compute_data_type,
        "inputs": ports(pending.inputs) | dict(pending.settings),
        "outputs": ports(pending.outputs),
    }
    if pending.parameters is not None:
        form["parameters"] = dict(pending.parameters)
    try:
        return pending.model.model_validate(form)
    except ValidationError as error:
        raise first_error(error, node=pending.name) from None
