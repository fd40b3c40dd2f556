"""What MIOpen makes of a perf-db record with parameters that it would not have written."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_provider.native import TuningPolicy
from tests.native.environment import FEWER_TRIALS, run_child

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

NONE, _, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN = TuningPolicy
FAILS = {-signal.SIGSEGV, 1}
"""What is read beyond the parameters decides: a crash, or by luck UnknownError."""

SOLVERS = {"batchnorm": "BnBwdTrainingSpatial", "convolution": "ConvOclDirectFwd"}
CALL = """
from tests.native.problems import *
from hipdnn_miopen_provider.native import hip

if {operation!r} == "batchnorm":
    with batchnorm_case((2, 3, 8, 8)) as case, fresh_handle(TuningPolicy({policy})) as handle:
        case.backward(handle)
        hip.synchronize_device()
else:
    with convolution_case(
        Direction.FORWARD, (1, 4, 6, 6), (4, 4, 3, 3), find_mode=FindMode.Normal
    ) as case, fresh_handle(TuningPolicy({policy})) as handle:
        case.find_on(handle)
"""


def call(
    operation: str, policy: TuningPolicy, folder: Path
) -> tuple[subprocess.CompletedProcess[str], str]:
    """What became of the process, and of the solver's parameters in the perf-db."""
    script = CALL.format(operation=operation, policy=policy.value)
    done = run_child(folder, script, FEWER_TRIALS)
    found = re.search(f"{SOLVERS[operation]}:([^;\n]*)", records(folder).read_text())
    return done, found[1] if found else ""


def records(folder: Path) -> Path:
    (file,) = folder.glob("db/*.udb.txt")
    return file


@pytest.mark.parametrize(
    ("operation", "parameters", "policy", "outcomes"),
    [
        ("batchnorm", "Variant0-1", NONE, {0}),
        ("batchnorm", "Variant2-1", NONE, FAILS),
        ("batchnorm", "garbage", NONE, FAILS),
        ("batchnorm", "Variant2-1", SEARCH, FAILS),
        ("batchnorm", "Variant2-1", SEARCH_DB_UPDATE, {0}),
        ("batchnorm", "Variant2-1", DB_CLEAN, {0}),
        ("convolution", "garbage", NONE, {0}),
        ("convolution", "garbage", SEARCH, {0}),
    ],
)
def test_a_damaged_record(
    operation: str, parameters: str, policy: TuningPolicy, outcomes: set[int], tmp_path: Path
) -> None:
    """Batch normalization reads it unchecked; a convolution takes it for none."""
    tuned, written = call(operation, SEARCH, tmp_path)
    assert tuned.returncode == 0, tuned.stderr
    assert written
    file = records(tmp_path)
    solver = SOLVERS[operation]
    file.write_text(file.read_text().replace(f"{solver}:{written}", f"{solver}:{parameters}"))
    done, left = call(operation, policy, tmp_path)
    assert done.returncode in outcomes, done.stderr
    if done.returncode == 1:
        assert "miopenStatusUnknownError (7)" in done.stderr
    if done.returncode or policy is NONE:
        assert left == parameters  # so the next process meets it, too
    else:
        assert left != parameters  # rewritten or removed
