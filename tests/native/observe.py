"""What a call into MIOpen did: log, launches, compilations, and changes in the databases."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.database_files import FileKind, read_folder, read_name
from hipdnn_miopen_provider.perf_db import user_db_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

_PERF = frozenset({FileKind.PERF, FileKind.BATCHNORM_PERF})
_FIND = frozenset({FileKind.FIND, FileKind.FUSION_FIND})

Entry = tuple[str, str]
"""One tuned or measured solver: (key, solver)."""


@dataclass
class Observation:
    """Filled in when the observed block ends.

    Attributes:
        log: MIOpen's log (level 6).
        launches: Number of kernel launches.
        compilations: Number of kernels compiled.
        perf_db: Perf-db entries after the block.
        added: Perf-db entries that the block added.
        removed: Perf-db entries that it removed.
        perf_db_written: Whether a perf-db file was replaced, be it by the same content.
        find_db_written: The same of the find-db.
    """

    log: str = ""
    launches: int = 0
    compilations: int = 0
    perf_db: frozenset[Entry] = frozenset()
    added: frozenset[Entry] = frozenset()
    removed: frozenset[Entry] = frozenset()
    perf_db_written: bool = False
    find_db_written: bool = False

    @property
    def searched(self) -> list[str]:
        """Solvers that a search was started for."""
        return re.findall(r"Search Start: \S+ : (\S+), enforce", self.log)

    @property
    def loaded(self) -> list[str]:
        """Solvers whose perf-db record was used."""
        return re.findall(r"record loaded: ([^\s,]+)", self.log)


@contextmanager
def stderr_to(path: Path) -> Iterator[None]:
    """Sends standard error, where MIOpen logs, to a file. Python's own and the library's."""
    sys.stderr.flush()
    stderr = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(stderr, 2)
        os.close(stderr)


@contextmanager
def observe() -> Iterator[Observation]:
    """Observes a block: standard error (where MIOpen logs) goes to the observation meanwhile."""
    seen = Observation()
    entries, files = _perf_db_entries(), _files()
    launch_log = Path(os.environ["MIOPEN_EMULATOR_LOG"])
    start = launch_log.stat().st_size if launch_log.exists() else 0
    log = launch_log.with_name(f"miopen-{os.getpid()}.log")
    try:
        with stderr_to(log):
            yield seen
    finally:
        seen.log = log.read_text(errors="replace")
        lines = launch_log.read_text()[start:].splitlines() if launch_log.exists() else []
        events = [json.loads(line)["event"] for line in lines]
        seen.launches, seen.compilations = events.count("launch"), events.count("compile")
        seen.perf_db = _perf_db_entries()
        seen.added, seen.removed = seen.perf_db - entries, entries - seen.perf_db
        changed = {path for path, stamp in _files().items() if files.get(path) != stamp}
        kinds = {read_name(path.name).kind for path in changed}
        seen.perf_db_written = bool(kinds & _PERF)
        seen.find_db_written = bool(kinds & _FIND)


def _perf_db_entries() -> frozenset[Entry]:
    folder = user_db_folder()
    files = read_folder(folder) if folder.is_dir() else []
    assert not [damage for file in files for damage in file.damage]
    return frozenset(
        (key, solver)
        for file in files
        if file.name.kind in _PERF
        for key, record in file.records.items()
        for solver in record
    )


def _files() -> dict[Path, tuple[int, int]]:
    return {
        path: (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in user_db_folder().glob("*db.txt")
    }
