"""The provider: who it is, and its two engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hipdnn_registry import Provider, ProviderInfo

from . import __version__
from .gemm_engine import CpuGemmEngine
from .reference_engine import CpuReferenceEngine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hipdnn_registry import Engine


class CpuProvider(Provider):
    """CPU_GEMM_ENGINE for speed, CPU_REFERENCE_ENGINE to check others against."""

    def __init__(self) -> None:
        self.info = ProviderInfo(
            "cpu",
            __version__,
            description="numpy and BLAS on the CPU",
            libraries={"numpy": np.__version__},
        )
        self._engines = (CpuGemmEngine(), CpuReferenceEngine())

    def engines(self) -> Sequence[Engine]:
        """Return the engines."""
        return self._engines
