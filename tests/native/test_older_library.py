"""MIOpen 3.4.0: no tuning policies, no batchnorm + activation; the rest works."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_emulator import EmulatorUnavailableError, build_tree, make_python
from tests.native.environment import private_environment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def older_python() -> Path:
    try:
        return make_python(build_tree("3.4.0"))
    except EmulatorUnavailableError as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(reason))


SCRIPT = """
from hipdnn_miopen_provider.native import *
from hipdnn_miopen_provider.native import library
from tests.native.observe import observe
from tests.native.problems import batchnorm_case, convolution_case

assert unavailable_reason() is None
assert library.load().version == (3, 4, 0)
assert not supports_tuning_policy()

def refused(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except MissingSymbolError as error:
        return str(error)
    raise AssertionError("accepted")

with Handle() as handle:
    text = refused(setattr, handle, "tuning_policy", TuningPolicy.NONE)
    assert "libMIOpen 3.4.0" in text and "does not export miopenSetTuningPolicy" in text, text
    for direction in Direction:
        with convolution_case(direction, (2, 8, 16, 20), (4, 8, 3, 5)) as case, observe() as seen:
            assert case.find(TuningPolicy.NONE) and case.find(TuningPolicy.NONE, exhaustive=True)
        # exhaustiveSearch is this release's only way to tune
        assert seen.launches and (seen.added or direction is Direction.BACKWARD_DATA)
    with convolution_case(Direction.FORWARD, (2, 8, 16, 24), (8, 8, 3, 3)) as case, observe():
        assert case.fused_find(TuningPolicy.NONE)
    with batchnorm_case((4, 8, 16, 20)) as case, observe() as seen:
        case.train(handle), case.infer(handle), case.backward(handle)
        for call in (case.train, case.infer, case.backward):
            assert "Activation" in refused(call, handle, fused=True)
    assert seen.launches == 3
print("done")
"""


ENGINES = """
import warnings
from hipdnn_registry import DroppedKnobWarning
from tests.graphs import batchnorm_graph, relu_graph
from tests.native.engines import *
from tests.native.observe import observe

registry = new_registry()
for name, make in TUNABLE.items():
    graph = make(40)
    knobs = registry.get_knobs_for_engine(graph, ENGINE)
    assert POLICY not in knobs
    with observe() as seen:
        plan = registry.create_execution_plan_ext(graph, ENGINE, {BENCHMARKING: 1})
    # a Find has an exhaustive-search flag; a batchnorm call has nothing to tune by
    is_batchnorm = name.startswith("batchnorm")
    assert bool(seen.added) is not is_batchnorm, (name, seen.added)
    lacks = "has nothing to tune here" if is_batchnorm else "has no tuning policies"
    assert f"libMIOpen 3.4.0 {lacks}" in " ".join(plan.notes), plan.notes
    with observe() as seen:
        run(plan)
    assert seen.launches, name
with warnings.catch_warnings(record=True) as warned, observe():
    warnings.simplefilter("always")
    registry.create_execution_plan_ext(conv_forward(), ENGINE, {POLICY: 4})
assert [w.category for w in warned] == [DroppedKnobWarning]
for graph in (bn_inference(), bn_inference(inverse=False), relu_graph((2, 3))):
    with observe() as seen:
        run(registry.create_execution_plan_ext(graph, ENGINE))
    assert seen.launches
for graph in (bn_training_relu(), bn_inference(activation="relu_fwd"), bn_backward_relu()):
    with observe():
        answer = registry.explain(graph).answers[0]
    assert "libMIOpen 3.4.0 fuses no batchnorm with an activation" in answer.reason
print("done")
"""


SHIM = """
from hipdnn_miopen_provider.shim import MiopenHandle, TuningPolicy, UnsupportedOp
from tests.native.engines import new_registry
from tests.native.observe import observe
from tests.native.shim_lane import Memory, find_of
from tests.shim_calls import OPERATIONS

with Memory() as memory, MiopenHandle(registry=new_registry()) as handle:
    for operation in OPERATIONS:
        call = memory.call(operation, 44)
        for policy in TuningPolicy:
            handle.set_tuning_policy(policy)
            declined = ""
            with observe() as seen:
                try:
                    call(handle)
                except UnsupportedOp as error:
                    declined = str(error)
            tunes = policy is not TuningPolicy.NONE and "inference" not in operation
            assert ("does not advertise miopen.tuning_policy" in declined) is tunes, declined
            assert bool(seen.launches) is not tunes
    handle.set_tuning_policy(TuningPolicy.NONE)
    with observe() as seen:
        find_of("forward", memory, 46)(handle, exhaustive_search=True)
    assert seen.added
print("done")
"""


@pytest.mark.parametrize("script", ["SCRIPT", "ENGINES", "SHIM"])
def test_what_an_older_library_lacks_is_said_and_the_rest_works(
    script: str, older_python: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [older_python, "-c", globals()[script]],
        env=private_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.strip() == "done", done.stderr[-3000:]
