"""Knobs: typed, constrained, opt-in parameters that an engine advertises for a graph.

The rules are hipDNN's: a constraint alone decides which values are good, integers are 64-bit
signed, a float knob takes no integer, and a bool is no value at all.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, overload

from hipdnn_registry.errors import KnobError

from .constraints import IntConstraint, KnobConstraint, KnobValue, with_article

if TYPE_CHECKING:
    from collections.abc import Iterator

BENCHMARKING_KNOB = "global.benchmarking"
WORKSPACE_SIZE_LIMIT_KNOB = "global.workspace_size_limit"

INT64 = range(-(2**63), 2**63)
"""Values of an int knob."""

_INT64_MIN, _INT64_MAX = INT64.start, INT64.stop - 1


def knob_value(value: object, knob_id: str) -> KnobValue:
    """Return a knob value as int, float or str.

    Args:
        value: What a caller gave; numpy scalars are taken for what they are.
        knob_id: The knob that it is for, for the message.

    Raises:
        KnobError: A bool, NaN, infinity, an integer beyond 64 bits, or another type; or the id is
            no str.
    """
    if not isinstance(knob_id, str):
        raise KnobError(f"a knob's id is {knob_id!r:.80}, but must be a str")
    if type(value) is int and _INT64_MIN <= value <= _INT64_MAX:  # as nearly always
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise KnobError(
            f"knob '{knob_id}': value {value!r} is {with_article(type(value).__name__)}, but must "
            "be an int, a float or a str"
        )
    if isinstance(value, numbers.Integral):
        number = int(value)
        if number not in INT64:
            raise KnobError(f"knob '{knob_id}': value {number} does not fit in 64 bits")
        return number
    real = float(value)
    if not math.isfinite(real):
        raise KnobError(f"knob '{knob_id}': value {real} is not finite")
    return real


@dataclass(frozen=True, slots=True)
class KnobSetting:
    """A value that a caller asks a knob to have.

    Attributes:
        knob_id: Dotted id, such as `"miopen.tuning_policy"`.
        value: int, float or str.

    Raises:
        KnobError: The value is of no knob type.
    """

    knob_id: str
    value: KnobValue

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", knob_value(self.value, self.knob_id))

    def __str__(self) -> str:
        return f"{self.knob_id}={self.value!r}"


class KnobValueType(StrEnum):
    """Type of a knob's default value."""

    INT64 = "int"
    FLOAT64 = "float"
    STRING = "str"


@dataclass(frozen=True, slots=True)
class Knob:
    """A parameter that an engine advertises for a graph.

    Attributes:
        knob_id: `"<provider namespace>.<name>"`, or one of the reserved `global.` knobs.
        description: One sentence for people.
        default_value: What the engine uses if the caller sets nothing; gives the type.
        constraint: Which values are good; `None` admits every value of every type, as in hipDNN.
        deprecated: Still honoured, with a warning.
        replacement: Id of the knob to use instead of a deprecated one.
    """

    knob_id: str
    description: str
    default_value: KnobValue
    constraint: KnobConstraint | None = None
    deprecated: bool = False
    replacement: str | None = None

    @property
    def value_type(self) -> KnobValueType:
        """Type of the default value."""
        return {int: KnobValueType.INT64, float: KnobValueType.FLOAT64}.get(
            type(self.default_value), KnobValueType.STRING
        )

    def validate(self, setting: KnobSetting, *, where: str = "") -> None:
        """Check a setting against the constraint.

        Args:
            setting: The setting; its id is not compared.
            where: Engine and provider, for the message.

        Raises:
            KnobError: Names the knob, the value and what is allowed.
        """
        problem = self.constraint.violation(setting.value) if self.constraint else None
        if problem:
            raise KnobError(
                f"knob '{self.knob_id}'{where}: value {setting.value!r} {problem} "
                f"(violates {self.constraint})"
            )

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the knob's value."""
        schema = self.constraint.json_schema() if self.constraint else {}
        schema |= {"description": self.description, "default": self.default_value}
        if self.deprecated:
            schema["deprecated"] = True
        return schema


def benchmarking_knob() -> Knob:
    """Return the reserved knob that asks an engine to measure its candidates."""
    return Knob(
        BENCHMARKING_KNOB,
        "Measure candidate kernels when the plan is created (1), or choose by shape (0)",
        0,
        IntConstraint(0, 1),
    )


def workspace_size_limit_knob(least: int, most: int) -> Knob:
    """Return the reserved knob that bounds an engine's workspace.

    Args:
        least: Bytes without which the engine cannot run the graph.
        most: Bytes beyond which it gains nothing; the default.
    """
    return Knob(
        WORKSPACE_SIZE_LIMIT_KNOB, "Workspace size limit in bytes", most, IntConstraint(least, most)
    )


# Lists of knobs


class KnobList:
    """Knobs in the engine's order, also found by id in constant time.

    A read-only sequence: `knobs[0]` and `knobs["miopen.tuning_policy"]` both work, as do
    `"miopen.tuning_policy" in knobs` and `get`.
    """

    # Registered as a Sequence below instead of derived from one: a type checker takes a str in a
    # Sequence[Knob] for a mistake.

    __slots__ = ("_by_id", "_knobs")

    def __init__(self, knobs: Iterable[Knob] = ()) -> None:
        self._knobs = tuple(knobs)
        self._by_id = {knob.knob_id: knob for knob in self._knobs}

    @overload
    def __getitem__(self, key: int | str) -> Knob: ...
    @overload
    def __getitem__(self, key: slice) -> list[Knob]: ...
    def __getitem__(self, key: int | str | slice) -> Knob | list[Knob]:
        if isinstance(key, str):
            return self._by_id[key]
        return list(self._knobs[key]) if isinstance(key, slice) else self._knobs[key]

    def get(self, knob_id: str) -> Knob | None:
        """Return the knob of that id, or `None`."""
        return self._by_id.get(knob_id)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, in order."""
        return tuple(self._by_id)

    def __contains__(self, item: object) -> bool:
        return item in self._by_id if isinstance(item, str) else item in self._knobs

    def __iter__(self) -> Iterator[Knob]:
        return iter(self._knobs)

    def __reversed__(self) -> Iterator[Knob]:
        return reversed(self._knobs)

    def __len__(self) -> int:
        return len(self._knobs)

    def index(self, knob: Knob) -> int:
        """Return the position of a knob."""
        return self._knobs.index(knob)

    def count(self, knob: Knob) -> int:
        """Return how often a knob occurs: once or never."""
        return self._knobs.count(knob)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (KnobList, list, tuple)):
            return self._knobs == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._knobs)

    def __repr__(self) -> str:
        return f"KnobList({list(self._knobs)!r})"

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of an object that maps knob ids to values."""
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {knob.knob_id: knob.json_schema() for knob in self._knobs},
            "additionalProperties": False,
        }


Sequence.register(KnobList)

KnobSettings = Sequence[KnobSetting] | Mapping[str, KnobValue] | None


def as_values(settings: KnobSettings) -> dict[str, KnobValue]:
    """Bring a list of settings or a mapping into one form: values by knob id.

    Raises:
        KnobError: A knob is set twice, a value is of no knob type, or an entry is no setting.
    """
    if settings is None:
        return {}
    if not isinstance(settings, (list, tuple)):
        if type(settings) is dict or isinstance(settings, Mapping):
            return {knob_id: knob_value(value, knob_id) for knob_id, value in settings.items()}
        if isinstance(settings, (str, bytes, KnobSetting)) or not isinstance(settings, Iterable):
            raise KnobError(
                f"settings are {settings!r:.80}, but must be a list of KnobSetting or a mapping "
                "from knob id to value"
            )
    found: dict[str, KnobValue] = {}
    for setting in settings:
        if not isinstance(setting, KnobSetting):
            raise KnobError(f"a knob setting must be a KnobSetting, not {setting!r}")
        if setting.knob_id in found:
            raise KnobError(
                f"knob '{setting.knob_id}' is set twice: to {found[setting.knob_id]!r} and "
                f"to {setting.value!r}"
            )
        found[setting.knob_id] = setting.value
    return found
