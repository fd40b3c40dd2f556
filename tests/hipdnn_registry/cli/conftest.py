"""Fixtures: the command in process, and a stranger's distribution installed beside the CPU's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hipdnn_registry.cli import main

ROOT = Path(__file__).parents[3]
SITE = Path(__file__).parent / "site"
COMMAND = (sys.executable, "-m", "hipdnn_registry")


class Outcome(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error_lines(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("error: ")]


Hipdnn = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def only_the_cpu_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HIPDNN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HIPDNN_REGISTRY_ALLOW", "cpu")
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the distribution `hipdnn-acme`: a provider, an absent and a broken one."""
    monkeypatch.syspath_prepend(str(SITE))
    monkeypatch.setenv("HIPDNN_REGISTRY_ALLOW", "cpu, hipdnn-acme")


@pytest.fixture
def hipdnn(capsys: pytest.CaptureFixture[str]) -> Hipdnn:
    """Run the command in this process."""

    def run(*arguments: str) -> Outcome:
        status = main(arguments)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Outcome(status, out, err)

    return run


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[str]]:
    """Start the command in a process of its own, with the folders of this one's path."""

    def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
        path = os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)])
        return subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path, **variables},
        )

    return start


@pytest.fixture
def relu_file(tmp_path: Path) -> str:
    from tests.graphs import relu_graph

    path = tmp_path / "relu.json"
    path.write_text(relu_graph(dims=(4, 3)).to_json())
    return str(path)
