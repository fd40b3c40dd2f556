"""The stand-ins' own promises: pinned packages, clear reasons, trees that rebuild when changed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_emulator import archive, trees
from hipdnn_miopen_emulator.archive import EmulatorError, EmulatorUnavailableError

if TYPE_CHECKING:
    from pathlib import Path


def test_every_package_is_pinned() -> None:
    pins = archive.read_pins()
    assert set(pins) == {"3.5.1", "3.4.0"}
    for tree in pins.values():
        assert "libmiopen1" in {package.name for package in tree.packages}
        for package in tree.packages:
            assert package.suite in {"sid", "experimental"}
            assert re.fullmatch(r"[0-9a-f]{64}", package.sha256)


def test_an_archive_that_can_not_be_reached_is_a_reason_to_skip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(archive.ARCHIVE_VARIABLE, f"file:{tmp_path}/debian-that-is-not-there")
    with pytest.raises(EmulatorUnavailableError, match="package archive can't be reached: "):
        archive.fetch(archive.read_pins()["3.5.1"].packages, tmp_path / "cache")


@pytest.mark.slow
def test_a_version_that_has_gone_is_named_with_what_is_there(tmp_path: Path) -> None:
    (package,) = (p for p in archive.read_pins()["3.5.1"].packages if p.name == "zlib1g")
    gone = replace(package, version="0.1-1")
    with pytest.raises(EmulatorError) as error:
        archive.fetch((gone,), tmp_path)
    assert re.search(r"zlib1g: expected 0\.1-1, found 1:1", str(error.value))
    assert archive.ANY_VERSION_VARIABLE in str(error.value)


@pytest.mark.slow
def test_a_checksum_that_differs_is_a_failure(tmp_path: Path) -> None:
    (package,) = (p for p in archive.read_pins()["3.5.1"].packages if p.name == "zlib1g")
    with pytest.raises(EmulatorError, match=f"expects {'0' * 64}"):
        archive.fetch((replace(package, sha256="0" * 64),), tmp_path)
    assert list(tmp_path.glob("*.deb")) == []


def test_an_unknown_tree_names_those_that_exist() -> None:
    with pytest.raises(EmulatorError, match=r"no tree for MIOpen 9\.9; there are 3\.5\.1, 3\.4\.0"):
        trees.build_tree("9.9")


@pytest.mark.parametrize(("ci", "returncode", "word"), [("", 0, "skipped"), ("true", 1, "FAILED")])
def test_a_machine_that_can_not_build_skips_or_in_ci_fails(
    ci: str, returncode: int, word: str, tmp_path: Path
) -> None:
    settings = {trees.CACHE_VARIABLE: str(tmp_path), "PATH": "/nowhere", "CI": ci}
    done = subprocess.run(
        [sys.executable, "-m", "hipdnn_miopen_emulator", "run", "-c", "pass"],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == returncode
    assert f"native lane {word}: gcc is not installed" in done.stderr
