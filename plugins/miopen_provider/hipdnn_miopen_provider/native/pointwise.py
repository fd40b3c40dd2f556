"""Elementwise operations: activations, and OpTensor (add, multiply, minimum, maximum)."""

from __future__ import annotations

from ctypes import byref, c_float
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.native.prepared import PreparedCall, Slot

if TYPE_CHECKING:
    from hipdnn_miopen_provider.native.descriptors import ActivationDescriptor, TensorDescriptor
    from hipdnn_miopen_provider.native.enums import TensorOp
    from hipdnn_miopen_provider.native.handle import Handle

Operand = tuple["TensorDescriptor", str]
"""A tensor and the name by which its memory is bound."""


def activation_forward(
    handle: Handle, activation: ActivationDescriptor, x: Operand, y: Operand
) -> PreparedCall:
    """Prepares y = activation(x). MIOpen 3.5.1 refuses bfloat16."""
    return PreparedCall(
        "miopenActivationForward",
        *(handle.raw, activation.raw),
        *(byref(c_float(1.0)), *_with_data(x)),
        *(byref(c_float(0.0)), *_with_data(y)),
    )


def activation_backward(
    handle: Handle,
    activation: ActivationDescriptor,
    y: Operand,
    dy: Operand,
    x: Operand,
    dx: Operand,
) -> PreparedCall:
    """Prepares dx from dy and from the forward's x and y."""
    return PreparedCall(
        "miopenActivationBackward",
        *(handle.raw, activation.raw),
        *(byref(c_float(1.0)), *_with_data(y), *_with_data(dy), *_with_data(x)),
        *(byref(c_float(0.0)), *_with_data(dx)),
    )


def op_tensor(
    handle: Handle, operation: TensorOp, a: Operand, b: Operand, c: Operand
) -> PreparedCall:
    """Prepares c = operation(a, b); dimensions of b that are 1 are broadcast."""
    one = byref(c_float(1.0))
    return PreparedCall(
        "miopenOpTensor",
        *(handle.raw, operation),
        *(one, *_with_data(a)),
        *(one, *_with_data(b)),
        *(byref(c_float(0.0)), *_with_data(c)),
    )


def _with_data(operand: Operand) -> tuple[Any, Slot]:
    tensor, name = operand
    return tensor.raw, Slot(name, tensor.nbytes)
