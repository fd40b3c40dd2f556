"""Checks of what callers hand over: each failure is one `BadParm` that names the argument."""

from __future__ import annotations

import math
import numbers
import operator
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

from hipdnn_registry import DeviceBuffer

from .errors import BadParm, UnsupportedOp

if TYPE_CHECKING:
    from collections.abc import Mapping

E = TypeVar("E", bound=IntEnum)
T = TypeVar("T")


def shown(value: object) -> str:
    """Return a value as messages show it: on one line, and not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def enum_member(kind: type[E], value: object, where: str, name: str) -> E:
    """Return a member of one of MIOpen's enumerations, which may be given by its number.

    Raises:
        BadParm: It is none.
    """
    if isinstance(value, kind):
        return value
    if type(value) is int:
        try:
            return kind(value)
        except ValueError:
            pass
    members = ", ".join(f"{member.name} ({member.value})" for member in kind)
    raise BadParm(where, f"{name} is {shown(value)}, but must be a {kind.__name__}: {members}")


def integers(values: object, where: str, name: str, *, least: int) -> tuple[int, ...]:
    """Return a sequence of integers as a tuple.

    Raises:
        BadParm: It is none, or has an entry below `least`.
    """
    try:
        given: tuple[Any, ...] = tuple(values)  # type: ignore[arg-type]  # whether it is one is asked
        found = tuple(operator.index(value) for value in given)
    except TypeError:
        given = found = ()
    if not found or min(found) < least or any(isinstance(value, bool) for value in given):
        raise BadParm(
            where, f"{name} is {shown(values)}, but must be a sequence of integers from {least} on"
        )
    return found


def integer(value: object, where: str, name: str, *, least: int) -> int:
    """Return an integer of at least `least`, or raise `BadParm`."""
    try:
        found = operator.index(value)  # type: ignore[arg-type]  # whether it is one is asked
    except TypeError:
        found = least - 1
    if isinstance(value, bool) or found < least:
        raise BadParm(where, f"{name} is {shown(value)}, but must be an integer from {least} on")
    return found


def number(value: object, where: str, name: str, *, least: float = -math.inf) -> float:
    """Return a finite number of at least `least`, or raise `BadParm`."""
    real = math.nan
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        real = float(value)
    if not math.isfinite(real) or real < least:
        bound = f" from {least:g} on" if math.isfinite(least) else ""
        raise BadParm(where, f"{name} is {shown(value)}, but must be a finite number{bound}")
    return real


def flag(value: object, where: str, name: str) -> bool:
    """Return a bool, or raise `BadParm`."""
    if not isinstance(value, bool):
        raise BadParm(where, f"{name} is {shown(value)}, but must be True or False")
    return value


def instance(kind: type[T], value: object, where: str, name: str) -> T:
    """Return a value of a class, or raise `BadParm`."""
    if not isinstance(value, kind):
        raise BadParm(where, f"{name} is {shown(value)}, but must be a {kind.__name__}")
    return value


def require_scales(where: str, *, why: str, **scales: tuple[object, float]) -> None:
    """Check MIOpen's scaling factors: pairs of what was given and the only value served.

    Raises:
        UnsupportedOp: Another value, or none.
        BadParm: No number.
    """
    for name, (value, wanted) in scales.items():
        if value is None or number(value, where, name) != wanted:
            raise UnsupportedOp(
                where, f"{name} is {shown(value)}, but only {wanted:g} is served: {why}"
            )


def require_buffers(where: str, buffers: Mapping[str, object]) -> None:
    """Raise `BadParm` for a buffer that is missing; the plan checks the rest."""
    for name, buffer in buffers.items():
        if buffer is None:
            raise BadParm(where, f"{name} is None, but must be a buffer")


def both_or_neither(where: str, **values: object) -> bool:
    """Whether both values are given; raise `BadParm` if only one is."""
    missing = [name for name, value in values.items() if value is None]
    if 0 < len(missing) < len(values):
        raise BadParm(
            where, f"{', '.join(missing)} is None; give all of {', '.join(values)}, or none"
        )
    return not missing


def workspace_bytes(workspace: object, where: str) -> int | None:
    """Return the size of a caller's workspace; `None` if there is none.

    Raises:
        BadParm: Not a `DeviceBuffer`, a pair of address and bytes, or for an engine on the host a
            numpy array. MIOpen's calls take the size beside the address, so an address alone
            won't do.
    """
    if workspace is None:
        return None
    if isinstance(workspace, DeviceBuffer):
        return workspace.size
    if isinstance(workspace, tuple) and len(workspace) == 2:
        integer(workspace[0], where, "the workspace's address", least=0)
        return integer(workspace[1], where, "the workspace's size", least=0)
    nbytes = getattr(workspace, "nbytes", None)
    if type(nbytes) is int:
        return nbytes
    raise BadParm(
        where,
        f"workspace is {shown(workspace)}, but must be a DeviceBuffer, a pair of address and size "
        "in bytes, or None: then the plan brings its own",
    )


def stream_address(stream: object, where: str) -> int | None:
    """Return the address of a `hipStream_t`; `None` for the null stream.

    Raises:
        BadParm: Neither an address, nor an object that has it as `address`, nor `None`.
    """
    address = getattr(stream, "address", stream)
    if address is None:
        return None
    if type(address) is not int or not 0 <= address < 1 << 64:
        raise BadParm(
            where,
            f"stream is {shown(stream)}, but must be a hipStream_t as an int, an object that has "
            "it as its address, or None",
        )
    return address or None
