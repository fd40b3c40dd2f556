"""A handle whose calls are forwarded to an engine on the host, which remembers them."""

from __future__ import annotations

import pytest

from hipdnn_miopen_provider.shim import MiopenHandle
from tests.miopen_provider.shim.engines import HostEngine, host_registry


@pytest.fixture
def engine() -> HostEngine:
    return HostEngine()


@pytest.fixture
def handle(engine: HostEngine) -> MiopenHandle:
    return MiopenHandle(registry=host_registry(engine))
