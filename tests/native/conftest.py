"""The native lane: these tests run inside a tree, against the real libMIOpen.

hipdnn emulator run --accept-only -- python -m pytest tests/native
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hipdnn_miopen_emulator import current_tree
from hipdnn_registry import EngineRegistry
from tests.native.engines import new_registry
from tests.native.environment import enter_private_environment

HERE = Path(__file__).parent
HOW = "hipdnn emulator run --accept-only -- python -m pytest tests/native"
INSIDE = current_tree() is not None

if INSIDE:  # before MIOpen is first called: it reads its variables once
    enter_private_environment()


@pytest.fixture(scope="module")
def registry() -> EngineRegistry:
    """The MIOpen provider's, whose plan cache the tests of one module share."""
    return new_registry()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if INSIDE:
        return
    native = [item for item in items if item.path.is_relative_to(HERE)]
    if native and os.environ.get("CI") == "true":
        raise pytest.UsageError(f"tests/native has to run inside a tree: {HOW}")
    for item in native:
        item.add_marker(pytest.mark.skip(reason=f"not inside a tree; run: {HOW}"))
