"""Reading where a DLPack object on a device lives, and what it looks like.

numpy reads DLPack in host memory only. The layout of the structures is DLPack's (dlpack.h), in its
unversioned and its versioned (1.x) form; nothing is consumed, so the capsule frees itself.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, ClassVar

HOST_DEVICE_TYPE = 1
"""kDLCPU."""

_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}


@dataclass(frozen=True, slots=True)
class DeviceTensor:
    """A tensor in device memory; strides in elements, `None` for row-major."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    type_name: str


class _DLTensor(ctypes.Structure):
    _fields_: ClassVar = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DLManagedTensorVersioned(ctypes.Structure):
    _fields_: ClassVar = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_valid.restype = ctypes.c_int
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer.restype = ctypes.c_void_p


def is_on_device(value: Any) -> bool:
    """Whether an object offers DLPack, and from memory that is not the host's."""
    if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
        return False
    return int(value.__dlpack_device__()[0]) != HOST_DEVICE_TYPE


def device_tensor(value: Any) -> DeviceTensor:
    """Read an object for which `is_on_device` holds.

    Raises:
        TypeError: Its capsule is none that DLPack knows.
    """
    capsule = value.__dlpack__()
    if _is_valid(capsule, b"dltensor"):
        tensor = _DLTensor.from_address(_pointer(capsule, b"dltensor"))
    elif _is_valid(capsule, b"dltensor_versioned"):
        managed = _pointer(capsule, b"dltensor_versioned")
        tensor = _DLManagedTensorVersioned.from_address(managed).tensor
    else:
        raise TypeError(f"{capsule!r} is no DLPack capsule")
    ndim = tensor.ndim
    name = _CODES.get(tensor.code, f"code {tensor.code} of ")
    return DeviceTensor(
        address=(tensor.data or 0) + tensor.byte_offset,
        shape=tuple(tensor.shape[:ndim]),
        strides=tuple(tensor.strides[:ndim]) if tensor.strides else None,
        type_name="bool" if name == "bool" else f"{name}{tensor.bits}",
    )
