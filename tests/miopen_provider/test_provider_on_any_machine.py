"""The provider where it can't work: found, unavailable, and harmless; and what needs no library."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import threading
import time
import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from hipdnn_miopen_provider import find_enforce
from hipdnn_miopen_provider.child import time_limit_of
from hipdnn_miopen_provider.find_enforce import FindEnforceWarning, warn_about_find_enforce
from hipdnn_miopen_provider.native import FindMode, NativeError, TuningPolicy
from hipdnn_miopen_provider.operation import BuildOrder
from hipdnn_miopen_provider.progress import TuningProgress, TuningStage, reported
from hipdnn_miopen_provider.provider import MiopenProvider
from hipdnn_registry import ExecutionError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPT = """
from hipdnn_registry import EngineRegistry, ProviderStatus, UnknownEngineError
from tests.graphs import relu_graph
registry = EngineRegistry(allow=["miopen"])
(record,) = [r for r in registry.providers() if r.name == "miopen"]
if record.status is not ProviderStatus.LOADED:
    assert record.status is ProviderStatus.UNAVAILABLE, record
    assert any(
        word in record.reason for word in ("hip-python", "libamdhip64", "no device", "libMIOpen")
    ), record.reason
    try:
        registry.get_knobs_for_engine(relu_graph(), "MIOPEN_ENGINE")
    except UnknownEngineError as error:
        assert record.reason in str(error)
print("fine")
"""


def test_a_machine_without_rocm_gets_the_exact_reason() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.stdout == "fine\n", done.stderr


def test_native_errors_are_the_registrys_own() -> None:
    assert issubclass(NativeError, ExecutionError)


@pytest.mark.parametrize(
    ("policy", "variables", "warns"),
    [
        (TuningPolicy.NONE, {}, False),
        (TuningPolicy.NONE, {"MIOPEN_FIND_ENFORCE": ""}, False),
        (TuningPolicy.NONE, {"MIOPEN_FIND_ENFORCE": "none"}, False),
        (TuningPolicy.NONE, {"MIOPEN_FIND_ENFORCE": "1"}, False),
        (TuningPolicy.NONE, {"MIOPEN_FIND_ENFORCE": "3"}, True),
        (None, {"MIOPEN_FIND_ENFORCE": "SEARCH"}, True),
        (TuningPolicy.SEARCH, {"MIOPEN_FIND_ENFORCE": "SEARCH_DB_UPDATE"}, False),
        (TuningPolicy.DB_CLEAN, {"MIOPEN_FIND_ENFORCE": "SEARCH"}, False),
    ],
)
def test_find_enforce_is_warned_about_where_it_rules(
    policy: TuningPolicy | None,
    variables: Mapping[str, str],
    warns: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(find_enforce, "_warned", False)
    order = BuildOrder(policy)
    if not warns:
        assert warn_about_find_enforce(order, variables) == ()
        return
    with pytest.warns(FindEnforceWarning, match="MIOPEN_FIND_ENFORCE=.*None .1. does not switch"):
        first = warn_about_find_enforce(order, variables)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert warn_about_find_enforce(order, variables) == first  # noted, but not warned, again


@pytest.mark.parametrize(
    ("order", "tunes", "searches"),
    [
        (BuildOrder(None), False, False),
        (BuildOrder(TuningPolicy.NONE), False, False),
        (BuildOrder(TuningPolicy.NONE, FindMode.Normal), False, False),
        (BuildOrder(None, FindMode.Normal, exhaustive=True), True, True),
        (BuildOrder(TuningPolicy.DB_UPDATE, exhaustive=True), True, True),
        (BuildOrder(TuningPolicy.SEARCH), True, True),
        (BuildOrder(TuningPolicy.SEARCH_DB_UPDATE), True, True),
        (BuildOrder(TuningPolicy.DB_CLEAN), True, False),
    ],
)
def test_what_an_order_does(order: BuildOrder, tunes: bool, searches: bool) -> None:
    assert (order.tunes, order.searches) == (tunes, searches)


def test_progress_of_work_that_fails() -> None:
    told: list[TuningProgress] = []
    with pytest.raises(ZeroDivisionError), reported("work", told.append):
        _ = 1 / 0
    assert [progress.stage for progress in told] == [TuningStage.STARTED, TuningStage.FAILED]
    assert "ZeroDivisionError: division by zero" in str(told[-1])
    assert str(told[0]) == "tuning started: work"


@pytest.mark.parametrize("stage", TuningStage)
@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit("no")])
def test_a_callback_that_fails_is_logged_once_and_changes_nothing(
    stage: TuningStage,
    error: BaseException,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hipdnn_miopen_provider.progress.HEARTBEAT_SECONDS", 0.001)
    told: list[TuningStage] = []
    reached = threading.Event()

    def callback(progress: TuningProgress) -> None:
        told.append(progress.stage)
        if progress.stage is stage:
            reached.set()
            raise error

    def work() -> None:
        with reported("work", callback) as details:
            if stage is TuningStage.RUNNING:
                assert reached.wait(10)
            if stage is TuningStage.FAILED:
                _ = 1 / 0
            details.append("done")
        assert details == ["done"]

    with pytest.raises(ZeroDivisionError) if stage is TuningStage.FAILED else nullcontext():
        work()
    (record,) = caplog.records
    assert (record.levelname, record.name) == ("WARNING", "hipdnn_registry.miopen")
    name = type(error).__name__
    pattern = f"on_progress .*callback.* at '{stage}' .*not called again for work: {name}: no"
    assert re.fullmatch(pattern, record.getMessage())
    assert told[-1] is stage
    assert told.count(stage) == 1


@pytest.mark.parametrize("stage", TuningStage)
def test_an_interrupt_in_a_callback_passes_on(
    stage: TuningStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hipdnn_miopen_provider.progress.HEARTBEAT_SECONDS", 0.001)

    def callback(progress: TuningProgress) -> None:
        if progress.stage is stage:
            raise KeyboardInterrupt

    def work() -> None:
        with reported("work", callback):
            deadline = time.monotonic() + 10
            while stage is TuningStage.RUNNING and time.monotonic() < deadline:
                time.sleep(0.001)
            if stage is TuningStage.FAILED:
                _ = 1 / 0

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work()
    assert time.monotonic() - started < 5, "not only at the end"


@pytest.mark.parametrize(
    ("argument", "value", "allowed"),
    [
        ("on_progress", 3, "must be None or a callable that takes a TuningProgress"),
        ("tune_in_subprocess", "0", "must be True, False or None"),
        ("tuning_time_limit", 10**400, "must be a positive number of seconds"),
        *[
            ("tuning_time_limit", value, "must be a positive number of seconds")
            for value in (0, -1.0, math.inf, math.nan, "soon")
        ],
    ],
)
def test_arguments_that_are_none(argument: str, value: Any, allowed: str) -> None:
    message = re.escape(f"{argument} is {value!r}, but {allowed}")
    with pytest.raises(InvalidInputError, match=f"^{message}$"):
        MiopenProvider(**{argument: value})


@pytest.mark.parametrize(
    ("value", "seconds"), [(None, 7200), ("", 7200), ("  ", 7200), (" 90 ", 90), ("1e-1", 0.1)]
)
def test_the_time_limit_of_the_environment(
    value: str | None, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    variables = {} if value is None else {"HIPDNN_MIOPEN_TUNE_TIME_LIMIT": value}
    assert time_limit_of(variables) == seconds
    assert not caplog.records


@pytest.mark.parametrize("value", ["abc", "1 h", "0", "-5", "nan", "inf", "1e999"])
def test_a_time_limit_of_the_environment_that_is_none_counts_as_unset(
    value: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert time_limit_of({"HIPDNN_MIOPEN_TUNE_TIME_LIMIT": value}) == 7200
    (record,) = caplog.records
    assert (record.levelname, record.name) == ("WARNING", "hipdnn_registry.miopen")
    assert record.getMessage() == (
        f"HIPDNN_MIOPEN_TUNE_TIME_LIMIT={value!r} is not recognised and counts as unset (7200); "
        "use a positive number of seconds"
    )
