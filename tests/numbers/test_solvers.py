"""Every solver that MIOpen has for a convolution is right, not only the one that wins."""

from __future__ import annotations

import pytest

from hipdnn_registry import EngineRegistry, graph_from_driver_command
from tests.numbers import cases
from tests.numbers.solvers import solver_comparisons

EVERY_TIME = {"plain"}


@pytest.mark.parametrize("layout", cases.LAYOUTS)
@pytest.mark.parametrize("io", cases.TYPES)
@pytest.mark.parametrize("direction", cases.DIRECTIONS)
@pytest.mark.parametrize(
    "kind",
    [
        kind if kind in EVERY_TIME else pytest.param(kind, marks=pytest.mark.slow)
        for kind in cases.WITH_SOLVERS
    ],
)
def test_every_solver(
    registry: EngineRegistry, kind: str, direction: str, io: str, layout: str
) -> None:
    (graph,) = graph_from_driver_command(cases.convolution(kind, direction, io, layout))
    results = list(solver_comparisons(registry, graph))
    assert len(results) > (layout == "NCHW")  # of NHWC only the naive kernels
    assert not [
        f"solver {solution.solution_id} ({solution.algorithm.name}): {comparison}"
        for solution, comparisons in results
        for comparison in comparisons
        if not comparison.passed
    ]
