"""Base of the pydantic models of a graph: open to newer fields, closed to change once frozen."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from numbers import Real
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
)

from hipdnn_registry.errors import GraphError, GraphFrozenError, near_spellings

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def as_int(value: object) -> object:
    """Return numpy integers and the like, but neither bool nor float, as an int."""
    if type(value) is int or isinstance(value, (bool, float, str)):
        return value
    try:
        return operator.index(value)  # type: ignore[arg-type]  # a TypeError is the answer "no"
    except TypeError:
        return value


def as_tuple(value: object) -> object:
    """Return lists, arrays and the like, but nothing unordered and no text, as a tuple."""
    if isinstance(value, (str, bytes, AbstractSet, Mapping)) or not isinstance(value, Iterable):
        return value
    try:
        return tuple(value)
    except TypeError:  # an array of no dimension
        return value


def _as_float(value: object) -> object:
    """Return numpy's numbers and the like, but neither bool nor text, as a float."""
    return float(value) if isinstance(value, Real) and not isinstance(value, int) else value


Int64 = Annotated[int, BeforeValidator(as_int), Field(strict=True, ge=INT64_MIN, le=INT64_MAX)]
"""A 64-bit signed integer, as the fields of hipDNN's schema are."""

Bool = Annotated[bool, Field(strict=True)]
Number = Annotated[float, BeforeValidator(_as_float), Field(strict=True)]
Float = Annotated[Number, Field(allow_inf_nan=False)]
Ints = Annotated[tuple[Int64, ...], BeforeValidator(as_tuple), Field(strict=True)]


def shown(value: object) -> str:
    """Quote a value for a message: on one line, shortened if need be."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def first_error(
    error: ValidationError,
    *,
    prefix: str = "",
    node: str | None = None,
    tensor: str | None = None,
) -> GraphError:
    """Turn pydantic's first complaint into one sentence about the place and the value."""
    errors = error.errors(include_url=False)
    place = _place(errors[0]["loc"])
    # A union complains once an alternative: of a value out of range if a type fits, else of the
    # last type, which is the widest.
    here = [found for found in errors if _place(found["loc"]) == place]
    first = next((found for found in here if not found["type"].endswith("_type")), here[-1])
    place = prefix + place
    if first["type"] == "missing":
        message = f"{place} is missing"
    else:
        said = "Input should be a valid list" if first["type"] == "tuple_type" else first["msg"]
        message = f"{place}: {said[0].lower()}{said[1:]}, but it is {shown(first['input'])}"
    return GraphError(message, rule="json.field", node=node, tensor=tensor)


def _place(loc: tuple[int | str, ...]) -> str:
    return "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}"
        for part in loc
        if part not in {"bool", "int", "float"} and not str(part).startswith("function-")
    ).lstrip(".")


class Model(BaseModel):
    """A part of a graph.

    Fields that this version does not know are kept and written back unchanged: a graph written by
    a newer hipDNN survives a round trip. Assigning to an attribute that the model does not have
    raises an `AttributeError`, a value that its field can't take a `GraphError`, and after
    `freeze` every assignment a `GraphFrozenError`.
    """

    model_config = ConfigDict(
        extra="allow", validate_assignment=True, defer_build=True, populate_by_name=True
    )

    _frozen: bool = PrivateAttr(default=False)

    def freeze(self) -> None:
        """Make every later assignment to a field raise `GraphFrozenError`."""
        self._frozen = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_frozen":
            super().__setattr__(name, value)
            return
        if self._frozen:
            whose = self._whose() or {"a": type(self).__name__}
            where = " ".join(f"{kind} {label}" for kind, label in whose.items())
            raise GraphFrozenError(
                f"cannot set '{name}' of {where}: its graph has been validated; "
                "change a graph.copy() instead"
            )
        known = type(self).model_fields
        if name not in known and name not in (self.__pydantic_extra__ or {}):
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}"
                + near_spellings(name, list(known))
            )
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            raise first_error(error, **self._whose()) from None

    def _whose(self) -> dict[str, str]:
        """What an error about this part names: `{"tensor": label}` or `{"node": name}`."""
        return {}
