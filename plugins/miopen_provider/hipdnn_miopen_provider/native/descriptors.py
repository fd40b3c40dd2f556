"""Descriptors: MIOpen's copies of what a tensor, a convolution or an activation is.

They are set when they are made and not changed afterwards, apart from a convolution's find mode and
attributes: MIOpen crashes on a descriptor that was created and never set, so there is none here.
"""

from __future__ import annotations

import math
from ctypes import byref, c_int
from functools import lru_cache
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import library
from hipdnn_miopen_provider.native.enums import (
    ActivationMode,
    BatchNormMode,
    ConvolutionAttribute,
    ConvolutionMode,
    DataType,
    FindMode,
)
from hipdnn_miopen_provider.native.owned import Owned
from hipdnn_miopen_provider.native.prototypes import (
    ActivationDescriptorT,
    ConvolutionDescriptorT,
    TensorDescriptorT,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ctypes import Array


@lru_cache(maxsize=1024)
def _ints(values: tuple[int, ...]) -> Array[c_int]:
    """Return an array for MIOpen to read; the same one for the same numbers."""
    return (c_int * len(values))(*values)


class TensorDescriptor(Owned[TensorDescriptorT]):
    """A tensor's type, dimensions and strides (in elements, outermost logical dimension first).

    Args:
        dtype: Type of the elements.
        dims: Sizes in logical order (N, C, [D,] H, W), whatever the layout.
        strides: Distances in elements; None is packed in logical order.

    Attributes:
        dtype: Type of the elements.
        dims: Sizes.
        strides: Distances.
        nbytes: Bytes from the first element to the end of the last, as MIOpen counts them.

    Raises:
        MiopenError: MIOpen refused them.
        ValueError: ``strides`` and ``dims`` differ in length.
    """

    def __init__(
        self, dtype: DataType, dims: Sequence[int], strides: Sequence[int] | None = None
    ) -> None:
        dims = tuple(dims)
        strides = _packed(dims) if strides is None else tuple(strides)
        if len(strides) != len(dims):
            raise ValueError(f"{len(dims)} dims {dims} but strides {strides}")
        raw = TensorDescriptorT()
        miopen = library.load()
        miopen.call("miopenCreateTensorDescriptor", byref(raw))
        super().__init__(raw, _destroy_tensor)
        try:
            sizes = (len(dims), _ints(dims), _ints(strides))
            miopen.call("miopenSetTensorDescriptor", raw, dtype, *sizes)
        except BaseException:
            self.close()
            raise
        self._is_of(dtype, dims, strides)

    def _is_of(self, dtype: DataType, dims: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.dtype, self.dims, self.strides = dtype, dims, strides
        steps = zip(dims, strides, strict=True)
        self.nbytes = (1 + sum([(size - 1) * stride for size, stride in steps])) * dtype.itemsize

    @classmethod
    def for_batchnorm(cls, x: TensorDescriptor, mode: BatchNormMode) -> TensorDescriptor:
        """What MIOpen derives for scale, bias and statistics of a batchnorm of ``x``."""
        derived = cls(x.dtype, x.dims)
        try:
            library.load().call("miopenDeriveBNTensorDescriptor", derived.raw, x.raw, mode)
            derived._is_of(*derived.read())
        except BaseException:
            derived.close()
            raise
        return derived

    def read(self) -> tuple[DataType, tuple[int, ...], tuple[int, ...]]:
        """Type, dimensions and strides, as MIOpen has them."""
        miopen = library.load()
        count, dtype = c_int(), c_int()
        miopen.call("miopenGetTensorDescriptorSize", self.raw, byref(count))
        dims, strides = (c_int * count.value)(), (c_int * count.value)()
        miopen.call("miopenGetTensorDescriptor", self.raw, byref(dtype), dims, strides)
        return DataType(dtype.value), tuple(dims), tuple(strides)


class ConvolutionDescriptor(Owned[ConvolutionDescriptorT]):
    """What a convolution does: padding (symmetric), strides, dilations, groups, mode.

    Args:
        padding: One number for each spatial dimension, as ``strides`` and ``dilations``.
        strides: Steps of the filter.
        dilations: Distances of the filter's taps.
        groups: Number of groups.
        mode: Cross-correlation (MIOpen's "convolution") or transposed convolution.
        output_padding: Transposed convolution only.

    Raises:
        MiopenError: MIOpen refused them.
        ValueError: The numbers of spatial dimensions differ.
    """

    def __init__(
        self,
        padding: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        *,
        groups: int = 1,
        mode: ConvolutionMode = ConvolutionMode.Convolution,
        output_padding: Sequence[int] | None = None,
    ) -> None:
        given = [padding, strides, dilations] + ([output_padding] if output_padding else [])
        lists = [tuple(values) for values in given]
        if len({len(values) for values in lists}) != 1:
            raise ValueError(f"these differ in length: {lists}")
        raw = ConvolutionDescriptorT()
        miopen = library.load()
        miopen.call("miopenCreateConvolutionDescriptor", byref(raw))
        super().__init__(raw, _destroy_convolution)
        try:
            geometry = [_ints(values) for values in lists[:3]]
            miopen.call("miopenInitConvolutionNdDescriptor", raw, len(padding), *geometry, mode)
            if groups != 1:
                miopen.call("miopenSetConvolutionGroupCount", raw, groups)
            if output_padding:
                adjusted = _ints(lists[3])
                miopen.call("miopenSetTransposeConvNdOutputPadding", raw, len(adjusted), adjusted)
        except BaseException:
            self.close()
            raise

    @property
    def find_mode(self) -> FindMode:
        """How a Find uses the find-db; it changes what GetWorkSpaceSize answers, too."""
        value = c_int()
        library.load().call("miopenGetConvolutionFindMode", self.raw, byref(value))
        return FindMode(value.value)

    @find_mode.setter
    def find_mode(self, mode: FindMode) -> None:
        library.load().call("miopenSetConvolutionFindMode", self.raw, mode)

    def attribute(self, attribute: ConvolutionAttribute) -> int:
        """Reads an attribute."""
        value = c_int()
        library.load().call("miopenGetConvolutionAttribute", self.raw, attribute, byref(value))
        return value.value

    def set_attribute(self, attribute: ConvolutionAttribute, value: int) -> None:
        """Sets an attribute."""
        library.load().call("miopenSetConvolutionAttribute", self.raw, attribute, value)

    def output_dims(self, x: TensorDescriptor, w: TensorDescriptor) -> tuple[int, ...]:
        """Dimensions of y, as MIOpen computes them.

        Raises:
            MiopenError: x and w don't agree.
        """
        rank = len(x.dims)
        count, dims = c_int(rank), (c_int * rank)()
        library.load().call(
            "miopenGetConvolutionNdForwardOutputDim", self.raw, x.raw, w.raw, byref(count), dims
        )
        return tuple(dims)


class ActivationDescriptor(Owned[ActivationDescriptorT]):
    """An activation and its parameters; what alpha, beta and gamma mean depends on the mode."""

    def __init__(
        self, mode: ActivationMode, alpha: float = 0.0, beta: float = 0.0, gamma: float = 0.0
    ) -> None:
        raw = ActivationDescriptorT()
        miopen = library.load()
        miopen.call("miopenCreateActivationDescriptor", byref(raw))
        super().__init__(raw, _destroy_activation)
        try:
            miopen.call("miopenSetActivationDescriptor", raw, mode, alpha, beta, gamma)
        except BaseException:
            self.close()
            raise


def _packed(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(dims[axis + 1 :]) for axis in range(len(dims)))


def _destroy_tensor(raw: TensorDescriptorT) -> None:
    library.load().call("miopenDestroyTensorDescriptor", raw)


def _destroy_convolution(raw: ConvolutionDescriptorT) -> None:
    library.load().call("miopenDestroyConvolutionDescriptor", raw)


def _destroy_activation(raw: ActivationDescriptorT) -> None:
    library.load().call("miopenDestroyActivationDescriptor", raw)
