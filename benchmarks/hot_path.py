"""The paths that a framework takes for every call: key, cached plan, execution."""

from __future__ import annotations

import timeit
from typing import TYPE_CHECKING, Any

import numpy as np

from hipdnn_registry import (
    CompiledPlan,
    DataType,
    Declined,
    Engine,
    EngineOffer,
    EngineRegistry,
    Graph,
    IntConstraint,
    Knob,
    KnobSetting,
    Provider,
    ProviderInfo,
    benchmarking_knob,
)
from hipdnn_registry.graph.content_key import content_key

from .figures import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hipdnn_registry import Resolution

FLOAT = DataType.FLOAT


class _NoWork(CompiledPlan):
    """Does nothing, so that what is left is the registry's."""

    def execute(
        self, buffers: Mapping[int, Any], workspace: Any | None, stream: int | None
    ) -> None:
        pass


class _NoWorkEngine(Engine):
    name = "BENCH_NO_WORK_ENGINE"

    def query(self, graph: Graph) -> EngineOffer | Declined:
        del graph
        return EngineOffer(
            [Knob("bench.tile", "Tile", 8, IntConstraint(1, 64)), benchmarking_knob()]
        )

    def build(self, graph: Graph, resolution: Resolution) -> CompiledPlan:
        del graph, resolution
        return _NoWork()


class _BenchProvider(Provider):
    info = ProviderInfo("bench", "1.0")

    def engines(self) -> Sequence[Engine]:
        return [_NoWorkEngine()]


def five_nodes() -> Graph:
    """Return conv, bias, batchnorm inference, residual add, ReLU: five nodes, eleven tensors."""
    graph = Graph(
        "block", io_data_type=FLOAT, intermediate_data_type=FLOAT, compute_data_type=FLOAT
    )
    image, stats = [8, 64, 56, 56], [1, 64, 1, 1]
    y = graph.conv_fprop(
        graph.tensor(dims=image, name="x"), graph.tensor(dims=[64, 64, 3, 3], name="w"), padding=1
    )
    y = graph.pointwise("add", y, graph.tensor(dims=stats, name="bias"))
    parameters = [graph.tensor(dims=stats, name=n) for n in ("mean", "inv_var", "scale", "shift")]
    y = graph.batchnorm_inference(y, *parameters)
    y = graph.pointwise("add", y, graph.tensor(dims=image, name="residual"))
    graph.pointwise("relu_fwd", y).set_output().set_name("y")
    return graph.validate()


def _convolution() -> Graph:
    graph = Graph(io_data_type=FLOAT, compute_data_type=FLOAT)
    x, w = graph.tensor(dims=[2, 8, 4, 4], name="x"), graph.tensor(dims=[8, 8, 3, 3], name="w")
    graph.conv_fprop(x, w, padding=1).set_output().set_name("y")
    return graph.validate()


def hot_path_figures(repeat: int) -> list[Figure]:
    """Measure the host time of one call of each path.

    Args:
        repeat: Rounds of a measurement; the best counts, since noise only adds.
    """
    graph, block = _convolution(), five_nodes()
    registry = EngineRegistry([_BenchProvider()], entry_points=False)
    settings = [KnobSetting("bench.tile", 16)]
    plan = registry.create_execution_plan_ext(graph, "BENCH_NO_WORK_ENGINE", settings)
    pack = {t.name: np.zeros(t.dims or (), np.float32) for t in graph.io_tensors}
    by_uid = {t.uid: pack[t.name] for t in graph.io_tensors if t.uid is not None}
    bound, bare = plan.bind(pack), plan._compiled  # noqa: SLF001 - the peer is the engine itself

    def once(action: Callable[[], object]) -> float:
        number = 200  # short rounds, and many: one that nothing disturbs is among them
        return min(timeit.repeat(action, number=number, repeat=20 * repeat)) / number * 1e6

    key = once(lambda: content_key(block.structure))
    cached_key = once(lambda: block.content_key)
    create = once(
        lambda: registry.create_execution_plan_ext(graph, "BENCH_NO_WORK_ENGINE", settings)
    )
    ranked = once(lambda: registry.create_execution_plan_ext(graph))
    own = once(lambda: bare.execute(by_uid, None, None))
    over = once(bound) - own
    execute = once(lambda: plan.execute(pack)) - own
    return [
        Figure("graph key, 5 nodes", key, "us", 50, detail=f"{cached_key:.2f} us once computed"),
        Figure(
            "create_execution_plan_ext from the plan cache",
            create,
            "us",
            10,
            detail=f"{ranked:.1f} us where the registry chooses the engine",
        ),
        Figure("bound plan over the engine's own function", over, "us", 3, detail=f"{own:.2f} us"),
        Figure("execute with all checks over the same, 3 buffers", execute, "us", 15),
    ]
