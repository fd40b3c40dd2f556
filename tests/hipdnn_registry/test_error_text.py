"""A provider's exception whose own text fails is as any other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hipdnn_registry import EngineDefectError, EngineRegistry, ExecutionError, ProviderStatus
from tests.graphs import relu_graph
from tests.providers import AcmeProvider, ReluEngine

FAILING = "MuteError: (its __str__ fails with RuntimeError)"


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class MuteProvider(AcmeProvider):
    def engines(self) -> Any:
        raise MuteError


def test_a_provider_is_broken_and_the_others_serve() -> None:
    registry = EngineRegistry([MuteProvider(name="mute"), AcmeProvider()], entry_points=False)
    mute, acme = registry.providers()
    assert (mute.status, acme.status) == (ProviderStatus.BROKEN, ProviderStatus.LOADED)
    assert mute.reason == FAILING
    assert len(registry.get_engine_configs(relu_graph())) == 1


@pytest.mark.parametrize("step", ["query", "resolve", "build"])
def test_the_step_is_named(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MuteError

    monkeypatch.setattr(ReluEngine, step, fail)
    registry = EngineRegistry([AcmeProvider()], entry_points=False)
    with pytest.raises(EngineDefectError) as caught:
        registry.create_execution_plan_ext(relu_graph(), "ACME_RELU")
    assert f"failed in {step}: {FAILING}" in str(caught.value)


def test_an_execution_is_an_execution_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MuteError

    graph = relu_graph(dims=(4, 3))
    plan = EngineRegistry([AcmeProvider()], entry_points=False).create_execution_plan_ext(graph)
    monkeypatch.setattr(type(plan._compiled), "execute", fail)
    pack = {tensor.name: np.zeros((4, 3), np.float32) for tensor in graph.io_tensors}
    with pytest.raises(ExecutionError) as caught:
        plan.execute(pack)
    assert str(caught.value) == f"engine ACME_RELU failed: {FAILING}"
