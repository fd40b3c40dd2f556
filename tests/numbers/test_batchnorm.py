"""Batch normalization: training, inference and backward, in every form that the engine serves."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from hipdnn_registry import (
    DataType,
    EngineRegistry,
    graph_from_driver_command,
)
from hipdnn_registry.cli.run.report import RunOptions, run_report
from hipdnn_registry.testing.execution import execute
from hipdnn_registry.testing.inputs import random_inputs
from tests.graphs import batchnorm_graph
from tests.numbers.cases import (
    IMAGES,
    LAYOUTS,
    ODD_IMAGES,
    PER_ACTIVATION,
    SPATIAL,
    TYPES,
    batchnorm,
    batchnorm_relu_backward,
)
from tests.numbers.checking import ENGINE, POLICY, assert_declined, check


def wrong_variant(kind: str, image: str, io: str, layout: str) -> bool:
    """Whether MIOpen would choose a kernel that sums the wrong elements: from its source."""
    if layout == "NHWC" or "inference" in kind:
        return False
    if image == "80x80":
        return kind == "backward, nothing saved"
    if image == "65x65" or (image in {"25x25, batch 32", "33x33"} and "backward" in kind):
        return True
    return image == "7x9" and io == "half" and "backward" in kind


EVERY_TIME = ("4x6", "7x9")
LATER = [image for image in IMAGES | ODD_IMAGES if image not in EVERY_TIME]
KERNELS = ("training", "inference", "backward", "backward, nothing saved")
"""Kinds with a kernel of their own, which the others vary by an option or an argument."""


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("io", TYPES)
@pytest.mark.parametrize(
    ("kind", "image"),
    [
        *product(SPATIAL, EVERY_TIME),
        *(
            pytest.param(kind, image, marks=pytest.mark.slow)
            for kind, image in product(KERNELS, LATER)
        ),
    ],
)
def test_spatial(registry: EngineRegistry, kind: str, image: str, io: str, layout: str) -> None:
    (graph,) = graph_from_driver_command(batchnorm(kind, image, io, layout))
    if wrong_variant(kind, image, io, layout):
        assert_declined(registry, graph, "sums the wrong elements")
    else:
        check(registry, graph)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("io", TYPES)
@pytest.mark.parametrize("image", ["4x6", pytest.param("3-D", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", PER_ACTIVATION)
def test_per_activation(
    registry: EngineRegistry, kind: str, image: str, io: str, layout: str
) -> None:
    line = batchnorm(kind, image, io, layout, per_activation=True)
    (graph,) = graph_from_driver_command(line)
    if "relu" in kind:
        assert_declined(registry, graph, "takes an activation and leaves it out")
    else:
        check(registry, graph)


@pytest.mark.parametrize("io", [DataType.FLOAT, DataType.HALF, DataType.BFLOAT16])
def test_gradient_through_relu(registry: EngineRegistry, io: DataType) -> None:
    check(registry, batchnorm_relu_backward(io))


@pytest.mark.parametrize("policy", [1, 3, 4])
@pytest.mark.parametrize("per_activation", [False, True])
def test_running_statistics_are_updated_once(
    registry: EngineRegistry, per_activation: bool, policy: int
) -> None:
    """By the batch's unbiased variance, and by no trial launch of a search; against numpy."""
    graph = batchnorm_graph((4, 3, 6, 8), per_activation=per_activation)
    settings = {} if per_activation else {POLICY: policy}
    plan = registry.create_execution_plan_ext(graph, ENGINE, settings, strict=True)
    inputs = random_inputs(graph, seed=1)
    given = {uid: array.copy() for uid, array in inputs.items()}
    outputs = execute(plan, inputs)
    named: dict[str, Any] = {
        graph.tensors[uid].name: array.astype(np.float64)
        for uid, array in (inputs | outputs).items()
    }
    axes = (0,) if per_activation else (0, 2, 3)
    mean = named["x"].mean(axes, keepdims=True)
    variance = named["x"].var(axes, keepdims=True, ddof=1)
    for kind, batch in (("mean", mean), ("variance", variance)):
        expected = 0.9 * named[f"prev_{kind}"] + 0.1 * batch
        np.testing.assert_allclose(named[f"next_{kind}"], expected, rtol=2e-6, atol=1e-7)
    for uid, array in given.items():
        np.testing.assert_array_equal(inputs[uid], array)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "line",
    [
        "bnorm -n 2 -c 3 -H 1 -W 1 -m 1 --forw 0 -b 1",
        "bnorm -n 2 -c 3 -H 2 -W 1 -m 0 --forw 0 -b 1",
        "bnorm -n 3 -c 3 -H 1 -W 1 -m 1 --forw 1 -b 0 -s 1",
    ],
)
def test_statistics_of_two_or_three_values_pass_the_commands_check(
    registry: EngineRegistry, line: str, seed: int
) -> None:
    """Where dx is a small part of its terms, and the variance a small part of the moments."""
    (graph,) = graph_from_driver_command(f"MIOpenDriver {line}")
    report = run_report(registry, graph, RunOptions(ENGINE, check=True, seed=seed, repeat=1))
    assert not report.failure
