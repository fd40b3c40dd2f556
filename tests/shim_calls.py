"""One call of each entry point on arrays or other buffers that the caller allocates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hipdnn_miopen_provider.shim import (
    ActivationDescriptor,
    ActivationMode,
    BatchNormMode,
    ConvolutionDescriptor,
    DataType,
    EntryPoint,
    MiopenHandle,
    TensorDescriptor,
    batch_normalization_backward,
    batch_normalization_forward_inference,
    batch_normalization_forward_training,
    convolution_backward_data,
    convolution_backward_data_get_workspace_size,
    convolution_backward_weights,
    convolution_backward_weights_get_workspace_size,
    convolution_bias_activation_forward,
    convolution_forward,
    convolution_forward_get_workspace_size,
    derive_bn_tensor_descriptor,
    find_convolution_backward_data,
    find_convolution_backward_weights,
    find_convolution_forward,
)
from hipdnn_registry import ExecutionPlan

Allocate = Callable[[TensorDescriptor], Any]


@dataclass
class Conv:
    """A 3x3 convolution of 8 channels with buffers."""

    allocate: Allocate
    width: int = 6
    height: int = 6
    descriptor: ConvolutionDescriptor = field(
        default_factory=lambda: ConvolutionDescriptor((1, 1), (1, 1), (1, 1))
    )
    batch: int = 2
    dtype: DataType = DataType.Float
    filter_dims: tuple[int, ...] = (8, 8, 3, 3)

    def __post_init__(self) -> None:
        self.x_desc = TensorDescriptor(self.dtype, (self.batch, 8, self.height, self.width))
        self.w_desc = TensorDescriptor(self.dtype, self.filter_dims)
        y_dims = self.descriptor.get_forward_output_dim(self.x_desc, self.w_desc)
        self.y_desc = TensorDescriptor(self.dtype, y_dims)
        self.bias_desc = TensorDescriptor(self.dtype, (1, y_dims[1], 1, 1))
        self.x, self.w, self.y, self.bias = (
            self.allocate(desc) for desc in (self.x_desc, self.w_desc, self.y_desc, self.bias_desc)
        )

    @property
    def forward_arguments(self) -> tuple[Any, ...]:
        pairs = (self.x_desc, self.x, self.w_desc, self.w)
        return (*pairs, self.descriptor, self.y_desc, self.y)

    @property
    def backward_data_arguments(self) -> tuple[Any, ...]:
        pairs = (self.y_desc, self.y, self.w_desc, self.w)
        return (*pairs, self.descriptor, self.x_desc, self.x)

    @property
    def backward_weights_arguments(self) -> tuple[Any, ...]:
        pairs = (self.y_desc, self.y, self.x_desc, self.x)
        return (*pairs, self.descriptor, self.w_desc, self.w)

    def find(self, handle: MiopenHandle, **options: Any) -> ExecutionPlan:
        return find_convolution_forward(handle, *self.forward_arguments, **options)

    def forward(self, handle: MiopenHandle, **options: Any) -> ExecutionPlan:
        return convolution_forward(handle, *self.forward_arguments, **options)

    def backward_data(self, handle: MiopenHandle, **options: Any) -> ExecutionPlan:
        return convolution_backward_data(handle, *self.backward_data_arguments, **options)

    def backward_weights(self, handle: MiopenHandle, **options: Any) -> ExecutionPlan:
        return convolution_backward_weights(handle, *self.backward_weights_arguments, **options)

    def fused(
        self,
        handle: MiopenHandle,
        activation: ActivationDescriptor | None = None,
        **options: Any,
    ) -> ExecutionPlan:
        return convolution_bias_activation_forward(
            handle,
            *(self.x_desc, self.x, self.w_desc, self.w, self.descriptor),
            *(self.bias_desc, self.bias, activation or ActivationDescriptor(ActivationMode.RELU)),
            *(self.y_desc, self.y),
            **options,
        )

    def workspace_size(self, handle: MiopenHandle) -> int:
        return convolution_forward_get_workspace_size(
            handle, self.w_desc, self.x_desc, self.descriptor, self.y_desc
        )


@dataclass
class BatchNorm:
    """A batch normalization of 8 channels with buffers."""

    allocate: Allocate
    width: int = 6
    height: int = 6
    mode: BatchNormMode = BatchNormMode.Spatial
    batch: int = 4
    dtype: DataType = DataType.Float

    def __post_init__(self) -> None:
        self.x_desc = TensorDescriptor(self.dtype, (self.batch, 8, self.height, self.width))
        self.bn_desc = derive_bn_tensor_descriptor(self.x_desc, self.mode)
        self.x, self.y, self.dx = (self.allocate(self.x_desc) for _ in range(3))
        names = ("scale", "bias", "mean", "variance", "saved_mean", "saved_inv", "dscale", "dbias")
        self.statistics = {name: self.allocate(self.bn_desc) for name in names}

    def training(
        self,
        handle: MiopenHandle,
        *,
        running: bool = True,
        save: bool = True,
        factor: float = 0.25,
        **options: Any,
    ) -> ExecutionPlan:
        of = self.statistics
        return batch_normalization_forward_training(
            handle,
            self.mode,
            *(self.x_desc, self.x, self.x_desc, self.y, self.bn_desc, of["scale"], of["bias"]),
            *(factor, *((of["mean"], of["variance"]) if running else (None, None)), 1e-5),
            *((of["saved_mean"], of["saved_inv"]) if save else ()),
            **options,
        )

    def inference(self, handle: MiopenHandle, **options: Any) -> ExecutionPlan:
        of = self.statistics
        return batch_normalization_forward_inference(
            handle,
            self.mode,
            *(self.x_desc, self.x, self.x_desc, self.y, self.bn_desc, of["scale"], of["bias"]),
            *(of["mean"], of["variance"], 1e-5),
            **options,
        )

    def backward(
        self,
        handle: MiopenHandle,
        *,
        saved: bool = True,
        epsilon: float = 1e-5,
        **options: Any,
    ) -> ExecutionPlan:
        of = self.statistics
        return batch_normalization_backward(
            handle,
            self.mode,
            *(self.x_desc, self.x, self.x_desc, self.y, self.x_desc, self.dx, self.bn_desc),
            *(of["scale"], of["dscale"], of["dbias"], epsilon),
            *((of["saved_mean"], of["saved_inv"]) if saved else ()),
            **options,
        )


OPERATIONS: dict[str, Callable[[Conv, BatchNorm, MiopenHandle], ExecutionPlan]] = {
    "forward": lambda conv, _, handle: conv.forward(handle),
    "backward data": lambda conv, _, handle: conv.backward_data(handle),
    "backward weights": lambda conv, _, handle: conv.backward_weights(handle),
    "fused": lambda conv, _, handle: conv.fused(handle),
    "batchnorm training": lambda _, norm, handle: norm.training(handle),
    "batchnorm backward": lambda _, norm, handle: norm.backward(handle),
    "batchnorm inference": lambda _, norm, handle: norm.inference(handle),
}


def call_of(
    operation: str, allocate: Allocate, width: int = 6, height: int = 6
) -> Callable[[MiopenHandle], ExecutionPlan]:
    """A compute call with buffers of its own, to be made on handles."""
    run = OPERATIONS[operation]
    return partial(run, Conv(allocate, width, height), BatchNorm(allocate, width, height))


def every_entry_point(handle: MiopenHandle, allocate: Allocate) -> dict[EntryPoint, Any]:
    """A call of each entry point, by its name."""
    conv, norm = Conv(allocate), BatchNorm(allocate)
    x, w, y, descriptor = conv.x_desc, conv.w_desc, conv.y_desc, conv.descriptor
    entry = EntryPoint
    return {
        entry.CONVOLUTION_FORWARD_GET_WORKSPACE_SIZE: lambda: conv.workspace_size(handle),
        entry.CONVOLUTION_BACKWARD_DATA_GET_WORKSPACE_SIZE: lambda: (
            convolution_backward_data_get_workspace_size(handle, y, w, descriptor, x)
        ),
        entry.CONVOLUTION_BACKWARD_WEIGHTS_GET_WORKSPACE_SIZE: lambda: (
            convolution_backward_weights_get_workspace_size(handle, y, x, descriptor, w)
        ),
        entry.FIND_CONVOLUTION_FORWARD: lambda: conv.find(handle),
        entry.FIND_CONVOLUTION_BACKWARD_DATA: lambda: find_convolution_backward_data(
            handle, *conv.backward_data_arguments
        ),
        entry.FIND_CONVOLUTION_BACKWARD_WEIGHTS: lambda: find_convolution_backward_weights(
            handle, *conv.backward_weights_arguments
        ),
        entry.CONVOLUTION_FORWARD: lambda: conv.forward(handle),
        entry.CONVOLUTION_BACKWARD_DATA: lambda: conv.backward_data(handle),
        entry.CONVOLUTION_BACKWARD_WEIGHTS: lambda: conv.backward_weights(handle),
        entry.CONVOLUTION_BIAS_ACTIVATION_FORWARD: lambda: conv.fused(handle),
        entry.BATCH_NORMALIZATION_FORWARD_TRAINING: lambda: norm.training(handle),
        entry.BATCH_NORMALIZATION_FORWARD_INFERENCE: lambda: norm.inference(handle),
        entry.BATCH_NORMALIZATION_BACKWARD: lambda: norm.backward(handle),
    }
