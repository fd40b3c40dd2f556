"""Engine ids, equal to hipDNN's: the 64-bit FNV-1a hash of the name, read as signed."""

from __future__ import annotations

_OFFSET_BASIS = 14695981039346656037
_PRIME = 1099511628211
_MASK = 2**64 - 1


def engine_id(name: str) -> int:
    """Return the id of an engine name.

    Args:
        name: Stable engine name, such as `"MIOPEN_ENGINE"`.

    Returns:
        Signed 64-bit id, equal to the one that hipDNN computes.
    """
    value = _OFFSET_BASIS
    for byte in name.encode():
        value = (value ^ byte) * _PRIME & _MASK
    return value - 2**64 if value >= 2**63 else value
