"""What a caller is told about knobs that have no effect, or will have none one day."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hipdnn_registry.errors import near_spellings

from .request import refuse_unadvertised

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hipdnn_registry.engines.answers import EngineConfigInfo

    from .constraints import KnobValue
    from .knob import KnobSetting

_log = logging.getLogger("hipdnn_registry.registry")


class DroppedKnobWarning(UserWarning):
    """A knob was set that the engine does not advertise for the graph; it has no effect."""


class DeprecatedKnobWarning(UserWarning):
    """A deprecated knob was set; it still has its effect."""


class KnobWarnings:
    """The warnings of one registry: about every dropped knob, and once about a deprecated one."""

    def __init__(self) -> None:
        self._warned_of: set[tuple[str, str]] = set()

    def due(
        self,
        settings: Mapping[str, KnobValue],
        dropped: tuple[KnobSetting, ...],
        info: EngineConfigInfo,
        *,
        refuses: bool,
    ) -> list[UserWarning]:
        """Return the warnings that a request deserves, which are in the log already.

        Args:
            settings: What the caller set.
            dropped: Those that the engine does not advertise for the graph.
            info: The engine, with what it advertises.
            refuses: Whether a dropped knob is an error.

        Raises:
            KnobError: A knob was dropped, and `refuses`.
        """
        if dropped and refuses:
            refuse_unadvertised(dropped, info)
        due = [*self._dropped(dropped, info), *self._deprecated(settings, info)]
        for warning in due:
            _log.warning("%s", warning)
        return due

    def _dropped(
        self, dropped: Sequence[KnobSetting], info: EngineConfigInfo
    ) -> Iterator[UserWarning]:
        for setting in dropped:
            yield DroppedKnobWarning(
                f"knob '{setting.knob_id}' (value {setting.value!r}){info.where} is not "
                "advertised for this graph and is dropped"
                + near_spellings(setting.knob_id, info.knobs.ids)
            )

    def _deprecated(
        self, settings: Mapping[str, KnobValue], info: EngineConfigInfo
    ) -> Iterator[UserWarning]:
        for knob in info.deprecated_knobs:
            key = (info.engine_name, knob.knob_id)
            if key not in self._warned_of and knob.knob_id in settings:
                self._warned_of.add(key)
                use = f"; use '{knob.replacement}' instead" if knob.replacement else ""
                yield DeprecatedKnobWarning(f"knob '{knob.knob_id}'{info.where} is deprecated{use}")
