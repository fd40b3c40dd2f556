"""Trees: complete, built once, never half, and anew when what they are made of changes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_emulator import (
    EmulatorError,
    Steps,
    UnknownTreeError,
    build_tree,
    standins,
    tree_folder,
    trees,
)
from hipdnn_miopen_emulator.cache import CACHE_VARIABLE

if TYPE_CHECKING:
    from pathlib import Path


def test_an_unknown_version_names_those_that_exist() -> None:
    with pytest.raises(UnknownTreeError, match=r"MIOpen 9\.9; there are 3\.5\.1, 3\.4\.0"):
        build_tree("9.9")


@pytest.mark.slow
def test_a_tree_is_built_once(fresh_cache: Path) -> None:
    steps = Steps()
    tree = build_tree(steps=steps)
    assert tree.parent == fresh_cache / "trees"
    assert [step.name for step in steps.steps] == ["unpack libMIOpen", "compile the stand-ins"]
    assert all(step.seconds and step.size for step in steps.steps)
    for name in ("libMIOpen.so.1", "libamdhip64.so", "librocblas.so.5", "libopenblas.so.0"):
        assert (tree / "lib" / name).is_file()
    assert (tree / "toolchain/bin/clang-19").is_file()
    again = Steps()
    assert build_tree(steps=again) == tree
    assert again.steps == []
    # the Python that it starts may have gone since
    script = tree / "bin" / "compile-kernel"
    good = script.read_text()
    script.write_text("#!/nowhere/python\n")
    build_tree()
    assert script.read_text() == good


def test_a_stand_in_that_does_not_compile_is_said_and_leaves_nothing(
    fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "src"
    shutil.copytree(standins.SOURCES, sources)
    for path in sources.rglob("*.cpp"):
        path.write_text("")  # these compile quickly
    next(sources.rglob("rocblas.cpp")).write_text("int rocblas = no_such_name;")
    monkeypatch.setattr(standins, "SOURCES", sources)
    with pytest.raises(EmulatorError, match=r"undeclared identifier 'no_such_name'"):
        build_tree()
    assert list((fresh_cache / "trees").iterdir()) == []


def test_a_changed_source_makes_another_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    shutil.copytree(trees.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = tree_folder()
    monkeypatch.setattr(trees, "PACKAGE", package)
    monkeypatch.setattr(standins, "SOURCES", package / "src")
    assert tree_folder() == before
    source = next((package / "src").rglob("*.c*"))
    source.write_text(source.read_text() + "\n")
    assert tree_folder() != before


@pytest.mark.parametrize(
    ("name", "reason"),
    [("a-file/cache", "can't be written to (Not a directory)"), ("a:b", "has a ':' in its name")],
)
def test_a_cache_folder_that_can_not_be_used_is_named(
    name: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a-file").touch()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / name))
    with pytest.raises(EmulatorError) as error:
        build_tree()
    assert f"{tmp_path / name} {reason}" in str(error.value)
    assert CACHE_VARIABLE in str(error.value)
