"""Tuning in child processes, crashes, several processes on one perf-db, and the environment.

MIOpen reads its variables once, so most of this happens in processes of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from hipdnn_miopen_emulator.launcher import KERNELS_VARIABLE
from hipdnn_miopen_provider import building
from hipdnn_miopen_provider.child import TuningError
from hipdnn_miopen_provider.database_files import FileKind, read_folder
from hipdnn_miopen_provider.native import TuningPolicy
from hipdnn_miopen_provider.provider import MiopenProvider
from hipdnn_miopen_provider.records import Snapshot
from hipdnn_registry import EngineRegistry
from tests.native.engines import ENGINE, POLICY, TUNABLE, conv_forward, new_registry, run
from tests.native.environment import private_environment, run_child
from tests.native.observe import observe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

T = TypeVar("T")

PLAN = """
import json, warnings
warnings.simplefilter("always")
from hipdnn_registry import HipdnnError
from tests.native.engines import *
from tests.native.observe import observe

registry = new_registry()
for policy in {policies}:
    with observe() as seen, warnings.catch_warnings(record=True) as warned:
        error, notes = "", []
        try:
            plan = registry.create_execution_plan_ext(
                TUNABLE[{operation!r}]({width}), ENGINE, {{POLICY: policy}}
            )
            run(plan)
            notes = list(plan.notes)
        except HipdnnError as failure:
            error = str(failure)
    print(json.dumps({{
        "searched": seen.searched, "loaded": seen.loaded, "added": sorted(s for _, s in seen.added),
        "notes": notes, "error": error, "warned": [str(w.message) for w in warned],
    }}), flush=True)
"""


def plan_in_child(
    folder: Path,
    *policies: int,
    settings: Mapping[str, str] | None = None,
    operation: str = "forward",
    width: int = 16,
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    script = PLAN.format(
        policies=[int(policy) for policy in policies], operation=operation, width=width
    )
    done = run_child(folder, script, settings)
    return done, [json.loads(line) for line in done.stdout.splitlines()]


# A child tunes


@pytest.fixture(scope="module")
def registry() -> EngineRegistry:
    return EngineRegistry([MiopenProvider(tune_in_subprocess=True)], entry_points=False)


@pytest.mark.parametrize("operation", ["forward", "fused", "batchnorm training"])
def test_a_child_tunes_and_the_parent_builds_from_its_record(
    operation: str, registry: EngineRegistry
) -> None:
    """Although the parent's MIOpen has read the databases before, and knows the problem."""
    graph = TUNABLE[operation](90)
    with observe() as untuned:
        registry.create_execution_plan_ext(graph, ENGINE, {POLICY: 1})
    assert not untuned.loaded
    with observe() as seen:
        plan = registry.create_execution_plan_ext(graph, ENGINE, {POLICY: 3})
    assert seen.added, "the child's record is in the parent's perf-db"
    assert seen.searched == [], "no search in this process"
    assert set(seen.loaded) >= {solver for _, solver in seen.added}
    notes = "\n".join(plan.notes)
    assert f"tuning policy: SEARCH (3), decided by {POLICY}" in notes
    assert "tuned in a child process in " in notes
    mode = "" if "batchnorm" in operation else " in NORMAL find mode"
    assert f"built here under None{mode} from its record" in notes
    assert "user perf-db: added " in notes
    with observe():
        run(plan)


def test_cleaning_needs_no_child(registry: EngineRegistry) -> None:
    graph = conv_forward(92)
    with observe():
        new_registry().create_execution_plan_ext(graph, ENGINE, {POLICY: 3})
    with observe() as seen:
        plan = registry.create_execution_plan_ext(graph, ENGINE, {POLICY: 5})
    assert seen.removed
    assert "child process" not in " ".join(plan.notes)


def test_a_crash_in_a_search_ends_the_process_without_a_child(tmp_path: Path) -> None:
    done, lines = plan_in_child(tmp_path, 3, settings={"MIOPEN_EMULATOR_FAIL_COMPILE": "gridwise"})
    assert (done.returncode, lines) == (-signal.SIGABRT, [])


def test_a_crash_in_a_child_is_an_exception_with_the_signal_and_the_solver(tmp_path: Path) -> None:
    settings = {"MIOPEN_EMULATOR_FAIL_COMPILE": "gridwise", "HIPDNN_MIOPEN_TUNE_IN_SUBPROCESS": "1"}
    done, (crashed, alive) = plan_in_child(tmp_path, 3, 1, settings=settings)
    assert done.returncode == 0, done.stderr
    error = crashed["error"]
    assert error.startswith("convolution of graph ")
    assert "under SEARCH (3): the child process was ended by SIGABRT after " in error
    assert "while it searched Conv" in error
    assert "MIOpen left the user's perf-db with " in error
    log = Path(error.partition("its log is kept in ")[2].partition(";")[0])
    assert "terminate called" in log.read_text()
    assert not alive["error"], "without a search the solver isn't tried, and this process lives"


def test_a_child_that_fails_says_why(tmp_path: Path) -> None:
    settings = {
        "MIOPEN_EMULATOR_FAIL_COMPILE": "naive_conv",
        "HIPDNN_MIOPEN_TUNE_IN_SUBPROCESS": "1",
    }
    _, (failed,) = plan_in_child(tmp_path, 4, settings=settings)
    assert "the child process failed after " in failed["error"]
    assert "miopenStatusUnknownError (7)" in failed["error"]


def test_a_child_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    registry = EngineRegistry(
        [MiopenProvider(tune_in_subprocess=True, tuning_time_limit=0.05)], entry_points=False
    )
    with observe(), pytest.raises(TuningError, match="took longer than 0.05 s and was killed") as e:
        registry.create_execution_plan_ext(conv_forward(94), ENGINE, {POLICY: 3})
    assert e.value.log is not None
    assert e.value.log.exists()
    assert registry.cache_info().currsize == 0


TUNE_FOR_MINUTES = """
from hipdnn_miopen_provider.provider import MiopenProvider
from hipdnn_registry import EngineRegistry
from tests.graphs import conv_graph
from tests.native.engines import ENGINE, POLICY

registry = EngineRegistry([MiopenProvider(tune_in_subprocess=True)], entry_points=False)
graph = conv_graph((64, 64, 64, 64), (64, 64, 3, 3))
registry.create_execution_plan_ext(graph, ENGINE, {POLICY: 4})
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_ends_with_its_parent_and_leaves_no_folder(
    how: signal.Signals, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    # on a CPU: each trial takes seconds
    settings = {KERNELS_VARIABLE: "execute", "TMPDIR": str(temporary)}
    with started(tmp_path, TUNE_FOR_MINUTES, 1, settings) as (parent,):
        child = until(lambda: searching_child_of(parent.pid), 60)
        (folder,) = temporary.glob("hipdnn-miopen-tuning-*")
        parent.send_signal(how)
        assert parent.wait(60) == -how
        try:
            until(lambda: None if alive(child) else True, 5)
        finally:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        assert not folder.exists()


def searching_child_of(parent: int) -> int | None:
    """Return the process that tunes for another once its log shows a search."""
    for task in Path(f"/proc/{parent}/task").iterdir():
        for child in (read_of_process(task / "children") or "").split():
            if "hipdnn_miopen_provider.child" in (read_of_process(f"/proc/{child}/cmdline") or ""):
                log = read_of_process(f"/proc/{child}/fd/1") or ""
                return int(child) if "Search Start" in log else None
    return None


def alive(process: int) -> bool:
    """Whether a process runs; an orphan that nobody waits for stays a zombie."""
    stat = read_of_process(f"/proc/{process}/stat")
    return stat is not None and stat.rpartition(")")[2].split()[0] != "Z"


def read_of_process(file: str | Path) -> str | None:
    """Return a file of a process or of a thread, None where that has ended meanwhile.

    The file may be gone when it is opened, and still when it is read.
    """
    try:
        return Path(file).read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None


def until(look: Callable[[], T | None], seconds: float) -> T:
    """Return what a look finds, which it has to within some seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (found := look()) is not None:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds:g} s")


def test_a_time_limit_that_is_none_does_not_cost_the_provider(tmp_path: Path) -> None:
    settings = {"HIPDNN_MIOPEN_TUNE_TIME_LIMIT": "1 h", "HIPDNN_MIOPEN_TUNE_IN_SUBPROCESS": "1"}
    done, (seen,) = plan_in_child(tmp_path, 3, settings=settings)
    assert not seen["error"], done.stderr
    assert "tuned in a child process in " in " ".join(seen["notes"])


# Several processes


@contextmanager
def started(
    folder: Path, script: str, count: int, settings: Mapping[str, str] | None = None
) -> Iterator[list[subprocess.Popen[str]]]:
    settings = private_environment(folder) | dict(settings or {})
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            env=settings | {"MIOPEN_EMULATOR_LOG": str(folder / f"hip-{number}.log")},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for number in range(count)
    ]
    try:
        yield children
    finally:
        for child in children:
            child.kill()
            child.communicate()


def perf_records(folder: Path) -> dict[str, Any]:
    files = read_folder(folder / "db")
    assert not [damage for file in files for damage in file.damage]
    return {
        key: dict(record)
        for file in files
        if file.name.kind is FileKind.PERF
        for key, record in file.records.items()
    }


def test_four_processes_tune_into_one_perf_db(tmp_path: Path) -> None:
    """Each tunes a problem of its own and one that all share: no record is lost."""
    script = """
from tests.native.engines import *
registry = new_registry()
for width in (16, int({number})):
    registry.create_execution_plan_ext(conv_forward(width), ENGINE, {{POLICY: 4}})
"""
    settings = private_environment(tmp_path)
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script.format(number=20 + 2 * number)],
            env=settings,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for number in range(4)
    ]
    assert [child.wait(120) for child in children] == [0] * 4
    records = perf_records(tmp_path)
    assert len(records) == 5
    assert all("ConvOclDirectFwd" in record for record in records.values())
    _, (loading,) = plan_in_child(tmp_path, 3)
    assert loading["searched"] == [], "the shared record is whole"


def test_a_process_killed_in_the_middle_of_a_search_leaves_a_readable_db(tmp_path: Path) -> None:
    script = """
from tests.native.engines import *
print("started", flush=True)
while True:
    new_registry().create_execution_plan_ext(conv_forward(16), ENGINE, {POLICY: 4})
"""
    with started(tmp_path, script, 1) as (child,):
        assert child.stdout is not None
        child.stdout.readline()
        deadline = time.monotonic() + 60
        while not perf_records(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        assert child.wait(60) == -signal.SIGKILL
    assert perf_records(tmp_path)
    _, (again,) = plan_in_child(tmp_path, 3)
    assert not again["error"]


# MIOpen's own variables


def test_find_enforce_is_named_once_where_it_rules(tmp_path: Path) -> None:
    settings = {"MIOPEN_FIND_ENFORCE": "SEARCH"}
    done, lines = plan_in_child(tmp_path, 1, 5, 1, settings=settings)
    assert done.returncode == 0, done.stderr
    first, cleaned, second = lines
    assert first["searched"], "None does not switch the variable off"
    (warning,) = first["warned"]
    assert warning.startswith("MIOPEN_FIND_ENFORCE=SEARCH rules here: tuning policy None (1)")
    assert warning in first["notes"]
    assert cleaned["warned"] == second["warned"] == []
    assert warning in second["notes"]
    assert warning not in cleaned["notes"]
    for line in (first, second):
        assert f"user perf-db: added {', '.join(line['added'])}" in line["notes"]


def test_a_find_enforce_that_miopen_cannot_read_is_named(tmp_path: Path) -> None:
    _, (line,) = plan_in_child(tmp_path, 1, settings={"MIOPEN_FIND_ENFORCE": "garbage"})
    assert "MIOPEN_FIND_ENFORCE is 'garbage', but must be one of NONE, DB_UPDATE," in line["error"]


def test_a_folder_that_took_no_record_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the folder can't be written to: the superuser can write to any that is not /proc."""
    monkeypatch.setattr(building, "folder_problem", lambda: "the folder can't be written to")
    graph = conv_forward(93)
    with observe():
        searched, kept = (
            new_registry().create_execution_plan_ext(graph, ENGINE, {POLICY: 3}) for _ in range(2)
        )
    for plan in (searched, kept):  # a change, and none that was due
        assert not any("can't be written to" in note for note in plan.notes)
    monkeypatch.setattr(Snapshot, "take", lambda _: Snapshot({}, {}))  # as if nothing were kept
    with observe():
        lost = new_registry().create_execution_plan_ext(graph, ENGINE, {POLICY: 4})
    assert "user perf-db: no change; the folder can't be written to" in lost.notes
    assert "a tuning changed nothing in the user's perf-db: the folder can't" in caplog.text


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("forward", "declines the graph: MIOpen refuses: miopenConvolutionForwardGetSolutionCount"),
        ("batchnorm training", "miopenBatchNormalizationForwardTraining"),
    ],
)
@pytest.mark.parametrize("variable", ["MIOPEN_USER_DB_PATH", "HOME"])
def test_a_folder_that_cannot_keep_databases_is_named(
    operation: str, call: str, variable: str, tmp_path: Path
) -> None:
    """MIOpen's status is miopenStatusUnknownError, whether it fails at a question or at a call."""
    (tmp_path / "file").touch()
    nowhere = str(tmp_path / "file" / "folder")
    settings = {"MIOPEN_USER_DB_PATH": "", variable: nowhere}
    _, (seen,) = plan_in_child(tmp_path, 1, settings=settings, operation=operation)
    assert f"{call}: miopenStatusUnknownError (7)" in seen["error"]
    named = f"MIOPEN_USER_DB_PATH={nowhere}"
    if variable == "HOME":
        named = f"{nowhere}/.config/miopen, from HOME as MIOPEN_USER_DB_PATH is unset"
    assert named in seen["error"]
    assert "the folder of MIOpen's user databases, can't be made (Not a directory)" in seen["error"]


def test_other_errors_do_not_name_the_folder(tmp_path: Path) -> None:
    settings = {"MIOPEN_EMULATOR_FAIL_COMPILE": "naive_conv"}
    _, (seen,) = plan_in_child(tmp_path, 4, settings=settings)
    assert "miopenStatusUnknownError (7)" in seen["error"]
    assert "MIOPEN_USER_DB_PATH" not in seen["error"]


@pytest.mark.parametrize("policy", [TuningPolicy.SEARCH, TuningPolicy.SEARCH_DB_UPDATE])
def test_fused_searches_survive_where_fusion_plans_do_not(
    policy: TuningPolicy, tmp_path: Path
) -> None:
    _, (seen,) = plan_in_child(tmp_path, policy, operation="fused")
    assert seen["searched"]
    assert not seen["error"]


TWO_DEVICES = """
from hipdnn_miopen_provider.native import hip
from tests.native.engines import *
from tests.native.observe import observe

registry, graph = new_registry(), bn_inference()
with observe():
    first = registry.create_execution_plan_ext(graph, ENGINE)
    with hip.on_device(1):
        second = registry.create_execution_plan_ext(graph, ENGINE)
        again = registry.create_execution_plan_ext(graph, ENGINE)
    assert hip.current_device() == 0
    assert (first.from_cache, second.from_cache, again.from_cache) == (False, False, True)
    assert registry.create_execution_plan_ext(graph, ENGINE).from_cache
    for plan in (first, second, first):  # whatever the thread's device is
        run(plan)
        assert hip.current_device() == 0
print("done")
"""


def test_a_plan_belongs_to_the_device_it_was_built_on(tmp_path: Path) -> None:
    done = run_child(tmp_path, TWO_DEVICES, {"MIOPEN_EMULATOR_DEVICES": "2"})
    assert done.stdout == "done\n", done.stderr[-2000:]
