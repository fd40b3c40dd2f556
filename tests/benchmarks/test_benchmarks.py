"""The benchmarks still run; what they measure is for people to judge."""

from __future__ import annotations

import json

import pytest

from benchmarks.figures import Figure, print_figures
from benchmarks.hot_path import five_nodes, hot_path_figures


def test_the_hot_path_is_measured() -> None:
    figures = hot_path_figures(repeat=1)
    assert len(five_nodes().nodes) == 5
    assert len(figures) == 4
    assert all(figure.unit == "us" for figure in figures)


def test_figures_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    at_least = Figure("speed", 0.6, "x", 0.7, at_most=False)
    print_figures([at_least, Figure("time", 0.6, "us", 0.7)], as_json=True)
    assert [f["reached"] for f in json.loads(capsys.readouterr().out)] == [False, True]
