"""Which images one of MIOpen's spatial batchnorm kernels sums wrongly, by their shape alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hipdnn_miopen_provider.kernel_defects import precision_note, spatial_hazard
from hipdnn_miopen_provider.native import DataType
from hipdnn_miopen_provider.tensors import TensorSpec, in_memory_order
from hipdnn_registry.graph import channels_last_order, packed_strides


def image(*dims: int, channels_last: bool = False) -> TensorSpec:
    order = channels_last_order(len(dims)) if channels_last else None
    return TensorSpec(DataType.Float, dims, packed_strides(dims, order), 0)


@pytest.mark.parametrize(
    ("dims", "backward", "unsaved", "training"),
    [
        ((3, 5, 8, 8), "", "", ""),
        ((3, 5, 7, 9), "next channel", "next channel", ""),
        ((1, 1, 5), "next channel", "next channel", ""),
        ((2, 3, 3, 5, 7), "next channel", "next channel", ""),
        ((2, 3, 64, 64), "", "", ""),
        ((1, 3, 80, 80), "", "twice", ""),
        ((16, 3, 80, 80), "", "", ""),
        ((1, 3, 65, 65), "next channel", "next channel", "next channel"),
    ],
    ids=str,
)
def test_hazards(dims: tuple[int, ...], backward: str, unsaved: str, training: str) -> None:
    for expected, found in (
        (backward, spatial_hazard(image(*dims), training=False, saved=True)),
        (unsaved, spatial_hazard(image(*dims), training=False, saved=False)),
        (training, spatial_hazard(image(*dims), training=True, saved=False)),
    ):
        assert expected in found
        assert bool(expected) is bool(found)


def test_channels_last_has_none() -> None:
    x = image(3, 5, 7, 9, channels_last=True)
    assert spatial_hazard(x, training=False, saved=False) == ""


def test_memory_order() -> None:
    x = in_memory_order(image(2, 3, 4, 5, channels_last=True))
    assert (x.dims, x.strides) == ((2, 4, 5, 3), (60, 15, 3, 1))
    assert in_memory_order(image(2, 3, 4, 5)) == image(2, 3, 4, 5)


def test_only_a_solver_that_sums_in_half_is_remarked_on() -> None:
    single, half = image(1, 2, 3, 4), replace(image(1, 2, 3, 4), dtype=DataType.Half)
    assert "sums in half" in precision_note("ConvOclDirectFwd", [half])
    assert not precision_note("ConvOclDirectFwd", [single])
    assert not precision_note("ConvOclDirectFwd1x1", [half])
