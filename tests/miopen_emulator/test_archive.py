"""Packages are pinned, verified, and cached; what is missing is said."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_emulator import EmulatorError, EmulatorUnavailableError, archive
from hipdnn_miopen_emulator.pins import toolchain_pins, tree_pins

if TYPE_CHECKING:
    from pathlib import Path

    from hipdnn_miopen_emulator.pins import Package


@pytest.fixture
def zlib() -> Package:
    return next(one for one in tree_pins()["3.5.1"].packages if one.name == "zlib1g")


def test_every_package_is_pinned() -> None:
    trees = tree_pins()
    assert list(trees) == ["3.5.1", "3.4.0"]
    for pins in trees.values():
        assert {"libmiopen1", "libc6"} <= {package.name for package in pins.packages}
    for package in {*toolchain_pins(), *trees["3.5.1"].packages, *trees["3.4.0"].packages}:
        assert package.suite in {"bookworm", "sid", "experimental"}
        assert re.fullmatch(r"[0-9a-f]{64}", package.sha256)


def test_an_archive_that_can_not_be_reached_is_a_reason_to_skip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zlib: Package
) -> None:
    monkeypatch.setenv(archive.ARCHIVE_VARIABLE, f"file:{tmp_path}/debian-that-is-not-there")
    with pytest.raises(EmulatorUnavailableError, match="package archive can't be reached: "):
        archive.fetch([zlib], tmp_path / "cache")


def test_a_machine_without_apt_is_told_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zlib: Package
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmulatorUnavailableError, match="apt-get is not installed") as error:
        archive.fetch([zlib], tmp_path / "cache")
    assert "a Debian machine" in str(error.value)
    assert "debian-archive-keyring" in str(error.value)


@pytest.mark.slow
def test_a_version_that_has_gone_is_named_with_what_is_there(tmp_path: Path, zlib: Package) -> None:
    with pytest.raises(EmulatorError) as error:
        archive.fetch([replace(zlib, version="0.1-1")], tmp_path)
    assert re.search(r"zlib1g: expected 0\.1-1, found 1:1", str(error.value))
    for way_out in (archive.ANY_VERSION_VARIABLE, archive.ARCHIVE_VARIABLE, "emulator pins"):
        assert way_out in str(error.value)


@pytest.mark.slow
def test_any_version_is_taken_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zlib: Package
) -> None:
    monkeypatch.setenv(archive.ANY_VERSION_VARIABLE, "1")
    (deb,) = archive.fetch([replace(zlib, version="0.1-1")], tmp_path)
    assert deb.read_bytes().startswith(b"!<arch>")


@pytest.mark.slow
def test_a_checksum_that_differs_is_a_failure(tmp_path: Path, zlib: Package) -> None:
    with pytest.raises(EmulatorError, match=f"expects {'0' * 64}"):
        archive.fetch([replace(zlib, sha256="0" * 64)], tmp_path)
    assert list(tmp_path.glob("*.deb")) == []


@pytest.mark.slow
def test_what_is_cached_and_intact_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zlib: Package
) -> None:
    (deb,) = archive.fetch([zlib], tmp_path)
    before = deb.read_bytes()
    with monkeypatch.context() as offline:
        offline.setenv("PATH", str(tmp_path))
        assert archive.fetch([zlib], tmp_path) == [deb]
    deb.write_bytes(before[:100])
    assert archive.fetch([zlib], tmp_path) == [deb]
    assert deb.read_bytes() == before
