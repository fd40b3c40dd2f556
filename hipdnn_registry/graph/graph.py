"""`Graph`: an operation graph that is built, validated once, and from then on never changes."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from hipdnn_registry.errors import GraphError, GraphFrozenError

from .content_key import ContentKey, content_key
from .document import (
    GraphDocument,
    checked_settings,
    document_to_dict,
    read_document,
    write_document,
)
from .operations import Operations
from .types import DataType
from .validation import Structure, validate_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .node import Node
    from .tensor import TensorAttributes


_NOT_CONTENT = frozenset({"id", "min_required_engine_api_version"})


class Graph(Operations):
    """An operation graph: tensors and the nodes between them.

    A graph is open while it is built and closed by `validate`, which assigns uids, infers shapes,
    checks every rule and sorts the nodes. Everything that reads a graph (`tensors`, `nodes`,
    `content_key`, `to_json`, the registry) validates it first if need be. To change a validated
    graph, change a `copy()`. Pickling reads the graph, too: it validates and closes an open one,
    and raises a `GraphError` for one that breaks a rule, such as a graph without nodes.

    Args:
        name: For people; does not count in the content key.
        io_data_type: Type of tensors that have none and are not virtual.
        intermediate_data_type: Type of virtual tensors that have none.
        compute_data_type: Arithmetic of nodes that have none.

    Raises:
        GraphError: The name is no text, or a data type is none.
    """

    def __init__(
        self,
        name: str = "",
        *,
        io_data_type: DataType = DataType.UNSET,
        intermediate_data_type: DataType = DataType.UNSET,
        compute_data_type: DataType = DataType.UNSET,
    ) -> None:
        super().__init__()
        self._settings = checked_settings(
            {
                "name": name,
                "compute_data_type": compute_data_type,
                "intermediate_data_type": intermediate_data_type,
                "io_data_type": io_data_type,
            }
        )
        self._document: GraphDocument | None = None
        self._structure: Structure | None = None
        self._validating = threading.Lock()

    # Settings, with hipDNN's fluent setters

    def set_name(self, name: str) -> Self:
        """Set the graph's name."""
        return self._set("name", name)

    def set_io_data_type(self, data_type: DataType) -> Self:
        """Set the type of non-virtual tensors without one."""
        return self._set("io_data_type", data_type)

    def set_intermediate_data_type(self, data_type: DataType) -> Self:
        """Set the type of virtual tensors without one."""
        return self._set("intermediate_data_type", data_type)

    def set_compute_data_type(self, data_type: DataType) -> Self:
        """Set the arithmetic of nodes without one."""
        return self._set("compute_data_type", data_type)

    def set_preferred_engine_id_ext(self, engine: int | str | None) -> Self:
        """Ask for an engine, by id or name, where the choice is the registry's; a soft wish."""
        from hipdnn_registry.graph.engine_ids import engine_id

        return self._set(
            "preferred_engine_id", engine_id(engine) if isinstance(engine, str) else engine
        )

    def _set(self, field: str, value: object) -> Self:
        self._check_open()
        self._settings |= checked_settings({field: value})
        return self

    def _check_open(self) -> None:
        if self._document is not None:
            raise GraphFrozenError(
                f"graph '{self.name}' has been validated and can't be changed; change a copy()"
            )

    # Validation

    def validate(self) -> Self:
        """Assign uids, infer shapes and types, check every rule, sort, and close the graph.

        Idempotent. After an error the graph is still open.

        Raises:
            GraphError: A rule is broken; names the node, the tensor (uid and name) and the rule.
        """
        if self._document is None:
            with self._validating:
                if self._document is None:
                    self._close()
        return self

    def _close(self) -> None:
        with self._undone_on_error():
            document = self._assemble()
            structure = validate_document(document)
        document.freeze()
        self._structure = structure
        self._document = document

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        """Take back what was inferred before an error, so that a corrected graph infers anew."""
        before = [(part, dict(part.__dict__)) for part in (*self._tensors, *self._loaded_nodes)]
        try:
            yield
        except BaseException:
            for part, fields in before:
                part.__dict__.clear()
                part.__dict__.update(fields)
            raise

    def _assemble(self) -> GraphDocument:
        tensors, nodes = self._materialize()
        if not nodes:
            raise GraphError("the graph has no nodes", rule="graph.empty")
        return GraphDocument(tensors=tensors, nodes=nodes, **self._settings)

    @property
    def _closed(self) -> tuple[GraphDocument, Structure]:
        if self._document is None or self._structure is None:
            self.validate()
        assert self._document is not None  # noqa: S101 - validate() sets both or raises
        assert self._structure is not None  # noqa: S101
        return self._document, self._structure

    # What a validated graph tells

    @property
    def name(self) -> str:
        """The graph's name."""
        return str(self._settings["name"])

    @property
    def preferred_engine_id(self) -> int | None:
        """Id of the engine that the graph asks for, if it does."""
        return self._settings.get("preferred_engine_id")

    @property
    def is_override_shape_enabled(self) -> bool:
        """Whether the graph may be given other shapes when it is executed."""
        return bool(self._settings.get("is_override_shape_enabled", False))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes in topological order."""
        return tuple(wiring.node for wiring in self._closed[1].wirings)

    @cached_property
    def tensors(self) -> Mapping[int, TensorAttributes]:
        """Every tensor by uid."""
        return MappingProxyType(self._closed[1].tensors)

    def find_tensor(self, key: int | str) -> TensorAttributes:
        """Return the tensor of a uid or name; works on open graphs too, and leaves them open.

        Raises:
            KeyError: No tensor, or more than one, has it.
        """
        field = "name" if isinstance(key, str) else "uid"
        found = [tensor for tensor in self._tensors if getattr(tensor, field) == key]
        if len(found) != 1:
            raise KeyError(f"{len(found)} tensors of graph '{self.name}' have {field} {key!r}")
        return found[0]

    @cached_property
    def structure(self) -> Structure:
        """The nodes with their tensors, in topological order."""
        return self._closed[1]

    @cached_property
    def content_key(self) -> ContentKey:
        """What the graph computes, apart from names, uids and order; computed once."""
        document, structure = self._closed
        # Fields unknown to this version count: they may say something about the computation.
        extra = sorted((document.__pydantic_extra__ or {}).items())
        options = [item for item in extra if item[0] not in _NOT_CONTENT]
        return content_key(structure, repr((document.is_override_shape_enabled, options)))

    @cached_property
    def io_tensors(self) -> tuple[TensorAttributes, ...]:
        """The tensors that take a buffer: neither virtual nor constant; in order of uid."""
        return tuple(
            tensor
            for _, tensor in sorted(self.tensors.items())
            if not tensor.virtual and not tensor.is_constant
        )

    @cached_property
    def output_uids(self) -> frozenset[int]:
        """The uids of the tensors that a node writes."""
        return frozenset(uid for wiring in self.structure.wirings for _, uid in wiring.output_uids)

    # Copies and JSON

    def copy(self) -> Graph:
        """Return an open copy whose tensors and nodes can be changed."""
        return _open(read_document(self.to_dict()))

    def to_dict(self) -> dict[str, Any]:
        """Return hipDNN's JSON form as plain dicts and lists."""
        return document_to_dict(self._closed[0])

    def to_json(self, *, indent: int | None = 1) -> str:
        """Return hipDNN's JSON form; what was loaded keeps fields unknown to this version."""
        return write_document(self._closed[0], indent=indent)

    @classmethod
    def from_json(cls, source: str | bytes | Mapping[str, Any]) -> Graph:
        """Load hipDNN's JSON form from text or from its parsed mapping, and validate it.

        Raises:
            GraphError: The text is no JSON, not a graph, or the graph breaks a rule.
        """
        return _open(read_document(source)).validate()

    def __reduce__(self) -> tuple[Any, ...]:
        return Graph.from_json, (self.to_dict(),)

    def __repr__(self) -> str:
        state = "open" if self._document is None else f"key {self.content_key.digest[:12]}"
        return f"<Graph '{self.name}' {state}>"


def _open(document: GraphDocument) -> Graph:
    """Make an open graph of a document that has not been validated."""
    graph = Graph()
    settings = {name: getattr(document, name) for name in document.model_fields_set}
    settings |= document.__pydantic_extra__ or {}
    graph._adopt(settings.pop("tensors"), settings.pop("nodes"))  # noqa: SLF001 - own class
    graph._settings = {"name": "", **settings}  # noqa: SLF001
    return graph
