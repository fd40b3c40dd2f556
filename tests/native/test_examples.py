"""The examples run as their reader would run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.native.environment import private_environment

EXAMPLES = Path(__file__).parents[2] / "examples"


def output_of(example: str, folder: Path) -> str:
    settings = private_environment(folder) | {"MIOPEN_LOG_LEVEL": "2"}
    command = [sys.executable, str(EXAMPLES / example)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_quickstart_where_there_is_a_device(tmp_path: Path) -> None:
    output = output_of("quickstart.py", tmp_path)
    assert output.startswith("MIOPEN_ENGINE (device): global.benchmarking, ")
    assert "<ExecutionPlan CPU_GEMM_ENGINE" in output
    assert "y: mean" in output


def test_tuning_policy(tmp_path: Path) -> None:
    convolution, batchnorm = output_of("tuning_policy.py", tmp_path).split("bnorm_train: ")
    assert convolution.startswith(
        "conv_fwd: knobs global.benchmarking, global.workspace_size_limit, miopen.tuning_policy, "
        "miopen.find_mode\n"
    )
    for text in (convolution, batchnorm):
        changes = [line.split(": ")[1] for line in text.splitlines() if "user perf-db" in line]
        verbs = [change.split()[0] for change in changes]
        update = "no" if text is batchnorm else "rewritten"
        assert verbs == ["added", "added", update, "rewritten", "removed"]
        assert text.count("(from the plan cache)") == 1
        assert text.count("tuning policy: SEARCH (3), decided by miopen.tuning_policy") == 2
    assert "DbUpdate does nothing for batch normalization" in batchnorm
    assert "solver: " in convolution


def test_shim_tuning_policy(tmp_path: Path) -> None:
    convolution, batchnorm = output_of("shim_tuning_policy.py", tmp_path).split(
        "batchnorm training:\n"
    )
    assert convolution.startswith("convolution:\n  handle's policy: NONE (1)\n")
    for text in (convolution, batchnorm):
        set_policies = [line for line in text.splitlines() if "handle's policy" in line]
        ruled = [line for line in text.splitlines() if "tuning policy: " in line]
        assert len(set_policies) == len(ruled) == 7
        for asked, found in zip(set_policies, ruled, strict=True):
            policy = asked.partition("policy: ")[2]
            decider = "global.benchmarking" if "NONE" in policy else "miopen.tuning_policy"
            assert found.strip() == f"tuning policy: {policy}, decided by {decider}"
        changes = [line.split(": ")[1] for line in text.splitlines() if "user perf-db" in line]
        update = "no" if text is batchnorm else "rewritten"
        assert [change.split()[0] for change in changes] == [
            "added",
            update,
            "rewritten",
            "removed",
        ]
        assert text.count("the plan of before") == 1
    assert convolution.count("workspace asked for: ") == 7
    assert "DbUpdate does nothing for batch normalization" in batchnorm
