"""Which databases a command reads, and what all of them say about a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.database_files import read_folder
from hipdnn_miopen_provider.perf_db import USER_DB_VARIABLE, user_db_folder
from hipdnn_registry import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from hipdnn_miopen_provider.database_files import Damage, DatabaseFile


def databases(path: Path | None) -> tuple[Path, list[DatabaseFile]]:
    """Return the folder that is looked in, and its databases.

    Args:
        path: The folder; `None` is MIOpen's, which need not exist yet.

    Raises:
        InvalidInputError: It is no folder, or can't be read; says where it comes from.
    """
    if path is None:
        source = USER_DB_VARIABLE if os.environ.get(USER_DB_VARIABLE) else "MIOpen's default folder"
        folder = user_db_folder()
        return folder, read(folder, source)
    if not exists(path, "--path"):
        raise InvalidInputError(f"--path is '{path}', but there is no such folder")
    return path, read(path, "--path")


def exists(path: Path, source: str) -> bool:
    """Return whether there is such a file or folder.

    Raises:
        InvalidInputError: There can be none of this name, or it can't be looked for.
    """
    try:
        return path.exists()
    except OSError as error:
        raise InvalidInputError(
            f"{source} is '{path}', which can't be read: {error.strerror}"
        ) from None


def read(folder: Path, source: str) -> list[DatabaseFile]:
    """Read a folder's databases.

    Raises:
        InvalidInputError: It can't be read; says where it comes from.
    """
    try:
        return read_folder(folder)
    except OSError as error:
        raise InvalidInputError(
            f"{source} is '{folder}', which can't be read as a folder: {error.strerror}"
        ) from None


def file_data(file: DatabaseFile) -> dict[str, Any]:
    """Return what identifies a file, for `--json`."""
    return {
        "file": file.path.name,
        "kind": file.kind_name,
        "architecture": file.name.architecture,
        "compute_units": file.name.compute_units,
        "miopen_version": file.name.miopen_version,
    }


def readable(file: DatabaseFile) -> bool:
    """Return whether a file could be read, if only in part."""
    return all(damage.line is not None for damage in file.damage)


def damage_data(files: Iterable[DatabaseFile]) -> list[dict[str, Any]]:
    """Return what is damaged in some files, for `--json`."""
    return [
        {"file": str(one.path), "line": one.line, "problem": one.problem}
        for one in damage_in(files)
    ]


def damage_in(files: Iterable[DatabaseFile]) -> list[Damage]:
    """Return what is damaged in some files."""
    return [damage for file in files for damage in file.damage]
