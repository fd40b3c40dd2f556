"""Prints which of MIOpen's kernels were checked, in which type, and how far off they were.

That is the table of docs/emulated-kernels.md. It needs the emulator, whose log says what ran:

hipdnn emulator run -- python -m tests.numbers.measure > table.md

An error is a share of what tests/numbers/checking.py allows. What is not in the table did not run:
MIOpen's applicability rules, or a decline of the provider's, kept it away.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from hipdnn_miopen_emulator.events import launches_of, read_events
from hipdnn_registry import (
    DataType,
    EngineRegistry,
    Graph,
    HipdnnError,
    graph_from_driver_command,
)
from hipdnn_registry.testing.execution import execute
from hipdnn_registry.testing.inputs import random_inputs
from tests.native.environment import enter_private_environment, numeric_settings
from tests.numbers import cases
from tests.numbers.checking import ENGINE, Comparison, compared, keeps_partial_sums, reference_of
from tests.numbers.solvers import solver_comparisons

TYPES = tuple(cases.TYPES)


@dataclass
class Cell:
    """A kernel in one type: how many outputs of it were compared, and its largest errors."""

    outputs: int = 0
    error: float = 0.0
    share: float = 0.0

    def add(self, comparisons: list[Comparison]) -> None:
        self.outputs += len(comparisons)
        self.error = max(self.error, *(c.error for c in comparisons))
        self.share = max(self.share, *(c.error / c.bound for c in comparisons))


@dataclass
class Table:
    """Cells by kernel and type, and the reasons why cases were not computed."""

    log: Path
    cells: dict[str, dict[str, Cell]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Cell))
    )
    declined: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def forget(self) -> None:
        """Leave out what was launched up to now."""
        self.log.write_text("")

    def add(self, io: str, comparisons: list[Comparison]) -> None:
        """Put comparisons down to the kernels launched since `forget`."""
        launches = launches_of(read_events(self.log))
        assert all(launch.executed for launch in launches)
        for kernel in {family(launch.kernel) for launch in launches}:
            self.cells[kernel][io].add(comparisons)


def family(kernel: str) -> str:
    """A kernel's name without the types that some carry in it."""
    return re.sub(r"(_(float|half|ushort|double|bf16|fp16|fp32))+$", "", kernel)


def general(reason: str) -> str:
    """An engine's reason without its node and its numbers."""
    text = reason.rpartition("declines the graph: ")[2]
    return re.sub(r"^node '[^']*': | \(\w* ?[*=]? ?[^()]*no multiple of[^()]*\)", "", text)


def engine_lines() -> Iterator[tuple[str, str]]:
    """Type and line of every case beside plain convolutions."""
    for io, layout in product(cases.TYPES, cases.LAYOUTS):
        for kind, convolved in product(cases.FUSIONS, ("plain", "1x1")):
            yield io, cases.fusion(kind, convolved, io, layout)
        for kind, image in product(cases.SPATIAL, cases.IMAGES | cases.ODD_IMAGES):
            yield io, cases.batchnorm(kind, image, io, layout)
        for kind in cases.PER_ACTIVATION:
            yield io, cases.batchnorm(kind, "4x6", io, layout, per_activation=True)


def elementwise_graphs() -> Iterator[tuple[str, Graph]]:
    """Type and graph of every activation and addition."""
    for io in cases.TYPES:
        for kind in cases.ACTIVATIONS:
            yield io, cases.activation(kind, DataType(io))
        for kind, channels_last in product(cases.ADDITIONS, (False, True)):
            yield io, cases.addition(kind, DataType(io), channels_last=channels_last)
        yield io, cases.batchnorm_relu_backward(DataType(io))


def measure_engine(registry: EngineRegistry, table: Table, io: str, graph: Graph) -> None:
    try:
        plan = registry.create_execution_plan_ext(graph, ENGINE)
    except HipdnnError as reason:
        table.declined[general(str(reason))].add(io)
        return
    inputs = random_inputs(graph, seed=0)
    table.forget()
    outputs = execute(plan, inputs)
    reference = reference_of(registry, graph, inputs)
    table.add(io, compared(graph, outputs, reference, partial_sums=keeps_partial_sums(plan)))


def measure_solvers(registry: EngineRegistry, table: Table, io: str, graph: Graph) -> None:
    for _, comparisons in solver_comparisons(registry, graph, table.forget):
        table.add(io, comparisons)


def print_table(table: Table) -> None:
    print("| kernel |", " | ".join(TYPES), "|")
    print("|---|" + "---|" * len(TYPES))
    for kernel, cells in sorted(table.cells.items()):
        row = [
            f"{cell.outputs}: {cell.error:.1e} ({cell.share:.0%})" if cell else ""
            for cell in (cells.get(io) for io in TYPES)
        ]
        print(f"| {kernel} |", " | ".join(row), "|")
    print("\n| not computed | types |\n|---|---|")
    for reason, types in sorted(table.declined.items()):
        print(f"| {reason} | {', '.join(sorted(types))} |")


def main() -> int:
    enter_private_environment(numeric_settings())
    table = Table(Path(os.environ["MIOPEN_EMULATOR_LOG"]))
    registry = EngineRegistry(allow=["cpu", "miopen"])
    kinds = product(cases.WITH_SOLVERS, cases.DIRECTIONS, cases.TYPES, cases.LAYOUTS)
    for kind, direction, io, layout in kinds:
        (graph,) = graph_from_driver_command(cases.convolution(kind, direction, io, layout))
        measure_solvers(registry, table, io, graph)
    for io, line in engine_lines():
        (graph,) = graph_from_driver_command(line)
        measure_engine(registry, table, io, graph)
    for io, graph in elementwise_graphs():
        measure_engine(registry, table, io, graph)
    print_table(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
