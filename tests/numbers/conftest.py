"""MIOpen's numbers against CPU_REFERENCE_ENGINE, wherever MIOpen's kernels run.

On a machine with an AMD GPU: `make test-gpu`. Without one, inside the emulator:

hipdnn emulator run -- pytest tests/numbers

Nobody's perf-db is touched: MIOpen gets a private one.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from hipdnn_miopen_emulator import current_tree
from hipdnn_registry import EngineRegistry
from tests.native.environment import (
    FEWER_TRIALS,
    enter_private_environment,
    numeric_settings,
)

HERE = Path(__file__).parent
HOW = "on an AMD GPU: make test-gpu; anywhere else: hipdnn emulator run -- pytest tests/numbers"

if current_tree() is not None:  # before MIOpen is first called: it reads its variables once
    enter_private_environment(numeric_settings())
else:
    PRIVATE = tempfile.TemporaryDirectory(prefix="hipdnn-numbers-")
    os.environ |= {"MIOPEN_USER_DB_PATH": PRIVATE.name, **FEWER_TRIALS}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if item.path.is_relative_to(HERE)]
    missing = [
        record.reason
        for record in EngineRegistry(allow=["miopen"]).providers()
        if record.name == "miopen" and not record.engines
    ]
    if not here or not missing:
        return
    if os.environ.get("CI") == "true":
        raise pytest.UsageError(f"tests/numbers needs MIOpen ({missing[0]}); {HOW}")
    for item in here:
        item.add_marker(pytest.mark.skip(reason=f"MIOpen can't be used here ({missing[0]}); {HOW}"))


@pytest.fixture(scope="session")
def registry() -> EngineRegistry:
    return EngineRegistry(allow=["cpu", "miopen"])
