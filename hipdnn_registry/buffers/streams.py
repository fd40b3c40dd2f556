"""A caller's stream, as the number that engines take."""

from __future__ import annotations

from numbers import Number
from typing import Any

from hipdnn_registry.errors import InvalidInputError

ADDRESS_END = 1 << 64
"""Behind all addresses and handles; beyond, what takes a pointer would cut bits off."""


def stream_handle(stream: Any) -> int | None:
    """Return the handle of a stream.

    Args:
        stream: A handle; an object that stands for one, as hip-python's streams do (`int(stream)`);
            or `None`.

    Raises:
        InvalidInputError: It is none of these: 64 bits, not negative. Numbers of other types than
            `int`, and arrays, are mistakes rather than streams.
    """
    handle = stream
    stands_for = not isinstance(stream, Number) and not hasattr(stream, "dtype")
    if stands_for and hasattr(stream, "__int__"):
        handle = int(stream)
    if handle is not None and (type(handle) is not int or not 0 <= handle < ADDRESS_END):
        from .spec import shown  # brings numpy

        raise InvalidInputError(
            f"stream is {shown(stream)}, but must be None or a stream's handle: an int of 64 "
            "bits that is not negative, or an object that int() makes one of"
        )
    return handle
