"""What the provider adds to MIOpen's own calls: when a plan is built, and when it is executed.

The peer makes the same calls of libMIOpen and libamdhip64 by bare ctypes, in the same process. Both
sides take turns, so that what MIOpen keeps (kernels, databases in memory) serves both alike. On a
machine without an AMD GPU it runs on the stand-ins, twice: kernels are compiled, loaded and run
where MIOpen's work for a plan is measured, and accepted only, in no time, where it is to be small:

    hipdnn emulator run -- python -m benchmarks.miopen_overhead
    hipdnn emulator run --accept-only -- python -m benchmarks.miopen_overhead
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hipdnn_miopen_emulator.launcher import KERNELS_VARIABLE

from .figures import Figure, print_figures
from .miopen_building import figures_with_kernels, figures_without_kernels
from .miopen_calls import Bare
from .miopen_execution import execution_figures

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h

HAS_GPU = Path("/dev/kfd").exists()
"""Whether AMD's kernel driver is there, so an AMD GPU can be used."""


def miopen_figures(repeat: int, *, executed: bool, accepted: bool) -> list[Figure]:
    """Measure both overheads on the MIOpen of this process.

    Args:
        repeat: Rounds of a measurement.
        executed: Measure what kernels have to be loaded, or run, for.
        accepted: Measure what is to be seen best where kernels take no time.
    """
    bare = Bare()
    figures = figures_with_kernels(bare, repeat) if executed else []
    if accepted:
        figures += [*figures_without_kernels(bare, repeat), *execution_figures(bare, repeat)]
    return figures


def figures_inside_a_tree(*, quick: bool) -> list[Figure]:
    """Measure in a process that has a libMIOpen: an AMD GPU's, or on the stand-ins.

    Returns:
        The figures; none, and a word on stderr, where there is neither.
    """
    measure = ["-m", "benchmarks.miopen_overhead", "--json", *(["--quick"] if quick else [])]
    emulate = [sys.executable, "-m", "hipdnn_miopen_emulator", "run", "--or-skip"]
    commands = [
        [*emulate, "--", "python", *measure],
        [*emulate, "--accept-only", "--", "python", *measure],
    ]
    if HAS_GPU:
        commands = [[sys.executable, *measure]]
    listed: list[dict[str, Any]] = []
    for command in commands:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        listed += json.loads(done.stdout) if done.stdout.strip() else []
    return [Figure(**{k: v for k, v in figure.items() if k != "reached"}) for figure in listed]


def main() -> None:
    """Print the figures, with databases of their own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.miopen_overhead")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR"):
            os.environ[name] = str(Path(folder) / name.lower())
            Path(os.environ[name]).mkdir()
        os.environ.setdefault("MIOPEN_LOG_LEVEL", "2")
        if not HAS_GPU:  # the stand-ins lack the assembly kernels
            _keep_freed_memory()
            os.environ["MIOPEN_DEBUG_GCN_ASM_KERNELS"] = "0"
            os.environ["MIOPEN_DEBUG_TUNING_ITERATIONS_MAX"] = "10"
            os.environ["MIOPEN_EMULATOR_THREADS"] = (
                "1"  # waiting for each other, kernels' threads spin
            )
        accept_only = os.environ.get(KERNELS_VARIABLE) == "accept"
        figures = miopen_figures(
            2 if options.quick else 10,
            executed=not accept_only,
            accepted=HAS_GPU or accept_only,
        )
        print_figures(figures, as_json=options.json)


def _keep_freed_memory() -> None:
    """Make the C heap keep what is freed, as a device's driver does.

    The stand-ins' device memory comes from there. By default glibc maps large blocks anew each
    time, from a size on that moves with what both sides have freed.
    """
    c_library = ctypes.CDLL(None)
    for parameter in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
        c_library.mallopt(parameter, 2**30)


if __name__ == "__main__":
    main()
