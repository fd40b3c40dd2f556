"""What the emulator's own tests share: a tree, and a cache folder that has none yet."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hipdnn_miopen_emulator import EmulatorUnavailableError, build_tree, cache_folder
from hipdnn_miopen_emulator.cache import CACHE_VARIABLE


@pytest.fixture(scope="session")
def tree() -> Path:
    """The tree of the newest MIOpen, in the user's cache folder."""
    try:
        return build_tree()
    except EmulatorUnavailableError as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(reason))


@pytest.fixture
def fresh_cache(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder without trees; packages and toolchain are those of the user's."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for name in ("packages", "toolchains"):
        (cache / name).symlink_to(cache_folder() / name)
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    return cache
