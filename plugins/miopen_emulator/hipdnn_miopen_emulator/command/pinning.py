"""`hipdnn emulator pins`: what to write into packages.toml once the archive has moved on."""

from __future__ import annotations

import re

from hipdnn_miopen_emulator.archive import current_versions
from hipdnn_miopen_emulator.pins import toolchain_pins, tree_pins


def print_pins() -> None:
    """Print the pinned packages as the archive has them now, by what they are for."""
    sections = {"compiler": toolchain_pins()} | {
        f"MIOpen {version}": pins.packages for version, pins in tree_pins().items()
    }
    for heading, packages in sections.items():
        print(f"# {heading}")
        for package in current_versions(packages):
            name = package.name if re.fullmatch(r"[\w-]+", package.name) else f'"{package.name}"'
            print(
                f'{name} = {{ suite = "{package.suite}", version = "{package.version}", '
                f'sha256 = "{package.sha256}" }}'
            )
