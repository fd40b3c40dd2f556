"""Engines of MIOpen's names that compute real numbers on the host, so that no library is needed.

The arithmetic is that of the CPU provider's reference engine; buffers are numpy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hipdnn_cpu_provider.reference_engine import CpuReferenceEngine
from hipdnn_miopen_provider.shim import TensorDescriptor
from hipdnn_miopen_provider.tuning import find_mode_knob, tuning_policy_knob
from hipdnn_registry import (
    CompiledPlan,
    Declined,
    EffectiveSetting,
    Engine,
    EngineOffer,
    EngineRegistry,
    Environment,
    Graph,
    Knob,
    Provider,
    ProviderInfo,
    Resolution,
    benchmarking_knob,
    workspace_size_limit_knob,
)

LEAST, MOST = 64, 4096
KNOBS = (
    benchmarking_knob(),
    workspace_size_limit_knob(LEAST, MOST),
    tuning_policy_knob(),
    find_mode_knob(),
)


class HostEngine(CpuReferenceEngine):
    """Remembers what it is asked to build; takes the workspace that the limit lets it have."""

    def __init__(self, name: str = "MIOPEN_ENGINE", knobs: Sequence[Knob] = KNOBS) -> None:
        self.name = name
        self.knobs = tuple(knobs)
        self.built: list[dict[str, object]] = []
        self.estimated: list[dict[str, object]] = []
        self.failing: BaseException | None = None
        self.generation = 0  # of the perf-db that it would have

    def query(self, graph: Graph) -> EngineOffer | Declined:
        offer = super().query(graph)
        if isinstance(offer, Declined):
            return offer
        return EngineOffer(self.knobs, workspace_size=MOST)

    def resolve(
        self, graph: Graph, settings: Mapping[str, EffectiveSetting], environment: Environment
    ) -> Resolution:
        policy = settings.get("miopen.tuning_policy", EffectiveSetting(0)).value
        return Resolution(settings, self.generation, cacheable=policy not in {2, 4, 5})

    def estimate_workspace(self, graph: Graph, resolution: Resolution) -> int | None:
        self.estimated.append(asked(resolution))
        return 512

    def build(self, graph: Graph, resolution: Resolution) -> CompiledPlan:
        self.built.append(asked(resolution))
        self.generation += not resolution.cacheable
        if self.failing is not None:
            raise self.failing
        plan = super().build(graph, resolution)
        if "global.workspace_size_limit" in resolution.settings:
            plan.workspace_size = resolution["global.workspace_size_limit"]
        return plan


class HostProvider(Provider):
    def __init__(self, *engines: Engine) -> None:
        self.info = ProviderInfo("host-miopen", "1.0", knob_namespace="miopen")
        self._engines = engines

    def engines(self) -> Sequence[Engine]:
        return self._engines


def asked(resolution: Resolution) -> dict[str, object]:
    """The settings that a caller made or the environment forced."""
    return {
        knob_id: setting.value
        for knob_id, setting in resolution.settings.items()
        if setting.source != "default"
    }


def host_registry(*engines: Engine) -> EngineRegistry:
    return EngineRegistry([HostProvider(*engines)], entry_points=False)


def ones(desc: TensorDescriptor) -> np.ndarray[Any, Any]:
    """A buffer for such an engine, where its values don't matter."""
    return np.ones(desc.dims, np.float32)
