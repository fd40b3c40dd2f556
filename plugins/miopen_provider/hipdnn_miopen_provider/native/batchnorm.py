"""Batch normalization. The same call tunes (on a handle's first call of a problem) and computes."""

from __future__ import annotations

from ctypes import byref, c_float
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.native import library
from hipdnn_miopen_provider.native.library import SLOT
from hipdnn_miopen_provider.native.memory import NO_MEMORY, copy_on_device

if TYPE_CHECKING:
    from hipdnn_miopen_provider.native.descriptors import ActivationDescriptor, TensorDescriptor
    from hipdnn_miopen_provider.native.enums import BatchNormMode
    from hipdnn_miopen_provider.native.handle import Handle
    from hipdnn_miopen_provider.native.library import PreparedCall
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
        dims, actual = self.x.dims, self.statistics.dims
        spatial = (1,) * (len(dims) - 2)
        expected = (1, dims[1], *(spatial if self.mode == 1 else dims[2:]))
        if actual != expected:
            raise ValueError(
                f"statistics of a {self.mode.name} batchnorm of {dims} have dims {expected}, "
                f"got {actual}"
            )

    def check(self, **tensors: DeviceMemory) -> None:
        """Raises ValueError if a tensor's memory is too small."""
        _check(self.x.nbytes, tensors)

    def check_statistics(self, **statistics: DeviceMemory) -> None:
        """Raises ValueError if the memory of scale, bias or statistics is too small."""
        _check(self.statistics.nbytes, statistics)

    def check_optional(self, **statistics: DeviceMemory) -> None:
        """The same for statistics that may be left out."""
        _check(self.statistics.nbytes, {k: m for k, m in statistics.items() if m is not NO_MEMORY})


def _check(needed: int, memories: dict[str, DeviceMemory]) -> None:
    for name, memory in memories.items():
        if memory.nbytes < needed:
            raise ValueError(f"{name} needs {needed} bytes of device memory, got {memory.nbytes}")


@dataclass(frozen=True)
class RunningStatistics:
    """Running mean and variance: the old ones, and where the new ones go (may be the same memory).

    next = (1 - momentum) * previous + momentum * batch.
    """

    previous_mean: DeviceMemory
    previous_variance: DeviceMemory
    next_mean: DeviceMemory
    next_variance: DeviceMemory

    @property
    def smallest(self) -> int:
        """Bytes of the smallest of the four."""
        return min(
            self.previous_mean.nbytes,
            self.previous_variance.nbytes,
            self.next_mean.nbytes,
            self.next_variance.nbytes,
        )


# The runners' sizes are compared first and named after: a call costs a few microseconds at most.


class TrainingRunner:
    """Normalizes batches by their own statistics, optionally followed by an activation.

    The handle and the descriptors have to stay open. Not for several threads at once.

    Args:
        handle: Its first call of a problem tunes, under its policy then.
        problem: What to compute.
        epsilon: Added to the variance.
        momentum: Weight of the new batch in the running statistics.
        activation: Fused into the same call.

    Raises:
        MissingSymbolError: ``activation`` was given and this libMIOpen can't fuse it.
    """

    def __init__(
        self,
        handle: Handle,
        problem: BatchNormProblem,
        *,
        epsilon: float,
        momentum: float = 0.0,
        activation: ActivationDescriptor | None = None,
    ) -> None:
        self._handle, self._problem = handle, problem
        miopen = library.load()
        head = _forward(handle, problem)
        one, four = [problem.statistics.raw], [problem.statistics.raw] * 4
        after = [epsilon, SLOT, SLOT]  # saved mean and inverse variance
        running = [SLOT, SLOT, momentum, SLOT, SLOT, *after]
        self._with_separate_running: PreparedCall | None = None
        if activation is not None:
            self._call = miopen.prepare(TRAINING_ACTIVATION, *head, *four, *running, activation.raw)
            return
        self._call = miopen.prepare(
            "miopenBatchNormalizationForwardTraining", *head, *one, *running
        )
        if miopen.exports(TRAINING_V3):
            separate = [SLOT, SLOT, momentum, *[SLOT] * 4, *after]
            self._with_separate_running = miopen.prepare(TRAINING_V3, *head, *four, *separate)

    def __call__(
        self,
        x: DeviceMemory,
        y: DeviceMemory,
        scale: DeviceMemory,
        bias: DeviceMemory,
        *,
        running: RunningStatistics | None = None,
        save_mean: DeviceMemory = NO_MEMORY,
        save_inverse_variance: DeviceMemory = NO_MEMORY,
    ) -> None:
        """Enqueues the call on the handle's stream.

        Separate memory for the next running statistics needs the V3 call; without it the previous
        ones are copied over on the stream first, and updated in place: the result is the same.

        Raises:
            MiopenError: MIOpen refused or failed.
            ValueError: Some memory is too small.
        """
        problem = self._problem
        size, per_channel = problem.x.nbytes, problem.statistics.nbytes
        if min(x.nbytes, y.nbytes) < size:
            problem.check(x=x, y=y)
        if min(scale.nbytes, bias.nbytes) < per_channel:
            problem.check_statistics(scale=scale, bias=bias)
        if min(save_mean.nbytes, save_inverse_variance.nbytes) < per_channel:
            problem.check_optional(save_mean=save_mean, save_inverse_variance=save_inverse_variance)
        inputs = (x.address, y.address, scale.address, bias.address)
        saved = (save_mean.address, save_inverse_variance.address)
        if running is None:
            self._call(*inputs, 0, 0, *saved)
            return
        if running.smallest < per_channel:
            problem.check_statistics(
                previous_running_mean=running.previous_mean,
                previous_running_variance=running.previous_variance,
                next_running_mean=running.next_mean,
                next_running_variance=running.next_variance,
            )
        following = (running.next_mean.address, running.next_variance.address)
        previous = (running.previous_mean.address, running.previous_variance.address)
        if previous == following:
            self._call(*inputs, *following, *saved)
        elif self._with_separate_running is not None:
            self._with_separate_running(*inputs, *previous, *following, *saved)
        else:
            stream = self._handle.stream
            copy_on_device(running.next_mean, running.previous_mean, per_channel, stream)
            copy_on_device(running.next_variance, running.previous_variance, per_channel, stream)
            self._call(*inputs, *following, *saved)


class InferenceRunner:
    """Normalizes by given statistics, optionally followed by an activation. Nothing to tune.

    As ``TrainingRunner`` in all else.
    """

    def __init__(
        self,
        handle: Handle,
        problem: BatchNormProblem,
        *,
        epsilon: float,
        activation: ActivationDescriptor | None = None,
    ) -> None:
        self._problem = problem
        miopen = library.load()
        head = _forward(handle, problem)
        tail = [SLOT, SLOT, SLOT, SLOT, epsilon]
        statistics = problem.statistics.raw
        if activation is None:
            name = "miopenBatchNormalizationForwardInference"
            self._call = miopen.prepare(name, *head, statistics, *tail)
        else:
            four = [statistics] * 4
            self._call = miopen.prepare(INFERENCE_ACTIVATION, *head, *four, *tail, activation.raw)

    def __call__(
        self,
        x: DeviceMemory,
        y: DeviceMemory,
        scale: DeviceMemory,
        bias: DeviceMemory,
        mean: DeviceMemory,
        variance: DeviceMemory,
    ) -> None:
        """Enqueues the call on the handle's stream.

        Raises:
            MiopenError: MIOpen refused or failed.
            ValueError: Some memory is too small.
        """
        problem = self._problem
        if min(x.nbytes, y.nbytes) < problem.x.nbytes:
            problem.check(x=x, y=y)
        smallest = min(scale.nbytes, bias.nbytes, mean.nbytes, variance.nbytes)
        if smallest < problem.statistics.nbytes:
            problem.check_statistics(scale=scale, bias=bias, mean=mean, variance=variance)
        self._call(
            *(x.address, y.address, scale.address, bias.address),
            *(mean.address, variance.address),
        )


class BackwardRunner:
    """Gradients of a batch normalization, or of one followed by an activation.

    As ``TrainingRunner`` in all else.
    """

    def __init__(
        self,
        handle: Handle,
        problem: BatchNormProblem,
        *,
        epsilon: float,
        activation: ActivationDescriptor | None = None,
    ) -> None:
        self._problem = problem
        self._fused = activation is not None
        miopen = library.load()
        tensor, statistics = problem.x.raw, problem.statistics.raw
        head: list[Any] = [handle.raw, problem.mode, *[_ONE, _ZERO] * 2]
        head += [tensor, SLOT, tensor, SLOT, tensor, SLOT]
        tail = [SLOT, SLOT, epsilon, SLOT, SLOT]
        if activation is None:
            name = "miopenBatchNormalizationBackward"
            self._call = miopen.prepare(name, *head, statistics, SLOT, *tail)
        else:
            four = [statistics] * 4
            self._call = miopen.prepare(
                BACKWARD_ACTIVATION, *head, *four, SLOT, SLOT, *tail, activation.raw
            )

    def __call__(
        self,
        x: DeviceMemory,
        dy: DeviceMemory,
        dx: DeviceMemory,
        scale: DeviceMemory,
        dscale: DeviceMemory,
        dbias: DeviceMemory,
        *,
        saved_mean: DeviceMemory = NO_MEMORY,
        saved_inverse_variance: DeviceMemory = NO_MEMORY,
        bias: DeviceMemory = NO_MEMORY,
    ) -> None:
        """Enqueues the call on the handle's stream.

        Without saved statistics MIOpen computes them again from x. ``bias`` is for the activation.

        Raises:
            MiopenError: MIOpen refused or failed.
            ValueError: Some memory is too small.
        """
        problem = self._problem
        problem.check(x=x, dy=dy, dx=dx)
        problem.check_statistics(scale=scale, dscale=dscale, dbias=dbias)
        problem.check_optional(saved_mean=saved_mean, saved_inverse_variance=saved_inverse_variance)
        parameters = [scale.address]
        if self._fused:
            problem.check_statistics(bias=bias)
            parameters.append(bias.address)
        self._call(
            *(x.address, dy.address, dx.address, *parameters, dscale.address, dbias.address),
            *(saved_mean.address, saved_inverse_variance.address),
        )


_ONE, _ZERO = byref(c_float(1.0)), byref(c_float(0.0))


def _forward(handle: Handle, problem: BatchNormProblem) -> list[Any]:
    tensor = problem.x.raw
    return [handle.raw, problem.mode, _ONE, _ZERO, tensor, SLOT, tensor, SLOT]
