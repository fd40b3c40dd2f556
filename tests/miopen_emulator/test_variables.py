"""The emulator's environment variables are checked before anything starts under them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hipdnn_miopen_emulator import UnsuitableSettingError
from hipdnn_miopen_emulator.variables import check_variables
from hipdnn_registry.cli import main


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("KERNELS", "foo", "'foo', but must be 'execute' or 'accept'"),
        ("CLOCK", "x", "must be 'virtual' or 'real'"),
        ("GUARD", "yes", "must be '0' or '1'"),
        ("THREADS", "0", "a number from 1 on"),
        ("THREADS", "-1", "a number from 1 on"),
        ("CU", "0", "a number from 1 on"),
        ("DEVICES", "x", "a number from 0 on"),
        ("ARCH", "zz top", "target such as 'gfx90a'"),
        ("ARCH", "gfx1", "target such as 'gfx90a'"),
        ("LOG", "/nonexistent/log", "a file that can be written to"),
        ("LOG", "/", "a file that can be written to"),
        ("KERNALS", "accept", "no environment variable MIOPEN_EMULATOR_KERNALS; did you mean "),
        ("X" * 40, "1", "no environment variable .*X; there are .*MIOPEN_EMULATOR_CU"),
    ],
)
def test_what_is_wrong_is_said(name: str, value: str, problem: str) -> None:
    with pytest.raises(UnsuitableSettingError, match=problem):
        check_variables({f"MIOPEN_EMULATOR_{name}": value, "PATH": "/bin"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ARCH", "gfx90a:sramecc+:xnack-"),
        ("ARCH", "gfx1100"),
        ("DEVICES", "0"),
        ("KERNELS", ""),
        ("FAIL_COMPILE", "any text"),
    ],
)
def test_what_is_right_passes(name: str, value: str, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    check_variables({f"MIOPEN_EMULATOR_{name}": value, "MIOPEN_EMULATOR_LOG": log})


def test_run_says_it_before_it_builds_or_starts_anything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("MIOPEN_EMULATOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MIOPEN_EMULATOR_CLOCK", "sundial")
    assert main(["emulator", "run", "--", "true"]) == 2
    assert "MIOPEN_EMULATOR_CLOCK is 'sundial'" in capsys.readouterr().err
    assert not (tmp_path / "cache").exists()
