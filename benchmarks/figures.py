"""A figure with its target and its peer, and how a list of them is printed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement.

    Attributes:
        what: What was measured.
        value: The number that the target is about.
        unit: "x" for a ratio to the peer, else the unit of `value`.
        target: What it has to reach.
        at_most: Whether the target is an upper bound.
        detail: The measurements behind a ratio.
    """

    what: str
    value: float
    unit: str
    target: float
    at_most: bool = True
    detail: str = ""

    @property
    def reached(self) -> bool:
        """Whether the target is reached."""
        return self.value <= self.target if self.at_most else self.value >= self.target


def print_figures(figures: Sequence[Figure], *, as_json: bool) -> None:
    """Print a table, or JSON."""
    if as_json:
        print(json.dumps([asdict(f) | {"reached": f.reached} for f in figures], indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("what", "measured", "target", "reached", "detail")
    for figure in figures:
        bound = "<=" if figure.at_most else ">="
        table.add_row(
            figure.what,
            f"{figure.value:.3g} {figure.unit}",
            f"{bound} {figure.target:g} {figure.unit}",
            "yes" if figure.reached else "NO",
            figure.detail,
        )
    Console(width=150).print(table)
