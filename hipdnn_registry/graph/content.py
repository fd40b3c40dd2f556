"""What a node and a tensor say, apart from names and uids: tuples that compare and marshal."""

from __future__ import annotations

from enum import Enum
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from .node import PORT_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from .model import Model
    from .node import Node
    from .tensor import TensorAttributes

_NOT_CONTENT = frozenset({"name", "type", "compute_data_type", "inputs", "outputs"})


class _Fields(NamedTuple):
    """The fields of a model that are settings, neither names nor tensors."""

    names: tuple[str, ...]
    values: Callable[[Any], tuple[Any, ...]]


@cache
def _setting_fields(model: type[Model]) -> _Fields:
    names = tuple(
        name
        for name in model.model_fields
        if name not in _NOT_CONTENT and not name.endswith(PORT_SUFFIX)
    )
    if len(names) < 2:  # attrgetter returns a tuple only from two names on
        return _Fields(names, lambda model: tuple([getattr(model, name) for name in names]))
    return _Fields(names, attrgetter(*names))


def _settings(model: Model) -> tuple[Any, ...]:
    """The settings of a model and of what lies in it, as texts where types could mix."""
    names, values = _setting_fields(type(model))
    found = names, [_plain(value) for value in values(model)] if names else ()
    extra = model.__pydantic_extra__
    if not extra:
        return found
    return *found, [
        (name, repr(value))
        for name, value in sorted(extra.items())
        if value is not None and not name.endswith(PORT_SUFFIX)
    ]


_AS_THEY_ARE = frozenset({int, bool, str, tuple})


def _plain(value: Any) -> Any:
    """A value that compares with any other value of its field: unset is an empty text."""
    kind = type(value)
    if value is None:
        return ""
    if kind in _AS_THEY_ARE:
        return value
    if kind is float:
        return repr(value)
    # Last, since asking a pydantic model whether something is its instance is slow.
    return value.value if isinstance(value, Enum) else _settings(value)


def node_content(node: Node) -> tuple[Any, ...]:
    """Everything that a node says besides names and uids."""
    return (
        node.type,
        node.compute_data_type.value,
        _settings(node.inputs),
        _settings(node.outputs),
        _settings(node),
    )


def tensor_content(tensor: TensorAttributes) -> tuple[Any, ...]:
    """Everything that a tensor says besides name and uid."""
    rare = ""
    if tensor.value_type is not None:
        value = tensor.value
        # A JSON integer is a good way to write a floating-point constant, and the same constant.
        number = float(value) if value is not None and tensor.data_type.is_floating else value
        rare = f"{tensor.value_type}={number!r}"
    if tensor.is_runtime_pass_by_value or tensor.ragged_offset_multiplier != 1:
        rare += f" {tensor.is_runtime_pass_by_value} {tensor.ragged_offset_multiplier}"
    if tensor.__pydantic_extra__:
        rare += repr(sorted(tensor.__pydantic_extra__.items()))
    return (
        tensor.data_type.value,
        tensor.dims,
        tensor.strides,
        tensor.virtual,
        tensor.alignment,
        rare,
    )
