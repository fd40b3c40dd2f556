"""What the environment changes: MIOPEN_FIND_ENFORCE, failing compilers, assembly solvers.

MIOpen reads its variables once, so each case is a process of its own.
"""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from hipdnn_miopen_provider.native import TuningPolicy
from tests.native.environment import WITH_ASSEMBLY, child_log, run_child

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from pathlib import Path

NONE, DB_UPDATE, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN = TuningPolicy

FIND = """
import json
from hipdnn_miopen_provider.native import NativeError, Handle
from tests.native.observe import observe
from tests.native.problems import Direction, FindMode, TuningPolicy, convolution_case, fresh_handle

for policy in {policies}:
    with convolution_case(
        Direction.FORWARD, {x}, {w}, find_mode={mode}
    ) as case, Handle() as handle, observe() as seen:
        before = handle.tuning_policy
        handle.tuning_policy = TuningPolicy(policy)
        try:
            case.find_on(handle)
            error = ""
        except NativeError as failure:
            error = str(failure)
    print(json.dumps({{
        "before": before, "searched": seen.searched, "added": sorted(s for _, s in seen.added),
        "removed": sorted(s for _, s in seen.removed), "error": error, "launches": seen.launches,
    }}), flush=True)
"""


def find(
    folder: Path,
    settings: Mapping[str, str],
    *policies: TuningPolicy,
    mode: int = 1,
    x: tuple[int, ...] = (1, 8, 16, 16),
    w: tuple[int, ...] = (8, 8, 3, 3),
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    script = FIND.format(
        policies=[policy.value for policy in policies], x=x, w=w, mode=f"FindMode({mode})"
    )
    done = run_child(folder, script, settings)
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def test_the_environment_searches_although_the_policy_is_none(tmp_path: Path) -> None:
    """Policy None means "not set": no call can switch MIOPEN_FIND_ENFORCE off."""
    _, (seen,) = find(tmp_path, {"MIOPEN_FIND_ENFORCE": "SEARCH"}, NONE)
    assert seen["before"] == NONE, "the environment doesn't show in the handle"
    assert seen["searched"]


def test_other_policies_win_over_the_environment(tmp_path: Path) -> None:
    settings = {"MIOPEN_FIND_ENFORCE": "SEARCH_DB_UPDATE"}
    _, (updating, cleaning) = find(tmp_path, settings, DB_UPDATE, DB_CLEAN)
    assert updating["searched"] == cleaning["searched"] == []


@pytest.mark.parametrize(
    ("policy", "returncode"), [(NONE, 0), (SEARCH, -signal.SIGABRT)], ids=["None", "Search"]
)
def test_a_kernel_that_does_not_compile(
    policy: TuningPolicy, returncode: int, tmp_path: Path
) -> None:
    """Without a search it is a status; within one MIOpen ends the process."""
    settings = {"MIOPEN_EMULATOR_FAIL_COMPILE": "gridwise"}
    done, lines = find(tmp_path, settings, policy)
    assert done.returncode == returncode
    if policy is NONE:
        assert "miopenStatusUnknownError (7)" in lines[0]["error"]
    else:
        assert lines == []
        assert "terminate called" in child_log(tmp_path)


def test_assembly_kernels_are_missing_from_the_package(tmp_path: Path) -> None:
    """Why the lane switches those solvers off. If this fails the package has changed."""
    _, (seen,) = find(tmp_path, {"MIOPEN_DEBUG_GCN_ASM_KERNELS": "1"}, NONE)
    assert "miopenStatusUnknownError (7)" in seen["error"]
    assert "Failed to load kernel source" in child_log(tmp_path)


def test_the_default_find_mode_tunes_dynamic_solvers_only(tmp_path: Path) -> None:
    """And then never again: the find-db knows the problem."""
    dynamic, normal = tmp_path / "dynamic", tmp_path / "normal"
    x, w = (16, 64, 28, 28), (64, 64, 3, 3)
    _, lines = find(dynamic, WITH_ASSEMBLY, SEARCH, SEARCH_DB_UPDATE, mode=5, x=x, w=w)
    first, second = lines
    _, (everything,) = find(normal, WITH_ASSEMBLY, SEARCH, x=x, w=w)
    assert first["searched"]
    assert set(first["added"]) < set(everything["added"])
    assert (second["searched"], second["launches"]) == ([], 0)
