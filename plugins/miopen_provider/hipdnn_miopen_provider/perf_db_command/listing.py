"""`hipdnn perf-db list`: the files."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hipdnn_registry.cli import Report, note, size_text, table

from .source import damage_data, damage_in, databases, file_data, readable

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from hipdnn_miopen_provider.database_files import DatabaseFile

_COLUMNS = ("file", "kind", "architecture", "CUs", "MIOpen", "problems", "records", "size", "age")


def list_report(path: Path | None) -> Report:
    """Report the databases of a folder."""
    folder, files = databases(path)
    now = time.time()
    data = {
        "folder": str(folder),
        "files": [_data(file, now) for file in files],
        "damage": damage_data(files),
    }
    return Report(data, lambda: _view(folder, files, now))


def _data(file: DatabaseFile, now: float) -> dict[str, Any]:
    data = file_data(file)
    if not readable(file):
        unknown = ("problems", "records", "size", "modified", "age_seconds")
        return {**data, **dict.fromkeys(unknown)}
    return {
        **data,
        "problems": len(file.records),
        "records": _count(file),
        "size": file.nbytes,
        "modified": datetime.fromtimestamp(file.modified, UTC).isoformat(),
        "age_seconds": max(0.0, now - file.modified),
    }


def _count(file: DatabaseFile) -> int:
    """Return the number of records: one problem and solver each."""
    return sum(len(record) for record in file.records.values())


def _view(folder: Path, files: list[DatabaseFile], now: float) -> RenderableType:
    from rich.console import Group

    if not files:
        return note(f"no user databases of MIOpen in {folder}")
    rows = [
        (
            *(file.path.name, file.kind_name, file.name.architecture),
            str(file.name.compute_units or ""),
            file.name.miopen_version,
            *_measures(file, now),
        )
        for file in files
    ]
    right = "CUs,problems,records,size,age"
    return Group(
        f"in {folder}",
        table(_COLUMNS, rows, right=right),
        *(note(str(damage)) for damage in damage_in(files)),
    )


def _measures(file: DatabaseFile, now: float) -> tuple[str, str, str, str]:
    """Return problems, records, size and age, which nobody knows of what can't be read."""
    if not readable(file):
        return ("-", "-", "-", "-")
    problems, records = str(len(file.records)), str(_count(file))
    return (problems, records, size_text(file.nbytes), age_text(now - file.modified))


def age_text(seconds: float) -> str:
    """Return a time span in the largest unit that it fills, such as `"3 h"`."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(0, int(seconds))} s"
