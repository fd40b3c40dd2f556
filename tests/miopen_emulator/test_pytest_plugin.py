"""The pytest plugin in somebody else's project: a folder of its own, with no settings of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_emulator.cache import CACHE_VARIABLE

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ("pytester",)

PROGRAM = """
import ctypes

def filled(value):
    hip, miopen = ctypes.CDLL("libamdhip64.so"), ctypes.CDLL("libMIOpen.so.1")
    handle, tensor, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    host, alpha = (ctypes.c_float * 24)(), ctypes.c_float(value)
    for status in (
        miopen.miopenCreate(ctypes.byref(handle)),
        miopen.miopenCreateTensorDescriptor(ctypes.byref(tensor)),
        miopen.miopenSet4dTensorDescriptor(tensor, 1, 1, 2, 3, 4),
        hip.hipMalloc(ctypes.byref(device), ctypes.c_size_t(96)),
        miopen.miopenSetTensor(handle, tensor, device, ctypes.byref(alpha)),
        hip.hipMemcpy(host, device, ctypes.c_size_t(96), 2),
    ):
        assert status == 0
    return list(host)

if __name__ == "__main__":
    print(*filled(2.5))
"""

SUITE = """
import sys

import pytest
from program import filled

@pytest.mark.miopen_emulator
def test_inside(miopen_emulator):
    print("captured")
    assert miopen_emulator.inside
    assert sys.executable.startswith(str(miopen_emulator.tree))
    assert miopen_emulator.launches() == []
    assert filled(2.5) == [2.5] * 24
    (launch,) = miopen_emulator.launches()
    assert launch.kernel.startswith("SubTensorOp")
    assert launch.executed

@pytest.mark.parametrize(("kernels", "executed"), [("execute", True), ("accept", False)])
def test_a_program(kernels, executed, miopen_emulator, monkeypatch):
    monkeypatch.setenv("MIOPEN_EMULATOR_KERNELS", kernels)
    done = miopen_emulator.run(["python", "program.py"])
    assert (done.returncode, done.stderr) == (0, "")
    assert (done.stdout.split() == ["2.5"] * 24) is executed
    assert [launch.executed for launch in done.launches] == [executed]
    assert miopen_emulator.launches() == []

@pytest.mark.parametrize("number", range(2))
def test_else(number):
    pass

def test_failure():
    assert False
"""


@pytest.fixture
def project(
    tree: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    # pytester gives its processes a home of their own, and that has no tree
    monkeypatch.setenv(CACHE_VARIABLE, str(tree.parents[1]))
    pytester.makepyfile(program=PROGRAM, test_suite=SUITE)
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
    done.assert_outcomes(passed=2, skipped=3, failed=1)
    done.stdout.fnmatch_lines("*apt-get is not installed*")
