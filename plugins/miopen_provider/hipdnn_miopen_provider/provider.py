"""The provider: who it is, what it stands on, and its two engines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hipdnn_miopen_provider import __version__
from hipdnn_miopen_provider.child import positive_seconds, time_limit_of
from hipdnn_miopen_provider.engine import EngineOptions, MiopenDeterministicEngine, MiopenEngine
from hipdnn_miopen_provider.machine import Machine
from hipdnn_registry import InvalidInputError, Provider, ProviderInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hipdnn_miopen_provider.progress import TuningProgress
    from hipdnn_registry import Engine


class MiopenProvider(Provider):
    """MIOpen's engines.

    Args:
        on_progress: Told about the tuning of plans: at the begin and the end in the building
            thread, and every few seconds in between from another. If it raises, that is logged as
            a warning, and it hears no more of that tuning, which goes on; a KeyboardInterrupt
            passes on.
        tune_in_subprocess: Whether plans are tuned in child processes, which a search may crash
            without harm to this one; default: HIPDNN_MIOPEN_TUNE_IN_SUBPROCESS, else not.
        tuning_time_limit: Seconds that such a child may take; default:
            HIPDNN_MIOPEN_TUNE_TIME_LIMIT, else two hours.

    Raises:
        InvalidInputError: The callback can't be called, `tune_in_subprocess` is neither bool nor
            `None`, or the time limit is not a positive number.
        ProviderUnavailableError: hip-python, libamdhip64, libMIOpen or a device is missing; says
            which and why.
    """

    def __init__(
        self,
        *,
        on_progress: Callable[[TuningProgress], None] | None = None,
        tune_in_subprocess: bool | None = None,
        tuning_time_limit: float | None = None,
    ) -> None:
        if on_progress is not None and not callable(on_progress):
            raise InvalidInputError(
                f"on_progress is {on_progress!r}, but must be None or a callable that takes a "
                "TuningProgress"
            )
        if not isinstance(tune_in_subprocess, bool | None):
            raise InvalidInputError(
                f"tune_in_subprocess is {tune_in_subprocess!r}, but must be True, False or None"
            )
        asked = tuning_time_limit
        limit = time_limit_of(os.environ) if asked is None else positive_seconds(asked)
        if limit is None:
            raise InvalidInputError(
                f"tuning_time_limit is {asked!r}, but must be a positive number of seconds"
            )
        machine = Machine()
        self.info = ProviderInfo(
            "miopen",
            __version__,
            description="Convolution and batch normalization on AMD GPUs by MIOpen",
            libraries={
                "MIOpen": machine.version,
                "MIOpen library": machine.library_path,
                "HIP": machine.hip_version,
            },
        )
        options = EngineOptions(on_progress, tune_in_subprocess, limit)
        self._engines = (
            MiopenEngine(machine, options),
            MiopenDeterministicEngine(machine, options),
        )

    def engines(self) -> Sequence[Engine]:
        """Return the engines."""
        return self._engines
