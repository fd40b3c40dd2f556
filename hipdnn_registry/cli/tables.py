"""Tables and lists that read well in a terminal, in a narrow one, and piped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .output import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text

    Cell = str | Text


_GAP = 3
"""Blanks between two columns."""

_READABLE = 16
"""Columns of text that a narrow table's wrapping cells need; below that rows become lists."""


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, right: str = ""
) -> RenderableType:
    """Return a table with a ruled heading and no frame.

    Long cells of several words wrap; ids and names never break. Where that does not fit, each row
    is shown as a list below its first cell instead.

    Args:
        columns: Headings.
        rows: Cells.
        right: Headings, separated by commas, of the columns that are flush right.
    """
    cells = [[_cell(cell) for cell in row] for row in rows]
    return _FittingTable(columns, cells, frozenset(right.split(",")))


@dataclass(frozen=True, slots=True)
class _FittingTable:
    """A table where it fits; rich asks for the form when it knows the width."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    right: frozenset[str]

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        from rich.cells import cell_len

        widths = [
            [cell_len(column), *(cell_len(str(row[at])) for row in self.rows)]
            for at, column in enumerate(self.columns)
        ]
        whole = [not any(" " in str(row[at]) for row in self.rows) for at in range(len(widths))]
        needed = sum(
            max(lengths) if is_whole else min(max(lengths), _READABLE)
            for lengths, is_whole in zip(widths, whole, strict=True)
        )
        if needed + _GAP * (len(widths) - 1) <= options.max_width:
            yield self._as_table(whole)
        else:
            yield from self._as_lists()

    def _as_table(self, whole: Sequence[bool]) -> RenderableType:
        from rich import box
        from rich.table import Table

        result = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column, is_whole in zip(self.columns, whole, strict=True):
            result.add_column(
                column,
                justify="right" if column in self.right else "left",
                no_wrap=is_whole,
                overflow="fold",
            )
        for row in self.rows:
            result.add_row(*row)
        return result

    def _as_lists(self) -> Iterator[RenderableType]:
        from rich.text import Text

        for first, *others in self.rows:
            yield Text.assemble(first, no_wrap=True, overflow="ignore")
            yield facts(zip(self.columns[1:], others, strict=True))


def facts(rows: Iterable[tuple[str, Cell]]) -> RenderableType:
    """Return labelled values one below the other, indented; a repeated label is not repeated."""
    from rich.padding import Padding
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    previous = ""
    for label, value in rows:
        grid.add_row(plain("" if label == previous else label), _cell(value))
        previous = label
    return Padding(grid, (0, 0, 0, 2), expand=False)


def note(text: str) -> Text:
    """Return a line that the reader should not miss."""
    from rich.text import Text

    return Text(f"note: {plain(text)}", style="yellow")


def _cell(cell: Cell) -> Cell:
    return plain(cell) if isinstance(cell, str) else cell
