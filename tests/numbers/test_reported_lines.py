"""Lines that people pasted into public reports, through the command: `hipdnn run --check`."""

from __future__ import annotations

import json

import pytest

from hipdnn_registry import EngineRegistry
from hipdnn_registry.cli import main
from tests.driver_lines import REPORTED, shrunk
from tests.numbers.checking import DETERMINISTIC, ENGINE

LIMIT = 8_000_000
"""As `cost` counts: a fraction of a second for each kernel, compiled for a CPU."""


@pytest.mark.parametrize("engine", [ENGINE, pytest.param(DETERMINISTIC, marks=pytest.mark.slow)])
@pytest.mark.parametrize("line", REPORTED, ids=lambda line: line.rpartition("# ")[2])
def test_reported_line(
    registry: EngineRegistry, line: str, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if engine == DETERMINISTIC and " bnorm" in line:
        pytest.skip("MIOpen has a deterministic attribute for convolutions only")
    small = shrunk(line, LIMIT)
    status = main(["run", small, "--engine", engine, "--check", "--repeat", "1", "--json"])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    for run in json.loads(printed.out)["graphs"]:
        assert run["engine_name"] == engine
        assert run["check"]["passed"]
