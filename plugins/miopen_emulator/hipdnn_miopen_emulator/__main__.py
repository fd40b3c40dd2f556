"""Builds the trees and runs Python inside one of them.

python -m hipdnn_miopen_emulator run -m pytest tests/native      the native lane
python -m hipdnn_miopen_emulator --tree 3.4.0 run script.py      the older library
python -m hipdnn_miopen_emulator python                          print the interpreter's path
python -m hipdnn_miopen_emulator pins                            what the archive has now

On a machine that can't build a tree ``run`` says why and succeeds; with CI=true it fails.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from hipdnn_miopen_emulator import (
    EmulatorError,
    EmulatorUnavailableError,
    archive,
    build_tree,
    make_python,
)
from hipdnn_miopen_emulator.pins import tree_pins


def main() -> int:
    """Runs one command and returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m hipdnn_miopen_emulator",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tree", default="3.5.1", help="MIOpen version (default 3.5.1)")
    parser.add_argument("action", choices=["run", "python", "pins"])
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments for Python (run)")
    options = parser.parse_args()
    try:
        if options.action == "pins":
            print_pins(options.tree)
            return 0
        python = make_python(build_tree(options.tree))
    except EmulatorUnavailableError as reason:
        in_ci = os.environ.get("CI") == "true"
        print(f"native lane {'FAILED' if in_ci else 'skipped'}: {reason}", file=sys.stderr)
        return 1 if in_ci else 0
    except EmulatorError as error:
        print(f"native lane FAILED: {error}", file=sys.stderr)
        return 1
    if options.action == "run":
        become([str(python), *options.arguments])
    print(python)
    return 0


def print_pins(miopen: str) -> None:
    """Prints what the archive has now of one tree's packages, in the form of packages.toml."""
    for package in archive.current_versions(tree_pins()[miopen].packages):
        print(
            f'"{package.name}" = {{ suite = "{package.suite}", version = "{package.version}", '
            f'sha256 = "{package.sha256}" }}'
        )


def become(command: list[str]) -> NoReturn:
    """Replaces this process, so that signals and the exit status are the command's own."""
    sys.stdout.flush()
    os.execv(command[0], command)  # noqa: S606  # a path we made, no shell


if __name__ == "__main__":
    sys.exit(main())
