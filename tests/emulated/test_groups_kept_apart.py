"""A kernel of MIOpen that mixes the groups of a backward weights, see docs/findings.md."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hipdnn_miopen_emulator.pytest_plugin import Emulation

SOLVER = "ConvOclBwdWrW2<2>"
FILE = "gfx90a6e.HIP.3_5_1_.udb.txt"
BLOCK_OF_3, BLOCK_OF_2 = "8,12,3,1,3", "8,12,2,1,3"

pytestmark = pytest.mark.miopen_emulator


def run(
    emulation: Emulation, folder: Path, parameters: str, *, outputs: int = 8, only: str = ""
) -> tuple[int, str, str]:
    """Check the gradient of two groups' filters, with a record that says the block's size."""
    key = f"2x{outputs}x14x14x1x3x3x1x8x2x1x1x0x1x1x0x1x1x0x0x2xNCHWxFP32xW"
    (folder / FILE).write_text(f"{key}={SOLVER}:{parameters}\n")
    variables = {"MIOPEN_USER_DB_PATH": str(folder)}
    if only:
        variables["MIOPEN_DEBUG_FIND_ONLY_SOLVER"] = only
    line = f"MIOpenDriver conv -n 2 -c 8 -H 14 -W 14 -k {outputs} -y 3 -x 3 -p 1 -q 1 -g 2 -F 4"
    settings = ["--knob", "miopen.tuning_policy=1", "--knob", "miopen.find_mode=1"]
    done = emulation.run(
        ["hipdnn", "run", line, "--engine", "MIOPEN_ENGINE", *settings, "--check"],
        env=dict(os.environ) | variables,
    )
    return done.returncode, " ".join(done.stdout.split()), done.stderr


def test_another_kernel_is_taken(miopen_emulator: Emulation, tmp_path: Path) -> None:
    code, told, problems = run(miopen_emulator, tmp_path, BLOCK_OF_3)
    assert code == 0, problems
    assert f"solver {SOLVER}, parameters {BLOCK_OF_3}" in told
    assert "Direct was left out: MIOpen chose a kernel that takes one group's inputs" in told


@pytest.mark.parametrize(("outputs", "parameters"), [(8, BLOCK_OF_3), (10, BLOCK_OF_2)])
def test_without_another_kernel_it_is_an_error_that_names_the_record(
    miopen_emulator: Emulation, tmp_path: Path, outputs: int, parameters: str
) -> None:
    code, _, problem = run(miopen_emulator, tmp_path, parameters, outputs=outputs, only=SOLVER)
    assert code == 1
    assert "error: convolution: no other kernel fits, and Direct was left out" in problem
    assert f"{tmp_path / FILE}: key 2x{outputs}x14x14x1x3x3x1x8x2x1x1x0x" in problem
    assert f"solver {SOLVER}, parameters {parameters})" in problem


def test_blocks_that_divide_a_group_are_served(miopen_emulator: Emulation, tmp_path: Path) -> None:
    code, told, problem = run(miopen_emulator, tmp_path, BLOCK_OF_2, only=SOLVER)
    assert code == 0, problem
    assert SOLVER in told
    assert "left out" not in told
