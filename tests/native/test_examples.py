"""The example runs as its reader would run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.native.environment import private_environment

EXAMPLE = Path(__file__).parents[2] / "examples" / "tuning_policy.py"


def test_tuning_policy(tmp_path: Path) -> None:
    settings = private_environment(tmp_path) | {"MIOPEN_LOG_LEVEL": "2"}
    done = subprocess.run(
        [sys.executable, EXAMPLE], env=settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    convolution, batchnorm = done.stdout.split("bnorm_train: ")
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
