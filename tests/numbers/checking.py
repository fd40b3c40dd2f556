"""The comparison that every test here makes, and how far apart numbers may be.

An error is measured as `hipdnn run --check` does, |y - reference| / max(|reference|,
rms(reference)), where the reference is computed in float64 and rounded once. It may be at most

    r * u + 4 * c * sqrt(n)

r is how often a result is rounded to its own type on the way: once; once more for each further node
of a graph, since MIOpen runs a fused graph in parts where it has no fused solver; and sqrt(n) times
more where a solver keeps partial sums in that type: direct ones do so between input channels, and
the GEMM of backward data between the taps of the filter. u is the
distance from 1 to the next number of that type (2**-23 float, 2**-10 half, 2**-7 bfloat16): correct
rounding costs half of it, truncation, as some kernels round to bfloat16, all of it. c is the same
of float, in which MIOpen accumulates, and n the number of terms of the longest sum: rounding errors
of a sum grow with the root of its length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from hipdnn_registry import (
    DataType,
    EngineRegistry,
    ExecutionPlan,
    Graph,
    TensorAttributes,
    UnsupportedGraphError,
)
from hipdnn_registry.testing.accuracy import errors
from hipdnn_registry.testing.cost import reduction_length
from hipdnn_registry.testing.execution import execute
from hipdnn_registry.testing.inputs import random_inputs

ENGINE, DETERMINISTIC = "MIOPEN_ENGINE", "MIOPEN_ENGINE_DETERMINISTIC"
REFERENCE = "CPU_REFERENCE_ENGINE"
POLICY = "miopen.tuning_policy"

UNITS = {DataType.FLOAT: 2.0**-23, DataType.HALF: 2.0**-10, DataType.BFLOAT16: 2.0**-7}

Arrays = dict[int, np.ndarray[Any, Any]]


class Comparison(NamedTuple):
    """One output: its largest error, and the largest that it may have."""

    output: str
    error: float
    bound: float

    @property
    def passed(self) -> bool:
        return self.error <= self.bound


def bound_of(graph: Graph, output: TensorAttributes, *, partial_sums: bool) -> float:
    """The error that an output may have; `partial_sums`: some are kept in the output's type."""
    terms = sum(reduction_length(wiring) for wiring in graph.structure.wirings)
    growth = math.sqrt(terms)
    rounding = (len(graph.nodes) + growth * partial_sums) * UNITS[output.data_type]
    return rounding + 4 * UNITS[DataType.FLOAT] * growth


def reference_of(registry: EngineRegistry, graph: Graph, inputs: Arrays) -> Arrays:
    return execute(registry.create_execution_plan_ext(graph, REFERENCE), inputs)


def compared(
    graph: Graph, outputs: Mapping[int, Any], reference: Arrays, *, partial_sums: bool
) -> list[Comparison]:
    """Every output of a graph against the reference's; arrays by uid."""
    return [
        Comparison(
            graph.tensors[uid].name,
            errors(outputs[uid], expected)[1],
            bound_of(graph, graph.tensors[uid], partial_sums=partial_sums),
        )
        for uid, expected in reference.items()
    ]


def keeps_partial_sums(plan: ExecutionPlan) -> bool:
    """Whether a plan's convolution may do so: unless its solver is known not to."""
    types = {node.type for node in plan.graph.nodes}
    solver = " ".join(note for note in plan.notes if note.startswith("solver"))
    if "ImplicitGEMM" in solver or not any("Convolution" in each for each in types):
        return False
    return "GEMM" not in solver or "ConvolutionBwdAttributes" in types


def assert_right(plan: ExecutionPlan, outputs: Mapping[int, Any], reference: Arrays) -> None:
    results = compared(plan.graph, outputs, reference, partial_sums=keeps_partial_sums(plan))
    wrong = [c for c in results if not c.passed]
    assert not wrong, "; ".join(
        f"output {c.output} has relative error {c.error:.2e}, bound {c.bound:.2e}" for c in wrong
    )


def assert_declined(
    registry: EngineRegistry, graph: Graph, reason: str, engine: str = ENGINE
) -> None:
    """Check that an engine says why it can't compute a graph; `reason` is a pattern."""
    with pytest.raises(UnsupportedGraphError, match=reason):
        registry.get_engine_config(graph, engine)


def check(
    registry: EngineRegistry,
    graph: Graph,
    engine: str = ENGINE,
    settings: Mapping[str, int] | None = None,
) -> ExecutionPlan:
    """Run a graph on random inputs and compare every output; return the plan."""
    plan = registry.create_execution_plan_ext(graph, engine, settings, strict=True)
    inputs = random_inputs(graph, seed=0)
    assert_right(plan, execute(plan, inputs), reference_of(registry, graph, inputs))
    return plan
