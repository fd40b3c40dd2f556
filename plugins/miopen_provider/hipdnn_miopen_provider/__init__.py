"""MIOpen's engines for hipdnn-registry: libMIOpen through ctypes, HIP through hip-python.

Installed beside hipdnn-registry it is found by itself. Where hip-python, libMIOpen or a device is
missing it says so (`hipdnn providers`) and does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipdnn_registry import hookimpl

if TYPE_CHECKING:
    from hipdnn_registry import Provider

__version__ = "0.1.0"
__all__ = ["hipdnn_get_provider"]


@hookimpl
def hipdnn_get_provider() -> Provider:
    """Return the provider; HIP and MIOpen are loaded only now."""
    from hipdnn_miopen_provider.provider import MiopenProvider

    return MiopenProvider()
