"""The checks of tests/numbers mean something: they fail where kernels don't run."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from hipdnn_miopen_emulator.pytest_plugin import Emulation

NUMBERS = Path(__file__).parents[1] / "numbers"
CHECKS = [
    "test_convolutions.py::test_convolution[plain-forward-float-NCHW-MIOPEN_ENGINE]",
    "test_convolutions.py::test_convolution[plain-backward data-half-NHWC-MIOPEN_ENGINE]",
    "test_convolutions.py::test_convolution[plain-backward weights-bfloat16-NCHW-MIOPEN_ENGINE]",
    "test_fused.py::test_fusion[bias and relu-plain-float-NCHW-MIOPEN_ENGINE]",
    "test_fused.py::test_fusion[bias and sigmoid-plain-half-NCHW-MIOPEN_ENGINE]",
    "test_batchnorm.py::test_spatial[training-4x6-float-NCHW]",
    "test_batchnorm.py::test_spatial[inference-4x6-half-NHWC]",
    "test_batchnorm.py::test_spatial[backward-4x6-float-NCHW]",
    "test_batchnorm.py::test_running_statistics_are_updated_once[False-4]",
    "test_pointwise.py::test_activation[tanh-float-(2, 3, 4, 5)]",
    "test_pointwise.py::test_addition[bias-float-False]",
    "test_plans.py::test_every_way_of_running[training]",
    "test_solvers.py::test_every_solver[plain-forward-float-NCHW]",
]


def outcomes(emulation: Emulation, **settings: str) -> tuple[str, str]:
    """The last line of a run of `CHECKS`, and all that it printed."""
    done = emulation.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line"]
        + [f"{NUMBERS}/{check}" for check in CHECKS],
        env=dict(os.environ) | settings,
        cwd=NUMBERS.parents[1],
        timeout=300,
    )
    return re.sub(r" in .*", "", done.stdout.splitlines()[-1]), done.stdout


@pytest.mark.miopen_emulator
def test_without_kernels_every_check_fails(miopen_emulator: Emulation) -> None:
    last, printed = outcomes(miopen_emulator, MIOPEN_EMULATOR_KERNELS="accept")
    assert last == f"{len(CHECKS)} failed", printed
    assert "relative error inf" in printed


@pytest.mark.miopen_emulator
def test_no_kernel_leaves_its_buffers(miopen_emulator: Emulation) -> None:
    """With guards around device memory, and kernels."""
    last, printed = outcomes(miopen_emulator, MIOPEN_EMULATOR_GUARD="1")
    assert last == f"{len(CHECKS)} passed", printed
