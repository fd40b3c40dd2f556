"""What a call asks for, and the key that its plan is kept under."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import BatchNormMode, TuningPolicy

if TYPE_CHECKING:
    from .activation_descriptor import ActivationDescriptor
    from .convolution_descriptor import ConvolutionFields
    from .tensor_descriptor import TensorDescriptor


class GraphKind(StrEnum):
    """What is computed, by the direction of MIOpen's call."""

    CONV_FPROP = "ConvFprop"
    CONV_DGRAD = "ConvDgrad"
    CONV_WGRAD = "ConvWgrad"
    CONV_BIAS_ACTIVATION = "ConvBiasActivation"
    BATCHNORM_TRAINING = "BatchnormTraining"
    BATCHNORM_INFERENCE = "BatchnormInference"
    BATCHNORM_BACKWARD = "BatchnormBackward"

    @property
    def has_exhaustive_search(self) -> bool:
        """Whether MIOpen's Find of it has the flag without which DbUpdate does nothing.

        A fused convolution has no Find in MIOpen, and a batchnorm call finds by itself.
        """
        return self in {GraphKind.CONV_FPROP, GraphKind.CONV_DGRAD, GraphKind.CONV_WGRAD}


@dataclass(frozen=True, slots=True)
class Problem:
    """A call without its buffers.

    Attributes:
        kind: What is computed.
        tensors: The tensors' descriptors by the names of the call's arguments; running and saved
            statistics are there only if the call has them.
        convolution: The convolution descriptor as it was; deterministic attribute and find mode
            are in it.
        activation: What follows.
        mode: Batchnorm's.
        scalars: epsilon and expAvgFactor by name.
    """

    kind: GraphKind
    tensors: tuple[tuple[str, TensorDescriptor], ...]
    convolution: ConvolutionFields | None = None
    activation: ActivationDescriptor | None = None
    mode: BatchNormMode | None = None
    scalars: tuple[tuple[str, float], ...] = ()

    @property
    def tuned(self) -> Problem:
        """The part of it that MIOpen tunes and keeps records of."""
        fields = self.convolution
        return replace(
            self,
            scalars=(),
            convolution=None if fields is None else replace(fields, find_mode=None),
        )

    @property
    def has_something_to_tune(self) -> bool:
        """Whether a tuning policy concerns it: not inference, and not statistics per activation."""
        return (
            self.kind is not GraphKind.BATCHNORM_INFERENCE
            and self.mode is not BatchNormMode.PerActivation
        )


@dataclass(frozen=True, slots=True)
class PlanKey:
    """What a handle keeps a plan under: all that can change what the plan does, or writes.

    Attributes:
        handle: Number of the handle, never used twice.
        problem: Graph kind, tensors, convolution fields, deterministic attribute, find mode.
        policy: The handle's tuning policy at the time of the call.
        epoch: For a policy that writes to the perf-db, which call of `set_tuning_policy` set it;
            else 0, so that going back to a policy finds its plan.
        force_benchmarking: HIPDNN_FORCE_BENCHMARKING, which speaks under policy None only.
    """

    handle: int
    problem: Problem
    policy: TuningPolicy
    epoch: int
    force_benchmarking: bool | None
