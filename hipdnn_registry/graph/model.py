"""Base of the pydantic models of a graph: open to newer fields, closed to change once frozen."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from hipdnn_registry.errors import GraphFrozenError

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def _as_int(value: object) -> object:
    """Accept numpy integers and the like, but neither bool nor float, as an int."""
    if type(value) is int or isinstance(value, (bool, float, str)):
        return value
    try:
        return operator.index(value)  # type: ignore[arg-type]  # a TypeError is the answer "no"
    except TypeError:
        return value


Int64 = Annotated[int, BeforeValidator(_as_int), Field(strict=True, ge=INT64_MIN, le=INT64_MAX)]
"""A 64-bit signed integer, as the fields of hipDNN's schema are."""

Bool = Annotated[bool, Field(strict=True)]
Float = Annotated[float, Field(allow_inf_nan=False)]
Ints = tuple[Int64, ...]


class Model(BaseModel):
    """A part of a graph.

    Fields that this version does not know are kept and written back unchanged: a graph written by
    a newer hipDNN survives a round trip. After `freeze` every assignment raises.
    """

    model_config = ConfigDict(
        extra="allow", validate_assignment=True, defer_build=True, populate_by_name=True
    )

    _frozen: bool = PrivateAttr(default=False)

    def freeze(self) -> None:
        """Make every later assignment to a field raise `GraphFrozenError`."""
        self._frozen = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "_frozen" and self._frozen:
            raise GraphFrozenError(
                f"cannot set '{name}' of {self!r}: its graph has been validated; "
                "change a graph.copy() instead"
            )
        super().__setattr__(name, value)
