"""The examples run as their readers would run them, the third-party provider as installed."""

from __future__ import annotations

import os
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
LINE = "MIOpenDriver conv -n 2 -c 3 -H 9 -W 9 -k 4 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -F 1"


def run(*command: str | Path, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HIPDNN_")}
    environment["PYTHONPATH"] = path
    return subprocess.run(
        [sys.executable, *map(str, command)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def hipdnn(*arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    return run(
        "-c",
        "import sys; from hipdnn_registry.cli import main; sys.exit(main())",
        *arguments,
        path=path,
    )


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The third-party provider, built and installed by pip into a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    done = run(
        *("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--disable-pip-version-check", "--target", target, EXAMPLES / "third_party_provider"),
    )
    assert done.returncode == 0, done.stderr
    return str(target)


def test_quickstart() -> None:
    done = run(EXAMPLES / "quickstart.py")
    assert done.returncode == 0, done.stderr
    assert "CPU_GEMM_ENGINE (host): global.benchmarking, global.workspace" in done.stdout
    assert "global.benchmarking=1 (caller)" in done.stdout
    assert "y: mean" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        ((), 0, "CPU_GEMM_ENGINE runs with global.workspace_size_limit=1048576, set by the caller"),
        (("miopen.tuning_policy", "4"), 1, "no engine honours miopen.tuning_policy=4"),
        (("global.benchmarking", "2"), 1, "2 is out of range [0, 1]"),
    ],
)
def test_query_knobs(arguments: tuple[str, ...], code: int, expected: str) -> None:
    done = run(EXAMPLES / "query_knobs.py", *arguments)
    assert done.returncode == code, done.stderr
    assert expected in done.stdout
    assert not done.stderr


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("query_knobs global.benchmarking one", "global.benchmarking is 'one', but must be"),
        ("query_knobs global.benchmarking", "a KNOB goes with a VALUE"),
        ("miopen_batchnorm_sums", "required: direction, N, C, H, W"),
        ("miopen_batchnorm_sums forward 1 2 3 4", "invalid choice: 'forward'"),
        ("miopen_batchnorm_sums backward 1 2 3 x", "argument W: 'x' is not an integer from 1"),
        ("miopen_batchnorm_sums backward 0 2 3 4", "argument N: '0' is not an integer from 1"),
    ],
)
def test_a_wrong_argument_is_one_clear_error(command: str, complaint: str) -> None:
    example, *arguments = command.split()
    done = run(EXAMPLES / f"{example}.py", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "error: " in done.stderr.splitlines()[-1]
    assert complaint in done.stderr.splitlines()[-1]


@pytest.mark.skipif(find_library("amdhip64") is not None, reason="this machine has ROCm")
def test_the_reproduction_says_which_library_is_missing() -> None:
    done = run(EXAMPLES / "miopen_batchnorm_sums.py", "backward", "1", "2", "3", "4")
    assert done.returncode == 1
    assert done.stderr.startswith("ROCm's libraries can't be loaded: libamdhip64.so")


def test_a_strangers_provider_is_found_and_runs_right(installed: str) -> None:
    listed = hipdnn("providers", path=installed)
    assert "sliding-window-provider" in listed.stdout
    for accumulate in ("float32", "float64"):
        done = hipdnn(
            *("run", LINE, "--engine", "SLIDING_WINDOW_ENGINE", "--check"),
            *("--knob", f"sliding_window.accumulate={accumulate}"),
            path=installed,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "PASS" in done.stdout


def test_a_strangers_knob_is_checked(installed: str) -> None:
    knob = "sliding_window.accumulate=float16"
    done = hipdnn(
        *("run", LINE, "--engine", "SLIDING_WINDOW_ENGINE", "--knob", knob), path=installed
    )
    assert done.returncode == 2
    assert "'float16' is not in the list of valid values" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_strangers_engine_says_why_it_declines(installed: str) -> None:
    done = hipdnn("explain", LINE.replace("-k 4", "-k 4 -g 3 -k 6"), path=installed)
    assert done.returncode == 0
    assert "3 groups, not one" in " ".join(done.stdout.split())
