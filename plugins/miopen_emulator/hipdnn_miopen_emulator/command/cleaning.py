"""`hipdnn emulator clean`."""

from __future__ import annotations

import shutil

from hipdnn_miopen_emulator.archive import size_of
from hipdnn_miopen_emulator.cache import locked
from hipdnn_miopen_emulator.inventory import inventory
from hipdnn_registry.cli import Report, size_text


def clean_report(*, kernels: bool, outdated: bool) -> Report:
    """Remove folders of the cache and report what that freed; without a choice, all of them.

    Raises:
        EmulatorError: The cache folder can't be written to.
    """
    with locked() as cache:
        found = inventory()
        chosen = [*(found.outdated if outdated else []), *(found.states if kernels else [])]
        if kernels:
            chosen += found.kernels
        if not (kernels or outdated):
            chosen = [path for path in cache.iterdir() if path.is_dir()]
        freed = size_of(chosen)
        for path in chosen:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    data = {"cache": str(cache), "removed": [str(path) for path in chosen], "size": freed}
    return Report(data, lambda: f"{size_text(freed)} removed from {cache}")
