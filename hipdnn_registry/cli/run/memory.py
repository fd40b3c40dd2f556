"""Whether a run fits into memory: what it needs, and what this process may still take."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hipdnn_registry.cli.text import size_text
from hipdnn_registry.errors import HipdnnError
from hipdnn_registry.testing.arrays import BLOCK_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hipdnn_registry import Graph

_TEMPORARIES = 8 * 8 * BLOCK_ELEMENTS
"""Bytes for drawing and comparing: a few float64 blocks."""


class MemoryShortageError(HipdnnError):
    """A graph needs more of the host's memory than there is."""


class Need(NamedTuple):
    """Bytes of the host's memory that a run takes at its peak, as estimated before it is planned.

    What lies on a device is not counted: the plan's `workspace_size` may be more than `workspace`.

    Attributes:
        inputs: The tensors that it reads.
        outputs: The tensors that it writes.
        workspace: Scratch memory of the engine where that is the host's, or of the reference
            where that is larger.
        check: A second copy of the outputs, for the reference; where a graph is ill-conditioned
            also the tensors of the graph nearby.
        benchmarking: Scratch copies of the tensors, where the engine measures its candidates.
        temporaries: Blocks for drawing and comparing.
    """

    inputs: int
    outputs: int
    workspace: int
    check: int
    benchmarking: int
    temporaries: int = _TEMPORARIES

    @classmethod
    def of(
        cls,
        graph: Graph,
        *,
        workspace: int,
        check: bool,
        benchmarking: bool,
        nearby: Graph | None = None,
    ) -> Need:
        """Add up what a run of a graph takes.

        Args:
            graph: The graph.
            workspace: Bytes of it.
            check: Whether the reference runs, too.
            benchmarking: Whether candidates are measured on scratch copies.
            nearby: What `conditioning` compares with.
        """
        inputs, outputs = _io_bytes(graph)
        copies = outputs if check else 0
        if nearby is not None:
            copies += sum(_io_bytes(nearby))
        return cls(
            inputs=inputs,
            outputs=outputs,
            workspace=workspace,
            check=copies,
            benchmarking=inputs + outputs if benchmarking else 0,
        )

    @property
    def total(self) -> int:
        """The sum."""
        return sum(self)

    def __str__(self) -> str:
        parts = [f"{name} {size_text(size)}" for name, size in self._asdict().items() if size]
        return f"{size_text(self.total)} ({', '.join(parts)})"

    def data(self) -> dict[str, Any]:
        """Return it for `--json`, in bytes."""
        return {**self._asdict(), "total": self.total}


def _io_bytes(graph: Graph) -> tuple[int, int]:
    """Return the bytes of a graph's inputs and of its outputs."""
    sizes = {True: 0, False: 0}
    for tensor in graph.io_tensors:
        sizes[tensor.uid in graph.output_uids] += tensor.span_bytes
    return sizes[False], sizes[True]


class Available(NamedTuple):
    """Bytes that can still be taken, and what says so."""

    size: int
    source: str


def refuse_if_too_large(need: Need, available: Available | None) -> None:
    """Raise `MemoryShortageError`, with the numbers, where a run would not fit."""
    if available is not None and need.total > available.size:
        raise MemoryShortageError(
            f"the graph needs {need}, but only {size_text(available.size)} of memory are "
            f"available here ({available.source})"
        )


def available_memory(root: Path = Path("/")) -> Available | None:
    """Return the least that any limit leaves to this process, or `None` where none is known.

    Args:
        root: Where `/proc` and `/sys` are.
    """
    limits = [*_machine(root), *_control_groups(root), *_address_space(root)]
    return min(limits, default=None)


def _machine(root: Path) -> Iterator[Available]:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            yield Available(int(line.split()[1]) << 10, "MemAvailable of /proc/meminfo")


def _control_groups(root: Path) -> Iterator[Available]:
    """Yield what the process's memory control group and each of its parents leave."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, names = "sys/fs/cgroup", ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            top = "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        group = Path(path.lstrip("/"))
        for place in (group, *group.parents):
            yield from _control_group(root / top / place, *names)


def _control_group(folder: Path, limit_name: str, usage_name: str) -> Iterator[Available]:
    limit, usage = (_number(folder / name) for name in (limit_name, usage_name))
    if limit is None or usage is None:
        return
    reclaimable = sum(
        int(line.split()[1])
        for line in _lines(folder / "memory.stat")
        if line.split()[0] in {"inactive_file", "total_inactive_file"}
    )
    left = limit - max(usage - reclaimable, 0)
    yield Available(max(left, 0), f"{limit_name} of the control group {folder}")


def _address_space(root: Path) -> Iterator[Available]:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _lines(root / "proc/self/statm")
    if limit != resource.RLIM_INFINITY and pages:
        used = int(pages[0].split()[0]) * resource.getpagesize()
        yield Available(max(limit - used, 0), "RLIMIT_AS, see ulimit -v")


def _number(path: Path) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].isdecimal() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
