"""hipdnn-cpu-provider: engines that run operation graphs on the CPU with numpy and BLAS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipdnn_registry import hookimpl

if TYPE_CHECKING:
    from hipdnn_registry import Provider

__version__ = "0.1.0"
__all__ = ["hipdnn_get_provider"]


@hookimpl
def hipdnn_get_provider() -> Provider:
    """Return the provider; numpy and the kernels are imported only now."""
    from .provider import CpuProvider

    return CpuProvider()
