"""The pytest plugin in somebody else's project: a folder of its own, with no settings of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_emulator.cache import CACHE_VARIABLE

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ("pytester",)

SUITE = """
import ctypes
import sys

import pytest

@pytest.mark.miopen_emulator
def test_inside(miopen_emulator):
    print("captured")
    assert miopen_emulator.inside
    assert sys.executable.startswith(str(miopen_emulator.tree))
    assert ctypes.CDLL("libMIOpen.so.1").miopenCreate(ctypes.byref(ctypes.c_void_p())) == 0

def test_a_program(miopen_emulator):
    done = miopen_emulator.run(["python", "-c", "import sys; print(sys.executable)"])
    assert "/trees/miopen-3.5.1-" in done.stdout

@pytest.mark.parametrize("number", range(3))
def test_else(number):
    pass

def test_failure():
    assert False
"""


@pytest.fixture
def project(tree: Path, pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_suite=SUITE)
    pytester.makeini("[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n")
    return pytester


def test_outside_what_needs_the_emulator_is_skipped(project: pytest.Pytester) -> None:
    done = project.runpytest_subprocess("-rs")
    done.assert_outcomes(passed=4, skipped=1, failed=1)
    done.stdout.fnmatch_lines("*needs the emulator of MIOpen: run pytest --miopen-emulator")


@pytest.mark.parametrize("arguments", [("-n2",), ("-s",)])
def test_the_whole_run_starts_again_inside(
    arguments: tuple[str, ...], project: pytest.Pytester
) -> None:
    done = project.runpytest_subprocess("--miopen-emulator", *arguments)
    done.assert_outcomes(passed=5, failed=1)
    assert done.ret == 1
    done.stdout.fnmatch_lines("MIOpen emulator: *miopen-3.5.1-*, kernels: execute")
    assert done.stdout.str().count("test session starts") == 1
    assert ("captured" in done.stdout.str()) is ("-s" in arguments)


def test_the_option_may_be_in_the_projects_settings(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\naddopts = --miopen-emulator\n")
    project.runpytest_subprocess("-k", "inside").assert_outcomes(passed=1, deselected=5)


def test_a_machine_that_can_not_build(
    project: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    asked = project.runpytest_subprocess("--miopen-emulator")
    assert asked.ret == pytest.ExitCode.USAGE_ERROR
    asked.stderr.fnmatch_lines("ERROR: --miopen-emulator: apt-get is not installed*")
    done = project.runpytest_subprocess("-rs")
    done.assert_outcomes(passed=3, skipped=2, failed=1)
    done.stdout.fnmatch_lines("*apt-get is not installed*")
