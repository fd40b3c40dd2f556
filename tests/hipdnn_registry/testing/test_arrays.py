"""Arrays of any layout, and the blocks that they are walked in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipdnn_registry import DataType, HipdnnError, TensorAttributes
from hipdnn_registry.graph import packed_strides
from hipdnn_registry.testing.arrays import allocate, blocks, storage

SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@given(SHAPES, st.integers(1, 50))
def test_blocks_cover_every_element_once(shape: list[int], limit: int) -> None:
    seen = np.zeros(shape, int)
    for index in blocks(shape, limit):
        assert seen[index].size <= limit
        seen[index] += 1
    assert (seen == 1).all()


@given(SHAPES, st.data(), st.sampled_from([1, 16, 4096]))
def test_an_array_is_what_its_tensor_says(
    shape: list[int], data: st.DataObject, alignment: int
) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    tensor = TensorAttributes(
        uid=0,
        data_type=DataType.BFLOAT16,
        dims=tuple(shape),
        strides=tuple(2 * stride for stride in packed_strides(shape, order)),
        alignment=alignment,
    )
    array = allocate(tensor)
    assert array.shape == tuple(shape)
    assert array.strides == tuple(2 * stride for stride in tensor.strides or ())
    assert array.dtype.name == "bfloat16"
    assert array.ctypes.data % alignment == 0
    flat = storage(array)
    assert flat.nbytes == tensor.span_bytes
    flat[...] = 2
    assert (array == 2).all()
    array[...] = 1
    assert (flat == 1).sum() == array.size


def test_a_type_that_numpy_lacks() -> None:
    tensor = TensorAttributes(uid=3, name="x", data_type=DataType.INT4, dims=(2,), strides=(1,))
    with pytest.raises(HipdnnError, match=r"tensor uid 3 \('x'\): data type 'int4' has no numpy"):
        allocate(tensor)
