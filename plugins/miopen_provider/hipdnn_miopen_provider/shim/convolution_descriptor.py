"""`ConvolutionDescriptor`: how a filter moves, and how its solver is to be found."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.native import ConvolutionAttribute, ConvolutionMode, FindMode

from .arguments import enum_member, instance, integer, integers
from .errors import BadParm, UnsupportedOp
from .tensor_descriptor import TensorDescriptor

if TYPE_CHECKING:
    from collections.abc import Sequence

_WHERE = "ConvolutionDescriptor"


@dataclass(frozen=True, slots=True)
class ConvolutionFields:
    """What a convolution descriptor said when a call was made.

    Attributes:
        pads: Zeros on both sides; one number a spatial dimension, as in the next two.
        strides: Steps of the filter.
        dilations: Distances of the filter's taps.
        mode: Cross-correlation ("convolution" in MIOpen), or the transposed one.
        group_count: Number of groups.
        output_padding: Of a transposed convolution: what its result has beyond the least extents.
        deterministic: Only solvers that repeat their results bit by bit.
        find_mode: As set; `None` where it was not.
    """

    pads: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    mode: ConvolutionMode
    group_count: int
    output_padding: tuple[int, ...]
    deterministic: bool = False
    find_mode: FindMode | None = None

    @property
    def transposed(self) -> bool:
        """Whether it is the transposed convolution."""
        return self.mode is ConvolutionMode.Transpose

    def forward_output_dims(
        self,
        x_desc: TensorDescriptor,
        w_desc: TensorDescriptor,
        where: str,
        names: tuple[str, str] = ("x", "w"),
    ) -> tuple[int, ...]:
        """Return the dims of y that belong to x and w.

        w is [K, C/groups, ...]; of a transposed convolution [C, K/groups, ...].

        Args:
            x_desc: x.
            w_desc: w.
            where: The call, for messages.
            names: What the call has in their places, such as dx.

        Raises:
            BadParm: x and w don't go together.
        """
        x, w, groups = x_desc.dims, w_desc.dims, self.group_count
        both = f"{names[0]} has dims {list(x)} and {names[1]} {list(w)}"
        if len(x) != len(self.pads) + 2 or len(w) != len(x):
            raise BadParm(
                where,
                f"{both}, but the convolution descriptor has {len(self.pads)} spatial dimensions",
            )
        channels, filters = (w[0], w[1] * groups) if self.transposed else (w[1] * groups, w[0])
        if x[1] != channels or channels % groups or filters % groups:
            raise BadParm(
                where,
                f"{both}, which don't go together with {groups} "
                f"group{'s' if groups > 1 else ''} in mode {self.mode.name}",
            )
        spatial = [
            (n - 1) * stride - 2 * pad + dilation * (taps - 1) + 1 + more
            if self.transposed
            else (n + 2 * pad - dilation * (taps - 1) - 1) // stride + 1
            for n, taps, pad, stride, dilation, more in zip(
                x[2:],
                w[2:],
                self.pads,
                self.strides,
                self.dilations,
                self.output_padding,
                strict=True,
            )
        ]
        if min(spatial) < 1:
            raise BadParm(where, f"{both}, which leave no result: its extents would be {spatial}")
        return (x[0], filters, *spatial)


class ConvolutionDescriptor:
    """A convolution: `miopenConvolutionDescriptor_t`.

    Its geometry is fixed; find mode, attributes and groups can be set, and count from the next
    call on. Safe to use from any number of threads: a call sees the descriptor as it was at one
    moment.

    Args:
        pads: Zeros on both sides of the image; one number a spatial dimension.
        strides: Steps of the filter.
        dilations: Distances of the filter's taps.
        mode: `Convolution` (which computes a cross-correlation) or `Transpose`.
        group_count: Number of groups.
        output_padding: `Transpose` only: added to the result's extents, below the stride.

    Raises:
        BadParm: Not integers, out of range, or lengths that differ.
    """

    def __init__(
        self,
        pads: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        mode: ConvolutionMode = ConvolutionMode.Convolution,
        *,
        group_count: int = 1,
        output_padding: Sequence[int] | None = None,
    ) -> None:
        given = {
            "pads": integers(pads, _WHERE, "pads", least=0),
            "strides": integers(strides, _WHERE, "strides", least=1),
            "dilations": integers(dilations, _WHERE, "dilations", least=1),
        }
        mode = enum_member(ConvolutionMode, mode, _WHERE, "mode")
        more = (0,) * len(given["pads"])
        if output_padding is not None:
            more = given["output_padding"] = integers(
                output_padding, _WHERE, "output_padding", least=0
            )
        if len({len(values) for values in given.values()}) > 1:
            listed = ", ".join(f"{name} {list(values)}" for name, values in given.items())
            raise BadParm(_WHERE, f"{listed}: must have one length, an entry a spatial dimension")
        if any(more) and mode is not ConvolutionMode.Transpose:
            raise BadParm(_WHERE, f"output_padding is {list(more)}, but mode is not Transpose")
        for extra, stride in zip(more, given["strides"], strict=True):
            if extra and extra >= stride:
                raise BadParm(
                    _WHERE,
                    f"output_padding is {list(more)}, but must be below the strides "
                    f"{list(given['strides'])}",
                )
        self._lock = threading.Lock()
        self._fields = ConvolutionFields(
            given["pads"],
            given["strides"],
            given["dilations"],
            mode,
            integer(group_count, _WHERE, "group_count", least=1),
            more,
        )

    @property
    def fields(self) -> ConvolutionFields:
        """What it says now."""
        return self._fields

    def set_convolution_group_count(self, group_count: int) -> None:
        """Set the number of groups: `miopenSetConvolutionGroupCount`.

        Raises:
            BadParm: Not a positive integer.
        """
        where = "miopenSetConvolutionGroupCount"
        self._set(group_count=integer(group_count, where, "group_count", least=1))

    def set_convolution_attribute(self, attribute: ConvolutionAttribute, value: int) -> None:
        """Set an attribute: `miopenSetConvolutionAttribute`.

        Args:
            attribute: `Deterministic`: calls then go to MIOPEN_ENGINE_DETERMINISTIC.
            value: 1 or 0.

        Raises:
            UnsupportedOp: Another attribute of MIOpen's, which no engine takes.
            BadParm: No attribute, or another value.
        """
        where = "miopenSetConvolutionAttribute"
        attribute = enum_member(ConvolutionAttribute, attribute, where, "attribute")
        if attribute is not ConvolutionAttribute.Deterministic:
            raise UnsupportedOp(
                where, f"{attribute.name} can't be handed on: engines have no knob for it"
            )
        if type(value) is not int or value not in {0, 1}:
            raise BadParm(where, f"value is {value!r}, but must be 0 or 1")
        self._set(deterministic=value == 1)

    def get_convolution_attribute(self, attribute: ConvolutionAttribute) -> int:
        """Return an attribute: `miopenGetConvolutionAttribute`; arguments and errors as above."""
        where = "miopenGetConvolutionAttribute"
        attribute = enum_member(ConvolutionAttribute, attribute, where, "attribute")
        if attribute is not ConvolutionAttribute.Deterministic:
            raise UnsupportedOp(where, f"{attribute.name} is not kept: it can't be set here")
        return int(self._fields.deterministic)

    def set_convolution_find_mode(self, find_mode: FindMode) -> None:
        """Set the find mode: `miopenSetConvolutionFindMode`.

        It is handed on as `miopen.find_mode`. Where that can't be honoured the calls decline: for
        fused convolutions, and for all modes but Normal and the default, DynamicHybrid, under a
        policy other than None or an exhaustive search. Those search in NORMAL mode unless told
        otherwise, since in any other MIOpen skips them wherever its find-db knows the problem.

        Raises:
            BadParm: Not a find mode.
        """
        where = "miopenSetConvolutionFindMode"
        self._set(find_mode=enum_member(FindMode, find_mode, where, "find_mode"))

    def get_convolution_find_mode(self) -> FindMode:
        """Return the find mode; DynamicHybrid, MIOpen's default, where none was set."""
        return self._fields.find_mode or FindMode.DynamicHybrid

    def get_forward_output_dim(
        self, x_desc: TensorDescriptor, w_desc: TensorDescriptor
    ) -> tuple[int, ...]:
        """Return y's dims: `miopenGetConvolutionNdForwardOutputDim`.

        Raises:
            BadParm: x and w don't go together.
        """
        where = "miopenGetConvolutionNdForwardOutputDim"
        x = instance(TensorDescriptor, x_desc, where, "x_desc")
        w = instance(TensorDescriptor, w_desc, where, "w_desc")
        return self._fields.forward_output_dims(x, w, where)

    def _set(self, **changes: object) -> None:
        with self._lock:
            self._fields = replace(self._fields, **changes)  # type: ignore[arg-type]  # by name

    def __reduce__(self) -> tuple[Any, ...]:  # copies and pickles, which a lock would forbid
        return _with_fields, (self._fields,)

    def __repr__(self) -> str:
        return f"ConvolutionDescriptor({self._fields})"


def _with_fields(fields: ConvolutionFields) -> ConvolutionDescriptor:
    made = ConvolutionDescriptor(fields.pads, fields.strides, fields.dilations)
    made._fields = fields
    return made
