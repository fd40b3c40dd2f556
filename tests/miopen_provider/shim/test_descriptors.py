"""Descriptors: what they refuse when they are made, and what they work out."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipdnn_miopen_provider.shim import (
    ActivationDescriptor,
    ActivationMode,
    BadParm,
    BatchNormMode,
    ConvolutionAttribute,
    ConvolutionDescriptor,
    ConvolutionMode,
    DataType,
    FindMode,
    Status,
    TensorDescriptor,
    TensorLayout,
    UnsupportedOp,
    derive_bn_tensor_descriptor,
)
from hipdnn_registry import InvalidInputError, UnsupportedGraphError

FLOAT = DataType.Float


def test_a_tensor_descriptor_is_a_value() -> None:
    one = TensorDescriptor(FLOAT, (2, 3, 4, 5))
    assert one == TensorDescriptor(1, [2, 3, np.int64(4), 5], [60, 20, 5, 1])  # type: ignore[arg-type]
    assert hash(one) == hash(TensorDescriptor(FLOAT, (2, 3, 4, 5)))
    assert (one.strides, one.nbytes) == ((60, 20, 5, 1), 480)
    assert TensorDescriptor(DataType.Half, (2, 3), (8, 1)).nbytes == 22


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("float32", (1, 2)), "dtype is 'float32', but must be a DataType: Half"),
        ((4, (1, 2)), "dtype is 4"),
        ((None, (1, 2)), "dtype is None"),
        ((FLOAT, None), "dims is None, but must be a sequence of integers from 1 on"),
        ((FLOAT, ()), "dims is ()"),
        ((FLOAT, 3), "dims is 3"),
        ((FLOAT, "12"), "dims is '12'"),
        ((FLOAT, (2, 0)), "dims is (2, 0)"),
        ((FLOAT, (2, True)), "dims is (2, True)"),
        ((FLOAT, (2, 3.0)), "dims is (2, 3.0)"),
        ((FLOAT, (1,) * 6), "dims is [1, 1, 1, 1, 1, 1], but MIOpen has up to 5"),
        ((FLOAT, (2, 3), (3,)), "strides is [3], but must have an entry for each of the dims [2,"),
        ((FLOAT, (2, 3), (3, -1)), "strides is (3, -1)"),
        ((FLOAT, (2, 2**63)), "beyond 64 bits"),
        ((FLOAT, (2, 3), None, 3), "vector_length is 3, but must be 1, 4 or 8"),
    ],
)
def test_bad_tensors(arguments: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(BadParm) as error:
        TensorDescriptor(*arguments)
    assert problem in str(error.value)
    assert str(error.value).endswith("[miopenStatusBadParm (3)]")
    assert error.value.status is Status.BadParm
    assert isinstance(error.value, InvalidInputError)


@pytest.mark.parametrize(
    ("layout", "dims", "strides"),
    [
        (TensorLayout.NCHW, (2, 3, 4, 5), (60, 20, 5, 1)),
        (TensorLayout.NHWC, (2, 3, 4, 5), (60, 1, 15, 3)),
        (TensorLayout.CHWN, (2, 3, 4, 5), (1, 40, 10, 2)),
        (TensorLayout.NCDHW, (2, 3, 4, 5, 6), (360, 120, 30, 6, 1)),
        (TensorLayout.NDHWC, (2, 3, 4, 5, 6), (360, 1, 90, 18, 3)),
    ],
)
def test_layouts(layout: TensorLayout, dims: tuple[int, ...], strides: tuple[int, ...]) -> None:
    made = TensorDescriptor.with_layout(FLOAT, layout, dims)
    assert (made.strides, made.vector_length) == (strides, 1)
    with pytest.raises(BadParm, match=rf"dims is .*, but {layout.name} has {len(dims)} dims"):
        TensorDescriptor.with_layout(FLOAT, layout, dims[1:])


def test_vectorised_layouts_can_be_described() -> None:
    lengths = [
        TensorDescriptor.with_layout(FLOAT, layout, (2, 8, 4, 5)).vector_length
        for layout in TensorLayout
        if layout.vector_length > 1
    ]
    assert lengths == [4, 8, 4, 8]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"pads": (-1, 0)}, "pads is (-1, 0), but must be a sequence of integers from 0 on"),
        ({"pads": 1}, "pads is 1"),
        ({"strides": (0, 1)}, "strides is (0, 1)"),
        ({"dilations": (1,)}, "dilations [1]: must have one length"),
        ({"mode": 2}, "mode is 2, but must be a ConvolutionMode: Convolution (0), Transpose (1)"),
        ({"group_count": 0}, "group_count is 0, but must be an integer from 1 on"),
        ({"output_padding": (1, 0)}, "output_padding is [1, 0], but mode is not Transpose"),
        (
            {"output_padding": (0, 2), "mode": ConvolutionMode.Transpose, "strides": (2, 2)},
            "output_padding is [0, 2], but must be below the strides [2, 2]",
        ),
    ],
)
def test_bad_convolutions(changes: dict[str, Any], problem: str) -> None:
    good: dict[str, Any] = {"pads": (0, 0), "strides": (1, 1), "dilations": (1, 1)}
    with pytest.raises(BadParm) as error:
        ConvolutionDescriptor(**good | changes)
    assert problem in str(error.value)


def test_attributes_and_find_modes() -> None:
    conv = ConvolutionDescriptor((0, 0), (1, 1), (1, 1))
    assert conv.get_convolution_attribute(ConvolutionAttribute.Deterministic) == 0
    conv.set_convolution_attribute(1, 1)  # type: ignore[arg-type]  # MIOpen's numbers will do
    assert conv.get_convolution_attribute(ConvolutionAttribute.Deterministic) == 1
    assert conv.get_convolution_find_mode() is FindMode.DynamicHybrid
    assert conv.fields.find_mode is None
    conv.set_convolution_find_mode(FindMode.Normal)
    assert conv.fields.find_mode is conv.get_convolution_find_mode() is FindMode.Normal
    with pytest.raises(UnsupportedOp, match="Fp16AltImpl can't be handed on"):
        conv.set_convolution_attribute(ConvolutionAttribute.Fp16AltImpl, 0)
    for bad in (2, True, None):
        with pytest.raises(BadParm, match="must be 0 or 1"):
            conv.set_convolution_attribute(ConvolutionAttribute.Deterministic, bad)
    for bad in (0, 4, 8, "Normal"):
        with pytest.raises(BadParm, match="find_mode is .*Normal .1., Fast .2."):
            conv.set_convolution_find_mode(bad)
    assert conv.fields.find_mode is FindMode.Normal


extents = st.tuples(st.integers(1, 12), st.integers(1, 12))


@given(
    extents,
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from([1, 2, 4]),
)
def test_transposing_undoes_the_extents(
    image: tuple[int, int],
    taps: tuple[int, int],
    pads: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    groups: int,
) -> None:
    """Where a convolution leads from x to y, the transposed one leads from y to x."""
    x = TensorDescriptor(FLOAT, (2, 4, *image))
    w = TensorDescriptor(FLOAT, (8, 4 // groups, *taps))
    conv = ConvolutionDescriptor(pads, strides, dilations, group_count=groups)
    counted = [
        len(range(-pad, size + pad - dilation * (tap - 1), stride))
        for size, tap, pad, stride, dilation in zip(
            image, taps, pads, strides, dilations, strict=True
        )
    ]
    if min(counted) < 1:
        with pytest.raises(BadParm, match="leave no result"):
            conv.get_forward_output_dim(x, w)
        return
    y = conv.get_forward_output_dim(x, w)
    assert y == (2, 8, *counted)
    left = [
        (size + 2 * pad - dilation * (tap - 1) - 1) % stride
        for size, tap, pad, stride, dilation in zip(
            image, taps, pads, strides, dilations, strict=True
        )
    ]
    transposed = ConvolutionDescriptor(
        *(pads, strides, dilations, ConvolutionMode.Transpose),
        group_count=groups,
        output_padding=left,
    )
    assert transposed.get_forward_output_dim(TensorDescriptor(FLOAT, y), w) == x.dims


@pytest.mark.parametrize(
    ("mode", "x", "w", "groups", "problem"),
    [
        (0, (2, 4, 5, 5), (6, 3, 3, 3), 1, "don't go together with 1 group in mode Convolution"),
        (0, (2, 4, 5, 5), (6, 4, 3, 3), 2, "2 groups"),
        (0, (2, 4, 5, 5), (5, 2, 3, 3), 2, "2 groups"),
        (1, (2, 4, 5, 5), (6, 4, 3, 3), 1, "mode Transpose"),
        (0, (2, 4, 5), (6, 4, 3), 1, "the convolution descriptor has 2 spatial dimensions"),
        (0, (2, 4, 5, 5), (6, 4, 3), 1, "2 spatial dimensions"),
    ],
)
def test_tensors_that_don_t_go_together(
    mode: int, x: tuple[int, ...], w: tuple[int, ...], groups: int, problem: str
) -> None:
    conv = ConvolutionDescriptor((0, 0), (1, 1), (1, 1), mode, group_count=groups)  # type: ignore[arg-type]
    with pytest.raises(BadParm, match=problem):
        conv.get_forward_output_dim(TensorDescriptor(FLOAT, x), TensorDescriptor(FLOAT, w))


def test_a_setter_among_many_threads_loses_nothing() -> None:
    conv = ConvolutionDescriptor((0, 0), (1, 1), (1, 1))

    def work(number: int) -> None:
        for _ in range(200):
            conv.set_convolution_group_count(7)
            conv.set_convolution_attribute(ConvolutionAttribute.Deterministic, 1)
            conv.set_convolution_find_mode(FindMode.Hybrid)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    fields = conv.fields
    assert (fields.group_count, fields.deterministic, fields.find_mode) == (7, True, 3)


def test_convolutions_can_be_copied() -> None:
    conv = ConvolutionDescriptor((0,), (2,), (1,), ConvolutionMode.Transpose, output_padding=(1,))
    conv.set_convolution_find_mode(FindMode.Normal)
    for other in (copy.copy(conv), copy.deepcopy(conv), pickle.loads(pickle.dumps(conv))):
        assert other.fields == conv.fields
        other.set_convolution_group_count(2)
        assert other.fields != conv.fields


def test_bad_activations() -> None:
    with pytest.raises(BadParm, match="mode is 99, but must be a ActivationMode: PASTHRU"):
        ActivationDescriptor(99)  # type: ignore[arg-type]
    for bad in (float("nan"), float("inf"), None, "1", True):
        with pytest.raises(BadParm, match="alpha is .*, but must be a finite number"):
            ActivationDescriptor(ActivationMode.RELU, bad)  # type: ignore[arg-type]


def test_derived_descriptors() -> None:
    x = TensorDescriptor(DataType.Half, (2, 3, 4, 5))
    assert derive_bn_tensor_descriptor(x, BatchNormMode.Spatial).dims == (1, 3, 1, 1)
    per_activation = derive_bn_tensor_descriptor(x, BatchNormMode.PerActivation)
    assert (per_activation.dims, per_activation.dtype) == ((1, 3, 4, 5), FLOAT)
    with pytest.raises(BadParm, match="mode is 2"):
        derive_bn_tensor_descriptor(x, 2)  # type: ignore[arg-type]
    with pytest.raises(BadParm, match="x_desc is None, but must be a TensorDescriptor"):
        derive_bn_tensor_descriptor(None, BatchNormMode.Spatial)  # type: ignore[arg-type]
    with pytest.raises(BadParm, match="needs at least"):
        derive_bn_tensor_descriptor(TensorDescriptor(FLOAT, (3,)), BatchNormMode.Spatial)


def test_a_status_error_travels_between_processes() -> None:
    error = UnsupportedOp("miopenConvolutionForward", "no")
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), back.entry_point) == (
        UnsupportedOp,
        str(error),
        "miopenConvolutionForward",
    )
    assert back.status is Status.UnsupportedOp
    assert isinstance(back, UnsupportedGraphError)
