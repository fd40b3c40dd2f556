"""MIOpen's user perf-db of one operation: what a build changed, and which records decide."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import isclose
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.database_files import FileKind, read_folder
from hipdnn_miopen_provider.perf_db import (
    DbKind,
    parse_batchnorm_key,
    parse_convolution_key,
    read_databases,
    user_db_folder,
)
from hipdnn_miopen_provider.progress import log

if TYPE_CHECKING:
    from pathlib import Path

    from hipdnn_miopen_provider.database_files import DatabaseFile, FileName
    from hipdnn_miopen_provider.native import Device
    from hipdnn_miopen_provider.operation import Operation, Solver
    from hipdnn_miopen_provider.perf_db import Database

_PERF = frozenset({FileKind.PERF, FileKind.BATCHNORM_PERF})

NO_CHANGE = "no change"
"""What `Snapshot.changes` says of none."""

Records = dict[tuple[str, str, str], str]
"""(file, key, solver) -> tuned parameters."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The perf-db as it was.

    Attributes:
        records: Those that concern the operation.
        stamps: File name -> when it was last replaced; a search may write what was there before.
    """

    records: Records
    stamps: dict[str, int]

    @classmethod
    def take(cls, operation: Operation) -> Snapshot:
        """Read the user's perf-db."""
        records: Records = {}
        stamps: dict[str, int] = {}
        for database in _readable():
            if database.kind is DbKind.PERF:
                name = database.path.name
                with suppress(FileNotFoundError):  # replaced at this moment
                    stamps[name] = database.path.stat().st_mtime_ns
                for key, solvers in database.records.items():
                    if _concerns(operation, key, batchnorm=database.is_batchnorm):
                        records |= {(name, key, s): value for s, value in solvers.items()}
        return cls(records, stamps)

    def changes(self, later: Snapshot, *, rewrites: bool) -> str:
        """Say what changed up to a later snapshot.

        Args:
            later: The perf-db afterwards.
            rewrites: Whether records were to be replaced. A search may find again what was there;
                then only the file's age tells, which another process's record changes, too.
        """
        added = sorted({s for _, _, s in later.records.keys() - self.records.keys()})
        removed = sorted({s for _, _, s in self.records.keys() - later.records.keys()})
        replaced = {name for name, stamp in later.stamps.items() if self.stamps.get(name) != stamp}
        rewritten = sorted(
            {
                record[2]
                for record in self.records.keys() & later.records.keys()
                if self.records[record] != later.records[record]
                or (rewrites and record[0] in replaced)
            }
        )
        parts = [
            f"{verb} {', '.join(solvers)}"
            for verb, solvers in (("added", added), ("removed", removed), ("rewritten", rewritten))
            if solvers
        ]
        return "; ".join(parts) or NO_CHANGE


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the user's perf-db, as the file has it.

    Attributes:
        file: Where it is.
        key: The problem.
        solver: The solver.
        parameters: What was tuned.
    """

    file: Path
    key: str
    solver: str
    parameters: str

    def __str__(self) -> str:
        """Return one line for people, with the terms of `hipdnn perf-db show`."""
        return f"{self.file}: key {self.key}, solver {self.solver}, parameters {self.parameters}"


def records_read(
    operation: Operation, device: Device, version: tuple[int, int, int]
) -> list[Record]:
    """Return the perf-db's records of an operation in the files that MIOpen reads on a device.

    Damaged lines are left out; where nothing can be read there is no record.

    Args:
        operation: The operation.
        device: The device.
        version: libMIOpen's.
    """
    files: list[DatabaseFile] = []
    with suppress(OSError):
        files = read_folder(user_db_folder())
    return [
        Record(file.path, key, solver, parameters)
        for file in files
        if file.name.kind in _PERF and _is_read(file.name, device, version)
        for key, solvers in file.records.items()
        if _concerns(operation, key, batchnorm=file.name.kind is FileKind.BATCHNORM_PERF)
        for solver, parameters in solvers.items()
    ]


def _is_read(name: FileName, device: Device, version: tuple[int, int, int]) -> bool:
    """Whether a file is of this device and library; of several commits any may be."""
    return (
        name.architecture == device.architecture
        and name.compute_units == device.compute_units
        and name.miopen_version.partition(" ")[0] == ".".join(map(str, version))
    )


def solver_name(operation: Operation, solver: Solver) -> str | None:
    """Return MIOpen's name of a solver that a Find has just measured, from the user's find-db.

    The C API names a solver by its algorithm only; the find-db has name, time and workspace.
    """
    for database in _readable():
        if database.kind is DbKind.FIND:
            for key in database.records:
                if _concerns(operation, key, batchnorm=False):
                    for name, value in database.find_values(key).items():
                        same_time = isclose(value.milliseconds, solver.milliseconds, rel_tol=1e-4)
                        if same_time and value.workspace_size == solver.workspace_size:
                            return name
    return None


def _readable() -> list[Database]:
    """The user's databases. What can't be read counts as absent: MIOpen copes, so do we."""
    try:
        return read_databases()
    except (OSError, ValueError) as error:
        log.warning("MIOpen's user databases in %s can't be read: %s", user_db_folder(), error)
        return []


def _concerns(operation: Operation, key: str, *, batchnorm: bool) -> bool:
    try:
        return operation.concerns(
            parse_batchnorm_key(key) if batchnorm else parse_convolution_key(key)
        )
    except ValueError:  # a key of a newer MIOpen
        return False
