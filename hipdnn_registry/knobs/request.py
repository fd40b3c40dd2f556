"""From a caller's settings to what each advertised knob is asked to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from hipdnn_registry.environment import FORCE_BENCHMARKING
from hipdnn_registry.errors import KnobError, near_spellings
from hipdnn_registry.provider import EffectiveSetting, SettingSource

from .knob import BENCHMARKING_KNOB, KnobSetting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hipdnn_registry.engines.answers import EngineConfigInfo
    from hipdnn_registry.environment import Environment

    from .constraints import KnobValue


def request(
    info: EngineConfigInfo, settings: Mapping[str, KnobValue], environment: Environment
) -> tuple[dict[str, EffectiveSetting], tuple[KnobSetting, ...]]:
    """Decide every advertised knob: default, then caller, then environment.

    HIPDNN_FORCE_BENCHMARKING overrides `global.benchmarking`, on or off, as in hipDNN.

    Args:
        info: The engine, with what it advertises for the graph.
        settings: What the caller set.
        environment: The environment of this request.

    Returns:
        The effective settings, and the caller's settings that the engine does not advertise.

    Raises:
        KnobError: A value violates its constraint.
    """
    effective = dict(info.default_settings)
    dropped = []
    for knob_id, value in settings.items():
        knob = info.knobs.get(knob_id)
        if knob is None:
            dropped.append(KnobSetting(knob_id, value))
            continue
        if knob.constraint is not None and knob.constraint.violation(value):
            knob.validate(KnobSetting(knob_id, value), where=info.where)
        effective[knob_id] = EffectiveSetting(value, SettingSource.CALLER)
    force = environment.force_benchmarking
    if force is not None and info.supports_exhaustive:
        asked = effective[BENCHMARKING_KNOB]
        over = f" over the caller's {asked.value}" if asked.source is SettingSource.CALLER else ""
        effective[BENCHMARKING_KNOB] = EffectiveSetting(
            int(force), SettingSource.ENVIRONMENT, f"{FORCE_BENCHMARKING}{over}"
        )
    return effective, tuple(dropped)


def refuse_unadvertised(dropped: tuple[KnobSetting, ...], info: EngineConfigInfo) -> NoReturn:
    """Raise `KnobError` for settings that the engine does not advertise, with near spellings."""
    first = dropped[0]
    known = info.knobs.ids
    advertised = ", ".join(known) or "none"
    raise KnobError(
        f"knob '{first.knob_id}'{info.where} is not advertised for this graph (value "
        f"{first.value!r}); advertised: {advertised}{near_spellings(first.knob_id, known)}"
    )
