"""What engines answer about graphs, remembered by content, and the explanation made of it."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hipdnn_registry import log
from hipdnn_registry.discovery.catalog import ProviderRecord, ProviderStatus, RegisteredEngine
from hipdnn_registry.discovery.contract import CODE_ERRORS, checked_answer, engine_failure
from hipdnn_registry.errors import EngineDefectError, NoEngineError
from hipdnn_registry.knobs.knob import BENCHMARKING_KNOB, Knob, KnobList
from hipdnn_registry.knobs.rules import sound_knobs
from hipdnn_registry.provider import BehaviorNote, BufferKind, Declined, EffectiveSetting

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from hipdnn_registry.graph import Graph

_log = logging.getLogger("hipdnn_registry.registry")

_REMEMBERED = 4096  # answers are small: a few knobs each


@dataclass(frozen=True, slots=True)
class EngineConfigInfo:
    """An engine that serves a graph: hipDNN's `EngineConfigInfo`.

    Attributes:
        engine_id: hipDNN's id of the engine.
        engine_name: Its name.
        knobs: What it honours for this graph; a list, and found by id in constant time.
        supports_exhaustive: Whether it has `global.benchmarking`.
        estimated_workspace_size: Bytes of workspace that suffice for any setting.
        behavior_notes: hipDNN's behaviour notes.
        provider_name: Name of its provider.
        provider_version: Version of its provider.
        buffer_kind: Where the buffers of its plans live: in host memory, or on a device.
        defects: Knobs that the engine advertises against the rules, and that were left out.
        default_settings: Every knob at its default, as settings start out.
        deprecated_knobs: Those of the knobs that are deprecated.
    """

    engine_id: int
    engine_name: str
    knobs: KnobList
    supports_exhaustive: bool
    estimated_workspace_size: int
    behavior_notes: tuple[BehaviorNote, ...]
    provider_name: str
    provider_version: str
    buffer_kind: BufferKind = BufferKind.HOST
    defects: tuple[str, ...] = ()
    default_settings: Mapping[str, EffectiveSetting] = field(default_factory=dict, repr=False)
    deprecated_knobs: tuple[Knob, ...] = field(default=(), repr=False)

    @property
    def where(self) -> str:
        """How messages about the engine's knobs call it."""
        return (
            f" of engine {self.engine_name} (provider {self.provider_name} {self.provider_version})"
        )


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """One engine's answer to a graph.

    Attributes:
        engine: The engine.
        info: Its configuration if it serves the graph.
        reason: Why it does not.
        exception: What it raised instead of answering: a defect.
    """

    engine: RegisteredEngine
    info: EngineConfigInfo | None = None
    reason: str = ""
    exception: BaseException | None = field(default=None, compare=False)


class Answers:
    """Asks engines, and remembers what they said."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, Hashable], EngineAnswer] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, engine: RegisteredEngine, graph: Graph) -> EngineAnswer:
        """Return an engine's answer to a graph."""
        digest = graph.content_key.digest
        try:
            key = (engine.name, digest, engine.engine.query_scope())
            answer = self._known.get(key)
        except CODE_ERRORS as error:
            return _defect(engine, "query_scope", error)
        if answer is None:
            log.write_graph(graph)
            answer = _ask(engine, graph)
            with self._lock:
                self._known[key] = answer
                while len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
        return answer


def _ask(engine: RegisteredEngine, graph: Graph) -> EngineAnswer:
    try:
        answer = checked_answer(engine, engine.engine.query(graph))
        if isinstance(answer, Declined):
            return EngineAnswer(engine, reason=answer.reason)
        knobs, defects = sound_knobs(answer.knobs, engine.info.namespace)
        notes = tuple(BehaviorNote(note) for note in answer.behavior_notes)
    except CODE_ERRORS as error:
        return _defect(engine, "query", error)
    for defect in defects:
        _log.error(
            "defect: engine %s of provider '%s': query: %s",
            *(engine.name, engine.info.name, defect),
        )
    info = EngineConfigInfo(
        engine_id=engine.engine_id,
        engine_name=engine.name,
        knobs=knobs,
        supports_exhaustive=BENCHMARKING_KNOB in knobs,
        estimated_workspace_size=answer.workspace_size,
        behavior_notes=notes,
        provider_name=engine.info.name,
        provider_version=engine.info.version,
        buffer_kind=answer.buffer_kind,
        defects=defects,
        default_settings={knob.knob_id: EffectiveSetting(knob.default_value) for knob in knobs},
        deprecated_knobs=tuple(knob for knob in knobs if knob.deprecated),
    )
    return EngineAnswer(engine, info)


def _defect(engine: RegisteredEngine, step: str, error: BaseException) -> EngineAnswer:
    """An answer that keeps one engine's defect from hiding the others."""
    known = isinstance(error, EngineDefectError)
    reason = f"defect: {error if known else engine_failure(engine, step, error)}"
    _log.error("%s", reason)
    return EngineAnswer(engine, reason=reason, exception=error)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every engine's answer to a graph, best-ranked first, and the state of every provider."""

    answers: tuple[EngineAnswer, ...]
    providers: tuple[ProviderRecord, ...]

    def no_engine_error(self) -> NoEngineError:
        """Return the error that says why nobody serves the graph."""
        reasons = {a.engine.name: a.reason for a in self.answers if a.info is None}
        absent = {
            record.name: f"{record.status}: {record.reason}"
            for record in self.providers
            if record.status is not ProviderStatus.LOADED
        }
        lines = ["no engine serves the graph"]
        lines += [
            f"  {a.engine.name} ({a.engine.info.name}): {a.reason}"
            for a in self.answers
            if not a.info
        ]
        lines += [f"  provider '{name}' is {reason}" for name, reason in absent.items()]
        if not self.providers:
            lines.append(
                "  no provider is installed: pip install 'hipdnn-registry[cpu]' brings the CPU "
                "provider, 'hipdnn-registry[miopen]' the one for AMD GPUs"
            )
        return NoEngineError("\n".join(lines), reasons, absent)
