"""hipDNN's JSON form of a graph, read and written.

The models have the shape of the form, so reading is validation and writing is a dump. What was
read is written back with exactly the fields that it came with, nulls and unknown fields included.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, PlainValidator, SerializeAsAny, ValidationError

from hipdnn_registry.errors import GraphError, near_spellings

from .model import Bool, Int64, Model, first_error
from .node import Node
from .nodes import NODE_TYPES
from .tensor import TensorAttributes
from .types import DataType

if TYPE_CHECKING:
    from collections.abc import Mapping


def _parse_node(value: object) -> Node:
    if isinstance(value, Node):
        return value
    if not isinstance(value, dict):
        raise GraphError(f"a node must be an object, not {value!r}", rule="json.node")
    name, kind = value.get("name"), value.get("type")
    model = NODE_TYPES.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise GraphError(
            f"type is {kind!r}, but must be one of {', '.join(NODE_TYPES)}"
            + near_spellings(str(kind), list(NODE_TYPES)),
            rule="json.node_type",
            node=str(name),
        )
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise first_error(error, node=str(name)) from None


class GraphSettings(Model):
    """What a graph says besides its tensors and nodes; fields as in hipDNN's schema."""

    name: str = ""
    compute_data_type: DataType = DataType.UNSET
    intermediate_data_type: DataType = DataType.UNSET
    io_data_type: DataType = DataType.UNSET
    preferred_engine_id: Int64 | None = None
    is_override_shape_enabled: Bool = False


class GraphDocument(GraphSettings):
    """The whole of a graph's JSON form; fields as in hipDNN's schema."""

    tensors: list[TensorAttributes]
    nodes: list[Annotated[SerializeAsAny[Node], PlainValidator(_parse_node)]] = Field(min_length=1)

    def freeze(self) -> None:
        """Freeze the document, its tensors and its nodes."""
        for part in (*self.tensors, *self.nodes):
            part.freeze()
        super().freeze()


def read_document(source: str | bytes | Mapping[str, Any]) -> GraphDocument:
    """Read the JSON form from text or from its parsed mapping.

    Raises:
        GraphError: The text is no JSON, or not a graph; names the place and what belongs there.
    """
    if isinstance(source, (str, bytes)):
        try:
            source = json.loads(source, parse_int=_integer, parse_constant=_refuse_constant)
        except RecursionError:
            raise GraphError("not valid JSON: nested too deeply", rule="json.syntax") from None
        except ValueError as error:
            raise GraphError(f"not valid JSON: {error}", rule="json.syntax") from None
    if not isinstance(source, dict):
        raise GraphError(
            f"a graph must be a JSON object, not {type(source).__name__}", rule="json.graph"
        )
    try:
        document = GraphDocument.model_validate(source)
    except ValidationError as error:
        raise first_error(error) from None
    for place, tensor in enumerate(document.tensors):
        if tensor.uid is None:  # nodes name tensors by nothing else, so any would be a guess
            name = f" ('{tensor.name}')" if tensor.name else ""
            raise GraphError(f"tensors[{place}].uid is missing{name}", rule="json.field")
    return document


def checked_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return some settings of a graph with the types of their fields.

    Raises:
        GraphError: A value does not fit its field; names both.
    """
    try:
        return dict(GraphSettings.model_validate(settings).model_dump(exclude_unset=True))
    except ValidationError as error:
        raise first_error(error, prefix="graph.") from None


def write_document(document: GraphDocument, *, indent: int | None = 1) -> str:
    """Write the JSON form; what was read is written with the fields that it came with."""
    return json.dumps(document_to_dict(document), indent=indent)


def document_to_dict(document: GraphDocument) -> dict[str, Any]:
    """Return the JSON form as plain dicts and lists."""
    return document.model_dump(mode="json", exclude_unset=True)


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # Python reads 4300 digits at the most
        raise ValueError(f"a number of {len(text)} digits is too long") from None


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not allowed")
