"""`EngineRegistry`: which engines serve a graph, with which knobs, and plans from them."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from typing import TYPE_CHECKING

from . import environment as env
from . import log
from .discovery.contract import checked_resolution, checked_size, guarded
from .discovery.loading import ProviderFilter, discover
from .engines.answers import Answers, EngineConfigInfo, Explanation
from .engines.unknown_engine import raise_unknown_engine
from .environment import Environment
from .errors import EngineDefectError, InvalidInputError, UnsupportedGraphError
from .graph import Graph
from .knobs.knob import KnobSettings, as_values
from .knobs.request import request
from .knobs.warnings import KnobWarnings
from .plans.compiled_plans import CompiledPlans, PlanRequest
from .plans.execution_plan import ExecutionPlan
from .selection import ranked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .discovery.catalog import Catalog, ProviderRecord, RegisteredEngine
    from .knobs.knob import KnobList
    from .plans.cache import CacheInfo
    from .provider import Provider

_log = logging.getLogger("hipdnn_registry.registry")

DEFAULT_PLAN_CACHE_SIZE = 256


class EngineRegistry:
    """Finds providers at the first question, and answers for all of their engines.

    Safe to use from any number of threads.

    Args:
        providers: Providers to register in process, before those of entry points.
        entry_points: Whether installed providers are used at all.
        allow: Names of the only providers (or distributions) to load, one or several; default: the
            comma-separated HIPDNN_REGISTRY_ALLOW, else all.
        block: Names of providers (or distributions) not to load; default: HIPDNN_REGISTRY_BLOCK.
        strict: Raise at discovery on a broken provider; default: HIPDNN_REGISTRY_STRICT, else off.
        plan_cache_size: Compiled plans kept; 0 keeps none.
    """

    def __init__(
        self,
        providers: Iterable[Provider] = (),
        *,
        entry_points: bool = True,
        allow: Iterable[str] | None = None,
        block: Iterable[str] | None = None,
        strict: bool | None = None,
        plan_cache_size: int = DEFAULT_PLAN_CACHE_SIZE,
    ) -> None:
        log.configure()
        self._in_process = list(providers)
        self._entry_points = entry_points
        self._filter = ProviderFilter(
            allow=env.names(env.ALLOW) if allow is None else _provider_names(allow, "allow"),
            block=(env.names(env.BLOCK) or frozenset())
            if block is None
            else _provider_names(block, "block"),
            allow_origin=env.ALLOW if allow is None else "allow",
            block_origin=env.BLOCK if block is None else "block",
        )
        if type(plan_cache_size) is not int or plan_cache_size < 0:
            raise InvalidInputError(
                f"plan_cache_size is {plan_cache_size!r}, but must be an int from 0 on"
            )
        self._strict = env.switch(env.STRICT, os.environ) is True if strict is None else strict
        self._lock = threading.RLock()
        self._catalog: Catalog | None = None
        self._answers = Answers()
        self._plans = CompiledPlans(plan_cache_size)
        self._knob_warnings = KnobWarnings()

    # Providers

    def _discovered(self) -> Catalog:
        catalog = self._catalog
        if catalog is None:
            with self._lock:
                catalog = self._catalog
                if catalog is None:
                    catalog = self._catalog = discover(
                        self._in_process,
                        provider_filter=self._filter,
                        entry_points=self._entry_points,
                        strict=self._strict,
                    )
        return catalog

    def providers(self) -> list[ProviderRecord]:
        """Return a record for every provider found: loaded, unavailable, broken or blocked."""
        return list(self._discovered().records)

    def engine_names(self) -> list[str]:
        """Return the names of all engines, in order of discovery."""
        return list(self._discovered().engines)

    def register_provider(self, provider: Provider) -> None:
        """Add a provider in process, before those of entry points."""
        with self._lock:
            self._in_process.append(provider)
            self.refresh()

    def refresh(self) -> None:
        """Look again at the next question: picks up packages installed meanwhile.

        Plans already made stay good; cached ones are forgotten.
        """
        with self._lock:
            self._catalog = None
            self._answers = Answers()
            self._plans.clear()

    # Engines of a graph

    def explain(self, graph: Graph) -> Explanation:
        """Return every engine's answer to a graph, ranked, and every provider's state."""
        _require_graph(graph)
        catalog = self._discovered()
        answers = [self._answers.of(entry, graph) for entry in ranked(catalog.ranking, graph)]
        return Explanation(tuple(answers), catalog.records)

    def get_engine_configs(self, graph: Graph) -> list[EngineConfigInfo]:
        """Return the engines that serve a graph, best first; empty if none does.

        Raises:
            GraphError: The graph is not valid.
        """
        return [answer.info for answer in self.explain(graph).answers if answer.info is not None]

    def is_supported(self, graph: Graph) -> bool:
        """Whether any engine serves a graph."""
        _require_graph(graph)
        catalog = self._discovered()
        return any(
            self._answers.of(entry, graph).info is not None for entry in catalog.engines.values()
        )

    def get_engine_config(self, graph: Graph, engine: int | str) -> EngineConfigInfo:
        """Return the configuration of one engine, by id or name, for a graph.

        Raises:
            UnknownEngineError: No such engine.
            UnsupportedGraphError: The engine declines the graph.
        """
        return self._serving(graph, engine)[1]

    def get_knobs_for_engine(self, graph: Graph, engine: int | str) -> KnobList:
        """Return the knobs that an engine, by id or name, advertises for a graph.

        Raises:
            UnknownEngineError: No such engine.
            UnsupportedGraphError: The engine declines the graph.
        """
        return self._serving(graph, engine)[1].knobs

    def estimate_workspace(
        self, graph: Graph, engine: int | str | None = None, settings: KnobSettings = None
    ) -> int:
        """Return the bytes of workspace of a plan with these settings, without building it.

        Arguments and errors are those of `create_execution_plan_ext`; knobs that the engine does
        not advertise are ignored.
        """
        entry, info, resolution, *_ = self._request(graph, engine, settings, Environment.read())
        estimate = entry.engine.estimate_workspace
        size = guarded(entry, "estimate_workspace", estimate, graph, resolution)
        if size is None:
            return info.estimated_workspace_size
        return checked_size(entry, "estimate_workspace", size)

    # Plans

    def create_execution_plan_ext(
        self,
        graph: Graph,
        engine: int | str | None = None,
        settings: KnobSettings = None,
        *,
        strict: bool = False,
    ) -> ExecutionPlan:
        """Create a plan, or take a compiled one from the cache.

        Args:
            graph: The graph; validated if it is not yet.
            engine: Engine id or name; `None` is the best-ranked engine that serves the graph.
            settings: Knob settings, as a list of `KnobSetting` or a mapping from id to value.
            strict: Raise for a knob that the engine does not advertise, instead of dropping it
                with a `DroppedKnobWarning`; also HIPDNN_REGISTRY_STRICT_KNOBS=1.

        Raises:
            GraphError: The graph is not valid.
            UnknownEngineError: No such engine; the cause is a broken provider's error if one is.
            UnsupportedGraphError: The engine declines the graph; the message is its reason.
            NoEngineError: No engine serves the graph; carries every reason.
            KnobError: A value violates its knob's constraint, or a knob is unknown and strict.
            EngineDefectError: The engine breaks its contract.
        """
        environment = Environment.read()
        asked = self._request(graph, engine, settings, environment)
        if asked.dropped or asked.info.deprecated_knobs:
            for warning in self._knob_warnings.due(
                *(asked.settings, asked.dropped, asked.info),
                refuses=strict or environment.strict_knobs,
            ):
                warnings.warn(warning, stacklevel=2)
        shared, from_cache = self._plans.of(graph, asked)
        plan = ExecutionPlan(
            graph,
            asked.engine,
            asked.resolution,
            asked.dropped,
            asked.info.behavior_notes,
            shared,
            from_cache,
        )
        if _log.isEnabledFor(logging.INFO):
            origin = "from cache" if from_cache else f"built in {shared.build_seconds * 1e3:.1f} ms"
            _log.info("%r for graph %s %s", plan, graph.content_key.digest[:12], origin)
        return plan

    def _request(
        self,
        graph: Graph,
        engine: int | str | None,
        settings: KnobSettings,
        environment: Environment,
    ) -> PlanRequest:
        entry, info = self._best(graph) if engine is None else self._serving(graph, engine)
        asked = as_values(settings)
        effective, dropped = request(info, asked, environment)
        resolve = entry.engine.resolve
        resolution = guarded(entry, "resolve", resolve, graph, dict(effective), environment)
        resolution = checked_resolution(entry, resolution, effective, info.knobs)
        return PlanRequest(entry, info, resolution, dropped, asked)

    # The plan cache

    def cache_info(self) -> CacheInfo:
        """Return hits, misses, bound and size of the plan cache."""
        return self._plans.info()

    def clear(self) -> None:
        """Empty the plan cache; plans in use stay good."""
        self._plans.clear()

    # Choosing an engine

    def _serving(
        self, graph: Graph, engine: int | str
    ) -> tuple[RegisteredEngine, EngineConfigInfo]:
        if not isinstance(engine, (int, str)) or isinstance(engine, bool):
            raise InvalidInputError(f"engine is {engine!r:.80}, but must be a name or an int id")
        _require_graph(graph)
        catalog = self._discovered()
        entry = (
            catalog.engines.get(engine) if isinstance(engine, str) else catalog.by_id.get(engine)
        )
        if entry is None:
            raise_unknown_engine(engine, catalog)
        answer = self._answers.of(entry, graph)
        if answer.info is None:
            if answer.exception is not None:
                raise EngineDefectError(answer.reason) from answer.exception
            raise UnsupportedGraphError(
                f"engine {entry.name} of provider '{entry.info.name}' declines the graph: "
                f"{answer.reason}"
            )
        return entry, answer.info

    def _best(self, graph: Graph) -> tuple[RegisteredEngine, EngineConfigInfo]:
        _require_graph(graph)
        for entry in ranked(self._discovered().ranking, graph):
            info = self._answers.of(entry, graph).info
            if info is not None:
                return entry, info
        raise self.explain(graph).no_engine_error()


def _provider_names(names: Iterable[str] | str, argument: str) -> frozenset[str]:
    found = (names,) if isinstance(names, str) else tuple(names)
    for name in found:
        if not isinstance(name, str):
            raise InvalidInputError(
                f"{argument} has {name!r}, but must have names of providers or distributions"
            )
    return frozenset(found)


def _require_graph(graph: object) -> None:
    if not isinstance(graph, Graph):
        raise InvalidInputError(f"graph is {graph!r:.80}, but must be a hipdnn_registry.Graph")
    graph.validate()


_default: EngineRegistry | None = None
_default_lock = threading.Lock()


def default_registry() -> EngineRegistry:
    """Return the registry of the process, made at the first call."""
    global _default  # noqa: PLW0603 - one registry a process is what the name says
    if _default is None:
        with _default_lock:
            if _default is None:
                _default = EngineRegistry()
    return _default
