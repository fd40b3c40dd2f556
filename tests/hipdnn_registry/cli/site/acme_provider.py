"""A provider as a stranger would install it, whose engines go wrong in every way but the first's.

They serve a graph of one relu, `ACME_FORWARD` a convolution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hipdnn_registry import (
    BufferKind,
    CompiledPlan,
    Declined,
    EngineOffer,
    FloatConstraint,
    Graph,
    IntConstraint,
    Knob,
    Provider,
    Resolution,
    StringConstraint,
    benchmarking_knob,
    hookimpl,
)
from hipdnn_registry.graph import ConvolutionFwdNode
from tests.hipdnn_registry.buffers.test_device_buffers import DevicePlan
from tests.providers import AcmeProvider, ReluEngine, ReluPlan

KNOBS = (
    Knob("acme.tile", "Tile size", 8, IntConstraint(1, 64)),
    Knob("acme.width", "Vector width", 4, IntConstraint(0, 0, valid_values=(8, 4))),
    Knob("acme.slack", "Slack", 0.5, FloatConstraint(0.0, 1.0)),
    Knob("acme.kernel", "Kernel", "auto", StringConstraint(valid_values=("fast", "auto"))),
    Knob("acme.label", "Label", "", StringConstraint(max_length=8)),
    Knob("acme.old_tile", "Tile size", 8, deprecated=True, replacement="acme.tile"),
    benchmarking_knob(),
)


class Wrong(ReluPlan):
    def execute(
        self, buffers: Mapping[int, Any], workspace: Any | None, stream: int | None
    ) -> None:
        super().execute(buffers, workspace, stream)
        buffers[self.y].flat[0] += 0.01


class Unwritten(ReluPlan):
    def execute(
        self, buffers: Mapping[int, Any], workspace: Any | None, stream: int | None
    ) -> None:
        np.maximum(buffers[self.x][1:], 0, out=buffers[self.y][1:])


class Raising(ReluPlan):
    def execute(
        self, buffers: Mapping[int, Any], workspace: Any | None, stream: int | None
    ) -> None:
        raise RuntimeError("the ACME card is on fire")


class Unreachable(ReluPlan):
    buffer_kind = BufferKind.DEVICE


class AcmeEngine(ReluEngine):
    def __init__(self, name: str, plan: type[ReluPlan] = ReluPlan, priority: int = -1) -> None:
        super().__init__(name, KNOBS, priority)
        self.plan = plan
        self.kind = plan.buffer_kind

    def build(self, graph: Graph, resolution: Resolution) -> CompiledPlan:
        return self.plan(graph, resolution)

    def query(self, graph: Graph) -> EngineOffer | Declined:
        answer = super().query(graph)
        if isinstance(answer, EngineOffer):
            return replace(answer, buffer_kind=self.kind)
        return answer


class OnDevice(AcmeEngine):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.kind = DevicePlan.buffer_kind

    def build(self, graph: Graph, resolution: Resolution) -> CompiledPlan:
        return DevicePlan(graph)


class Huge(AcmeEngine):
    def query(self, graph: Graph) -> EngineOffer:
        return EngineOffer(KNOBS, workspace_size=1 << 60)

    def estimate_workspace(self, graph: Graph, resolution: Resolution) -> int | None:
        return None


class ForwardOnly(AcmeEngine):
    def query(self, graph: Graph) -> EngineOffer | Declined:
        node = graph.nodes[0]
        if isinstance(node, ConvolutionFwdNode):
            return EngineOffer(KNOBS)
        return Declined(f"node '{node.name}' is no convolution forward")


class Defect(AcmeEngine):
    def query(self, graph: Graph) -> EngineOffer:
        raise ZeroDivisionError("0 tiles")


@hookimpl
def hipdnn_get_provider() -> Provider:
    print("ACME greets you")
    return AcmeProvider(
        AcmeEngine("ACME_RELU", priority=50),
        AcmeEngine("ACME_WRONG", Wrong),
        AcmeEngine("ACME_UNWRITTEN", Unwritten),
        AcmeEngine("ACME_RAISING", Raising),
        AcmeEngine("ACME_UNREACHABLE", Unreachable),
        OnDevice("ACME_DEVICE"),
        Huge("ACME_HUGE"),
        ForwardOnly("ACME_FORWARD"),
        Defect("ACME_DEFECT"),
        description="Engines for tests",
        libraries={"libacme": "3.1"},
    )
