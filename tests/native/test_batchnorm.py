"""Batch normalization under tuning policies: it tunes inside its compute call."""

from __future__ import annotations

import math
from contextlib import ExitStack
from ctypes import byref, c_float
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hipdnn_miopen_provider.native import (
    WORKSPACE,
    BatchNormMode,
    BatchNormProblem,
    DataType,
    DeviceBuffer,
    Handle,
    MiopenError,
    Status,
    TensorDescriptor,
    TuningPolicy,
    batchnorm,
    copy_to_host,
    library,
)
from hipdnn_miopen_provider.perf_db import parse_batchnorm_key
from tests.native.observe import Observation, observe
from tests.native.problems import batchnorm_case, channels_last, fresh_handle

if TYPE_CHECKING:
    from collections.abc import Callable

    from hipdnn_miopen_provider.native import DeviceMemory

NONE, DB_UPDATE, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN = TuningPolicy


def observed(call: Callable[[Handle], None], policy: TuningPolicy) -> Observation:
    with fresh_handle(policy) as handle, observe() as seen:
        call(handle)
    return seen


@pytest.mark.parametrize("fused", [False, True], ids=["alone", "with ReLU"])
@pytest.mark.parametrize("name", ["train", "backward"])
def test_each_policy_on_a_fresh_handle(name: str, fused: bool) -> None:
    with batchnorm_case((4, 8, 16, 18 + 2 * fused)) as case:
        call = partial(getattr(case, name), fused=fused)
        for policy in (NONE, DB_UPDATE, DB_CLEAN):  # nothing recorded
            idle = observed(call, policy)
            assert (idle.searched, idle.perf_db_written) == ([], False)
            assert idle.launches
        first = observed(call, SEARCH)
        assert len(first.searched) == len(first.added) == 1
        assert first.launches > idle.launches
        for policy in (NONE, SEARCH, DB_UPDATE):  # recorded; DbUpdate never tunes
            loading = observed(call, policy)
            assert loading.loaded == first.searched
            assert (loading.searched, loading.perf_db_written) == ([], False)
        again = observed(call, SEARCH_DB_UPDATE)
        assert again.searched == first.searched
        assert again.perf_db_written
        assert not again.added | again.removed
        cleaned = observed(call, DB_CLEAN)
        assert cleaned.removed == first.added
        assert not cleaned.searched


def test_the_first_call_on_a_handle_decides() -> None:
    """Why a plan needs a handle of its own."""
    with batchnorm_case((4, 8, 12, 14)) as case, fresh_handle(NONE) as handle:
        case.train(handle)
        for policy in (SEARCH, SEARCH_DB_UPDATE, DB_UPDATE, DB_CLEAN):
            handle.tuning_policy = policy
            with observe() as ignored:
                case.train(handle)
            assert ignored.launches
            assert (ignored.searched, ignored.perf_db_written) == ([], False)


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        (BatchNormMode.Spatial, "infer"),
        (BatchNormMode.PerActivation, "train"),
        (BatchNormMode.PerActivation, "infer"),
        (BatchNormMode.PerActivation, "backward"),
    ],
)
@pytest.mark.parametrize("policy", [SEARCH, SEARCH_DB_UPDATE, DB_CLEAN])
def test_nothing_to_tune(mode: BatchNormMode, name: str, policy: TuningPolicy) -> None:
    with batchnorm_case((4, 8, 16, 18), mode) as case:
        seen = observed(getattr(case, name), policy)
    assert seen.launches
    assert (seen.searched, seen.perf_db_written) == ([], False)


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("save", [False, True])
def test_the_key_tells_what_a_training_call_writes(running: bool, save: bool) -> None:
    with batchnorm_case((3, 5, 7, 9), dtype=DataType.Half) as case:

        def train(handle: Handle) -> None:
            statistics = {"mean": case.mean, "variance": case.variance}
            kept: dict[str, DeviceMemory] = {}
            if running:
                for when in ("prev", "next"):
                    kept |= {f"{when}_running_{name}": m for name, m in statistics.items()}
            if save:
                kept |= {"mean": case.saved_mean, "inv_variance": case.saved_inverse_variance}
            batchnorm.TrainingRunner(handle, case.problem, epsilon=1e-5, momentum=0.1).bind(
                **case.training_tensors, **kept
            )()

        ((key, _),) = observed(train, SEARCH).added
    decoded = parse_batchnorm_key(key)
    assert (decoded.dims, decoded.layout, decoded.dtype) == ((3, 5, 7, 9), "NCHW", "FP16")
    assert (decoded.direction, decoded.updates_running, decoded.saves) == ("Trn", running, save)


def test_separate_running_statistics_are_handed_over() -> None:
    """Without the V3 call: the old ones are copied first, then updated in place.

    The kernel that updates them is not run here, so what is there is what was copied.
    """
    assert not library.load().exports(batchnorm.TRAINING_V3)
    with batchnorm_case((2, 4, 6, 8)) as case, Handle() as handle, ExitStack() as stack:
        old = [np.arange(4, dtype=np.float32) + offset for offset in (1, 10)]
        previous = [stack.enter_context(DeviceBuffer.from_host(values)) for values in old]
        following = [stack.enter_context(DeviceBuffer(16)) for _ in old]
        batchnorm.TrainingRunner(handle, case.problem, epsilon=1e-5, momentum=0.1).bind(
            **case.training_tensors,
            prev_running_mean=previous[0],
            prev_running_variance=previous[1],
            next_running_mean=following[0],
            next_running_variance=following[1],
        )()
        for buffers in (previous, following):
            for buffer, expected in zip(buffers, old, strict=True):
                values = np.zeros(4, np.float32)
                copy_to_host(values, buffer)
                np.testing.assert_array_equal(values, expected)


def test_statistics_that_do_not_fit_never_reach_miopen() -> None:
    """MIOpen itself takes a wrong number of channels and runs out of bounds."""
    with (
        TensorDescriptor(DataType.Float, (2, 8, 4, 4)) as x,
        TensorDescriptor(DataType.Float, (1, 9, 1, 1)) as statistics,
        pytest.raises(ValueError, match=r"have dims \(1, 8, 1, 1\), got \(1, 9, 1, 1\)"),
    ):
        BatchNormProblem(BatchNormMode.Spatial, x, statistics)


def test_memory_that_is_too_small_never_reaches_miopen() -> None:
    with batchnorm_case((2, 8, 4, 4)) as case, Handle() as handle, DeviceBuffer(31) as short:
        train = batchnorm.TrainingRunner(handle, case.problem, epsilon=1e-5)
        tensors = case.training_tensors
        with pytest.raises(ValueError, match="scale needs 32 bytes of device memory, got 31"):
            train.bind(**tensors | {"scale": short})
        with pytest.raises(ValueError, match="bias needs 32 bytes of device memory, got 0"):
            train.bind(x=case.x, y=case.y, scale=case.scale)
        for name in ("prev_running_mean", "next_running_variance"):
            running: dict[str, DeviceMemory] = {
                "prev_running_mean": case.mean,
                "prev_running_variance": case.variance,
                "next_running_mean": case.saved_mean,
                "next_running_variance": case.saved_inverse_variance,
            }
            with pytest.raises(ValueError, match=f"{name} needs 32 bytes of device memory, got 31"):
                train.bind(**tensors, **running | {name: short})
            del running[name]
            with pytest.raises(ValueError, match=f"{name} needs 32 bytes of device memory, got 0"):
                train.bind(**tensors, **running)
        with pytest.raises(ValueError, match="mean needs 32 bytes"):
            train.bind(**tensors, mean=short)
        backward = batchnorm.backward(handle, case.problem, epsilon=1e-5)
        with pytest.raises(ValueError, match="dx needs 1024 bytes of device memory, got 31"):
            backward.bind(**case.backward_tensors | {"dx": short})
        with pytest.raises(TypeError, match="Backward takes no bias, but dbias, dscale, dx, dy, "):
            backward.bind(**case.backward_tensors, bias=case.bias)


def test_a_variance_in_the_workspace_is_checked_at_each_call() -> None:
    with batchnorm_case((2, 8, 4, 4)) as case, Handle() as handle, DeviceBuffer(31) as short:
        prepared = batchnorm.inference(handle, case.problem, epsilon=0.0, variance=WORKSPACE)
        run = prepared.bind(**case.training_tensors, mean=case.mean)
        for workspace in (case.variance, case.saved_mean):
            with observe() as seen:
                run(workspace)
            assert seen.launches == 1
            with pytest.raises(
                ValueError, match="workspace needs 32 bytes of device memory, got 31"
            ):
                run(short)
        with pytest.raises(ValueError, match="workspace needs 32 bytes of device memory, got 0"):
            run()


TYPES = (DataType.Float, DataType.Half, DataType.BFloat16)
CALLS = {
    "miopenBatchNormalizationForwardTraining_V2": "x y scale mean",
    "miopenBatchNormalizationForwardInference_V2": "x y scale mean",
    "miopenBatchNormalizationBackward_V2": "x dy dx scale mean",
}
"""Tensors with a descriptor of their own; scale's is also that of bias, mean's of the variance."""


@pytest.mark.parametrize("nhwc", [False, True])
@pytest.mark.parametrize("mode", BatchNormMode)
@pytest.mark.parametrize("name", CALLS)
def test_of_all_types_miopen_takes_those_that_the_engine_serves(
    name: str, mode: BatchNormMode, nhwc: bool
) -> None:
    """Images of one type, scale and statistics in float. If it takes more, so may the engine."""
    tensors, dims = CALLS[name].split(), (4, 8, 6, 8)
    statistics = (1, 8, 1, 1) if mode is BatchNormMode.Spatial else (1, 8, 6, 8)
    taken, statuses = set(), set()
    with Handle() as handle, DeviceBuffer(4 * math.prod(dims)) as memory, ExitStack() as stack:

        def descriptor(dtype: DataType, extents: tuple[int, ...]) -> TensorDescriptor:
            strides = channels_last(extents) if nhwc else None
            return stack.enter_context(TensorDescriptor(dtype, extents, strides))

        images = {dtype: descriptor(dtype, dims).raw for dtype in TYPES}
        parameters = {dtype: descriptor(dtype, statistics).raw for dtype in TYPES}
        one, zero, at = byref(c_float(1.0)), byref(c_float(0.0)), memory.address
        for types in product(TYPES, repeat=len(tensors)):
            *of_images, scale, mean = types
            arguments = [handle.raw, mode, *[one, zero] * (len(of_images) - 1)]
            arguments += [part for dtype in of_images for part in (images[dtype], at)]
            arguments += [parameters[scale]] * 2 + [parameters[mean]] * 2
            if "Training" in name:
                arguments += [at, at, 0.1, at, at, 1e-5, at, at]
            elif "Inference" in name:
                arguments += [at] * 4 + [1e-5]
            else:
                arguments += [at] * 3 + [1e-5, at, at]
            try:
                library.load().call(name, *arguments)
            except MiopenError as error:
                statuses.add(error.status)
            else:
                taken.add(types)
    one_type = {(*[t] * (len(tensors) - 2), DataType.Float, DataType.Float) for t in TYPES}
    assert taken == one_type
    assert statuses <= {Status.NotImplemented, Status.BadParm}
