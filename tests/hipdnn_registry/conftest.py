"""Distributions of the tests' own: real metadata and modules in a folder on sys.path."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest


class Site:
    """A folder on sys.path that distributions, all of version 1.5, are installed into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: list[str] = []

    def install(self, dist: str, source: str, group: str, name: str, attribute: str) -> None:
        """Install a module with an entry point: itself, or with `attribute` an object in it."""
        module = dist.replace("-", "_")
        self.modules.append(module)
        (self.folder / f"{module}.py").write_text(textwrap.dedent(source))
        info = self.folder / f"{module}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.5\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}{attribute}\n")
        importlib.invalidate_caches()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Such a folder; at the end nothing of it is left imported."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    site = Site(folder)
    yield site
    for module in site.modules:
        sys.modules.pop(module, None)
