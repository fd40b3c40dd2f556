"""A process's private MIOpen: databases, kernel cache and home in one folder, everything logged.

MIOpen reads most of its variables once, so they have to be there before it is first called; what
needs other settings than ``BASE`` runs in a child process.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hipdnn_miopen_emulator.launcher import KERNELS_VARIABLE, WITHOUT_ASSEMBLY

if TYPE_CHECKING:
    from collections.abc import Mapping

FEW_TRIALS: Mapping[str, str] = {"MIOPEN_DEBUG_TUNING_ITERATIONS_MAX": "10"}
"""Enough of a search to see that there was one."""

FEWER_TRIALS: Mapping[str, str] = {"MIOPEN_DEBUG_TUNING_ITERATIONS_MAX": "3"}
"""The same where each trial's kernel is compiled and executed."""

BASE: Mapping[str, str] = {
    # these tests look at what the library does and says, not at numbers
    KERNELS_VARIABLE: "accept",
    **FEW_TRIALS,
    # level 6 has a line for each record that is loaded
    "MIOPEN_LOG_LEVEL": "6",
    **WITHOUT_ASSEMBLY,
}

WITH_ASSEMBLY: Mapping[str, str] = {
    "MIOPEN_EMULATOR_ASM": "1",
    "MIOPEN_DEBUG_GCN_ASM_KERNELS": "1",
    "MIOPEN_DEBUG_AMD_WINOGRAD_RXS_F2X3_G1": "1",
}
"""For children: solvers with (dummy) assembly kernels, the only dynamic tunable ones."""


def private_environment(folder: Path) -> dict[str, str]:
    """``BASE`` with all of MIOpen's files in ``folder``, and no setting of the caller's."""
    for name in ("db", "cache", "home"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MIOPEN_", "HIPDNN_", "ROCM_"))
    }
    return inherited | {
        **BASE,
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "home"),
        "MIOPEN_USER_DB_PATH": str(folder / "db"),
        "MIOPEN_CUSTOM_CACHE_DIR": str(folder / "cache"),
        "MIOPEN_EMULATOR_LOG": str(folder / "hip.log"),
    }


@cache
def _private_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="hipdnn-native-"))
    creator = os.getpid()

    def remove() -> None:
        if os.getpid() == creator:  # a forked child may end before its parent is done
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def enter_private_environment(settings: Mapping[str, str] | None = None) -> None:
    """Gives this process a private MIOpen; its folder goes when the process does."""
    variables = private_environment(_private_folder()) | dict(settings or {})
    os.environ.clear()
    os.environ.update(variables)


def numeric_settings() -> dict[str, str]:
    """For a process that looks at numbers: kernels run, unless the emulator was told otherwise."""
    given = {k: v for k, v in os.environ.items() if k.startswith("MIOPEN_EMULATOR_")}
    return {KERNELS_VARIABLE: "execute", "MIOPEN_LOG_LEVEL": "3", **FEWER_TRIALS} | given


def child_log(folder: Path) -> str:
    """What MIOpen logged within the observed blocks of a child, also of one that died there."""
    return "".join(path.read_text(errors="replace") for path in folder.glob("miopen-*.log"))


def run_child(
    folder: Path, script: str, settings: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a script in a new process with a private MIOpen; ``sys.executable`` is the launcher."""
    return subprocess.run(
        [sys.executable, "-c", script],
        env=private_environment(folder) | dict(settings or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
