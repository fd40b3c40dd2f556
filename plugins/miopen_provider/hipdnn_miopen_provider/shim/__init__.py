"""MIOpen's calls, forwarded to MIOpen's engines under the caller's own tuning policy.

For code that is written against MIOpen: a policy set on a handle governs what runs, or the call is
declined with the reason. docs/miopen-shim.md has every setting that a caller can make.
"""

from hipdnn_miopen_provider.native import (
    ActivationMode,
    BatchNormMode,
    ConvolutionAttribute,
    ConvolutionMode,
    DataType,
    FindMode,
    Status,
    TuningPolicy,
)

from .activation_descriptor import ActivationDescriptor
from .batchnorm import (
    batch_normalization_backward,
    batch_normalization_forward_inference,
    batch_normalization_forward_training,
)
from .convolution import (
    convolution_backward_data,
    convolution_backward_data_get_workspace_size,
    convolution_backward_weights,
    convolution_backward_weights_get_workspace_size,
    convolution_forward,
    convolution_forward_get_workspace_size,
    find_convolution_backward_data,
    find_convolution_backward_weights,
    find_convolution_forward,
)
from .convolution_descriptor import ConvolutionDescriptor
from .errors import (
    AllocFailed,
    BadParm,
    InternalError,
    MiopenStatusError,
    NotInitialized,
    UnsupportedOp,
)
from .forwarding import EntryPoint, UnknownEntryPointWarning
from .fused_convolution import convolution_bias_activation_forward
from .handle import MiopenHandle
from .tensor_descriptor import TensorDescriptor, TensorLayout, derive_bn_tensor_descriptor

__all__ = [
    "ActivationDescriptor",
    "ActivationMode",
    "AllocFailed",
    "BadParm",
    "BatchNormMode",
    "ConvolutionAttribute",
    "ConvolutionDescriptor",
    "ConvolutionMode",
    "DataType",
    "EntryPoint",
    "FindMode",
    "InternalError",
    "MiopenHandle",
    "MiopenStatusError",
    "NotInitialized",
    "Status",
    "TensorDescriptor",
    "TensorLayout",
    "TuningPolicy",
    "UnknownEntryPointWarning",
    "UnsupportedOp",
    "batch_normalization_backward",
    "batch_normalization_forward_inference",
    "batch_normalization_forward_training",
    "convolution_backward_data",
    "convolution_backward_data_get_workspace_size",
    "convolution_backward_weights",
    "convolution_backward_weights_get_workspace_size",
    "convolution_bias_activation_forward",
    "convolution_forward",
    "convolution_forward_get_workspace_size",
    "derive_bn_tensor_descriptor",
    "find_convolution_backward_data",
    "find_convolution_backward_weights",
    "find_convolution_forward",
]
