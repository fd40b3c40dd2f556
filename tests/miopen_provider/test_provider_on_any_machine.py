"""The provider where it can't work: found, unavailable, and harmless; and what needs no library."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_provider import find_enforce
from hipdnn_miopen_provider.find_enforce import FindEnforceWarning, warn_about_find_enforce
from hipdnn_miopen_provider.native import FindMode, NativeError, TuningPolicy
from hipdnn_miopen_provider.operation import BuildOrder
from hipdnn_miopen_provider.progress import TuningProgress, TuningStage, reported
from hipdnn_registry import ExecutionError

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
