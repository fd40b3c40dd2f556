"""What is in the cache folder, and which of it this version of the package made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .cache import cache_folder
from .pins import tree_pins
from .toolchain import toolchain_folder
from .trees import tree_folder

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Inventory:
    """The folders of the cache; those of `trees` and `toolchain` need not exist.

    Attributes:
        cache: The whole.
        trees: MIOpen version -> its tree.
        toolchain: The compiler.
        kernels: Folders of compiled kernels.
        states: What MIOpen keeps of each tree: databases, compiled kernels.
        outdated: Trees, toolchains and states of other versions of this package.
    """

    cache: Path
    trees: dict[str, Path]
    toolchain: Path
    kernels: list[Path]
    states: list[Path]
    outdated: list[Path]


def inventory() -> Inventory:
    """Look into the cache folder."""
    cache = cache_folder()
    trees = {version: tree_folder(version) for version in tree_pins()}
    toolchain = toolchain_folder(cache)
    names = {toolchain.name, *(tree.name for tree in trees.values())}
    made = [path for name in ("trees", "toolchains", "miopen") for path in _entries(cache / name)]
    return Inventory(
        cache=cache,
        trees=trees,
        toolchain=toolchain,
        kernels=_entries(cache / "kernels"),
        states=_entries(cache / "miopen"),
        outdated=[path for path in made if path.name not in names],
    )


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []
