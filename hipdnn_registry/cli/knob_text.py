"""`--engine` and `--knob` as the registry takes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hipdnn_registry.errors import InvalidInputError, KnobError
from hipdnn_registry.knobs import (
    FloatConstraint,
    IntConstraint,
    Knob,
    KnobSetting,
    KnobValue,
    KnobValueType,
    StringConstraint,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hipdnn_registry import KnobList


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


def typed_settings(pairs: Sequence[tuple[str, str]], knobs: KnobList) -> list[KnobSetting]:
    """Give each value the type that its knob has, so that `1` is 1.0 for a float knob.

    A knob that is not advertised takes what its value looks like; the registry will drop it.

    Raises:
        KnobError: A value can't be read as its knob's type.
    """
    return [
        KnobSetting(knob_id, _typed(text, knobs.get(knob_id), knob_id)) for knob_id, text in pairs
    ]


def _typed(text: str, knob: Knob | None, knob_id: str) -> KnobValue:
    if knob is None:
        return _guessed(text)
    try:
        if knob.value_type is KnobValueType.INT64:
            return int(text)
        if knob.value_type is KnobValueType.FLOAT64:
            return float(text)
    except ValueError:
        kind = {KnobValueType.INT64: "an int", KnobValueType.FLOAT64: "a float"}[knob.value_type]
        raise KnobError(
            f"knob '{knob_id}': value '{text}' is not {kind}; allowed: {allowed_text(knob)}"
        ) from None
    return text


def _guessed(text: str) -> KnobValue:
    for read, pattern in ((int, r"[+-]?\d{1,18}"), (float, r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?")):
        if re.fullmatch(pattern, text, re.ASCII | re.IGNORECASE):
            return read(text)
    return text


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
