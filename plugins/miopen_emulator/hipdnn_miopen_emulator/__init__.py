"""The real libMIOpen on a machine without an AMD GPU: its kernels run on the CPU.

    from hipdnn_miopen_emulator import build_tree, command_line, environment

    tree = build_tree()
    subprocess.run(command_line(tree, ["python", "train.py"]), env=environment(tree), check=True)

Names are loaded when they are first used, so importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cache import cache_folder, current_tree
    from .errors import (
        EmulatorError,
        EmulatorUnavailableError,
        UnknownTreeError,
        UnsuitableCommandError,
        UnsuitableSettingError,
    )
    from .launcher import command_line, environment
    from .pythons import make_python
    from .steps import Step, Steps
    from .trees import build_tree, tree_folder

__all__ = [
    "EmulatorError",
    "EmulatorUnavailableError",
    "Step",
    "Steps",
    "UnknownTreeError",
    "UnsuitableCommandError",
    "UnsuitableSettingError",
    "build_tree",
    "cache_folder",
    "command_line",
    "current_tree",
    "environment",
    "make_python",
    "tree_folder",
]

__version__ = "0.1.0"

_HOME = {
    "cache": ("cache_folder", "current_tree"),
    "errors": (
        "EmulatorError",
        "EmulatorUnavailableError",
        "UnknownTreeError",
        "UnsuitableCommandError",
        "UnsuitableSettingError",
    ),
    "launcher": ("command_line", "environment"),
    "pythons": ("make_python",),
    "steps": ("Step", "Steps"),
    "trees": ("build_tree", "tree_folder"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
