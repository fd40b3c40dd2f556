"""Whether the folder of MIOpen's user databases can be used; MIOpen's failure itself is native."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_provider.database_folder import explained, folder_problem
from hipdnn_miopen_provider.native import MiopenError, NativeError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_that_can_be_made_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a" / "b"
    monkeypatch.setenv("MIOPEN_USER_DB_PATH", str(folder))
    assert folder_problem() == ""
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("folder", "problem"),
    [("file", "made (File exists)"), ("file/folder", "made (Not a directory)")],
)
def test_an_error_of_miopen_names_a_folder_that_cannot(
    folder: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / folder
    monkeypatch.setenv("MIOPEN_USER_DB_PATH", str(path))
    expected = (
        f"MIOPEN_USER_DB_PATH={path}, the folder of MIOpen's user databases, can't be {problem}: "
        "set MIOPEN_USER_DB_PATH to a folder that can"
    )
    assert folder_problem() == expected
    text = explained(MiopenError("miopenCreate", 7, "miopenStatusUnknownError", ""))
    assert text.startswith("miopenCreate: miopenStatusUnknownError (7)")
    assert text.endswith(f"; {expected}")
    assert explained(NativeError("no device")) == "no device"


@pytest.mark.parametrize(
    ("value", "wrong"),
    [("", False), (" search ", False), ("4", False), ("6", True), ("garbage", True)],
)
def test_an_error_of_miopen_names_a_find_enforce_that_it_cannot_read(
    value: str, wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIOPEN_USER_DB_PATH", str(tmp_path))
    monkeypatch.setenv("MIOPEN_FIND_ENFORCE", value)
    text = explained(MiopenError("miopenFind", 7, "miopenStatusUnknownError", ""))
    problem = (
        f"; MIOPEN_FIND_ENFORCE is {value!r}, but must be one of NONE, DB_UPDATE, SEARCH, "
        "SEARCH_DB_UPDATE, DB_CLEAN, or their number, 1 to 5"
    )
    assert text.endswith(problem) is wrong


def test_a_folder_that_cannot_be_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can write to /proc, the superuser included."""
    monkeypatch.setenv("MIOPEN_USER_DB_PATH", "/proc")
    assert "MIOPEN_USER_DB_PATH=/proc, " in folder_problem()
    assert "can't be written to (" in folder_problem()
