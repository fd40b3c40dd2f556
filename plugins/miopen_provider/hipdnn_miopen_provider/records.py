"""What a build changed in MIOpen's user perf-db, of the records that concern one operation."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.perf_db import (
    DbKind,
    parse_batchnorm_key,
    parse_convolution_key,
    read_databases,
    user_db_folder,
)

if TYPE_CHECKING:
    from hipdnn_miopen_provider.operation import Operation

_log = logging.getLogger("hipdnn_registry.miopen")

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
        """Read the user's perf-db. What can't be read counts as empty: MIOpen copes, so do we."""
        records: Records = {}
        stamps: dict[str, int] = {}
        try:
            for database in read_databases():
                if database.kind is DbKind.PERF:
                    name = database.path.name
                    stamps[name] = database.path.stat().st_mtime_ns
                    for key, solvers in database.records.items():
                        if _concerns(operation, key, batchnorm=database.is_batchnorm):
                            records |= {(name, key, s): value for s, value in solvers.items()}
        except (OSError, ValueError) as error:
            _log.warning("MIOpen's user perf-db in %s can't be read: %s", user_db_folder(), error)
        return cls(records, stamps)

    def changes(self, later: Snapshot) -> str:
        """Say what changed up to a later snapshot."""
        added = sorted({s for _, _, s in later.records.keys() - self.records.keys()})
        removed = sorted({s for _, _, s in self.records.keys() - later.records.keys()})
        kept = self.records.keys() & later.records.keys()
        replaced = {name for name, stamp in later.stamps.items() if self.stamps.get(name) != stamp}
        rewritten = sorted({solver for name, _, solver in kept if name in replaced})
        parts = [
            f"{verb} {', '.join(solvers)}"
            for verb, solvers in (("added", added), ("removed", removed), ("rewritten", rewritten))
            if solvers
        ]
        return "; ".join(parts) or "no change"


def _concerns(operation: Operation, key: str, *, batchnorm: bool) -> bool:
    try:
        return operation.concerns(
            parse_batchnorm_key(key) if batchnorm else parse_convolution_key(key)
        )
    except ValueError:  # a key of a newer MIOpen
        return False
