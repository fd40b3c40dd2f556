"""Batch normalization. The same call tunes (on a handle's first call of a problem) and computes."""

from __future__ import annotations

from ctypes import byref, c_float
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.native import library
from hipdnn_miopen_provider.native.memory import NO_MEMORY, copy_on_device

if TYPE_CHECKING:
    from hipdnn_miopen_provider.native.descriptors import ActivationDescriptor, TensorDescriptor
    from hipdnn_miopen_provider.native.enums import BatchNormMode
    from hipdnn_miopen_provider.native.handle import Handle
    from hipdnn_miopen_provider.native.memory import DeviceMemory

TRAINING_V3 = "miopenBatchNormalizationForwardTraining_V3"
TRAINING_ACTIVATION = "miopenBatchNormForwardTrainingActivation"
INFERENCE_ACTIVATION = "miopenBatchNormForwardInferenceActivation"
BACKWARD_ACTIVATION = "miopenBatchNormBackwardActivation"


@dataclass(frozen=True)
class BatchNormProblem:
    """Descriptors of a batch normalization.

    ``x`` is also that of y, dy and dx; ``statistics`` that of scale, bias, mean and variance.

    Raises:
        ValueError: ``statistics`` doesn't fit ``x``: MIOpen wouldn't notice and run out of bounds.
    """

    mode: BatchNormMode
    x: TensorDescriptor
    statistics: TensorDescriptor

    def __post_init__(self) -> None:
        _, dims, _ = self.x.read()
        _, actual, _ = self.statistics.read()
        spatial = (1,) * (len(dims) - 2)
        expected = (1, dims[1], *(spatial if self.mode == 1 else dims[2:]))
        if actual != expected:
            raise ValueError(
                f"statistics of a {self.mode.name} batchnorm of {dims} have dims {expected}, "
                f"got {actual}"
            )


@dataclass(frozen=True)
class RunningStatistics:
    """Running mean and variance: the old ones, and where the new ones go (may be the same memory).

    Attributes:
        momentum: Weight of the new batch: next = (1 - momentum) * previous + momentum * batch.
    """

    previous_mean: DeviceMemory
    previous_variance: DeviceMemory
    next_mean: DeviceMemory
    next_variance: DeviceMemory
    momentum: float


def forward_training(
    handle: Handle,
    problem: BatchNormProblem,
    x: DeviceMemory,
    y: DeviceMemory,
    scale: DeviceMemory,
    bias: DeviceMemory,
    *,
    epsilon: float,
    running: RunningStatistics | None = None,
    save_mean: DeviceMemory = NO_MEMORY,
    save_inverse_variance: DeviceMemory = NO_MEMORY,
    activation: ActivationDescriptor | None = None,
) -> None:
    """Normalizes a batch by its own statistics.

    Separate memory for the next running statistics needs the V3 call; without it the previous ones
    are copied over on the handle's stream first, and updated in place: the result is the same.

    Raises:
        MissingSymbolError: ``activation`` was given and this libMIOpen can't fuse it.
        MiopenError: MIOpen refused or failed.
        ValueError: Some memory is too small.
    """
    _check_sizes(problem, {"x": x, "y": y}, {"scale": scale, "bias": bias})
    miopen = library.load()
    if activation is not None:
        miopen.require(TRAINING_ACTIVATION)
    separate = running is not None and running.previous_mean.address != running.next_mean.address
    use_v3 = separate and activation is None and miopen.exports(TRAINING_V3)
    momentum, statistics = 0.0, [0, 0]
    if running is not None:
        momentum = running.momentum
        statistics = [running.next_mean.address, running.next_variance.address]
        _check_statistics(problem, running)
        if use_v3:
            before = [running.previous_mean.address, running.previous_variance.address]
            statistics = [*before, *statistics]
        elif separate:
            size = problem.statistics.nbytes
            for target, source in (
                (running.next_mean, running.previous_mean),
                (running.next_variance, running.previous_variance),
            ):
                copy_on_device(target, source, size, handle.stream)
    tail = [
        *(scale.address, bias.address, momentum, *statistics, epsilon),
        *(save_mean.address, save_inverse_variance.address),
    ]
    head = _forward(handle, problem, x, y)
    if activation is not None:
        four = [problem.statistics.raw] * 4
        miopen.call(TRAINING_ACTIVATION, *head, *four, *tail, activation.raw)
    elif use_v3:
        miopen.call(TRAINING_V3, *head, *[problem.statistics.raw] * 4, *tail)
    else:
        miopen.call("miopenBatchNormalizationForwardTraining", *head, problem.statistics.raw, *tail)


def forward_inference(
    handle: Handle,
    problem: BatchNormProblem,
    x: DeviceMemory,
    y: DeviceMemory,
    scale: DeviceMemory,
    bias: DeviceMemory,
    mean: DeviceMemory,
    variance: DeviceMemory,
    *,
    epsilon: float,
    activation: ActivationDescriptor | None = None,
) -> None:
    """Normalizes by given statistics. There is nothing to tune.

    Raises:
        MissingSymbolError: ``activation`` was given and this libMIOpen can't fuse it.
        MiopenError: MIOpen refused or failed.
        ValueError: Some memory is too small.
    """
    per_channel = {"scale": scale, "bias": bias, "mean": mean, "variance": variance}
    _check_sizes(problem, {"x": x, "y": y}, per_channel)
    head = _forward(handle, problem, x, y)
    tail = [*(memory.address for memory in per_channel.values()), epsilon]
    miopen = library.load()
    if activation is None:
        miopen.call(
            "miopenBatchNormalizationForwardInference", *head, problem.statistics.raw, *tail
        )
    else:
        four = [problem.statistics.raw] * 4
        miopen.call(INFERENCE_ACTIVATION, *head, *four, *tail, activation.raw)


def backward(
    handle: Handle,
    problem: BatchNormProblem,
    x: DeviceMemory,
    dy: DeviceMemory,
    dx: DeviceMemory,
    scale: DeviceMemory,
    dscale: DeviceMemory,
    dbias: DeviceMemory,
    *,
    epsilon: float,
    saved_mean: DeviceMemory = NO_MEMORY,
    saved_inverse_variance: DeviceMemory = NO_MEMORY,
    activation: ActivationDescriptor | None = None,
    bias: DeviceMemory = NO_MEMORY,
) -> None:
    """Gradients of a batch normalization; with ``activation`` (and its ``bias``) of both.

    Without saved statistics MIOpen computes them again from x.

    Raises:
        MissingSymbolError: ``activation`` was given and this libMIOpen can't fuse it.
        MiopenError: MIOpen refused or failed.
        ValueError: Some memory is too small.
    """
    per_channel = {"scale": scale, "dscale": dscale, "dbias": dbias}
    _check_sizes(problem, {"x": x, "dy": dy, "dx": dx}, per_channel)
    tensor, statistics = problem.x.raw, problem.statistics.raw
    head: list[Any] = [handle.raw, problem.mode]
    head += [byref(c_float(1.0)), byref(c_float(0.0))] * 2
    head += [tensor, x.address, tensor, dy.address, tensor, dx.address]
    tail = [dscale.address, dbias.address, epsilon, saved_mean.address]
    tail += [saved_inverse_variance.address]
    miopen = library.load()
    if activation is None:
        name = "miopenBatchNormalizationBackward"
        miopen.call(name, *head, statistics, scale.address, *tail)
    else:
        four = [statistics] * 4
        miopen.call(
            BACKWARD_ACTIVATION, *head, *four, scale.address, bias.address, *tail, activation.raw
        )


def _forward(
    handle: Handle, problem: BatchNormProblem, x: DeviceMemory, y: DeviceMemory
) -> list[Any]:
    scalars = [byref(c_float(1.0)), byref(c_float(0.0))]
    tensor = problem.x.raw
    return [handle.raw, problem.mode, *scalars, tensor, x.address, tensor, y.address]


def _check_sizes(
    problem: BatchNormProblem,
    tensors: dict[str, DeviceMemory],
    per_channel: dict[str, DeviceMemory],
) -> None:
    for descriptor, group in ((problem.x, tensors), (problem.statistics, per_channel)):
        needed = descriptor.nbytes
        for name, memory in group.items():
            if memory.nbytes < needed:
                raise ValueError(
                    f"{name} needs {needed} bytes of device memory, got {memory.nbytes}"
                )


def _check_statistics(problem: BatchNormProblem, running: RunningStatistics) -> None:
    _check_sizes(
        problem,
        {},
        {
            "previous running mean": running.previous_mean,
            "previous running variance": running.previous_variance,
            "next running mean": running.next_mean,
            "next running variance": running.next_variance,
        },
    )
