"""The provider: who it is, what it stands on, and its two engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipdnn_miopen_provider import __version__
from hipdnn_miopen_provider.engine import EngineOptions, MiopenDeterministicEngine, MiopenEngine
from hipdnn_miopen_provider.machine import Machine
from hipdnn_registry import Provider, ProviderInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hipdnn_miopen_provider.progress import TuningProgress
    from hipdnn_registry import Engine


class MiopenProvider(Provider):
    """MIOpen's engines.

    Args:
        on_progress: Told about the tuning of plans: at the begin and the end in the building
            thread, and every few seconds in between from another.

    Raises:
        ProviderUnavailableError: hip-python, libamdhip64, libMIOpen or a device is missing; says
            which and why.
    """

    def __init__(self, *, on_progress: Callable[[TuningProgress], None] | None = None) -> None:
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
        options = EngineOptions(on_progress)
        self._engines = (
            MiopenEngine(machine, options),
            MiopenDeterministicEngine(machine, options),
        )

    def engines(self) -> Sequence[Engine]:
        """Return the engines."""
        return self._engines
