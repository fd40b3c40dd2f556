"""From a graph to the facts of its run: planned, executed, timed and checked."""

from __future__ import annotations

import statistics
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from hipdnn_registry.cli.engines import serving
from hipdnn_registry.cli.knob_text import typed_settings
from hipdnn_registry.cli.output import Report
from hipdnn_registry.environment import Environment
from hipdnn_registry.errors import HipdnnError
from hipdnn_registry.knobs.knob import BENCHMARKING_KNOB, KnobSetting
from hipdnn_registry.provider import BufferKind
from hipdnn_registry.testing.accuracy import MEASURE, Accuracy, compare
from hipdnn_registry.testing.conditioning import nearby_graph, sensitivities
from hipdnn_registry.testing.cost import bytes_moved, convolution_flops
from hipdnn_registry.testing.execution import execute, timed
from hipdnn_registry.testing.inputs import random_inputs

from .memory import Need, available_memory, refuse_if_too_large
from .view import run_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hipdnn_registry import EngineRegistry, ExecutionPlan, Graph
    from hipdnn_registry.testing.arrays import Array

REFERENCE_ENGINE = "CPU_REFERENCE_ENGINE"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run a graph.

    Attributes:
        engine: Name or id; `None` is the registry's choice.
        knobs: Settings as `(id, text)`; a value's type is its knob's.
        check: Whether to compare with the reference engine.
        seed: Seed of the random inputs.
        repeat: Number of timed runs.
    """

    engine: int | str | None = None
    knobs: Sequence[tuple[str, str]] = ()
    check: bool = False
    seed: int = 0
    repeat: int = 5


def run_report(registry: EngineRegistry, graph: Graph, options: RunOptions) -> Report:
    """Run a graph and report how it went.

    Raises:
        MemoryShortageError: It needs more memory than there is; nothing was allocated yet.
        HipdnnError: No engine serves it, its buffers are out of reach, or it failed.
        InvalidInputError: The engine or a knob setting is wrong.
    """
    chosen = _choose(registry, graph, options)
    need = _check_memory(registry, graph, chosen, check=options.check)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan = registry.create_execution_plan_ext(graph, chosen.engine, chosen.settings)
        inputs = random_inputs(graph, options.seed)
        outputs, seconds = timed(plan, inputs, options.repeat)
    checked: list[Accuracy] | None = None
    if options.check:

        def reference(graph: Graph, inputs: dict[int, Array]) -> dict[int, Array]:
            return execute(registry.create_execution_plan_ext(graph, REFERENCE_ENGINE), inputs)

        expected = reference(graph, inputs)
        moved = sensitivities(graph, inputs, expected, reference)
        checked = compare(graph, outputs, expected, moved)
    remarks = list(dict.fromkeys(str(warning.message) for warning in caught))
    data = _plan_data(plan, remarks)
    data |= {"seed": options.seed, "host_memory": need.data()} | _speed(graph, seconds)
    data["check"] = None if checked is None else _check_data(checked)
    return Report(data, lambda: run_view(data), _failure(plan, checked))


class _Choice(NamedTuple):
    """An engine with its settings.

    Attributes:
        engine: Its name or id.
        settings: The settings, typed.
        benchmarking: Whether it will measure candidates on scratch buffers.
        on_host: Whether its workspace and scratch buffers take the host's memory.
    """

    engine: int | str
    settings: list[KnobSetting]
    benchmarking: bool
    on_host: bool


def _choose(registry: EngineRegistry, graph: Graph, options: RunOptions) -> _Choice:
    """Decide on the engine, whose knobs give the settings their types."""
    engine = options.engine
    if engine is None:
        info = serving(registry, graph)[0]
        engine = info.engine_name
    else:
        info = registry.get_engine_config(graph, engine)
    knobs = info.knobs
    settings = typed_settings(options.knobs, info)
    asked = KnobSetting(BENCHMARKING_KNOB, 1) in settings
    forced = Environment.read().force_benchmarking
    benchmarking = BENCHMARKING_KNOB in knobs and (asked if forced is None else forced)
    return _Choice(engine, settings, benchmarking, info.buffer_kind is BufferKind.HOST)


def _check_memory(registry: EngineRegistry, graph: Graph, chosen: _Choice, *, check: bool) -> Need:
    workspace = 0
    if chosen.on_host:
        workspace = registry.estimate_workspace(graph, chosen.engine, chosen.settings)
    nearby = nearby_graph(graph) if check else None
    if check:
        if REFERENCE_ENGINE not in registry.engine_names():
            raise HipdnnError(
                f"--check needs the engine {REFERENCE_ENGINE}, which is not available here; "
                "pip install 'hipdnn-registry[cpu]' brings it, and 'hipdnn providers' shows what "
                "is installed"
            )
        for run in (graph, nearby):
            if run is not None:
                workspace = max(workspace, registry.estimate_workspace(run, REFERENCE_ENGINE))
    benchmarking = chosen.on_host and chosen.benchmarking
    need = Need.of(
        graph, workspace=workspace, check=check, nearby=nearby, benchmarking=benchmarking
    )
    refuse_if_too_large(need, available_memory())
    return need


def _plan_data(plan: ExecutionPlan, remarks: list[str]) -> dict[str, Any]:
    return {
        "engine_name": plan.engine_name,
        "engine_id": plan.engine_id,
        "provider_name": plan.provider_name,
        "provider_version": plan.provider_version,
        "settings": {
            knob_id: {"value": s.value, "source": s.source.value, "detail": s.detail}
            for knob_id, s in plan.settings.items()
        },
        "dropped_knobs": [{"knob_id": s.knob_id, "value": s.value} for s in plan.dropped_knobs],
        "warnings": remarks,
        "behavior_notes": [behavior.name for behavior in plan.behavior_notes],
        "notes": list(plan.notes),
        "workspace_size": plan.workspace_size,
        "build_seconds": plan.build_seconds,
    }


def _speed(graph: Graph, seconds: list[float]) -> dict[str, Any]:
    best = min(seconds)
    flops, moved = convolution_flops(graph), bytes_moved(graph)
    return {
        "seconds": seconds,
        "best_seconds": best,
        "median_seconds": statistics.median(seconds),
        "flops": flops or None,
        "gflops_per_second": flops / best / 1e9 if flops else None,
        "bytes_moved": moved,
        "gigabytes_per_second": moved / best / 1e9,
    }


def _check_data(checked: list[Accuracy]) -> dict[str, Any]:
    return {
        "reference_engine": REFERENCE_ENGINE,
        "measure": MEASURE,
        "outputs": [accuracy.data() for accuracy in checked],
        "passed": all(accuracy.passed for accuracy in checked),
    }


def _failure(plan: ExecutionPlan, checked: list[Accuracy] | None) -> str:
    failed = [accuracy for accuracy in checked or () if not accuracy.passed]
    if not failed:
        return ""
    worst = "; ".join(
        f"output {a.output} has relative error {a.relative:.2e}, tolerance {a.tolerance:.2e}"
        for a in failed
    )
    return f"engine {plan.engine_name} differs from {REFERENCE_ENGINE}: {worst}"
