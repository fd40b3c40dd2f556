"""Activations and additions on their own."""

from __future__ import annotations

import pytest

from hipdnn_registry import DataType, EngineRegistry
from tests.numbers.cases import ACTIVATIONS, ADDITIONS, activation, addition
from tests.numbers.checking import assert_declined, check

IO = (DataType.FLOAT, DataType.HALF, DataType.BFLOAT16)


@pytest.mark.parametrize("dims", [(2, 3, 4, 5), (3, 7), (2, 3, 2, 3, 2)], ids=str)
@pytest.mark.parametrize("io", IO)
@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activation(
    registry: EngineRegistry, kind: str, io: DataType, dims: tuple[int, ...]
) -> None:
    graph = activation(kind, io, dims)
    if io is DataType.BFLOAT16:
        assert_declined(registry, graph, "no bfloat16")
    elif kind == "clamp":
        assert_declined(registry, graph, "CLAMP .* does not compile")
    else:
        check(registry, graph)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("io", IO)
@pytest.mark.parametrize("kind", ADDITIONS)
def test_addition(
    registry: EngineRegistry, kind: str, io: DataType, *, channels_last: bool
) -> None:
    if channels_last and len(ADDITIONS[kind][0]) < 3:
        pytest.skip("no spatial dimension")
    graph = addition(kind, io, channels_last=channels_last)
    if io is DataType.BFLOAT16:
        assert_declined(registry, graph, "addition does not compile for bfloat16")
    else:
        check(registry, graph)
