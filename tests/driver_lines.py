"""Reported MIOpenDriver lines, and how to make them small enough to be computed anywhere."""

from __future__ import annotations

from pathlib import Path

from hipdnn_registry import Graph, GraphError, graph_from_driver_command
from hipdnn_registry.testing.cost import convolution_flops

REPORTED = [
    line.removeprefix("! ")
    for line in (Path(__file__).parent / "data" / "driver_commands.txt").read_text().splitlines()
    if line and (not line.startswith("!") or "nhwc" in line)
]
"""Those that describe something, the comment behind ` # ` included."""


def cost(graphs: list[Graph]) -> int:
    """Multiply-adds of the convolutions, and ten for each element of an image."""
    return sum(
        convolution_flops(graph) // 2
        + 10 * sum(t.element_count for t in graph.io_tensors if t.name not in {"w", "dw"})
        for graph in graphs
    )


def shrunk(line: str, limit: int) -> str:
    """The line, with flags behind it that make batch and image smaller where it costs too much.

    The largest of batch and image extents is halved time and again, as long as the filter still
    fits. Of a repeated flag the last one counts, so all others stay as they were.
    """
    command = line.partition(" # ")[0].rstrip()
    extents = _extents(graph_from_driver_command(command)[0])
    while cost(graph_from_driver_command(_with(command, extents))) > limit:
        for name in sorted(extents, key=extents.__getitem__, reverse=True):
            smaller = extents | {name: extents[name] // 2}
            if _is_command(_with(command, smaller)):
                extents = smaller
                break
        else:
            raise ValueError(f"{line} can't be made to cost {limit}")
    return _with(command, extents)


def _extents(graph: Graph) -> dict[str, int]:
    (image,) = [t for t in graph.io_tensors if t.name in {"x", "dx"}][:1]
    batch, _, *spatial = image.dims or ()
    return {"batchsize": batch} | dict(
        zip(("in_d", "in_h", "in_w")[-len(spatial) :], spatial, strict=True)
    )


def _with(command: str, extents: dict[str, int]) -> str:
    original = _extents(graph_from_driver_command(command)[0])
    changed = [f"--{n} {value}" for n, value in extents.items() if value != original[n]]
    return " ".join([command, *changed])


def _is_command(line: str) -> bool:
    try:
        graph_from_driver_command(line)
    except GraphError:
        return False
    return True
