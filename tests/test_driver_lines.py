"""Shrinking a reported line changes its batch and image, and nothing else."""

from __future__ import annotations

import pytest

from hipdnn_registry import Graph, graph_from_driver_command
from tests.driver_lines import REPORTED, cost, shrunk

LIMIT = 8_000_000


def shape_free(graph: Graph) -> list[object]:
    """What a graph says apart from the extents of batch and image."""
    nodes: list[object] = []
    for wiring in graph.structure.wirings:
        nodes.append(wiring.node.model_dump(exclude={"inputs", "outputs"}))
        for port, tensor in (*wiring.inputs.items(), *wiring.outputs.items()):
            dims = tensor.dims or ()
            nodes.append((port, tensor.data_type, dims if port in {"w", "dw"} else dims[1:2]))
    return nodes


@pytest.mark.parametrize("line", REPORTED, ids=lambda line: line.rpartition("# ")[2])
def test_only_batch_and_image_change(line: str) -> None:
    before = graph_from_driver_command(line)
    small = shrunk(line, LIMIT)
    after = graph_from_driver_command(small)
    assert cost(after) <= LIMIT
    assert [shape_free(graph) for graph in after] == [shape_free(graph) for graph in before]
    assert small.startswith(line.partition(" # ")[0].rstrip())
    if cost(before) <= LIMIT:
        assert after[0].content_key == before[0].content_key


def test_what_can_not_be_shrunk_says_so() -> None:
    with pytest.raises(ValueError, match="can't be made to cost 10"):
        shrunk("conv -n 1 -c 8 -H 3 -W 3 -k 8 -y 3 -x 3", 10)


def test_there_are_lines() -> None:
    assert len(REPORTED) == 14
