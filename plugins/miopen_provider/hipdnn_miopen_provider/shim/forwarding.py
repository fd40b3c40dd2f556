"""Whether a call is forwarded, to which engine, and with which knobs.

The handle's policy becomes `miopen.tuning_policy`, if the engine has it for the graph:

    policy                          knobs
    None                            none: HIPDNN_FORCE_BENCHMARKING may speak, else None
    None, exhaustive search         global.benchmarking=1: search on a miss, as MIOpen does then
    DbUpdate, exhaustive search     miopen.tuning_policy=2
    DbUpdate without                miopen.tuning_policy=1: MIOpen does nothing then
    DbUpdate, batchnorm             miopen.tuning_policy=2: MIOpen does nothing, the plan says so
    Search, SearchDbUpdate, DbClean miopen.tuning_policy=3, 4, 5
"""

from __future__ import annotations

import logging
import os
import re
import warnings
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import ConvolutionMode, FindMode, TuningPolicy
from hipdnn_miopen_provider.tuning import FIND_MODE_KNOB, TUNING_POLICY_KNOB
from hipdnn_registry import IntConstraint
from hipdnn_registry.errors import near_spellings
from hipdnn_registry.knobs.knob import BENCHMARKING_KNOB, WORKSPACE_SIZE_LIMIT_KNOB

from .errors import BadParm, UnsupportedOp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hipdnn_registry import EngineConfigInfo

    from .plan_key import Problem

FORWARDING = "MIOPEN_HIPDNN_FORWARDING"
"""`enabled` (the default) or `disabled`; read at each call."""

DISABLE_FOR = "MIOPEN_DISABLE_HIPDNN_FOR"
"""Entry points that are not forwarded, by MIOpen's names, with commas between; read each call."""

ENGINE = "MIOPEN_ENGINE"
DETERMINISTIC_ENGINE = "MIOPEN_ENGINE_DETERMINISTIC"

_log = logging.getLogger("hipdnn_registry.miopen.shim")

WRITES = frozenset({TuningPolicy.DB_UPDATE, TuningPolicy.SEARCH_DB_UPDATE, TuningPolicy.DB_CLEAN})
"""The policies by which a caller asks for an effect on the perf-db."""


class EntryPoint(StrEnum):
    """The calls, by MIOpen's names."""

    CONVOLUTION_FORWARD_GET_WORKSPACE_SIZE = "miopenConvolutionForwardGetWorkSpaceSize"
    CONVOLUTION_BACKWARD_DATA_GET_WORKSPACE_SIZE = "miopenConvolutionBackwardDataGetWorkSpaceSize"
    CONVOLUTION_BACKWARD_WEIGHTS_GET_WORKSPACE_SIZE = (
        "miopenConvolutionBackwardWeightsGetWorkSpaceSize"
    )
    FIND_CONVOLUTION_FORWARD = "miopenFindConvolutionForwardAlgorithm"
    FIND_CONVOLUTION_BACKWARD_DATA = "miopenFindConvolutionBackwardDataAlgorithm"
    FIND_CONVOLUTION_BACKWARD_WEIGHTS = "miopenFindConvolutionBackwardWeightsAlgorithm"
    CONVOLUTION_FORWARD = "miopenConvolutionForward"
    CONVOLUTION_BACKWARD_DATA = "miopenConvolutionBackwardData"
    CONVOLUTION_BACKWARD_WEIGHTS = "miopenConvolutionBackwardWeights"
    CONVOLUTION_BIAS_ACTIVATION_FORWARD = "miopenConvolutionBiasActivationForward"
    BATCH_NORMALIZATION_FORWARD_TRAINING = "miopenBatchNormalizationForwardTraining"
    BATCH_NORMALIZATION_FORWARD_INFERENCE = "miopenBatchNormalizationForwardInference"
    BATCH_NORMALIZATION_BACKWARD = "miopenBatchNormalizationBackward"


def check_enabled(entry_point: EntryPoint) -> None:
    """Raise unless the environment lets the call be forwarded.

    Raises:
        UnsupportedOp: It is switched off; there is no MIOpen of its own behind the shim.
        BadParm: MIOPEN_HIPDNN_FORWARDING is neither of its values.
    """
    switch = os.environ.get(FORWARDING, "").strip().lower()
    if switch == "disabled":
        raise UnsupportedOp(
            entry_point,
            f"{FORWARDING}=disabled switches forwarding off, and this handle has no other way to "
            "run it; unset the variable, or call MIOpen itself",
        )
    if switch not in {"", "enabled"}:
        raise BadParm(
            entry_point, f"{FORWARDING} is {switch!r}, but must be 'enabled' or 'disabled'"
        )
    listed = os.environ.get(DISABLE_FOR)
    if listed and entry_point in _disabled(listed):
        raise UnsupportedOp(
            entry_point,
            f"{DISABLE_FOR}={listed} switches forwarding of this call off, and this handle has no "
            "other way to run it; take it off the list, or call MIOpen itself",
        )


class UnknownEntryPointWarning(UserWarning):
    """MIOPEN_DISABLE_HIPDNN_FOR has a name that is none of the shim's entry points."""


@lru_cache(maxsize=64)
def _disabled(listed: str) -> frozenset[EntryPoint]:
    """Read a list of entry points, with or without "miopen", in any case.

    Warns once a value of names that are none; the others keep their effect.
    """
    known = {entry.lower().removeprefix("miopen"): entry for entry in EntryPoint}
    words = [word for word in re.split(r"[\s,;]+", listed) if word]
    found = {word: known.get(word.lower().removeprefix("miopen")) for word in words}
    unknown = [word for word, entry in found.items() if entry is None]
    if unknown:
        message = (
            f"{DISABLE_FOR}={listed!r} names {' and '.join(map(_with_near, unknown))}, which the "
            "shim does not have and ignores; its entry points are those of "
            "hipdnn_miopen_provider.shim.EntryPoint"
        )
        _log.warning("%s", message)
        warnings.warn(message, UnknownEntryPointWarning, stacklevel=2)
    return frozenset(entry for entry in found.values() if entry is not None)


def _with_near(word: str) -> str:
    """Return a word in quotes, with near spellings behind it where there are some."""
    spelled = f"miopen{word.lower().removeprefix('miopen')}"  # all have it, so it says nothing
    hint = near_spellings(spelled, [entry.value for entry in EntryPoint])
    return repr(word) + (f" ({hint.removeprefix('; ')})" if hint else "")


def engine_for(problem: Problem) -> str:
    """Return the engine that a problem is forwarded to."""
    fields = problem.convolution
    return DETERMINISTIC_ENGINE if fields is not None and fields.deterministic else ENGINE


def settings_for(
    problem: Problem, policy: TuningPolicy, *, exhaustive: bool, where: str
) -> dict[str, int]:
    """Return the knobs that a policy, Find's exhaustiveSearch and a find mode come to.

    Raises:
        UnsupportedOp: The find mode would make MIOpen skip the policy.
    """
    if not problem.has_something_to_tune:
        return {}
    settings: dict[str, int] = {}
    if policy is TuningPolicy.NONE:
        if exhaustive:
            settings[BENCHMARKING_KNOB] = 1
    elif policy is TuningPolicy.DB_UPDATE and problem.convolution is not None and not exhaustive:
        settings[TUNING_POLICY_KNOB] = TuningPolicy.NONE.value
    else:
        settings[TUNING_POLICY_KNOB] = policy.value
    mode = None if problem.convolution is None else problem.convolution.find_mode
    if mode is not None and _mode_counts(mode, settings, problem, where, policy):
        settings[FIND_MODE_KNOB] = mode.value
    return settings


def _mode_counts(
    mode: FindMode,
    settings: Mapping[str, int],
    problem: Problem,
    where: str,
    policy: TuningPolicy,
) -> bool:
    """Whether a find mode is to be handed on: with tuning, the default one is not."""
    tunes = settings.get(TUNING_POLICY_KNOB, 1) != 1 or BENCHMARKING_KNOB in settings
    default = mode is FindMode.DynamicHybrid
    if default and (tunes or not problem.kind.has_exhaustive_search):
        return False
    if tunes and mode is not FindMode.Normal:
        asked = f"tuning policy {named(policy)}"
        if policy is TuningPolicy.NONE:
            asked = "exhaustive_search"
        raise UnsupportedOp(
            where,
            f"find mode {mode.name} ({mode.value}) of the convolution descriptor makes MIOpen skip "
            f"{asked} wherever its find-db knows the problem; set find mode Normal, or leave it at "
            "the default",
        )
    return True


def require_advertised(
    settings: Mapping[str, int],
    info: EngineConfigInfo,
    problem: Problem,
    policy: TuningPolicy,
    where: str,
) -> None:
    """Check that the engine honours every setting for this graph.

    Raises:
        UnsupportedOp: Names the setting, the operation, the engine and what to do.
    """
    for knob_id in settings:
        if knob_id in info.knobs:
            continue
        what, remedy = _why_asked(knob_id, policy)
        transposed = (
            problem.convolution is not None
            and problem.convolution.mode is ConvolutionMode.Transpose
        )
        raise UnsupportedOp(
            where,
            f"{what}, but engine {info.engine_name} (provider {info.provider_name} "
            f"{info.provider_version}) does not advertise {knob_id} for "
            f"{'transposed ' if transposed else ''}{problem.kind}, and it would be ignored; "
            f"{remedy}",
        )


def bounded(limit: int | None, info: EngineConfigInfo, where: str) -> int | None:
    """Return a workspace's size as the knob's value; `None` where it bounds nothing.

    Raises:
        UnsupportedOp: No solver that MIOpen lists can run in it.
    """
    knob = info.knobs.get(WORKSPACE_SIZE_LIMIT_KNOB)
    if limit is None or knob is None or not isinstance(knob.constraint, IntConstraint):
        return None
    if limit < knob.constraint.min_value:
        raise UnsupportedOp(
            where,
            f"the workspace has {limit} bytes, but no solver runs in less than "
            f"{knob.constraint.min_value}; the call for its size tells what to bring",
        )
    return limit if limit < knob.constraint.max_value else None


def _why_asked(knob_id: str, policy: TuningPolicy) -> tuple[str, str]:
    """Return what made the shim ask for a knob, and what a caller can do without it."""
    if knob_id == TUNING_POLICY_KNOB:
        return (
            f"the handle's tuning policy is {named(policy)}",
            "set_tuning_policy(TuningPolicy.NONE), or use a libMIOpen with tuning policies",
        )
    if knob_id == FIND_MODE_KNOB:
        return (
            "the convolution descriptor has a find mode of its own",
            "leave the find mode at its default",
        )
    return ("exhaustive_search is True", "call it with exhaustive_search=False")


def named(policy: TuningPolicy) -> str:
    """Return a policy as messages call it, in MIOpen's spelling."""
    return f"{''.join(word.capitalize() for word in policy.name.split('_'))} ({policy.value})"
