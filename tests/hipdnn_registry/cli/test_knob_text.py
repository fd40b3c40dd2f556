"""Knob values as typed on a command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipdnn_registry import (
    EngineConfigInfo,
    FloatConstraint,
    IntConstraint,
    Knob,
    KnobError,
    KnobList,
    StringConstraint,
)
from hipdnn_registry.cli.knob_text import allowed_text, engine_of, split_settings, typed_settings

INT = Knob("acme.int", "", 1, IntConstraint(-(2**62), 2**62))
FLOAT = Knob("acme.float", "", 1.0, FloatConstraint(-1e300, 1e300))
TEXT = Knob("acme.text", "", "", StringConstraint(max_length=1000))
INFO = EngineConfigInfo(
    engine_id=1,
    engine_name="ACME_ENGINE",
    knobs=KnobList([INT, FLOAT, TEXT]),
    supports_exhaustive=False,
    estimated_workspace_size=0,
    behavior_notes=(),
    provider_name="acme",
    provider_version="1.0",
)


def typed(text: str) -> object:
    (setting,) = typed_settings(split_settings([text]), INFO)
    return setting.value


@given(st.integers(-(2**62), 2**62))
def test_integers(value: int) -> None:
    assert typed(f"acme.int={value}") == value
    as_float = typed(f"acme.float={value}")
    assert type(as_float) is float
    assert as_float == float(value)
    assert typed(f"acme.text={value}") == str(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats(value: float) -> None:
    assert typed(f"acme.float={value!r}") == value


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_is_taken_as_it_is(value: str) -> None:
    assert typed(f"acme.text={value}") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("-7", -7), ("7.5", 7.5), ("1e3", 1000.0), (".5", 0.5), ("7x", "7x"), ("", ""),
     ("nan", "nan"), ("1_0", "1_0"), ("a=b", "a=b")],
)  # fmt: skip
def test_a_knob_that_nobody_advertises_is_guessed(text: str, value: object) -> None:
    guessed = typed(f"other.knob={text}")
    assert (type(guessed), guessed) == (type(value), value)


@pytest.mark.parametrize("knob", ["acme.int", "acme.float"])
@pytest.mark.parametrize("text", ["1_0", "\u0661", "0x10", " 1", "1\n", "", "+", "1" * 9999 + "x"])
def test_numbers_are_ascii_digits(knob: str, text: str) -> None:
    with pytest.raises(
        KnobError, match=rf"'{knob}' of .*: value '(?s:.{{0,60}})', from --knob, is not an? "
    ) as caught:
        typed(f"{knob}={text}")
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("text", "engine"),
    [(None, None), ("CPU", "CPU"), ("42", 42), ("-42", -42), ("4x", "4x"), ("\u0664", "\u0664")],
)
def test_engines(text: str | None, engine: object) -> None:
    assert engine_of(text) == engine


@pytest.mark.parametrize(
    ("knob", "text"),
    [
        (Knob("a.b", "", 0, IntConstraint(0, 9)), "0 to 9"),
        (Knob("a.b", "", 0, IntConstraint(0, 8, 4)), "0 to 8 in steps of 4"),
        (Knob("a.b", "", 8, IntConstraint(0, 0, valid_values=(16, 8))), "8, 16"),
        (Knob("a.b", "", 0.5, FloatConstraint(0.0, 1.0)), "0.0 to 1.0"),
        (Knob("a.b", "", "x", StringConstraint(valid_values=("y", "x"))), "x, y"),
        (Knob("a.b", "", "", StringConstraint(8)), "text of at most 8 bytes"),
        (Knob("a.b", "", ""), "any value"),
    ],
)
def test_allowed_values(knob: Knob, text: str) -> None:
    assert allowed_text(knob) == text
