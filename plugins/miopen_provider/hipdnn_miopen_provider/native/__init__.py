"""The native layer: HIP by hip-python, MIOpen by ctypes. No other folder meets a pointer.

Importing it loads no library; ``unavailable_reason()`` says whether it can be used. Every object
that owns something native (``Handle``, descriptors, ``DeviceBuffer``, ``Stream``, ``Event``,
``FusionPlan``) is a context manager with an idempotent ``close()``.
"""

from hipdnn_miopen_provider.native import (
    batchnorm,
    convolution,
    find2,
    fusion,
    hip,
    library,
    pointwise,
)
from hipdnn_miopen_provider.native.availability import unavailable_reason
from hipdnn_miopen_provider.native.batchnorm import BatchNormProblem
from hipdnn_miopen_provider.native.convolution import (
    ConvolutionBuffers,
    ConvolutionProblem,
    Direction,
    FindResult,
    Solution,
)
from hipdnn_miopen_provider.native.descriptors import (
    ActivationDescriptor,
    ConvolutionDescriptor,
    TensorDescriptor,
)
from hipdnn_miopen_provider.native.enums import (
    ActivationMode,
    BatchNormMode,
    ConvolutionAlgorithm,
    ConvolutionAttribute,
    ConvolutionMode,
    DataType,
    FindMode,
    Status,
    TensorArgument,
    TensorOp,
    TuningPolicy,
)
from hipdnn_miopen_provider.native.errors import (
    ClosedError,
    HipError,
    MiopenError,
    MissingSymbolError,
    NativeError,
    NativeUnavailableError,
)
from hipdnn_miopen_provider.native.find2 import FoundSolution, FusedProblem
from hipdnn_miopen_provider.native.fusion import FusionPlan
from hipdnn_miopen_provider.native.handle import Handle, supports_tuning_policy
from hipdnn_miopen_provider.native.hip import BorrowedStream, Device, Event, Stream
from hipdnn_miopen_provider.native.memory import (
    NO_MEMORY,
    BorrowedMemory,
    DeviceBuffer,
    DeviceMemory,
    copy_on_device,
    copy_to_device,
    copy_to_host,
    fill,
)
from hipdnn_miopen_provider.native.prepared import (
    WORKSPACE,
    BoundCall,
    PreparedCall,
    in_sequence,
)

__all__ = [
    "NO_MEMORY",
    "WORKSPACE",
    "ActivationDescriptor",
    "ActivationMode",
    "BatchNormMode",
    "BatchNormProblem",
    "BorrowedMemory",
    "BorrowedStream",
    "BoundCall",
    "ClosedError",
    "ConvolutionAlgorithm",
    "ConvolutionAttribute",
    "ConvolutionBuffers",
    "ConvolutionDescriptor",
    "ConvolutionMode",
    "ConvolutionProblem",
    "DataType",
    "Device",
    "DeviceBuffer",
    "DeviceMemory",
    "Direction",
    "Event",
    "FindMode",
    "FindResult",
    "FoundSolution",
    "FusedProblem",
    "FusionPlan",
    "Handle",
    "HipError",
    "MiopenError",
    "MissingSymbolError",
    "NativeError",
    "NativeUnavailableError",
    "PreparedCall",
    "Solution",
    "Status",
    "Stream",
    "TensorArgument",
    "TensorDescriptor",
    "TensorOp",
    "TuningPolicy",
    "batchnorm",
    "convolution",
    "copy_on_device",
    "copy_to_device",
    "copy_to_host",
    "fill",
    "find2",
    "fusion",
    "hip",
    "in_sequence",
    "library",
    "pointwise",
    "supports_tuning_policy",
    "unavailable_reason",
]
