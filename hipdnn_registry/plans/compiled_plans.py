"""The compiled plans of a registry: built once for requests that come to the same."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from hipdnn_registry.discovery.contract import CODE_ERRORS, breach, checked_plan, guarded
from hipdnn_registry.errors import HipdnnError, text_of

from .cache import PlanCache
from .execution_plan import SharedPlan

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from hipdnn_registry.discovery.catalog import RegisteredEngine
    from hipdnn_registry.engines.answers import EngineConfigInfo
    from hipdnn_registry.graph import Graph
    from hipdnn_registry.knobs.constraints import KnobValue
    from hipdnn_registry.knobs.knob import KnobSetting
    from hipdnn_registry.provider import EffectiveSetting, Resolution


class PlanRequest(NamedTuple):
    """An engine asked to serve a graph under settings: everything before building."""

    engine: RegisteredEngine
    info: EngineConfigInfo
    resolution: Resolution
    dropped: tuple[KnobSetting, ...]
    settings: Mapping[str, KnobValue]


class CompiledPlans(PlanCache[SharedPlan]):
    """Plans by what decides them: graph, engine, effective settings, and the engine's own token."""

    def of(self, graph: Graph, asked: PlanRequest) -> tuple[SharedPlan, bool]:
        """Return the plan of a request, building it if need be, and whether it was there.

        Raises:
            HipdnnError: What building raises.
            EngineDefectError: The engine breaks its contract.
        """
        entry, resolution = asked.engine, asked.resolution

        def build() -> SharedPlan:
            start = time.perf_counter()
            defects = asked.info.defects
            hint = f" (and of its knobs, {'; '.join(defects)})" if defects else ""
            compiled = guarded(entry, "build", entry.engine.build, graph, resolution, hint=hint)
            seconds = time.perf_counter() - start
            compiled = checked_plan(entry, compiled, graph, asked.info.buffer_kind)
            return SharedPlan(compiled, graph.content_key.uids, seconds)

        if not resolution.cacheable:
            return build(), False
        key: Hashable = (
            graph.content_key.digest,
            entry.name,
            entry.info.name,
            entry.info.version,
            _exact(resolution.settings),
            resolution.cache_token,
        )
        try:
            return self.get_or_build(key, build)
        except HipdnnError:  # what building raises
            raise
        except CODE_ERRORS as error:
            problem = f"gave a cache_token that can't be hashed and compared: {text_of(error)}"
            breach(entry, "resolve", problem)


def _exact(settings: Mapping[str, EffectiveSetting]) -> Hashable:
    """Settings as a part of a key, where 1, 1.0 and True, or 0.0 and -0.0, must not be equal."""
    return tuple(
        [
            (knob_id, value if type(value) is int else (type(value).__name__, repr(value)))
            for knob_id, (value, *_) in settings.items()
        ]
    )
