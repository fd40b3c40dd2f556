"""What the emulator is made of: `packages.toml`, which pins Debian packages."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

PINS = Path(__file__).with_name("packages.toml")


@dataclass(frozen=True, slots=True)
class Package:
    """One pinned package. The checksum is that of the .deb file."""

    name: str
    suite: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class TreePins:
    """What one tree is made of.

    Attributes:
        packages: The packages to unpack.
        sonames: Names under which its libMIOpen asks for the stand-ins.
        executes: Whether its stand-ins run kernels; if not, they only accept them.
        preload: A stand-in that every process of the tree preloads, or "".
    """

    packages: tuple[Package, ...]
    sonames: dict[str, str]
    executes: bool = True
    preload: str = ""


def tree_pins() -> dict[str, TreePins]:
    """Return MIOpen version -> what its tree is made of; the newest first."""
    table = tomllib.loads(PINS.read_text())
    return {
        version: TreePins(**tree | {"packages": _packages(table["common"] | tree["packages"])})
        for version, tree in table["tree"].items()
    }


def toolchain_pins() -> tuple[Package, ...]:
    """Return the packages of the compiler."""
    return _packages(tomllib.loads(PINS.read_text())["toolchain"])


def _packages(section: dict[str, dict[str, str]]) -> tuple[Package, ...]:
    return tuple(Package(name, **pin) for name, pin in sorted(section.items()))
