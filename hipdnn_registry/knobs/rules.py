"""Which knobs an engine may advertise: the namespace rule and the reserved knobs.

A knob that breaks a rule is the engine's defect. It is reported and left out; the engine's other
knobs stay, as hipDNN does when it lists knobs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hipdnn_registry.errors import KnobError

from .constraints import FloatConstraint, IntConstraint, StringConstraint
from .knob import (
    BENCHMARKING_KNOB,
    WORKSPACE_SIZE_LIMIT_KNOB,
    Knob,
    KnobList,
    benchmarking_knob,
    knob_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_ID = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)


def sound_knobs(knobs: Iterable[object], namespace: str) -> tuple[KnobList, tuple[str, ...]]:
    """Separate the knobs that keep the rules from those that don't.

    Args:
        knobs: What the engine advertises.
        namespace: The provider's knob namespace, such as `"miopen"`.

    Returns:
        The sound knobs, and a sentence for each of the others.
    """
    sound: dict[str, Knob] = {}
    defects = []
    for knob in knobs:
        if not isinstance(knob, Knob):
            defects.append(f"advertises {knob!r}, which is no Knob")
            continue
        problem = _problem(knob, namespace)
        if problem is None and knob.knob_id in sound:
            problem = "is advertised twice; the first one is kept"
        if problem is None:
            sound[knob.knob_id] = knob
        else:
            defects.append(f"knob '{knob.knob_id}' {problem}")
    return KnobList(sound.values()), tuple(defects)


def _problem(knob: Knob, namespace: str) -> str | None:
    if not isinstance(knob.knob_id, str) or not _ID.fullmatch(knob.knob_id):
        return "must have a dotted id such as 'provider.name'"
    head = knob.knob_id.partition(".")[0]
    if head == "global":
        problem = _reserved_problem(knob)
    elif head != namespace:
        problem = (
            f"lies outside the provider's namespace: it must be '{namespace}.<...>', "
            f"'{BENCHMARKING_KNOB}' or '{WORKSPACE_SIZE_LIMIT_KNOB}'"
        )
    else:
        problem = None
    return problem or _constraint_problem(knob.constraint) or _default_problem(knob)


def _reserved_problem(knob: Knob) -> str | None:
    constraint = knob.constraint
    if knob.knob_id == BENCHMARKING_KNOB:
        expected = benchmarking_knob()
        if (knob.default_value, constraint) != (expected.default_value, expected.constraint):
            return f"is reserved: it must have default 0 and {expected.constraint}"
        return None
    if knob.knob_id == WORKSPACE_SIZE_LIMIT_KNOB:
        if not isinstance(constraint, IntConstraint):
            return "is reserved: it must have an IntConstraint, in bytes"
        if min((constraint.min_value, *constraint.valid_values)) < 0:
            return f"is reserved: it must never be negative, but has {constraint}"
        return None
    return (
        f"uses the reserved namespace 'global', whose knobs are '{BENCHMARKING_KNOB}' and "
        f"'{WORKSPACE_SIZE_LIMIT_KNOB}'"
    )


def _constraint_problem(constraint: object) -> str | None:
    if constraint is None:
        return None
    if not isinstance(constraint, IntConstraint | FloatConstraint | StringConstraint):
        return f"has the constraint {constraint!r}, which is none"
    if isinstance(constraint, StringConstraint):
        return None if constraint.max_length >= 0 else f"has a negative length in {constraint}"
    if constraint.min_value > constraint.max_value and not getattr(constraint, "valid_values", ()):
        return f"has an empty range in {constraint}"
    if isinstance(constraint, IntConstraint) and constraint.step < 1:
        return f"has a step below 1 in {constraint}"
    return None


def _default_problem(knob: Knob) -> str | None:
    try:
        value = knob_value(knob.default_value, knob.knob_id)
    except KnobError as error:
        return f"has a bad default: {error}"
    if knob.constraint is None:
        return None
    problem = knob.constraint.violation(value)
    return (
        f"has default {value!r}, which {problem} (violates {knob.constraint})" if problem else None
    )
