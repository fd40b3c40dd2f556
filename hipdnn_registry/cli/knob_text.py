"""`--engine` and `--knob` as the registry takes them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from hipdnn_registry.errors import InvalidInputError, KnobError
from hipdnn_registry.knobs.constraints import (
    FloatConstraint,
    IntConstraint,
    KnobValue,
    StringConstraint,
)
from hipdnn_registry.knobs.knob import INT64, Knob, KnobSetting, KnobValueType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hipdnn_registry import EngineConfigInfo


_INT = r"[+-]?\d{1,1000}"
_FLOAT = r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?"


def engine_of(text: str | None) -> int | str | None:
    """Return an engine's name, or its id where the text is a number."""
    return int(text) if text and re.fullmatch(r"-?\d{1,20}", text, re.ASCII) else text


def split_settings(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Split each `id=value`.

    Raises:
        InvalidInputError: There is no `=`, or no id before it.
    """
    pairs = []
    for text in texts:
        knob_id, equals, value = text.partition("=")
        if not equals or not knob_id.strip():
            raise InvalidInputError(
                f"--knob is '{text}', but must be ID=VALUE, such as global.benchmarking=1"
            )
        pairs.append((knob_id.strip(), value))
    return pairs


def typed_settings(pairs: Sequence[tuple[str, str]], info: EngineConfigInfo) -> list[KnobSetting]:
    """Give each value the type that its knob has, so that `1` is 1.0 for a float knob.

    A knob that is not advertised takes what its value looks like; the registry will drop it.

    Raises:
        KnobError: A value can't be read as its knob's type.
    """
    settings = []
    for knob_id, text in pairs:
        knob = info.knobs.get(knob_id)
        value = _guessed(text) if knob is None else _typed(text, knob, info.where)
        settings.append(KnobSetting(knob_id, value))
    return settings


def _typed(text: str, knob: Knob, where: str) -> KnobValue:
    read: type[int | float]
    if knob.value_type is KnobValueType.INT64:
        read, pattern, kind = int, _INT, "an int"
    elif knob.value_type is KnobValueType.FLOAT64:
        read, pattern, kind = float, rf"{_FLOAT}|[+-]?(inf|infinity|nan)", "a float"
    else:
        return text
    problem = f"is not {kind}"
    if _matches(pattern, text):
        value = read(text)
        if isinstance(value, int):
            problem = "" if value in INT64 else "does not fit in 64 bits"
        else:
            problem = "" if math.isfinite(value) else "is not finite"
        if not problem:
            return value
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    raise KnobError(
        f"knob '{knob.knob_id}'{where}: value '{shown}', from --knob, {problem}; allowed: "
        f"{allowed_text(knob)}"
    )


def _guessed(text: str) -> KnobValue:
    for read, pattern in ((int, r"[+-]?\d{1,18}"), (float, _FLOAT)):
        if _matches(pattern, text):
            return read(text)
    return text


def _matches(pattern: str, text: str) -> bool:
    """Whether all of a text fits; Python's own `int` and `float` also take `1_0` and `\u0661`."""
    return re.fullmatch(pattern, text, re.ASCII | re.IGNORECASE) is not None


def allowed_text(knob: Knob) -> str:
    """Say which values a knob takes."""
    constraint = knob.constraint
    if isinstance(constraint, IntConstraint) and not constraint.valid_values:
        step = f" in steps of {constraint.step}" if constraint.step > 1 else ""
        return f"{constraint.min_value} to {constraint.max_value}{step}"
    if isinstance(constraint, FloatConstraint):
        return f"{constraint.min_value} to {constraint.max_value}"
    if isinstance(constraint, StringConstraint) and not constraint.valid_values:
        return f"text of at most {constraint.max_length} bytes"
    if constraint is None:
        return "any value"
    return ", ".join(str(value) for value in sorted(constraint.valid_values, key=_order))


def _order(value: float | str) -> tuple[bool, float, str]:
    return (True, 0.0, value) if isinstance(value, str) else (False, value, "")
