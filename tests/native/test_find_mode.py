"""The knob `miopen.find_mode`: each mode does what it does in MIOpen, or is refused."""

from __future__ import annotations

import pytest

from hipdnn_miopen_provider.native import ConvolutionDescriptor, FindMode
from hipdnn_registry import EngineRegistry, KnobError
from tests.native.engines import (
    BENCHMARKING,
    ENGINE,
    FIND_MODE,
    POLICY,
    conv_bias_relu,
    conv_forward,
    new_registry,
    run,
)
from tests.native.observe import observe
from tests.native.shim_lane import spy_on_find_modes


@pytest.fixture
def modes_found(monkeypatch: pytest.MonkeyPatch) -> list[FindMode]:
    return spy_on_find_modes(monkeypatch)


@pytest.mark.parametrize("mode", FindMode)
def test_each_mode_reaches_the_descriptor(mode: FindMode, modes_found: list[FindMode]) -> None:
    graph = conv_forward(300 + 2 * mode)  # widths of its own: the find-db is the process's
    with observe() as seen:
        plan = new_registry().create_execution_plan_ext(graph, ENGINE, {FIND_MODE: mode.value})
    assert modes_found == [mode]
    assert not seen.searched
    assert bool(seen.launches) is (mode is not FindMode.Fast)  # which measures nothing
    run(plan)


def test_without_the_knob_the_policy_decides(modes_found: list[FindMode]) -> None:
    with ConvolutionDescriptor((1, 1), (1, 1), (1, 1)) as fresh:
        default = fresh.find_mode
    registry = new_registry()
    with observe():
        for settings in ({}, {FIND_MODE: 0}, {POLICY: 3}, {POLICY: 3, FIND_MODE: 1}):
            registry.create_execution_plan_ext(conv_forward(330), ENGINE, settings)
    # the second comes from the plan cache
    assert modes_found == [default, FindMode.Normal, FindMode.Normal]


@pytest.mark.parametrize("mode", [m for m in FindMode if m is not FindMode.Normal])
@pytest.mark.parametrize("tuning", [{POLICY: 3}, {POLICY: 5}, {BENCHMARKING: 1}])
def test_a_mode_that_would_skip_the_policy_is_refused(
    mode: FindMode, tuning: dict[str, int], modes_found: list[FindMode]
) -> None:
    with pytest.raises(KnobError, match=rf"miopen.find_mode is {mode.value} .*must be 0 or 1"):
        new_registry().create_execution_plan_ext(
            conv_forward(332), ENGINE, tuning | {FIND_MODE: mode.value}
        )
    assert modes_found == []


def test_no_mode_for_fused_graphs_and_no_other_values() -> None:
    registry = EngineRegistry(allow=["miopen"])
    assert FIND_MODE not in registry.get_knobs_for_engine(conv_bias_relu(), ENGINE)
    with pytest.raises(KnobError, match="4 is not in the list of valid values"):
        registry.create_execution_plan_ext(conv_forward(), ENGINE, {FIND_MODE: 4})
