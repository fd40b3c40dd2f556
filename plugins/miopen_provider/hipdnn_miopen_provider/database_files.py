"""MIOpen's user databases as files: what their names say, and their records, damaged lines or not.

    [batchnorm_]DEVICE.HIP.MAJOR_MINOR_PATCH_[COMMIT][.fusion].udb.txt or .ufdb.txt

DEVICE is the architecture and its number of compute units: decimal behind ``_`` (gfx1100_48), or
where there are more than 64 hexadecimal with nothing between (gfx90a6e has 110).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.perf_db import parse_find_value, parse_record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class FileKind(Enum):
    """What a file holds."""

    PERF = "perf-db"
    BATCHNORM_PERF = "batchnorm perf-db"
    FIND = "find-db"
    FUSION_FIND = "fusion find-db"

    @property
    def is_find(self) -> bool:
        """Whether values are times, workspaces and algorithms, and not tuned parameters."""
        return self in {FileKind.FIND, FileKind.FUSION_FIND}


@dataclass(frozen=True, slots=True)
class FileName:
    """What a file's name says.

    Attributes:
        kind: What it holds; `None` where the name is of another form.
        architecture: Such as gfx90a.
        compute_units: Their number; `None` if the name doesn't say.
        miopen_version: Such as 3.5.1, with the commit behind it if the name has one.
    """

    kind: FileKind | None = None
    architecture: str = ""
    compute_units: int | None = None
    miopen_version: str = ""


_NAME = re.compile(
    r"(?P<batchnorm>batchnorm_)?(?P<device>[^.]+)\.\w+\.(?P<version>\d+_\d+_\d+)_(?P<commit>[^.]*)"
    r"(?P<extra>(?:\.[^.]+)*)\.(?P<end>udb|ufdb)\.txt"
)
_DEVICE = re.compile(
    r"(?P<architecture>gfx(?:1[0-9a-f]{3}|[0-9a-f]{3}))(?:_(?P<few>\d+)|(?P<many>[0-9a-f]{2,3}))"
)


def read_name(name: str) -> FileName:
    """Return what a file's name says."""
    match = _NAME.fullmatch(name)
    if match is None:
        return FileName()
    if match["end"] == "ufdb":
        kind = FileKind.FUSION_FIND if match["extra"] == ".fusion" else FileKind.FIND
    else:
        kind = FileKind.BATCHNORM_PERF if match["batchnorm"] else FileKind.PERF
    version = f"{match['version'].replace('_', '.')} {match['commit']}".rstrip()
    device = _DEVICE.fullmatch(match["device"])
    if device is None:
        return FileName(kind, match["device"], None, version)
    units = int(device["few"]) if device["few"] else int(device["many"], 16)
    return FileName(kind, device["architecture"], units, version)


@dataclass(frozen=True, slots=True)
class Damage:
    """A line that can't be used, or a file that can't be read.

    Attributes:
        path: The file.
        line: Number of the line from 1; `None`: the file.
        problem: What is wrong with it.
    """

    path: Path
    line: int | None
    problem: str

    def __str__(self) -> str:
        """Return one line for people."""
        where = "" if self.line is None else f", line {self.line}"
        return f"{self.path}{where}: {self.problem}"


@dataclass(frozen=True, slots=True)
class DatabaseFile:
    """A file as it was when it was read.

    Attributes:
        path: The file.
        name: What its name says.
        nbytes: Its size.
        modified: When it was last replaced, in seconds since the epoch.
        records: Key -> solver -> value, all as text.
        damage: What of it can't be used.
    """

    path: Path
    name: FileName
    nbytes: int = 0
    modified: float = 0.0
    records: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    damage: tuple[Damage, ...] = ()

    @property
    def kind_name(self) -> str:
        """What it holds, for people."""
        return self.name.kind.value if self.name.kind else "database"


def read_folder(folder: Path) -> list[DatabaseFile]:
    """Read the user databases of a folder, sorted by name; what else is there is left alone."""
    try:
        paths = sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    return [read_file(path) for path in paths if read_name(path.name).kind]


def read_file(path: Path) -> DatabaseFile:
    """Read one file; what is damaged in it, or that it can't be read, is in its `damage`."""
    name = read_name(path.name)
    try:
        stat, content = path.stat(), path.read_bytes()
    except OSError as error:
        problem = f"can't be read: {error.strerror}"
        return DatabaseFile(path, name, damage=(Damage(path, None, problem),))
    records: dict[str, dict[str, str]] = {}
    damage = []
    for number, line in enumerate(content.decode(errors="backslashreplace").split("\n"), 1):
        if not line.strip():
            continue
        try:
            key, record = parse_record(line.rstrip("\r"))
            if records.setdefault(key, record) is not record:
                damage.append(Damage(path, number, f"left out, a second line of key {key[:80]!r}"))
            if name.kind is not None and name.kind.is_find:
                _check_find_values(record)
        except ValueError as error:
            damage.append(Damage(path, number, str(error)))
    return DatabaseFile(path, name, stat.st_size, stat.st_mtime, records, tuple(damage))


def _check_find_values(record: dict[str, str]) -> None:
    """Drop the values that are none, then say so.

    Raises:
        ValueError: There were some.
    """
    problems = []
    for solver in list(record):
        try:
            parse_find_value(record[solver])
        except ValueError as error:
            problems.append(f"solver {solver} has {error}")
            del record[solver]
    if problems:
        raise ValueError("; ".join(problems))
