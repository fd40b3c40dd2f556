"""Knobs: hipDNN's rules and boundary cases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipdnn_registry import (
    FloatConstraint,
    IntConstraint,
    Knob,
    KnobError,
    KnobList,
    KnobSetting,
    KnobValueType,
    StringConstraint,
    benchmarking_knob,
    workspace_size_limit_knob,
)
from hipdnn_registry.knobs.knob import as_values
from hipdnn_registry.knobs.rules import sound_knobs

INT64_MAX = 2**63 - 1


def knob(default: Any, constraint: Any) -> Knob:
    return Knob("acme.k", "A knob", default, constraint)


@pytest.mark.parametrize(
    ("constraint", "value", "problem"),
    [
        (IntConstraint(0, 100), 0, None),
        (IntConstraint(0, 100), 100, None),
        (IntConstraint(0, 100), -1, "out of range"),
        (IntConstraint(0, 100), 101, "out of range"),
        (IntConstraint(0, 100, 10), 10, None),
        (IntConstraint(0, 100, 10), 100, None),
        (IntConstraint(0, 100, 10), 15, "step constraint"),
        (IntConstraint(5, 100, 10), 15, None),
        (IntConstraint(0, 100, valid_values=(1, 2, 4, 8, 16)), 16, None),
        (
            IntConstraint(0, 100, valid_values=(1, 2, 4, 8, 16)),
            3,
            "not in the list of valid values",
        ),
        (IntConstraint(0, 1, valid_values=(500,)), 500, None),  # the list alone decides
        (IntConstraint(0, INT64_MAX), INT64_MAX, None),
        (IntConstraint(0, 100), 1.0, "takes an int"),
        (IntConstraint(0, 100), "1", "takes an int"),
        (FloatConstraint(0.0, 1.0), 0.0, None),
        (FloatConstraint(0.0, 1.0), 0.5, None),
        (FloatConstraint(0.0, 1.0), 1.0, None),
        (FloatConstraint(0.0, 1.0), -0.1, "out of range"),
        (FloatConstraint(0.0, 1.0), 1.1, "out of range"),
        (FloatConstraint(0.0, 1.0), 1, "write 1.0"),  # hipDNN promotes no integer
        (StringConstraint(5), "", None),
        (StringConstraint(5), "12345", None),
        (StringConstraint(5), "123456", "exceeds maximum length"),
        (StringConstraint(5), "éé1", None),
        (StringConstraint(5), "ééé", "6 bytes exceeds maximum length"),
        (StringConstraint(0, ("a", "b")), "a", None),  # a list makes the length irrelevant
        (StringConstraint(9, ("a", "b")), "c", "not in the list of valid values"),
        (StringConstraint(), "x", "exceeds maximum length"),
        (StringConstraint(5), 5, "takes a str"),
        (None, -999999, None),
        (None, "any type", None),
    ],
)
def test_constraints(constraint: Any, value: Any, problem: str | None) -> None:
    default = constraint.valid_values[0] if getattr(constraint, "valid_values", ()) else 0
    setting = KnobSetting("acme.k", value)
    if problem is None:
        knob(default, constraint).validate(setting)
        return
    with pytest.raises(KnobError, match=problem) as caught:
        knob(default, constraint).validate(setting, where=" of engine E")
    assert repr(value) in str(caught.value)
    assert "knob 'acme.k' of engine E" in str(caught.value)
    assert "violates" in str(caught.value)


def test_constraints_print_as_in_hipdnn() -> None:
    assert str(IntConstraint(0, 5, 1, (2, 1))) == (
        "IntConstraint{min=0,max=5,step=1,validValues=[1,2]}"
    )
    assert str(FloatConstraint(0.0, 1.0)) == "FloatConstraint{min=0.0,max=1.0}"
    assert str(StringConstraint(3, ("a",))) == 'StringConstraint{maxLength=3,validValues=["a"]}'


@pytest.mark.parametrize(
    "value",
    [
        *(True, False, np.True_, None, [1], b"x", 1j),
        *(math.nan, math.inf, -math.inf, np.float32("nan")),
        *(2**63, -(2**63) - 1),
    ],
)
def test_what_is_no_knob_value(value: Any) -> None:
    with pytest.raises(KnobError, match=r"acme\.k"):
        KnobSetting("acme.k", value)


@pytest.mark.parametrize(
    ("value", "kept", "kind"),
    [
        (np.int64(3), 3, int),
        (np.uint8(3), 3, int),
        (np.float32(0.5), 0.5, float),
        (np.str_("x"), "x", str),
        (-(2**63), -(2**63), int),
    ],
)
def test_numpy_scalars_are_taken_for_what_they_are(value: Any, kept: Any, kind: type) -> None:
    setting = KnobSetting("acme.k", value)
    assert setting.value == kept
    assert type(setting.value) is kind


@given(
    low=st.integers(-100, 100),
    span=st.integers(0, 100),
    step=st.integers(1, 12),
    value=st.integers(-300, 300),
)
def test_steps_admit_exactly_the_multiples(low: int, span: int, step: int, value: int) -> None:
    admitted = IntConstraint(low, low + span, step).violation(value) is None
    assert admitted == (value in range(low, low + span + 1, step))


def test_value_types() -> None:
    kinds = [knob(default, None).value_type for default in (1, 1.0, "1")]
    assert kinds == [KnobValueType.INT64, KnobValueType.FLOAT64, KnobValueType.STRING]


def test_a_knob_list_is_a_sequence_found_by_id() -> None:
    first, second = benchmarking_knob(), knob(1, None)
    knobs = KnobList([first, second])
    assert isinstance(knobs, Sequence)
    assert list(knobs) == [first, second] == knobs
    assert knobs[0] is first
    assert knobs[-1:] == [second]
    assert knobs["acme.k"] is second
    assert "acme.k" in knobs
    assert first in knobs
    assert "other" not in knobs
    assert knobs.get("other") is None
    assert knobs.ids == ("global.benchmarking", "acme.k")
    assert (knobs.index(second), knobs.count(second), list(reversed(knobs))) == (
        1,
        1,
        [second, first],
    )
    with pytest.raises(KeyError):
        knobs["other"]
    assert {KnobList([first]): 1}[KnobList([first])] == 1


def test_json_schema() -> None:
    knobs = KnobList(
        [
            benchmarking_knob(),
            Knob("acme.tile", "Tile", 8, IntConstraint(0, 64, 8)),
            Knob("acme.mode", "Mode", "a", StringConstraint(0, ("b", "a")), deprecated=True),
            Knob("acme.any", "Anything", 0.5),
        ]
    )
    schema = knobs.json_schema()
    assert schema["additionalProperties"] is False
    assert schema["properties"]["acme.tile"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 64,
        "multipleOf": 8,
        "description": "Tile",
        "default": 8,
    }
    assert schema["properties"]["acme.mode"]["enum"] == ["a", "b"]
    assert schema["properties"]["acme.mode"]["deprecated"] is True
    assert "type" not in schema["properties"]["acme.any"]


def test_an_infinite_bound_has_no_place_in_json() -> None:
    schema = Knob("acme.k", "", 0.5, FloatConstraint(0.0, math.inf)).json_schema()
    assert schema == {"type": "number", "minimum": 0.0, "description": "", "default": 0.5}


def test_settings_come_as_list_or_mapping() -> None:
    setting = KnobSetting("a.b", 1)
    assert as_values([setting]) == as_values({"a.b": 1}) == {"a.b": 1}
    assert as_values(None) == as_values([]) == {}
    with pytest.raises(KnobError, match="set twice: to 1 and to 2"):
        as_values([setting, KnobSetting("a.b", 2)])
    with pytest.raises(KnobError, match="must be a KnobSetting"):
        as_values([("a.b", 1)])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (Knob("other.k", "", 1), "outside the provider's namespace"),
        (Knob("k", "", 1), "dotted id"),
        (Knob("acme.", "", 1), "dotted id"),
        (Knob("acme.a b", "", 1), "dotted id"),
        (Knob("global.deterministic", "", 1), "reserved namespace"),
        (Knob("global.benchmarking", "", 1, IntConstraint(0, 1)), "default 0"),
        (Knob("global.benchmarking", "", 0, IntConstraint(0, 2)), "default 0"),
        (Knob("global.benchmarking", "", 0), "default 0"),
        (workspace_size_limit_knob(-1, 10), "negative"),
        (Knob("global.workspace_size_limit", "", 5), "IntConstraint"),
        (Knob("acme.k", "", 200, IntConstraint(0, 100)), "violates"),
        (Knob("acme.k", "", 5, IntConstraint(10, 100)), "violates"),
        (Knob("acme.k", "", 2.0, FloatConstraint(0.0, 1.0)), "violates"),
        (Knob("acme.k", "", "invalid", StringConstraint(0, ("a", "b"))), "violates"),
        (Knob("acme.k", "", math.nan), "not finite"),
        (Knob("acme.k", "", True), "bool"),
        (Knob("acme.good", "", 9), "twice"),
        ("acme.k", "no Knob"),
        (Knob("acme.k", "", 1, cast("Any", "0..5")), "is none"),
        (Knob("acme.k", "", 1, IntConstraint(1, 9, 0)), "step below 1"),
        (Knob("acme.k", "", 1, IntConstraint(9, 1)), "empty range"),
    ],
)
def test_a_bad_knob_is_a_defect_and_hides_no_other(bad: Any, problem: str) -> None:
    good, last = Knob("acme.good", "", 1), Knob("acme.last", "", 2)
    knobs, defects = sound_knobs([good, bad, last], "acme")
    assert knobs == [good, last]
    assert len(defects) == 1
    assert problem in defects[0]


def test_the_reserved_knobs_are_sound() -> None:
    reserved = [benchmarking_knob(), workspace_size_limit_knob(0, 4096)]
    knobs, defects = sound_knobs(reserved, "acme")
    assert (list(knobs), defects) == (reserved, ())
    assert reserved[1].default_value == 4096
