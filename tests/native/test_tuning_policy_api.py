"""What miopenSetTuningPolicy and miopenGetTuningPolicy accept, and where a policy lives."""

from __future__ import annotations

import ctypes

import pytest

from hipdnn_miopen_provider.native import (
    Handle,
    MiopenError,
    Status,
    TuningPolicy,
    library,
    supports_tuning_policy,
)


def test_this_library_has_tuning_policies() -> None:
    assert supports_tuning_policy()


@pytest.mark.parametrize("policy", TuningPolicy)
def test_a_policy_is_kept_by_its_handle_alone(policy: TuningPolicy) -> None:
    with Handle() as handle, Handle() as other:
        assert handle.tuning_policy is TuningPolicy.NONE
        handle.tuning_policy = policy
        assert handle.tuning_policy is policy
        assert other.tuning_policy is TuningPolicy.NONE
    with Handle() as fresh:
        assert fresh.tuning_policy is TuningPolicy.NONE


@pytest.mark.parametrize("value", [0, 6, -1, 100])
def test_a_value_outside_the_enum_is_refused_and_the_old_one_stays(value: int) -> None:
    with Handle() as handle:
        handle.tuning_policy = TuningPolicy.SEARCH
        with pytest.raises(MiopenError, match="miopenSetTuningPolicy: miopenStatusBadParm"):
            library.load().call("miopenSetTuningPolicy", handle.raw, value)
        assert handle.tuning_policy is TuningPolicy.SEARCH


@pytest.mark.parametrize("status", Status)
def test_statuses_have_miopens_own_names(status: Status) -> None:
    name, text = library.load().describe(status)
    assert text == name == f"miopenStatus{status.name}"


def test_a_status_that_is_newer_than_this_table() -> None:
    with pytest.raises(MiopenError, match=r"someCall: unknown miopenStatus \(99\): Unknown"):
        library.load().fail("someCall", 99)


def test_null_arguments_are_refused() -> None:
    miopen = library.load()
    with Handle() as handle, pytest.raises(MiopenError) as no_result:
        miopen.call("miopenGetTuningPolicy", handle.raw, None)
    with pytest.raises(MiopenError) as no_handle:
        miopen.call("miopenSetTuningPolicy", None, TuningPolicy.NONE)
    assert no_result.value.status == no_handle.value.status == Status.BadParm


def test_a_scope_restores_the_policy_also_when_the_work_fails() -> None:
    with Handle() as handle:
        handle.tuning_policy = TuningPolicy.DB_CLEAN
        seen = []

        def work() -> None:
            with handle.under_policy(TuningPolicy.SEARCH):
                seen.append(handle.tuning_policy)
                raise RuntimeError("stopped")

        with pytest.raises(RuntimeError, match="stopped"):
            work()
        assert (seen, handle.tuning_policy) == ([TuningPolicy.SEARCH], TuningPolicy.DB_CLEAN)


def test_a_scope_with_a_bad_policy_leaves_the_old_one() -> None:
    with Handle() as handle:
        with pytest.raises(MiopenError), handle.under_policy(0):  # type: ignore[arg-type]  # on purpose
            pytest.fail("entered")
        assert handle.tuning_policy is TuningPolicy.NONE


def test_opaque_pointers_are_not_interchangeable() -> None:
    with Handle() as handle, pytest.raises(ctypes.ArgumentError):
        library.load().call("miopenDestroyTensorDescriptor", handle.raw)
