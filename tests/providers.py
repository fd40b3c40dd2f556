"""A provider small enough to read at a glance, that really computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hipdnn_registry import (
    CompiledPlan,
    Declined,
    EffectiveSetting,
    Engine,
    EngineOffer,
    Environment,
    Graph,
    IntConstraint,
    Knob,
    Provider,
    ProviderInfo,
    Resolution,
    benchmarking_knob,
)
from hipdnn_registry.graph import PointwiseNode

TILE = Knob("acme.tile", "Tile size", 8, IntConstraint(1, 64))
OLD_TILE = Knob("acme.old_tile", "Tile size", 8, deprecated=True, replacement="acme.tile")


class ReluPlan(CompiledPlan):
    def __init__(self, graph: Graph, resolution: Resolution) -> None:
        (node,) = graph.nodes
        assert isinstance(node, PointwiseNode)
        self.x, self.y = node.inputs.in_0_tensor_uid, node.outputs.out_0_tensor_uid
        self.workspace_size = resolution.settings["acme.tile"].value * 10  # type: ignore[assignment]

    def execute(
        self, buffers: Mapping[int, Any], workspace: Any | None, stream: int | None
    ) -> None:
        np.maximum(buffers[self.x], 0, out=buffers[self.y])


class ReluEngine(Engine):
    """Serves a single relu; counts what it is asked, and can be told to misbehave."""

    def __init__(
        self, name: str = "ACME_RELU", knobs: Sequence[Knob] | None = None, priority: int = 0
    ) -> None:
        self.name = name
        self.priority = priority
        self.knobs = (TILE, OLD_TILE, benchmarking_knob()) if knobs is None else knobs
        self.builds = self.queries = 0
        self.cacheable = True
        self.token: object = ()
        self.failing: dict[str, BaseException] = {}

    def _fail(self, step: str) -> None:
        if step in self.failing:
            raise self.failing[step]

    def query(self, graph: Graph) -> EngineOffer | Declined:
        self.queries += 1
        self._fail("query")
        node = graph.nodes[0]
        if len(graph.nodes) != 1 or not isinstance(node, PointwiseNode):
            return Declined(f"node '{node.name}' is no single relu_fwd")
        return EngineOffer(self.knobs, workspace_size=640)

    def resolve(
        self, graph: Graph, settings: Mapping[str, EffectiveSetting], environment: Environment
    ) -> Resolution:
        self._fail("resolve")
        return Resolution(settings, self.token, self.cacheable, notes=("resolved",))

    def estimate_workspace(self, graph: Graph, resolution: Resolution) -> int | None:
        self._fail("estimate_workspace")
        tile = resolution["acme.tile"]
        return 10 * int(tile)

    def build(self, graph: Graph, resolution: Resolution) -> CompiledPlan:
        self.builds += 1
        self._fail("build")
        return ReluPlan(graph, resolution)


class AcmeProvider(Provider):
    def __init__(self, *engines: Engine, name: str = "acme", **info: Any) -> None:
        info = {"version": "1.0", "knob_namespace": "acme", **info}
        self.info = ProviderInfo(name, **info)
        self._engines = engines or (ReluEngine(),)

    def engines(self) -> Sequence[Engine]:
        return self._engines
