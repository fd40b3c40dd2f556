"""hipdnn-registry: engines, knobs and execution plans for hipDNN operation graphs.

    from hipdnn_registry import DataType, Graph, default_registry

    graph = Graph("conv", io_data_type=DataType.FLOAT, compute_data_type=DataType.FLOAT)
    x = graph.tensor(dims=[8, 64, 56, 56], name="x")
    w = graph.tensor(dims=[64, 64, 3, 3], name="w")
    graph.conv_fprop(x, w, padding=1).set_output().set_name("y")
    plan = default_registry().create_execution_plan_ext(graph)
    plan.execute({"x": x_array, "w": w_array, "y": y_array})

Names are loaded when they are first used, so importing the package costs next to nothing. The
stub beside this file tells type checkers where each is defined.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "engines.answers": ("EngineAnswer", "EngineConfigInfo", "Explanation"),
    "discovery.catalog": ("ProviderRecord", "ProviderStatus"),
    "graph.engine_ids": ("engine_id",),
    "environment": ("Environment",),
    "errors": (
        "EngineDefectError",
        "ExecutionError",
        "GraphError",
        "GraphFrozenError",
        "HipdnnError",
        "InvalidInputError",
        "KnobError",
        "NoEngineError",
        "ProviderError",
        "ProviderUnavailableError",
        "UnknownEngineError",
        "UnsupportedGraphError",
        "VariantPackError",
        "WorkspaceError",
    ),
    "graph": ("ConvMode", "DataType", "Graph", "PointwiseMode", "TensorAttributes"),
    "graph.driver": ("graph_from_driver_command",),
    "hookspecs": ("hookimpl",),
    "knobs.constraints": ("FloatConstraint", "IntConstraint", "StringConstraint"),
    "knobs.knob": (
        "Knob",
        "KnobList",
        "KnobSetting",
        "KnobValueType",
        "benchmarking_knob",
        "workspace_size_limit_knob",
    ),
    "knobs.warnings": ("DeprecatedKnobWarning", "DroppedKnobWarning"),
    "plans.cache": ("CacheInfo",),
    "plans.execution_plan": ("ExecutionPlan",),
    "provider": (
        "PROVIDER_API_VERSION",
        "BehaviorNote",
        "BufferKind",
        "CompiledPlan",
        "Declined",
        "DeviceBuffer",
        "DeviceMemory",
        "EffectiveSetting",
        "Engine",
        "EngineOffer",
        "EnginePriority",
        "Provider",
        "ProviderInfo",
        "Resolution",
        "SettingSource",
    ),
    "registry": ("EngineRegistry", "default_registry"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__version__ = "0.1.0"

__all__ = ["__version__", *sorted(_MODULE_OF)]  # noqa: PLE0604 - strings, all of them


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
