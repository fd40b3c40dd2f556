"""Batch normalization. The same call tunes (on a handle's first call of a problem) and computes.

Tensors are named as hipDNN's ports are. What is prepared here may be called any number of times, as
long as the handle and the descriptors are open.
"""

from __future__ import annotations

from ctypes import byref, c_float
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.native import library
from hipdnn_miopen_provider.native.memory import NO_MEMORY, check_size, copy_on_device
from hipdnn_miopen_provider.native.prepared import PreparedCall, Slot

if TYPE_CHECKING:
    from hipdnn_miopen_provider.native.descriptors import ActivationDescriptor, TensorDescriptor
    from hipdnn_miopen_provider.native.enums import BatchNormMode
    from hipdnn_miopen_provider.native.handle import Handle
    from hipdnn_miopen_provider.native.memory import DeviceMemory
    from hipdnn_miopen_provider.native.prepared import BoundCall

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

    def images(self, *names: str) -> list[Any]:
        """Descriptor and slot of each tensor of x's dims."""
        return [part for name in names for part in (self.x.raw, Slot(name, self.x.nbytes))]

    def parameters(self, *names: str, optional: bool = False) -> list[Slot]:
        """The slots of tensors of the statistics' dims, which share their descriptors."""
        return [Slot(name, self.statistics.nbytes, optional) for name in names]


class TrainingRunner:
    """Normalizes batches by their own statistics, optionally followed by an activation.

    Its tensors are x, y, scale and bias; mean and inv_variance, of the batch, which may be left
    out; and, all or none, the running statistics prev_running_mean, prev_running_variance,
    next_running_mean and next_running_variance, of which previous and next may be the same memory:
    next = (1 - momentum) * previous + momentum * batch.

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
        statistics = problem.statistics.raw
        head = [handle.raw, problem.mode, _ONE, _ZERO, *problem.images("x", "y")]
        parameters = problem.parameters("scale", "bias")
        following = problem.parameters(*_NEXT, optional=True)
        saved = [epsilon, *problem.parameters("mean", "inv_variance", optional=True)]
        self._separate: PreparedCall | None = None
        if activation is not None:
            self._in_place = PreparedCall(
                TRAINING_ACTIVATION,
                *(*head, *[statistics] * 4, *parameters),
                *(momentum, *following, *saved, activation.raw),
            )
            return
        self._in_place = PreparedCall(
            "miopenBatchNormalizationForwardTraining",
            *(*head, statistics, *parameters, momentum, *following, *saved),
        )
        if library.load().exports(TRAINING_V3):
            running = problem.parameters(*_PREVIOUS, *_NEXT)
            self._separate = PreparedCall(
                TRAINING_V3, *head, *[statistics] * 4, *parameters, momentum, *running, *saved
            )

    def bind(self, **memory: DeviceMemory) -> BoundCall:
        """Returns the call on these tensors, by name.

        Separate memory for the next running statistics needs the V3 call; without it the previous
        ones are copied over on the stream first, and updated in place: the result is the same.

        Raises:
            TypeError: It has no tensor of a name.
            ValueError: Some memory is too small, or left out.
        """
        previous = [memory.pop(name, NO_MEMORY) for name in _PREVIOUS]
        following = [memory.get(name, NO_MEMORY) for name in _NEXT]
        if [m.address for m in previous] == [m.address for m in following]:
            return self._in_place.bind(**memory)
        running = dict(zip((*_PREVIOUS, *_NEXT), (*previous, *following), strict=True))
        if self._separate is not None:
            return self._separate.bind(**memory | running)
        nbytes, handle = self._problem.statistics.nbytes, self._handle
        for name, given in running.items():
            check_size(name, given, nbytes)
        update = self._in_place.bind(**memory)

        def copy_and_update(_: DeviceMemory = NO_MEMORY, /) -> None:
            for target, source in zip(following, previous, strict=True):
                copy_on_device(target, source, nbytes, handle.stream)
            update()

        return copy_and_update


def inference(
    handle: Handle,
    problem: BatchNormProblem,
    *,
    epsilon: float,
    activation: ActivationDescriptor | None = None,
    variance: str = "variance",
) -> PreparedCall:
    """Prepares the normalization by given statistics; there is nothing to tune.

    Its tensors are x, y, scale, bias, mean and variance.

    Args:
        handle: The handle to run on.
        problem: What to compute.
        epsilon: Added to the variance.
        activation: Fused into the same call.
        variance: Name of that tensor; ``WORKSPACE`` if it is there.

    Raises:
        MissingSymbolError: ``activation`` was given and this libMIOpen can't fuse it.
    """
    statistics = problem.statistics.raw
    head = [handle.raw, problem.mode, _ONE, _ZERO, *problem.images("x", "y")]
    tail = [*problem.parameters("scale", "bias", "mean", variance), epsilon]
    if activation is None:
        return PreparedCall("miopenBatchNormalizationForwardInference", *head, statistics, *tail)
    return PreparedCall(INFERENCE_ACTIVATION, *head, *[statistics] * 4, *tail, activation.raw)


def backward(
    handle: Handle,
    problem: BatchNormProblem,
    *,
    epsilon: float,
    activation: ActivationDescriptor | None = None,
) -> PreparedCall:
    """Prepares the gradients of a batch normalization, or of one followed by an activation.

    Its tensors are x, dy, dx, scale, dscale and dbias; bias, if there is an activation; and mean
    and inv_variance, of the batch. Without these two MIOpen computes them again from x.

    Args:
        handle: Its first call of a problem tunes, under its policy then.
        problem: What to compute.
        epsilon: Added to the variance where it is computed again.
        activation: What the normalization is followed by.

    Raises:
        MissingSymbolError: ``activation`` was given and this libMIOpen can't fuse it.
    """
    statistics = problem.statistics.raw
    head = [handle.raw, problem.mode, *[_ONE, _ZERO] * 2, *problem.images("x", "dy", "dx")]
    gradients = problem.parameters("dscale", "dbias")
    tail = [*gradients, epsilon, *problem.parameters("mean", "inv_variance", optional=True)]
    if activation is None:
        scale = problem.parameters("scale")
        return PreparedCall("miopenBatchNormalizationBackward", *head, statistics, *scale, *tail)
    return PreparedCall(
        BACKWARD_ACTIVATION,
        *(*head, *[statistics] * 4, *problem.parameters("scale", "bias"), *tail, activation.raw),
    )


_ONE, _ZERO = byref(c_float(1.0)), byref(c_float(0.0))
_PREVIOUS = ("prev_running_mean", "prev_running_variance")
_NEXT = ("next_running_mean", "next_running_variance")
