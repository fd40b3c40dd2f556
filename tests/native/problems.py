"""Problems to run: descriptors and device buffers of one computation, owned by a ``with`` block."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import (
    ActivationDescriptor,
    ActivationMode,
    BatchNormMode,
    BatchNormProblem,
    ConvolutionAlgorithm,
    ConvolutionBuffers,
    ConvolutionDescriptor,
    ConvolutionMode,
    ConvolutionProblem,
    DataType,
    DeviceBuffer,
    Direction,
    FindMode,
    FindResult,
    FusedProblem,
    FusionPlan,
    Handle,
    TensorArgument,
    TensorDescriptor,
    TuningPolicy,
    batchnorm,
    convolution,
    find2,
    fusion,
    supports_tuning_policy,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hipdnn_miopen_provider.native import DeviceMemory


def channels_last(dims: Sequence[int]) -> list[int]:
    """Packed NHWC (NDHWC) strides of dims in logical order."""
    strides = [0] * len(dims)
    step = 1
    for axis in (1, *range(len(dims) - 1, 1, -1), 0):
        strides[axis] = step
        step *= dims[axis]
    return strides


@contextmanager
def fresh_handle(policy: TuningPolicy) -> Iterator[Handle]:
    """A new handle under a policy; with a libMIOpen that has none, only None is possible."""
    with Handle() as handle:
        if supports_tuning_policy() or policy is not TuningPolicy.NONE:
            handle.tuning_policy = policy
        yield handle


@dataclass
class Convolution:
    """A convolution with its memory. ``bias`` and ``relu`` are for the fused calls."""

    problem: ConvolutionProblem
    buffers: ConvolutionBuffers
    bias: tuple[TensorDescriptor, DeviceBuffer]
    relu: ActivationDescriptor

    def find(
        self, policy: TuningPolicy, *, exhaustive: bool = False, workspace: int | None = None
    ) -> list[FindResult]:
        """A Find on a fresh handle, with the workspace that MIOpen asks for unless given."""
        with fresh_handle(policy) as handle:
            return self.find_on(handle, exhaustive=exhaustive, workspace=workspace)

    def find_on(
        self, handle: Handle, *, exhaustive: bool = False, workspace: int | None = None
    ) -> list[FindResult]:
        if workspace is None:
            workspace = convolution.workspace_size(handle, self.problem)
        with DeviceBuffer(workspace) as scratch:
            return convolution.find(
                handle, self.problem, self.buffers, scratch, exhaustive=exhaustive
            )

    def fused_call(self, policy: TuningPolicy) -> None:
        """miopenConvolutionBiasActivationForward on a fresh handle."""
        with fresh_handle(policy) as handle:
            size = convolution.workspace_size(handle, self.problem)
            with DeviceBuffer(size) as scratch:
                fusion.convolution_bias_activation(
                    handle,
                    self.problem,
                    ConvolutionAlgorithm.Direct,
                    self.buffers,
                    self.bias,
                    self.relu,
                    scratch,
                )

    def fused_find(self, policy: TuningPolicy, *, exhaustive: bool = False) -> list[int]:
        """The same by the second Find API; runs the best, returns the solvers' numbers."""
        with fresh_handle(policy) as handle:
            return self.fused_find_on(handle, exhaustive=exhaustive)

    def fused_find_on(self, handle: Handle, *, exhaustive: bool = False) -> list[int]:
        tensors: dict[TensorArgument, DeviceMemory] = {
            TensorArgument.ConvolutionX: self.buffers.x,
            TensorArgument.ConvolutionW: self.buffers.w,
            TensorArgument.Bias: self.bias[1],
            TensorArgument.ActivationY: self.buffers.y,
        }
        with ExitStack() as stack:
            problem = stack.enter_context(FusedProblem(self.problem, self.bias[0], self.relu))
            found = find2.find_solutions(handle, problem, tensors, exhaustive=exhaustive)
            for solution in found:
                stack.enter_context(solution)
            if found:
                sizes = {argument: memory.nbytes for argument, memory in tensors.items()}
                by_name = {argument.name: memory for argument, memory in tensors.items()}
                find2.run_solution(handle, found[0], sizes).bind(**by_name)()
            return [solution.solver_id for solution in found]

    def fusion_plan(self, policy: TuningPolicy) -> None:
        """The same by the fusion-plan API: compiled and executed on a fresh handle."""
        with (
            fresh_handle(policy) as handle,
            FusionPlan(handle, self.problem, self.bias[0], ActivationMode.RELU) as plan,
        ):
            plan.execute(self.buffers, self.bias[1])


@contextmanager
def convolution_case(
    direction: Direction,
    x_dims: Sequence[int],
    w_dims: Sequence[int],
    *,
    dtype: DataType = DataType.Float,
    padding: int = 1,
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    mode: ConvolutionMode = ConvolutionMode.Convolution,
    nhwc: bool = False,
    find_mode: FindMode | None = FindMode.Normal,
) -> Iterator[Convolution]:
    rank = len(x_dims) - 2
    with ExitStack() as stack:

        def tensor(dims: Sequence[int]) -> TensorDescriptor:
            strides = channels_last(dims) if nhwc else None
            return stack.enter_context(TensorDescriptor(dtype, dims, strides))

        x, w = tensor(x_dims), tensor(w_dims)
        geometry = ([padding] * rank, [stride] * rank, [dilation] * rank)
        descriptor = stack.enter_context(ConvolutionDescriptor(*geometry, groups=groups, mode=mode))
        if find_mode is not None:
            descriptor.find_mode = find_mode
        y = tensor(descriptor.output_dims(x, w))
        problem = ConvolutionProblem(direction, x, w, y, descriptor)
        memory = [stack.enter_context(DeviceBuffer(each.nbytes)) for each in (x, w, y)]
        for buffer in memory:
            buffer.fill(0)
        channels = y.read()[1][1]
        bias = tensor([1, channels, *[1] * rank])
        bias_memory = stack.enter_context(DeviceBuffer(bias.nbytes))
        relu = stack.enter_context(ActivationDescriptor(ActivationMode.RELU))
        yield Convolution(problem, ConvolutionBuffers(*memory), (bias, bias_memory), relu)


@dataclass
class BatchNorm:
    """A batch normalization with its memory."""

    problem: BatchNormProblem
    relu: ActivationDescriptor
    x: DeviceBuffer
    y: DeviceBuffer
    dx: DeviceBuffer
    scale: DeviceBuffer
    bias: DeviceBuffer
    mean: DeviceBuffer
    variance: DeviceBuffer
    saved_mean: DeviceBuffer
    saved_inverse_variance: DeviceBuffer

    def train(self, handle: Handle, *, fused: bool = False) -> None:
        batchnorm.TrainingRunner(
            handle, self.problem, epsilon=1e-5, momentum=0.1, activation=self._relu(fused)
        ).bind(
            **self.training_tensors,
            mean=self.saved_mean,
            inv_variance=self.saved_inverse_variance,
            prev_running_mean=self.mean,
            prev_running_variance=self.variance,
            next_running_mean=self.mean,
            next_running_variance=self.variance,
        )()

    def infer(self, handle: Handle, *, fused: bool = False) -> None:
        batchnorm.inference(handle, self.problem, epsilon=1e-5, activation=self._relu(fused)).bind(
            **self.training_tensors, mean=self.mean, variance=self.variance
        )()

    def backward(self, handle: Handle, *, fused: bool = False) -> None:
        batchnorm.backward(handle, self.problem, epsilon=1e-5, activation=self._relu(fused)).bind(
            **self.backward_tensors,
            **({"bias": self.bias} if fused else {}),
            mean=self.saved_mean,
            inv_variance=self.saved_inverse_variance,
        )()

    @property
    def training_tensors(self) -> dict[str, DeviceMemory]:
        """What a training call needs at least."""
        return {"x": self.x, "y": self.y, "scale": self.scale, "bias": self.bias}

    @property
    def backward_tensors(self) -> dict[str, DeviceMemory]:
        """What a backward call needs at least; the gradients of scale and bias are scratch."""
        images = {"x": self.x, "dy": self.y, "dx": self.dx}
        return {**images, "scale": self.scale, "dscale": self.mean, "dbias": self.variance}

    def _relu(self, fused: bool) -> ActivationDescriptor | None:
        return self.relu if fused else None


@contextmanager
def batchnorm_case(
    x_dims: Sequence[int],
    mode: BatchNormMode = BatchNormMode.Spatial,
    dtype: DataType = DataType.Float,
) -> Iterator[BatchNorm]:
    with ExitStack() as stack:
        x = stack.enter_context(TensorDescriptor(dtype, x_dims))
        statistics = stack.enter_context(TensorDescriptor.for_batchnorm(x, mode))
        relu = stack.enter_context(ActivationDescriptor(ActivationMode.RELU))
        tensors = dict.fromkeys(("x", "y", "dx"), x.nbytes)
        per_channel = ("scale", "bias", "mean", "variance", "saved_mean", "saved_inverse_variance")
        tensors |= dict.fromkeys(per_channel, statistics.nbytes)
        memory = {n: stack.enter_context(DeviceBuffer(size)) for n, size in tensors.items()}
        yield BatchNorm(BatchNormProblem(mode, x, statistics), relu, **memory)
