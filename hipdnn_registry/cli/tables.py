"""Tables and lists that read well in a terminal, in a narrow one, and piped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .output import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    Cell = str | Text


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, right: str = "") -> Table:
    """Return a table with a ruled heading and no frame; long cells wrap.

    Args:
        columns: Headings.
        rows: Cells.
        right: Headings, separated by commas, of the columns that are flush right.
    """
    from rich import box
    from rich.table import Table

    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    flush_right = set(right.split(","))
    for column in columns:
        result.add_column(
            column, justify="right" if column in flush_right else "left", overflow="fold"
        )
    for row in rows:
        result.add_row(*(_cell(cell) for cell in row))
    return result


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
