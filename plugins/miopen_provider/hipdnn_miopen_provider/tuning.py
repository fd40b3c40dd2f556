"""Which tuning policy a plan is built under, who decided it, and how MIOpen is made to obey it.

docs/miopen-tuning-policy.md has what each policy was seen to do on the real library.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property

from hipdnn_miopen_provider.native import FindMode, TuningPolicy
from hipdnn_registry import IntConstraint, Knob, KnobError

__all__ = [
    "FIND_MODE_KNOB",
    "FOLLOW",
    "OBEDIENCE",
    "TUNING_POLICY_KNOB",
    "DecidedBy",
    "Obedience",
    "ResolvedPolicy",
    "TuningPolicy",
    "find_mode_knob",
    "find_mode_under",
    "resolve_tuning_policy",
    "tuning_policy_knob",
]

TUNING_POLICY_KNOB = "miopen.tuning_policy"
FIND_MODE_KNOB = "miopen.find_mode"

FOLLOW = 0
"""The knob's default: HIPDNN_FORCE_BENCHMARKING and `global.benchmarking` decide. MIOpen has no
such policy and refuses the number."""


class DecidedBy(StrEnum):
    """Which of the three settings decided a policy."""

    KNOB = TUNING_POLICY_KNOB
    FORCE_BENCHMARKING = "HIPDNN_FORCE_BENCHMARKING"
    BENCHMARKING = "global.benchmarking"


@dataclass(frozen=True)
class ResolvedPolicy:
    """The policy that applies, and who decided it."""

    policy: TuningPolicy
    decided_by: DecidedBy

    def __str__(self) -> str:
        return f"{self.policy.name} ({self.policy.value}), decided by {self.decided_by}"

    @cached_property
    def note(self) -> str:
        """A sentence for a plan's notes."""
        return f"tuning policy: {self}"


_NONE, _SEARCH = TuningPolicy.NONE, TuningPolicy.SEARCH
_ANY = object()

_PRECEDENCE = (
    # knob, HIPDNN_FORCE_BENCHMARKING, global.benchmarking: the first row that fits applies
    *((policy.value, _ANY, _ANY, policy, DecidedBy.KNOB) for policy in TuningPolicy),
    (FOLLOW, True, _ANY, _SEARCH, DecidedBy.FORCE_BENCHMARKING),
    (FOLLOW, False, _ANY, _NONE, DecidedBy.FORCE_BENCHMARKING),
    (FOLLOW, None, True, _SEARCH, DecidedBy.BENCHMARKING),
    (FOLLOW, None, False, _NONE, DecidedBy.BENCHMARKING),
)


@cache
def resolve_tuning_policy(
    knob: int, force_benchmarking: bool | None, benchmarking: bool
) -> ResolvedPolicy:
    """Decide the policy: an explicit knob, else the environment, else `global.benchmarking`.

    Args:
        knob: `miopen.tuning_policy`: 1..5, or 0 to follow the other two.
        force_benchmarking: HIPDNN_FORCE_BENCHMARKING, `None` where it is unset.
        benchmarking: `global.benchmarking` as the caller set it.

    Raises:
        ValueError: The knob is none of 0..5.
    """
    asked = (knob, force_benchmarking, benchmarking)
    for *condition, policy, decided_by in _PRECEDENCE:
        fits = zip(condition, asked, strict=True)
        if all(wanted is _ANY or wanted == value for wanted, value in fits):
            return ResolvedPolicy(policy, decided_by)
    raise ValueError(f"{TUNING_POLICY_KNOB} is {knob!r}, but must be 0 to 5")


@dataclass(frozen=True, slots=True)
class Obedience:
    """What has to be asked of MIOpen beside the policy, for the policy to be obeyed every time.

    Attributes:
        find_mode: Find mode of a convolution's descriptor; `None` is the library's default, which
            skips the policy wherever the find-db knows the problem.
        exhaustive: Find's exhaustiveSearch, without which DbUpdate does nothing.
        cacheable: Whether a plan built once may stand for a later request. Not where the caller
            asked for an effect on the perf-db.
    """

    find_mode: FindMode | None
    exhaustive: bool
    cacheable: bool


OBEDIENCE = {
    TuningPolicy.NONE: Obedience(find_mode=None, exhaustive=False, cacheable=True),
    TuningPolicy.DB_UPDATE: Obedience(FindMode.Normal, exhaustive=True, cacheable=False),
    TuningPolicy.SEARCH: Obedience(FindMode.Normal, exhaustive=False, cacheable=True),
    TuningPolicy.SEARCH_DB_UPDATE: Obedience(FindMode.Normal, exhaustive=False, cacheable=False),
    TuningPolicy.DB_CLEAN: Obedience(FindMode.Normal, exhaustive=False, cacheable=False),
}


def tuning_policy_knob() -> Knob:
    """Return the knob `miopen.tuning_policy`."""
    return Knob(
        TUNING_POLICY_KNOB,
        "MIOpen's tuning policy while the plan is created: 0 follow global.benchmarking, 1 None, "
        "2 DbUpdate, 3 Search, 4 SearchDbUpdate, 5 DbClean",
        FOLLOW,
        IntConstraint(0, len(TuningPolicy)),
    )


def find_mode_knob() -> Knob:
    """Return the knob `miopen.find_mode`."""
    return Knob(
        FIND_MODE_KNOB,
        "MIOpen's find mode of a convolution: 0 as the tuning policy needs it, 1 Normal, 2 Fast, "
        "3 Hybrid, 5 DynamicHybrid, 6 TrustVerify, 7 TrustVerifyFull",
        FOLLOW,
        IntConstraint(0, max(FindMode), valid_values=(FOLLOW, *[mode.value for mode in FindMode])),
    )


def find_mode_under(policy: TuningPolicy, needed: FindMode | None, asked: FindMode) -> FindMode:
    """Return the find mode of a convolution's Find where `miopen.find_mode` asks for one.

    Args:
        policy: Effective policy.
        needed: What has to be asked of MIOpen for the policy, or for a search, to be obeyed;
            `None`: any will do.
        asked: The knob.

    Raises:
        KnobError: The asked mode would skip the search wherever the find-db knows the problem.
    """
    if needed not in {None, asked}:
        raise KnobError(
            f"{FIND_MODE_KNOB} is {asked.value} ({asked.name}), but with tuning (policy "
            f"{policy.name}) it must be 0 or {needed.value} ({needed.name}): in any other mode "
            "MIOpen skips the tuning wherever its find-db knows the problem"
        )
    return asked
