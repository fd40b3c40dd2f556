"""Elementwise operations: activations, and OpTensor (add, multiply, minimum, maximum)."""

from __future__ import annotations

from ctypes import byref, c_float
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import library

if TYPE_CHECKING:
    from hipdnn_miopen_provider.native.descriptors import ActivationDescriptor, TensorDescriptor
    from hipdnn_miopen_provider.native.enums import TensorOp
    from hipdnn_miopen_provider.native.handle import Handle
    from hipdnn_miopen_provider.native.memory import DeviceMemory

Tensor = tuple["TensorDescriptor", "DeviceMemory"]


def activation_forward(
    handle: Handle, activation: ActivationDescriptor, x: Tensor, y: Tensor
) -> None:
    """Computes y = activation(x).

    Raises:
        MiopenError: MIOpen refused (bfloat16 is not implemented in 3.5.1) or failed.
        ValueError: Some memory is too small.
    """
    _check(x=x, y=y)
    library.load().call(
        "miopenActivationForward",
        handle.raw,
        activation.raw,
        byref(c_float(1.0)),
        x[0].raw,
        x[1].address,
        byref(c_float(0.0)),
        y[0].raw,
        y[1].address,
    )


def activation_backward(
    handle: Handle, activation: ActivationDescriptor, y: Tensor, dy: Tensor, x: Tensor, dx: Tensor
) -> None:
    """Computes dx from dy and from the forward's x and y.

    Raises:
        MiopenError: MIOpen refused or failed.
        ValueError: Some memory is too small.
    """
    _check(y=y, dy=dy, x=x, dx=dx)
    library.load().call(
        "miopenActivationBackward",
        handle.raw,
        activation.raw,
        byref(c_float(1.0)),
        *(y[0].raw, y[1].address, dy[0].raw, dy[1].address, x[0].raw, x[1].address),
        byref(c_float(0.0)),
        dx[0].raw,
        dx[1].address,
    )


def op_tensor(handle: Handle, operation: TensorOp, a: Tensor, b: Tensor, c: Tensor) -> None:
    """Computes c = operation(a, b); dimensions of b that are 1 are broadcast.

    Raises:
        MiopenError: MIOpen refused or failed.
        ValueError: Some memory is too small.
    """
    _check(a=a, b=b, c=c)
    one = byref(c_float(1.0))
    library.load().call(
        "miopenOpTensor",
        handle.raw,
        operation,
        *(one, a[0].raw, a[1].address),
        *(one, b[0].raw, b[1].address),
        *(byref(c_float(0.0)), c[0].raw, c[1].address),
    )


def _check(**tensors: Tensor) -> None:
    for name, (descriptor, memory) in tensors.items():
        if memory.nbytes < descriptor.nbytes:
            raise ValueError(
                f"{name} needs {descriptor.nbytes} bytes of device memory, got {memory.nbytes}"
            )
