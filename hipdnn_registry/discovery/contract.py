"""Holding engines to the contract: their code is guarded, and what they return is checked.

Whatever an engine raises or returns against `provider.py` becomes an `EngineDefectError` that
names the engine, its provider and the step; the caller's program and the other engines go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn, TypeVar, TypeVarTuple

from hipdnn_registry.errors import EngineDefectError, HipdnnError, described
from hipdnn_registry.provider import (
    BufferKind,
    CompiledPlan,
    Declined,
    EffectiveSetting,
    EngineOffer,
    Resolution,
)

if TYPE_CHECKING:
    from hipdnn_registry.graph import Graph
    from hipdnn_registry.knobs.knob import KnobList

    from .catalog import RegisteredEngine

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

CODE_ERRORS = (Exception, SystemExit)
"""What guarded code may raise; an engine that calls sys.exit must not end the program."""


def guarded(
    engine: RegisteredEngine,
    step: str,
    action: Callable[[*Arguments], T],
    *arguments: *Arguments,
    hint: str = "",
) -> T:
    """Run an engine's code.

    Args:
        engine: The engine.
        step: What the code does, for the error.
        action: The code.
        *arguments: What it is called with.
        hint: What else the error says.

    Raises:
        HipdnnError: What it raised on purpose.
        EngineDefectError: It raised anything else, short of an interrupt.
    """
    try:
        return action(*arguments)
    except HipdnnError:
        raise
    except CODE_ERRORS as error:
        raise engine_failure(engine, step, error, hint) from error


def engine_failure(
    engine: RegisteredEngine, step: str, error: BaseException, hint: str = ""
) -> EngineDefectError:
    """Return the error that names the engine and the step in which its code failed."""
    return EngineDefectError(f"{_called(engine)} failed in {step}: {described(error)}{hint}")


def breach(engine: RegisteredEngine, step: str, problem: str) -> NoReturn:
    """Raise the error that says what an engine returned against the contract."""
    raise EngineDefectError(f"{_called(engine)}: {step} {problem}")


def checked_answer(engine: RegisteredEngine, answer: object) -> EngineOffer | Declined:
    """Check what `query` returned."""
    if isinstance(answer, Declined):
        if not isinstance(answer.reason, str) or not answer.reason:
            breach(engine, "query", f"declined with reason {answer.reason!r}; it must be a text")
        return answer
    if not isinstance(answer, EngineOffer):
        breach(engine, "query", f"returned {answer!r}, neither EngineOffer nor Declined")
    checked_size(engine, "query", answer.workspace_size)
    if not isinstance(answer.buffer_kind, BufferKind):
        breach(engine, "query", f"offered buffer_kind {answer.buffer_kind!r}; see BufferKind")
    for field in ("knobs", "behavior_notes"):
        if not isinstance(getattr(answer, field), (tuple, list)):
            breach(engine, "query", f"offered {field} {getattr(answer, field)!r}; a tuple is due")
    return answer


def checked_resolution(
    engine: RegisteredEngine,
    resolution: object,
    asked: Mapping[str, EffectiveSetting],
    knobs: KnobList,
) -> Resolution:
    """Check what `resolve` returned: no knob may get lost, nor change without a reason.

    Args:
        engine: The engine.
        resolution: What it returned.
        asked: The settings that it was given.
        knobs: What it advertises for the graph.
    """
    if not isinstance(resolution, Resolution):
        breach(engine, "resolve", f"returned {resolution!r}, not a Resolution")
    settings = resolution.settings
    if type(settings) is not dict and not isinstance(settings, Mapping):
        breach(engine, "resolve", f"gave settings {resolution.settings!r}, not a mapping")
    for knob_id, setting in settings.items():
        if type(setting) is not EffectiveSetting:
            breach(
                engine, "resolve", f"gave {knob_id} the setting {setting!r}: no EffectiveSetting"
            )
    if settings != asked:
        _check_changes(engine, settings, asked, knobs)
    if not isinstance(resolution.cacheable, bool):
        breach(engine, "resolve", f"gave cacheable {resolution.cacheable!r}; a bool is due")
    if resolution.notes:
        _check_notes(engine, "resolve", resolution.notes)
    return resolution


def _check_changes(
    engine: RegisteredEngine,
    settings: Mapping[str, EffectiveSetting],
    asked: Mapping[str, EffectiveSetting],
    knobs: KnobList,
) -> None:
    if settings.keys() != asked.keys():
        wrong = [f"lost {k}" for k in asked.keys() - settings.keys()]
        wrong += [f"set {k}, which it does not advertise" for k in settings.keys() - asked.keys()]
        breach(engine, "resolve", "; ".join(sorted(wrong)))
    for knob_id, setting in settings.items():
        before = asked[knob_id]
        constraint = knobs[knob_id].constraint
        problem = constraint.violation(setting.value) if constraint is not None else ""
        if problem:
            breach(engine, "resolve", f"set {knob_id} to {setting.value!r}: {problem}")
        if setting.value != before.value and not setting.detail:
            breach(
                engine,
                "resolve",
                f"changed {knob_id} from {before.value!r} to {setting.value!r} and gave no detail "
                "that says why",
            )


def checked_plan(
    engine: RegisteredEngine, plan: object, graph: Graph, offered: BufferKind
) -> CompiledPlan:
    """Check what `build` returned.

    Args:
        engine: The engine.
        plan: What it returned.
        graph: The graph that it was given.
        offered: The kind of buffers that its offer for the graph named.
    """
    if not isinstance(plan, CompiledPlan):
        breach(engine, "build", f"returned {plan!r}, not a CompiledPlan")
    checked_size(engine, "build", plan.workspace_size)
    if not isinstance(plan.buffer_kind, BufferKind):
        breach(engine, "build", f"made a plan of buffer_kind {plan.buffer_kind!r}; see BufferKind")
    if plan.buffer_kind is not offered:
        breach(
            engine,
            "build",
            f"made a plan of buffer_kind {plan.buffer_kind}, but query offered {offered}",
        )
    _check_notes(engine, "build", plan.notes)
    if plan.in_place != ():
        _check_in_place(engine, plan.in_place, graph)
    return plan


def _check_in_place(engine: RegisteredEngine, in_place: object, graph: Graph) -> None:
    def refuse(problem: str) -> NoReturn:
        breach(engine, "build", f"made a plan of in_place {in_place!r:.200}{problem}")

    if not isinstance(in_place, tuple):
        refuse("; a tuple of pairs of uids is due")
    read = {uid for wiring in graph.structure.wirings for _, uid in wiring.input_uids}
    for pair in in_place:
        if not isinstance(pair, tuple) or [type(uid) for uid in pair] != [int, int]:
            refuse(f", where {pair!r:.80} is no pair of uids: a written and a read tensor")
        for uid, known, verb in zip(
            pair, (graph.output_uids, read), ("writes", "reads"), strict=True
        ):
            if uid not in known:
                refuse(f", but the graph {verb} no tensor of uid {uid}")


def checked_size(engine: RegisteredEngine, step: str, size: object) -> int:
    """Check a number of bytes."""
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        breach(engine, step, f"gave the workspace size {size!r}; an int of bytes is due, from 0 on")
    return size


def _check_notes(engine: RegisteredEngine, step: str, notes: object) -> None:
    if not isinstance(notes, tuple) or [note for note in notes if not isinstance(note, str)]:
        breach(engine, step, f"gave the notes {notes!r}; a tuple of texts is due")


def _called(engine: RegisteredEngine) -> str:
    return f"engine {engine.name} of provider '{engine.info.name}'"
