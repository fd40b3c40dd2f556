"""Which values a knob takes: integers, floats or strings, by range or list; hipDNN's rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

KnobValue = int | float | str


@dataclass(frozen=True, slots=True)
class IntConstraint:
    """Integers from `min_value` to `max_value` in steps, or exactly those of a list.

    Attributes:
        min_value: Least value, inclusive.
        max_value: Greatest value, inclusive.
        step: A value must be `min_value` plus a multiple of it.
        valid_values: If not empty, it alone decides.
    """

    min_value: int
    max_value: int
    step: int = 1
    valid_values: tuple[int, ...] = ()

    def violation(self, value: KnobValue) -> str | None:
        """Say what is wrong with a value, or return `None`."""
        if type(value) is not int:
            return f"is {with_article(type(value).__name__)}, but the knob takes an int"
        if self.valid_values:
            return None if value in self.valid_values else _not_listed(self.valid_values)
        if not self.min_value <= value <= self.max_value:
            return f"is out of range [{self.min_value}, {self.max_value}]"
        if self.step > 1 and (value - self.min_value) % self.step:
            return f"breaks the step constraint: {self.min_value} plus a multiple of {self.step}"
        return None

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the values."""
        if self.valid_values:
            return {"type": "integer", "enum": sorted(self.valid_values)}
        schema = {"type": "integer", "minimum": self.min_value, "maximum": self.max_value}
        if self.step > 1 and self.min_value % self.step == 0:
            schema["multipleOf"] = self.step
        return schema

    def __str__(self) -> str:
        listed = ",".join(map(str, sorted(self.valid_values)))
        return (
            f"IntConstraint{{min={self.min_value},max={self.max_value},step={self.step},"
            f"validValues=[{listed}]}}"
        )


@dataclass(frozen=True, slots=True)
class FloatConstraint:
    """Floating-point numbers from `min_value` to `max_value`, inclusive; a bound may be infinite.

    A setting is always finite.
    """

    min_value: float
    max_value: float

    def violation(self, value: KnobValue) -> str | None:
        """Say what is wrong with a value, or return `None`."""
        if type(value) is not float:
            hint = f"; write {value}.0" if type(value) is int else ""
            return f"is {with_article(type(value).__name__)}, but the knob takes a float{hint}"
        if not self.min_value <= value <= self.max_value:
            return f"is out of range [{self.min_value}, {self.max_value}]"
        return None

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the values."""
        bounds = {"minimum": self.min_value, "maximum": self.max_value}
        return {"type": "number"} | {k: v for k, v in bounds.items() if math.isfinite(v)}

    def __str__(self) -> str:
        return f"FloatConstraint{{min={self.min_value},max={self.max_value}}}"


@dataclass(frozen=True, slots=True)
class StringConstraint:
    """Strings of a list, or of at most `max_length` bytes in UTF-8.

    As in hipDNN, a length of 0 without a list admits the empty string alone.
    """

    max_length: int = 0
    valid_values: tuple[str, ...] = ()

    def violation(self, value: KnobValue) -> str | None:
        """Say what is wrong with a value, or return `None`."""
        if type(value) is not str:
            return f"is {with_article(type(value).__name__)}, but the knob takes a str"
        if self.valid_values:
            return None if value in self.valid_values else _not_listed(self.valid_values)
        length = len(value.encode())
        if length > self.max_length:
            return f"of {length} bytes exceeds maximum length {self.max_length}"
        return None

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the values; JSON counts characters, the knob bytes."""
        if self.valid_values:
            return {"type": "string", "enum": sorted(self.valid_values)}
        return {"type": "string", "maxLength": self.max_length}

    def __str__(self) -> str:
        listed = ",".join(f'"{value}"' for value in self.valid_values)
        return f"StringConstraint{{maxLength={self.max_length},validValues=[{listed}]}}"


KnobConstraint = IntConstraint | FloatConstraint | StringConstraint


def _not_listed(values: Sequence[object]) -> str:
    return f"is not in the list of valid values {sorted(values, key=str)}"


def with_article(noun: str) -> str:
    """Return a noun with its article, for messages."""
    return f"an {noun}" if noun[:1] in "aeiou" else f"a {noun}"
