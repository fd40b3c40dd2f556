"""`hipdnn emulator status`: what is built, how large it is, and whether this process is inside."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_emulator.archive import size_of
from hipdnn_miopen_emulator.cache import current_tree
from hipdnn_miopen_emulator.inventory import inventory
from hipdnn_miopen_emulator.pins import toolchain_pins, tree_pins
from hipdnn_registry.cli import Report, facts, size_text

from .hip_python import hip_python_version, install_command

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from hipdnn_miopen_emulator.pins import Package

_PREFIX = "MIOPEN_EMULATOR_"


def status_report() -> Report:
    """Report what is in the cache folder."""
    found, inside, pins = inventory(), current_tree(), tree_pins()
    data: dict[str, Any] = {
        "inside": str(inside) if inside else None,
        "settings": {k: v for k, v in sorted(os.environ.items()) if k.startswith(_PREFIX)},
        "hip_python": {"version": hip_python_version(), "install": install_command()},
        "cache": {"path": str(found.cache), "size": size_of([found.cache])},
        "trees": [
            {
                "miopen": version,
                "package": _versioned("libmiopen1", pins[version].packages),
                "executes": pins[version].executes,
                **_built(folder),
            }
            for version, folder in found.trees.items()
        ],
        "compiler": {
            "package": _versioned("clang-19", toolchain_pins()),
            **_built(found.toolchain),
        },
        "kernels": {
            "count": sum(1 for folder in found.kernels for _ in folder.rglob("*.so")),
            "size": size_of(found.kernels),
        },
        "databases": {"size": size_of(found.states)},
        "packages": {"size": size_of([found.cache / "packages"])},
        "outdated": {"paths": list(map(str, found.outdated)), "size": size_of(found.outdated)},
    }
    return Report(data, lambda: _view(data))


def _versioned(name: str, packages: tuple[Package, ...]) -> str:
    return next(f"{name} {one.version}" for one in packages if one.name == name)


def _built(folder: Path) -> dict[str, Any]:
    return {"path": str(folder), "built": folder.exists(), "size": size_of([folder])}


def _view(data: dict[str, Any]) -> RenderableType:
    def state(entry: dict[str, Any]) -> str:
        return size_text(entry["size"]) if entry["built"] else "not built"

    rows = [("this process", f"inside {data['inside']}" if data["inside"] else "outside")]
    rows += [("setting", f"{name}={value}") for name, value in data["settings"].items()]
    hip_python = data["hip_python"]
    missing = f"not installed; '{hip_python['install']}' brings it"
    rows.append(("hip-python", hip_python["version"] or missing))
    rows.append(("folder", f"{data['cache']['path']}, {size_text(data['cache']['size'])}"))
    for tree in data["trees"]:
        accepting = "" if tree["executes"] else ", accepts kernels only"
        rows.append((f"MIOpen {tree['miopen']}", f"{state(tree)} ({tree['package']}{accepting})"))
    rows.append(("compiler", f"{state(data['compiler'])} ({data['compiler']['package']})"))
    kernels = data["kernels"]
    rows.append(("compiled kernels", f"{kernels['count']}, {size_text(kernels['size'])}"))
    rows.append(("MIOpen's databases", size_text(data["databases"]["size"])))
    rows.append(("packages", size_text(data["packages"]["size"])))
    if data["outdated"]["paths"]:
        size = size_text(data["outdated"]["size"])
        rows.append(("outdated", f"{size}; 'hipdnn emulator clean --outdated' removes it"))
    return facts(rows)
