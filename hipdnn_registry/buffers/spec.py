"""What the buffer of one tensor must be, and where buffers overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.ma import MaskedArray

from hipdnn_registry.errors import VariantPackError, described
from hipdnn_registry.graph import packed_strides
from hipdnn_registry.provider import DeviceBuffer

from .dlpack import DeviceTensor, device_tensor, is_on_device
from .streams import ADDRESS_END

if TYPE_CHECKING:
    from hipdnn_registry.graph import Graph, TensorAttributes

_MAX_OVERLAP_WORK = 10_000  # candidate solutions that numpy may try before it gives up


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """What the buffer of one tensor must be; strides in bytes, as is the span, gaps included."""

    uid: int
    label: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    written: bool
    span: int

    def array_of(self, value: Any) -> np.ndarray[Any, Any]:
        """Return the caller's buffer as a numpy array of the right kind, without copying."""
        array = value if type(value) is np.ndarray else self._plain_array(value)
        if array.shape != self.shape:
            self.fail(f"has shape {array.shape}, but must have {self.shape}")
        if array.dtype != self.dtype:
            self.fail(f"has dtype {array.dtype}, but must have {self.dtype}")
        if array.strides != self.strides:
            if not self._same_layout(array.strides):
                self.fail(
                    f"has strides {array.strides}, but must have {self.strides} (bytes): the "
                    "layouts of graph and buffer must agree"
                )
            # Strides of extent 1 say nothing; engines may rely on seeing the graph's.
            array = np.lib.stride_tricks.as_strided(
                array, strides=self.strides, writeable=array.flags.writeable
            )
        if not array.flags.aligned:
            self.fail("is not aligned to its elements")
        if self.written and not array.flags.writeable:
            self.fail("is written by the plan, but is read-only")
        return array

    def address_of(self, value: Any) -> int:
        """Return the device address of an address, a `DeviceBuffer` or a DLPack object."""
        address = self._given_address(value)
        size = self.dtype.itemsize
        if address % size:
            self.fail(
                f"is at address {address:#x}, but must be at a multiple of its elements' size, "
                f"{size} bytes ({self.dtype})"
            )
        return address

    def _given_address(self, value: Any) -> int:
        if type(value) is int and 0 < value < ADDRESS_END:
            return value
        if isinstance(value, DeviceBuffer):
            if not value.address:
                self.fail("is a DeviceBuffer that is empty or has been closed")
            if value.size < self.span:
                self.fail(f"has {value.size} bytes, but needs {self.span}")
            return value.address
        try:
            tensor = device_tensor(value) if is_on_device(value) else None
        except Exception as error:  # whatever a foreign object's protocol raises
            self.fail(f"can't be read through DLPack: {described(error)}", error)
        if tensor is not None:
            return self._address_of_tensor(tensor)
        return self.fail(
            f"is {shown(value)}, but must be on the device: an address of 64 bits, a DeviceBuffer "
            "or a DLPack object; nothing is copied there by itself"
        )

    def _address_of_tensor(self, tensor: DeviceTensor) -> int:
        if tensor.shape != self.shape:
            self.fail(f"has shape {tensor.shape}, but must have {self.shape}")
        if tensor.type_name != str(self.dtype):
            self.fail(f"has dtype {tensor.type_name}, but must have {self.dtype}")
        strides = tensor.strides or packed_strides(self.shape)
        if not self._same_layout(tuple(stride * self.dtype.itemsize for stride in strides)):
            self.fail(f"has strides {strides} (elements), but must have {self.strides} (bytes)")
        return tensor.address

    def fail(self, problem: str, cause: Exception | None = None) -> NoReturn:
        """Raise the error that names the tensor."""
        raise VariantPackError(f"buffer of tensor {self.label} {problem}") from cause

    def placed_at(self, address: int) -> np.ndarray[Any, Any]:
        """Return the bytes of the elements at an address as an array never to be read.

        It may lie on a device; numpy tells from addresses and strides alone what overlaps.
        """
        shape, strides = (*self.shape, self.dtype.itemsize), (*self.strides, 1)
        return Placed(address, shape, strides).array()

    def _same_layout(self, strides: tuple[int, ...]) -> bool:
        return all(
            given == wanted or extent == 1
            for given, wanted, extent in zip(strides, self.strides, self.shape, strict=True)
        )

    def _plain_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Return what is no plain array as one: subclasses, and other libraries' tensors."""
        if isinstance(value, MaskedArray):
            self.fail("is a masked array, whose mask the plan would ignore; pass its .data")
        if isinstance(value, np.ndarray):
            return value.view(np.ndarray)  # a matrix, for one, has other operators
        try:
            if hasattr(value, "__dlpack__"):
                return np.from_dlpack(value)
        except Exception as error:  # whatever a foreign object's protocol raises
            self.fail(
                f"can't be read through DLPack in host memory: {described(error)}",
                error,
            )
        return self.fail(
            f"is {shown(value)}, but must be a numpy array or a DLPack object in host memory"
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """Bytes at an address, strided; only numpy's array interface can express them."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "typestr": "|u1",
            "data": (self.address, True),
            "shape": self.shape,
            "strides": self.strides,
        }

    def array(self) -> np.ndarray[Any, Any]:
        """Return the bytes as an array never to be read."""
        return np.asarray(self)


def shown(value: object) -> str:
    """Return a value as messages show it: type and a short repr."""
    text = " ".join(repr(value).split())
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


def buffer_spec(tensor: TensorAttributes, graph: Graph) -> BufferSpec:
    """Return what the buffer of a tensor of a graph must be.

    Raises:
        VariantPackError: numpy has no such type.
    """
    dims, strides = tensor.dims or (), tensor.strides or ()
    try:
        dtype = tensor.data_type.numpy_dtype()
    except TypeError as error:
        raise VariantPackError(f"tensor {tensor.label}: {error}") from None
    assert tensor.uid is not None  # noqa: S101 - the graph is validated
    return BufferSpec(
        uid=tensor.uid,
        label=tensor.label,
        shape=dims,
        strides=tuple(stride * dtype.itemsize for stride in strides),
        dtype=dtype,
        written=tensor.uid in graph.output_uids,
        span=tensor.span_bytes,
    )


def share_memory(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays have an element in common; also where that is too hard to tell."""
    shares_memory: Any = np.shares_memory  # its stub knows only two values of max_work
    try:
        return bool(shares_memory(one, other, max_work=_MAX_OVERLAP_WORK))
    except np.exceptions.TooHardError:
        return True
