"""MIOpen's user perf-db of one operation: what a build changed, and which records decide."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.database_files import FileKind, read_folder
from hipdnn_miopen_provider.perf_db import (
    parse_batchnorm_key,
    parse_convolution_key,
    parse_find_value,
    user_db_folder,
)
from hipdnn_miopen_provider.progress import log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from hipdnn_miopen_provider.database_files import DatabaseFile, FileName
    from hipdnn_miopen_provider.native import Device
    from hipdnn_miopen_provider.operation import Operation, Solver

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
    stamps: dict[str, float]

    @classmethod
    def take(cls, operation: Operation) -> Snapshot:
        """Read the user's perf-db."""
        records: Records = {}
        stamps: dict[str, float] = {}
        for file in _user_files():
            if file.name.kind in _PERF:
                name = file.path.name
                stamps[name] = file.modified
                records |= {
                    (name, key, solver): parameters
                    for key, solvers in _records_of(operation, file)
                    for solver, parameters in solvers.items()
                }
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
    return [
        Record(file.path, key, solver, parameters)
        for file in _user_files()
        if file.name.kind in _PERF and _is_read(file.name, device, version)
        for key, solvers in _records_of(operation, file)
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
    for file in _user_files():
        if file.name.kind is FileKind.FIND:
            for _, solvers in _records_of(operation, file):
                for name, text in solvers.items():
                    value = parse_find_value(text)
                    same_time = isclose(value.milliseconds, solver.milliseconds, rel_tol=1e-4)
                    if same_time and value.workspace_size == solver.workspace_size:
                        return name
    return None


def _user_files() -> list[DatabaseFile]:
    """The user's databases without their damaged lines. MIOpen copes with what can't be read."""
    folder = user_db_folder()
    try:
        files = read_folder(folder)
    except OSError as error:
        log.warning("MIOpen's user databases in %s can't be read: %s", folder, error.strerror)
        return []
    for file in files:
        for damage in file.damage:
            if damage.line is None:
                log.warning("MIOpen's user database %s", damage)
    return files


def _records_of(
    operation: Operation, file: DatabaseFile
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Key, and solver -> value, of the records that concern an operation."""
    batchnorm = file.name.kind is FileKind.BATCHNORM_PERF
    for key, solvers in file.records.items():
        if _concerns(operation, key, batchnorm=batchnorm):
            yield key, solvers


def _concerns(operation: Operation, key: str, *, batchnorm: bool) -> bool:
    try:
        return operation.concerns(
            parse_batchnorm_key(key) if batchnorm else parse_convolution_key(key)
        )
    except ValueError:  # a key of a newer MIOpen
        return False
