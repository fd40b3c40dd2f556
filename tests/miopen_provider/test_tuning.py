"""The one precedence rule, over all inputs."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipdnn_miopen_provider.native import FindMode, TuningPolicy
from hipdnn_miopen_provider.tuning import (
    OBEDIENCE,
    DecidedBy,
    resolve_tuning_policy,
    tuning_policy_knob,
)

FORCED = (None, False, True)


@pytest.mark.parametrize(
    ("knob", "force", "benchmarking"),
    list(itertools.product(range(6), FORCED, (False, True))),
)
def test_knob_over_environment_over_benchmarking(
    knob: int, force: bool | None, benchmarking: bool
) -> None:
    """All 36 inputs, by the rule in words rather than by the table."""
    resolved = resolve_tuning_policy(knob, force, benchmarking)
    if knob:
        assert (resolved.policy, resolved.decided_by) == (knob, DecidedBy.KNOB)
        return
    on = benchmarking if force is None else force
    assert resolved.policy is (TuningPolicy.SEARCH if on else TuningPolicy.NONE)
    assert resolved.decided_by is (
        DecidedBy.BENCHMARKING if force is None else DecidedBy.FORCE_BENCHMARKING
    )


def test_it_is_said_in_words() -> None:
    resolved = resolve_tuning_policy(0, True, False)
    assert str(resolved) == "SEARCH (3), decided by HIPDNN_FORCE_BENCHMARKING"
    assert resolved.note == f"tuning policy: {resolved}"


@given(st.integers(), st.sampled_from(FORCED), st.booleans())
def test_zero_never_reaches_miopen_and_nothing_else_is_taken(
    knob: int, force: bool | None, benchmarking: bool
) -> None:
    if 0 <= knob <= 5:
        assert resolve_tuning_policy(knob, force, benchmarking).policy in set(TuningPolicy)
    else:
        with pytest.raises(ValueError, match=f"miopen.tuning_policy is {knob}, but must be 0 to 5"):
            resolve_tuning_policy(knob, force, benchmarking)


def test_the_knob_takes_exactly_what_the_rule_takes() -> None:
    knob = tuning_policy_knob()
    assert knob.constraint is not None
    good = [value for value in range(-3, 9) if knob.constraint.violation(value) is None]
    assert good == list(range(6))
    assert knob.default_value == 0


def test_what_makes_miopen_obey() -> None:
    assert OBEDIENCE.keys() == set(TuningPolicy)
    for policy, how in OBEDIENCE.items():
        assert how.find_mode is (None if policy is TuningPolicy.NONE else FindMode.Normal)
        assert how.exhaustive is (policy is TuningPolicy.DB_UPDATE)
        assert how.cacheable is (policy in {TuningPolicy.NONE, TuningPolicy.SEARCH})
