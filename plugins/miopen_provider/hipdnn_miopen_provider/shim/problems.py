"""From the arguments of a call to its problem: which are served, and whether they agree."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .arguments import instance, require_buffers
from .convolution_descriptor import ConvolutionDescriptor
from .errors import BadParm, UnsupportedOp
from .graphs import TYPES
from .handle import MiopenHandle
from .plan_key import GraphKind, Problem
from .tensor_descriptor import TensorDescriptor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .activation_descriptor import ActivationDescriptor
    from .convolution_descriptor import ConvolutionFields
    from .forwarding import EntryPoint


Operands = dict[str, tuple[TensorDescriptor, Any]]
"""Descriptor and buffer by the names of a call's arguments."""

_KINDS = {
    # names of the arguments that are x, w and y of the forward convolution
    GraphKind.CONV_FPROP: ("x", "w", "y"),
    GraphKind.CONV_DGRAD: ("dx", "w", "dy"),
    GraphKind.CONV_WGRAD: ("x", "dw", "dy"),
    GraphKind.CONV_BIAS_ACTIVATION: ("x", "w", "y"),
}


def require_served(where: str, tensors: Mapping[str, TensorDescriptor]) -> None:
    """Check the tensors of a call, by the names of its arguments.

    Raises:
        BadParm: Not a descriptor.
        UnsupportedOp: A vectorised layout, a rank other than 4 or 5, or a type without engines.
    """
    for name, desc in tensors.items():
        instance(TensorDescriptor, desc, where, f"{name}_desc")
        if desc.vector_length != 1:
            raise UnsupportedOp(
                where,
                f"{name} has a vectorised layout of {desc.vector_length} channels, which graphs "
                "can't express; use NCHW or NHWC",
            )
        if len(desc.dims) not in {4, 5}:
            raise UnsupportedOp(
                where,
                f"{name} has dims {list(desc.dims)}, but tensors of two or three spatial "
                "dimensions are served: [N, C, H, W] or [N, C, D, H, W]",
            )
        if desc.dtype not in TYPES:
            raise UnsupportedOp(
                where,
                f"{name} has type {desc.dtype.name}, but {', '.join(t.name for t in TYPES)} are "
                "served",
            )


def convolution_problem(
    handle: MiopenHandle,
    entry: EntryPoint,
    kind: GraphKind,
    tensors: Mapping[str, TensorDescriptor],
    conv_desc: ConvolutionDescriptor,
    activation: ActivationDescriptor | None = None,
) -> Problem:
    """Return the problem of a convolution call; tensors by the names of its arguments.

    Raises:
        BadParm: Not a handle or a descriptor, or tensors that don't agree.
        UnsupportedOp: Not served.
    """
    instance(MiopenHandle, handle, entry, "handle")
    fields = instance(ConvolutionDescriptor, conv_desc, entry, "conv_desc").fields
    for name, desc in tensors.items():
        instance(TensorDescriptor, desc, entry, f"{name}_desc")
    return _agreed(entry, kind, tuple(tensors.items()), fields, activation)


@lru_cache(maxsize=1024)  # a call in a loop is checked once
def _agreed(
    entry: EntryPoint,
    kind: GraphKind,
    named: tuple[tuple[str, TensorDescriptor], ...],
    fields: ConvolutionFields,
    activation: ActivationDescriptor | None,
) -> Problem:
    if len(fields.pads) not in {2, 3}:
        raise UnsupportedOp(
            entry,
            f"conv_desc has pads {list(fields.pads)}, but two and three spatial dimensions are "
            "served; give a 1-D one another dimension of extent 1",
        )
    tensors = dict(named)
    require_served(entry, tensors)
    _check_dims(entry, kind, tensors, fields)
    if activation is not None:
        if fields.transposed:
            raise UnsupportedOp(entry, "MIOpen fuses forward convolutions, not transposed ones")
        bias, y = tensors["bias"].dims, tensors["y"].dims
        if bias != (1, y[1], *[1] * (len(y) - 2)):
            raise BadParm(
                entry, f"bias has dims {list(bias)}, but y {list(y)} takes [1, {y[1]}, 1...]"
            )
    return Problem(kind, named, fields, activation)


def problem_and_buffers(
    handle: MiopenHandle,
    entry: EntryPoint,
    kind: GraphKind,
    operands: Operands,
    conv_desc: ConvolutionDescriptor,
    activation: ActivationDescriptor | None = None,
) -> tuple[Problem, dict[str, Any]]:
    """Return the problem of a convolution call, and its buffers by the names of its arguments.

    Raises:
        BadParm: As `convolution_problem`, or a buffer is missing.
        UnsupportedOp: Not served.
    """
    tensors = {name: desc for name, (desc, _) in operands.items()}
    problem = convolution_problem(handle, entry, kind, tensors, conv_desc, activation)
    buffers = {name: buffer for name, (_, buffer) in operands.items()}
    require_buffers(entry, buffers)
    return problem, buffers


def _check_dims(
    entry: EntryPoint,
    kind: GraphKind,
    tensors: Mapping[str, TensorDescriptor],
    fields: ConvolutionFields,
) -> None:
    """Check what MIOpen does not: it would run kernels out of bounds."""
    x, w, y = _KINDS[kind]
    expected = fields.forward_output_dims(tensors[x], tensors[w], entry, (x, w))
    if tensors[y].dims != expected:
        raise BadParm(
            entry,
            f"{y} has dims {list(tensors[y].dims)}, but {x} {list(tensors[x].dims)} and {w} "
            f"{list(tensors[w].dims)} take {list(expected)}",
        )
