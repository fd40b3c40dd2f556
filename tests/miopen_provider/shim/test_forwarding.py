"""Which calls are forwarded, with which knobs, and how the others are declined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hipdnn_miopen_provider.shim import (
    ActivationDescriptor,
    ActivationMode,
    BadParm,
    BatchNormMode,
    ConvolutionAttribute,
    ConvolutionDescriptor,
    ConvolutionMode,
    DataType,
    EntryPoint,
    FindMode,
    MiopenHandle,
    Status,
    TensorDescriptor,
    TensorLayout,
    TuningPolicy,
    UnknownEntryPointWarning,
    UnsupportedOp,
    batch_normalization_forward_inference,
    convolution_forward,
)
from hipdnn_registry import benchmarking_knob
from tests.miopen_provider.shim.engines import HostEngine, host_registry, ones
from tests.shim_calls import OPERATIONS, BatchNorm, Conv, call_of, every_entry_point

Array = np.ndarray[Any, Any]
NONE, DB_UPDATE, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN = TuningPolicy
POLICY, BENCHMARKING, FIND_MODE = "miopen.tuning_policy", "global.benchmarking", "miopen.find_mode"


# Knobs


@pytest.mark.parametrize("policy", TuningPolicy)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_policy_becomes_its_knob(
    operation: str, policy: TuningPolicy, handle: MiopenHandle, engine: HostEngine
) -> None:
    handle.set_tuning_policy(policy)
    call_of(operation, ones)(handle)
    expected: dict[str, int] = {POLICY: policy.value}
    if policy is NONE or operation == "batchnorm inference":
        expected = {}
    elif policy is DB_UPDATE and not operation.startswith("batchnorm"):
        expected = {POLICY: 1}  # MIOpen does nothing without exhaustive search
    assert engine.built == [expected]
    assert handle.get_tuning_policy() is policy


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (NONE, {BENCHMARKING: 1}),
        (DB_UPDATE, {POLICY: 2}),
        (SEARCH, {POLICY: 3}),
        (SEARCH_DB_UPDATE, {POLICY: 4}),
        (DB_CLEAN, {POLICY: 5}),
    ],
)
def test_exhaustive_search(
    policy: TuningPolicy, expected: dict[str, int], handle: MiopenHandle, engine: HostEngine
) -> None:
    handle.set_tuning_policy(policy)
    conv = Conv(ones)
    plan = conv.find(handle, exhaustive_search=True)
    assert engine.built == [expected]
    # what was found runs, and another Find has nothing to add
    assert conv.forward(handle) is conv.find(handle) is plan
    assert conv.find(handle, exhaustive_search=True) is plan
    assert len(engine.built) == 1


@pytest.mark.parametrize("policy", [NONE, DB_UPDATE])
def test_exhaustive_search_after_another_find_searches(
    policy: TuningPolicy, handle: MiopenHandle, engine: HostEngine
) -> None:
    handle.set_tuning_policy(policy)
    conv = Conv(ones)
    first = conv.find(handle)
    second = conv.find(handle, exhaustive_search=True)
    assert conv.forward(handle) is conv.find(handle) is second is not first
    assert len(engine.built) == 2


@pytest.mark.parametrize("mode", [BatchNormMode.PerActivation])
@pytest.mark.parametrize("policy", TuningPolicy)
def test_where_nothing_is_tuned_any_policy_is_taken_without_the_knob(
    mode: BatchNormMode, policy: TuningPolicy
) -> None:
    engine = HostEngine(knobs=())
    with MiopenHandle(registry=host_registry(engine)) as handle:
        handle.set_tuning_policy(policy)
        norm = BatchNorm(ones, mode=mode)
        norm.training(handle)
        norm.backward(handle)
        norm.inference(handle)
        BatchNorm(ones).inference(handle)
    assert engine.built == [{}] * 4


@pytest.mark.parametrize("policy", [DB_UPDATE, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN])
@pytest.mark.parametrize("operation", [name for name in OPERATIONS if "inference" not in name])
def test_an_engine_without_the_knob_is_not_used(operation: str, policy: TuningPolicy) -> None:
    engine = HostEngine(knobs=(benchmarking_knob(),))
    handle = MiopenHandle(registry=host_registry(engine))
    handle.set_tuning_policy(policy)
    with pytest.raises(UnsupportedOp) as error:
        call_of(operation, ones)(handle)
    spelled = {2: "DbUpdate (2)", 3: "Search (3)", 4: "SearchDbUpdate (4)", 5: "DbClean (5)"}
    text = str(error.value)
    for part in (
        *(spelled[policy], "engine MIOPEN_ENGINE (provider host-miopen 1.0)", POLICY),
        *("set_tuning_policy(TuningPolicy.NONE)", "[miopenStatusUnsupportedOp (8)]"),
    ):
        assert part in text
    kind = {"forward": "ConvFprop", "fused": "ConvBiasActivation"}.get(operation, "")
    assert kind in text
    assert error.value.status is Status.UnsupportedOp
    assert engine.built == []
    assert handle.plan_count == 0
    handle.set_tuning_policy(NONE)  # what the message says to do
    call_of(operation, ones)(handle)


def test_exhaustive_search_needs_an_engine_that_can(engine: HostEngine) -> None:
    handle = MiopenHandle(registry=host_registry(HostEngine(knobs=())))
    with pytest.raises(UnsupportedOp, match="exhaustive_search is True, but .*global.benchmarking"):
        Conv(ones).find(handle, exhaustive_search=True)


@pytest.mark.parametrize("force", ["on", "off"])
def test_under_none_the_environment_speaks(
    force: str, handle: MiopenHandle, engine: HostEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    conv = Conv(ones)
    plain = conv.forward(handle)
    monkeypatch.setenv("HIPDNN_FORCE_BENCHMARKING", force)
    forced = conv.forward(handle)
    assert forced is not plain
    assert forced.settings[BENCHMARKING].value == int(force == "on")
    assert forced.settings[BENCHMARKING].source == "environment"
    handle.set_tuning_policy(SEARCH)
    conv.forward(handle)
    assert engine.built[-1][POLICY] == 3
    handle.set_tuning_policy(NONE)
    monkeypatch.delenv("HIPDNN_FORCE_BENCHMARKING")
    assert conv.forward(handle) is plain


# Find mode and determinism


def conv_with(mode: FindMode | None = None, **options: Any) -> Conv:
    descriptor = ConvolutionDescriptor((1, 1), (1, 1), (1, 1), **options)
    if mode is not None:
        descriptor.set_convolution_find_mode(mode)
    return Conv(ones, descriptor=descriptor)


@pytest.mark.parametrize("mode", FindMode)
@pytest.mark.parametrize("policy", TuningPolicy)
def test_find_modes_are_honoured_or_declined(
    mode: FindMode, policy: TuningPolicy, handle: MiopenHandle, engine: HostEngine
) -> None:
    handle.set_tuning_policy(policy)
    conv = conv_with(mode)
    tunes = policy not in {NONE, DB_UPDATE}
    if tunes and mode not in {FindMode.Normal, FindMode.DynamicHybrid}:
        with pytest.raises(UnsupportedOp, match=rf"find mode {mode.name} .*set find mode Normal"):
            conv.forward(handle)
        return
    conv.forward(handle)
    if tunes and mode is FindMode.DynamicHybrid:  # the default
        assert FIND_MODE not in engine.built[0]
    else:
        assert engine.built[0][FIND_MODE] == mode.value


def test_find_mode_and_exhaustive_search(handle: MiopenHandle, engine: HostEngine) -> None:
    with pytest.raises(UnsupportedOp, match="makes MIOpen skip exhaustive_search wherever"):
        conv_with(FindMode.Fast).find(handle, exhaustive_search=True)
    conv_with(FindMode.Normal).find(handle, exhaustive_search=True)
    assert engine.built == [{BENCHMARKING: 1, FIND_MODE: 1}]
    handle.set_tuning_policy(DB_UPDATE)
    assert conv_with(FindMode.Fast).workspace_size(handle) == 512
    assert engine.estimated[-1] == {POLICY: 1, FIND_MODE: 2}


def test_find_mode_without_the_knob_is_declined() -> None:
    knobs = [knob for knob in HostEngine().knobs if knob.knob_id != FIND_MODE]
    handle = MiopenHandle(registry=host_registry(HostEngine(knobs=knobs)))
    with pytest.raises(UnsupportedOp, match="find mode of its own, but .*leave the find mode"):
        conv_with(FindMode.Hybrid).fused(handle)
    conv_with(FindMode.DynamicHybrid).fused(handle)


def test_find_modes_do_not_share_plans(handle: MiopenHandle, engine: HostEngine) -> None:
    conv = conv_with()
    plans = [conv.forward(handle)]
    for mode in (FindMode.Normal, FindMode.Fast, FindMode.Normal):
        conv.descriptor.set_convolution_find_mode(mode)
        plans.append(conv.forward(handle))
    assert plans[1] is plans[3]
    assert len(engine.built) == len(set(map(id, plans))) == 3


def test_the_deterministic_attribute_chooses_the_engine(engine: HostEngine) -> None:
    other = HostEngine("MIOPEN_ENGINE_DETERMINISTIC")
    handle = MiopenHandle(registry=host_registry(engine, other))
    conv = Conv(ones)
    assert conv.forward(handle).engine_name == "MIOPEN_ENGINE"
    conv.descriptor.set_convolution_attribute(ConvolutionAttribute.Deterministic, 1)
    assert conv.forward(handle).engine_name == "MIOPEN_ENGINE_DETERMINISTIC"
    lonely = MiopenHandle(registry=host_registry(HostEngine()))
    with pytest.raises(UnsupportedOp, match="there is no MIOPEN_ENGINE_DETERMINISTIC"):
        conv.forward(lonely)


# What is declined, each with its own reason


def declined_calls() -> dict[str, tuple[Any, str]]:
    conv, norm = Conv(ones), BatchNorm(ones)
    relu = ActivationDescriptor(ActivationMode.RELU)
    vectorised = TensorDescriptor.with_layout(DataType.Float, TensorLayout.NCHWc4, (2, 8, 6, 6))
    line = TensorDescriptor(DataType.Float, (2, 8, 6))
    double = TensorDescriptor(DataType.Double, (2, 8, 6, 6))
    double_filter = TensorDescriptor(DataType.Double, (8, 8, 3, 3))
    one = ConvolutionDescriptor((1,), (1,), (1,))
    transposed = ConvolutionDescriptor((1, 1), (1, 1), (1, 1), ConvolutionMode.Transpose)

    def forward(x: TensorDescriptor, w: TensorDescriptor, y: TensorDescriptor, **more: Any) -> Any:
        descriptor = more.get("descriptor", conv.descriptor)
        return lambda handle: convolution_forward(handle, x, 1, w, 1, descriptor, y, 1)

    def inference(x: TensorDescriptor) -> Any:
        arguments: Any = (BatchNormMode.Spatial, x, 1, x, 1, norm.bn_desc, 1, 1, 1, 1, 1e-5)
        return lambda handle: batch_normalization_forward_inference(handle, *arguments)

    w_desc = conv.w_desc
    return {
        "alpha": (lambda h: conv.forward(h, alpha=2), "alpha is 2, but only 1 is served"),
        "no alpha": (lambda h: conv.forward(h, alpha=None), "alpha is None, but only 1"),
        "beta": (lambda h: conv.backward_data(h, beta=1.0), "beta is 1.0, but only 0 is served"),
        "z-add": (lambda h: conv.fused(h, relu, alpha2=1.0), "alpha2 is 1.0.*no tensor z"),
        "alpha1": (lambda h: conv.fused(h, relu, alpha1=0.5), "alpha1 is 0.5"),
        "batchnorm alpha": (lambda h: norm.training(h, alpha=0.5), "alpha is 0.5"),
        "batchnorm beta": (lambda h: norm.inference(h, beta=1), "beta is 1"),
        "data diff": (lambda h: norm.backward(h, beta_data_diff=1), "beta_data_diff is 1"),
        "param diff": (lambda h: norm.backward(h, alpha_param_diff=2), "alpha_param_diff is 2"),
        "vectorised": (forward(vectorised, w_desc, conv.y_desc), "x has a vectorised layout of 4"),
        "vectorised bn": (inference(vectorised), "x has a vectorised layout"),
        "1-D": (forward(line, line, line), r"x has dims \[2, 8, 6\], but tensors of two or three"),
        "1-D descriptor": (
            forward(conv.x_desc, w_desc, conv.y_desc, descriptor=one),
            r"conv_desc has pads \[1\], but two and three spatial dimensions",
        ),
        "1-D bn": (inference(line), "x has dims"),
        "double": (forward(double, double_filter, double), "x has type Double, but Float, Half"),
        "double bn": (inference(double), "x has type Double"),
        "activation": (
            lambda h: conv.fused(h, ActivationDescriptor(ActivationMode.ELU, 1.0)),
            "activation ELU is not served; PASTHRU, RELU",
        ),
        "tanh": (
            lambda h: conv.fused(h, ActivationDescriptor(ActivationMode.TANH, 2.0, 1.0)),
            "activation TANH with alpha 2 and beta 1 is not served",
        ),
        "fused transposed": (
            lambda h: Conv(ones, descriptor=transposed).fused(h),
            "fuses forward convolutions, not transposed",
        ),
        "epsilon": (
            lambda h: norm.backward(h, saved=False, epsilon=1e-3),
            "epsilon is 0.001, but without saved statistics only 1e-05",
        ),
    }


@pytest.mark.parametrize("case", declined_calls())
def test_declined_with_its_own_reason(case: str, handle: MiopenHandle, engine: HostEngine) -> None:
    call, reason = declined_calls()[case]
    with pytest.raises(UnsupportedOp, match=reason) as error:
        call(handle)
    assert "[miopenStatusUnsupportedOp (8)]" in str(error.value)
    assert engine.built == []


def test_what_the_engine_declines_is_declined_with_its_reason(handle: MiopenHandle) -> None:
    x, w = (TensorDescriptor(DataType.Half, d) for d in ((2, 8, 6, 6), (8, 8, 3, 3)))
    y = TensorDescriptor(DataType.Float, (2, 8, 6, 6))
    conv = ConvolutionDescriptor((1, 1), (1, 1), (1, 1))

    class Picky(HostEngine):
        def query(self, graph: Any) -> Any:
            from hipdnn_registry import Declined

            return Declined("takes one type only")

    picky = MiopenHandle(registry=host_registry(Picky()))
    with pytest.raises(UnsupportedOp, match="MIOPEN_ENGINE .*declines the graph: takes one type"):
        convolution_forward(picky, x, 1, w, 1, conv, y, 1)


# What is wrong


def wrong_calls() -> dict[str, tuple[Any, str]]:
    conv, norm = Conv(ones), BatchNorm(ones)
    x, w, y, descriptor = conv.x_desc, conv.w_desc, conv.y_desc, conv.descriptor
    short = TensorDescriptor(DataType.Float, (2, 8, 6, 5))
    x_, w_, y_ = conv.x, conv.w, conv.y

    def forward(*arguments: Any) -> Any:
        return lambda handle: convolution_forward(handle, *arguments)

    def inference(mode: Any, x_desc: Any, bn_desc: Any) -> Any:
        head, tail = (mode, x_desc, 1, norm.x_desc, 1, bn_desc), (1, 1, 1, 1, 1e-5)
        return lambda handle: batch_normalization_forward_inference(handle, *head, *tail)

    return {
        "no handle": (
            lambda _: convolution_forward(None, x, x_, w, w_, descriptor, y, y_),  # type: ignore[arg-type]
            "handle is None, but must be a MiopenHandle",
        ),
        "no descriptor": (forward(None, x_, w, w_, descriptor, y, y_), "x_desc is None"),
        "swapped": (forward(w, w_, x, x_, descriptor, y, y_), "x has dims.* and w"),
        "no convolution": (forward(x, x_, w, w_, None, y, y_), "conv_desc is None"),
        "no buffer": (
            forward(x, x_, w, None, descriptor, y, y_),
            "w is None, but must",
        ),
        "dims of y": (forward(x, x_, w, w_, descriptor, short, y_), r"y has dims \[2, 8, 6, 5\]"),
        "dtype": (forward(x, x_.astype("d"), w, w_, descriptor, y, y_), "has dtype float64"),
        "shape": (forward(x, x_[:1], w, w_, descriptor, y, y_), "has shape"),
        "overlap": (forward(x, x_, w, w_, descriptor, y, x_), "'y'.* overlaps the buffer of"),
        "alpha": (lambda h: conv.forward(h, alpha="1"), "alpha is '1', but must be a finite"),
        "exhaustive": (
            lambda h: conv.find(h, exhaustive_search=1),
            "exhaustive_search is 1, but must be True or False",
        ),
        "workspace": (lambda h: conv.forward(h, workspace=4096), "workspace is 4096, but must be"),
        "workspace address": (
            lambda h: conv.forward(h, workspace=(-1, 64)),
            "the workspace's address is -1",
        ),
        "workspace size": (
            lambda h: conv.forward(h, workspace=(4096, -1)),
            "the workspace's size is -1",
        ),
        "bias": (
            lambda h: _with_bias(h, conv, TensorDescriptor(DataType.Float, (8, 1, 1, 1))),
            r"bias has dims \[8, 1, 1, 1\], but y .* takes \[1, 8, 1...\]",
        ),
        "activation": (
            lambda h: conv.fused(h, 3),  # type: ignore[arg-type]  # on purpose
            "activation_desc is 3, but must be a ActivationDescriptor",
        ),
        "mode": (inference(7, norm.x_desc, norm.bn_desc), "mode is 7, but must be a BatchNormMode"),
        "bn dims": (inference(1, norm.x_desc, norm.x_desc), r"bn_desc has dims .* takes \[1, 8"),
        "x dims": (inference(1, short, norm.bn_desc), "y has dims .*, but x has"),
        "one running": (lambda h: _half_running(h, norm), "running_variance is None; give all of"),
        "epsilon": (lambda h: norm.backward(h, epsilon=-1.0), "epsilon is -1.0, but .* from 0 on"),
        "factor": (
            lambda h: norm.training(h, factor=float("nan")),
            "exp_avg_factor is nan, but must be a finite number from 0 on",
        ),
    }


def _with_bias(handle: MiopenHandle, conv: Conv, bias: TensorDescriptor) -> None:
    conv.bias_desc = bias
    conv.fused(handle)


def _half_running(handle: MiopenHandle, norm: BatchNorm) -> None:
    norm.statistics["variance"] = None
    norm.training(handle)


@pytest.mark.parametrize("case", wrong_calls())
def test_wrong_arguments_are_one_clear_error(case: str, handle: MiopenHandle) -> None:
    call, problem = wrong_calls()[case]
    with pytest.raises(BadParm, match=problem) as error:
        call(handle)
    assert str(error.value).endswith("[miopenStatusBadParm (3)]")


# Opting out


@pytest.mark.parametrize("entry", EntryPoint)
@pytest.mark.parametrize("spelling", ["{}", " ,  {},", "MIOPEN{};"])
def test_opting_out_of_one_entry_point(
    entry: EntryPoint, spelling: str, handle: MiopenHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = every_entry_point(handle, ones)
    name = entry.removeprefix("miopen") if spelling.startswith("MIOPEN") else entry
    monkeypatch.setenv("MIOPEN_DISABLE_HIPDNN_FOR", spelling.format(name))
    with pytest.raises(UnsupportedOp, match="MIOPEN_DISABLE_HIPDNN_FOR=.*off the list"):
        calls.pop(entry)()
    for call in calls.values():
        call()


@pytest.mark.parametrize("entry", EntryPoint)
def test_opting_out_altogether(
    entry: EntryPoint, handle: MiopenHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = every_entry_point(handle, ones)[entry]
    monkeypatch.setenv("MIOPEN_HIPDNN_FORWARDING", "Disabled")
    with pytest.raises(UnsupportedOp, match=f"{entry}: MIOPEN_HIPDNN_FORWARDING=disabled"):
        call()
    monkeypatch.setenv("MIOPEN_HIPDNN_FORWARDING", "1")
    with pytest.raises(BadParm, match="is '1', but must be 'enabled' or 'disabled'"):
        call()
    monkeypatch.setenv("MIOPEN_HIPDNN_FORWARDING", "enabled")
    call()


def test_names_that_are_no_entry_points_are_warned_of_once(
    handle: MiopenHandle, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    listed = f"nonsense, miopenConvolutionForwrad {EntryPoint.BATCH_NORMALIZATION_BACKWARD}"
    monkeypatch.setenv("MIOPEN_DISABLE_HIPDNN_FOR", listed)
    with pytest.warns(UnknownEntryPointWarning) as caught:
        Conv(ones).forward(handle)
    Conv(ones).forward(handle)  # a second warning would be an error
    with pytest.raises(UnsupportedOp, match="MIOPEN_DISABLE_HIPDNN_FOR"):
        BatchNorm(ones).backward(handle)  # the name that is one keeps its effect
    (message,) = [str(warning.message) for warning in caught]
    assert message.startswith(
        f"MIOPEN_DISABLE_HIPDNN_FOR={listed!r} names 'nonsense' and 'miopenConvolutionForwrad' "
        "(did you mean 'miopenConvolutionForward' or "
    )
    assert message.endswith("entry points are those of hipdnn_miopen_provider.shim.EntryPoint")
    assert [record.getMessage() for record in caplog.records] == [message]
