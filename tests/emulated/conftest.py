"""What only the emulator can show of MIOpen's kernels; the numbers themselves are tests/numbers.

hipdnn emulator run -- pytest tests/emulated
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hipdnn_miopen_emulator import current_tree
from tests.native.environment import enter_private_environment, numeric_settings

HERE = Path(__file__).parent
HOW = "hipdnn emulator run -- pytest tests/emulated"
INSIDE = current_tree() is not None

if INSIDE:  # before MIOpen is first called: it reads its variables once
    enter_private_environment(numeric_settings())
READY = INSIDE and os.environ["MIOPEN_EMULATOR_KERNELS"] == "execute"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if item.path.is_relative_to(HERE)]
    if READY or not here:
        return
    if os.environ.get("CI") == "true":
        raise pytest.UsageError(f"tests/emulated has to run where kernels are executed: {HOW}")
    for item in here:
        item.add_marker(pytest.mark.skip(reason=f"kernels are not executed here; run: {HOW}"))
