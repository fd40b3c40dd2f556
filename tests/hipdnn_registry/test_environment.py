"""Environment variables as hipDNN reads them."""

from __future__ import annotations

import logging

import pytest

from hipdnn_registry import Environment, engine_id
from hipdnn_registry.environment import names, switch


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, True) for word in ("1", "true", "on", "yes", "enable", "enabled")),
        *((word, False) for word in ("0", "false", "off", "no", "disable", "disabled")),
        ("  On ", True),
        ("FALSE\t", False),
        ("", None),
        ("   ", None),
        (None, None),
    ],
)
def test_switches(text: str | None, value: bool | None, caplog: pytest.LogCaptureFixture) -> None:
    variables = {} if text is None else {"HIPDNN_FORCE_BENCHMARKING": text}
    assert Environment.read(variables).force_benchmarking is value
    assert not caplog.records


def test_an_unrecognised_switch_is_unset_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "hipdnn_registry"):
        for _ in range(2):  # hipDNN warns at each reading
            assert switch("HIPDNN_FORCE_BENCHMARKING", {"HIPDNN_FORCE_BENCHMARKING": "2"}) is None
    assert len(caplog.records) == 2
    assert "HIPDNN_FORCE_BENCHMARKING='2'" in caplog.text


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPDNN_FORCE_BENCHMARKING", "off")
    monkeypatch.setenv("HIPDNN_REGISTRY_STRICT_KNOBS", "1")
    assert Environment.read().force_benchmarking is False
    assert Environment.read().strict_knobs is True


def test_lists_of_names() -> None:
    assert names("L", {"L": " a, b,,a "}) == frozenset({"a", "b"})
    assert names("L", {"L": " , "}) is None
    assert names("L", {}) is None


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("MIOPEN_ENGINE", 0x15B46865C717A122),
        ("MIOPEN_ENGINE_DETERMINISTIC", -6748551569128940061),
        ("HIPBLASLT_ENGINE", 8768140637164053035),
        ("hipkernel:ConvFwd", 0xF6975AB2C79B088E - 2**64),
        ("", 14695981039346656037 - 2**64),
    ],
)
def test_engine_ids_equal_hipdnns(name: str, identity: int) -> None:
    assert engine_id(name) == identity
