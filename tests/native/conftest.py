"""The native lane: these tests run inside a tree, against the real libMIOpen.

hipdnn emulator run --accept-only -- python -m pytest tests/native
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_emulator import current_tree
from tests.native.environment import private_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
HOW = "hipdnn emulator run --accept-only -- python -m pytest tests/native"
INSIDE = current_tree() is not None

if INSIDE:  # before MIOpen is first called: it reads its variables once
    FOLDER = Path(tempfile.mkdtemp(prefix="hipdnn-native-"))
    SETTINGS = private_environment(FOLDER)
    os.environ.clear()
    os.environ.update(SETTINGS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if INSIDE:
        return
    native = [item for item in items if item.path.is_relative_to(HERE)]
    if native and os.environ.get("CI") == "true":
        raise pytest.UsageError(f"tests/native has to run inside a tree: {HOW}")
    for item in native:
        item.add_marker(pytest.mark.skip(reason=f"not inside a tree; run: {HOW}"))


@pytest.fixture(autouse=True, scope="session")
def private_folder() -> Iterator[None]:
    yield
    if INSIDE:
        shutil.rmtree(FOLDER, ignore_errors=True)
