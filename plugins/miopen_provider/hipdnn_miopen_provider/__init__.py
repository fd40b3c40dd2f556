"""MIOpen's engines for hipdnn-registry: libMIOpen through ctypes, HIP through hip-python.

Installed beside hipdnn-registry it is found by itself. Where hip-python, libMIOpen or a device is
missing it says so (`hipdnn providers`) and does no harm.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hipdnn_registry import hookimpl

if TYPE_CHECKING:
    from hipdnn_miopen_provider.child import TuningError
    from hipdnn_miopen_provider.find_enforce import FindEnforceWarning
    from hipdnn_miopen_provider.progress import TuningProgress, TuningStage
    from hipdnn_miopen_provider.provider import MiopenProvider
    from hipdnn_miopen_provider.tuning import TuningPolicy, resolve_tuning_policy
    from hipdnn_registry import Provider

__version__ = "0.1.0"
__all__ = [
    "FindEnforceWarning",
    "MiopenProvider",
    "TuningError",
    "TuningPolicy",
    "TuningProgress",
    "TuningStage",
    "hipdnn_get_provider",
    "resolve_tuning_policy",
]

_HOME = {
    "FindEnforceWarning": "find_enforce",
    "MiopenProvider": "provider",
    "TuningError": "child",
    "TuningPolicy": "tuning",
    "TuningProgress": "progress",
    "TuningStage": "progress",
    "resolve_tuning_policy": "tuning",
}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use: discovery imports this module on every machine."""
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


@hookimpl
def hipdnn_get_provider() -> Provider:
    """Return the provider; HIP and MIOpen are loaded only now."""
    from hipdnn_miopen_provider.provider import MiopenProvider

    return MiopenProvider()
