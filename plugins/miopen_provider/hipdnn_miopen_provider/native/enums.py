"""MIOpen's enumerations, with the values of ``miopen.h`` and its names without their prefix."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """``miopenStatus_t``."""

    Success = 0
    NotInitialized = 1
    InvalidValue = 2
    BadParm = 3
    AllocFailed = 4
    InternalError = 5
    NotImplemented = 6
    UnknownError = 7
    UnsupportedOp = 8
    GpuOperationsSkipped = 9
    VersionMismatch = 10


class TuningPolicy(IntEnum):
    """``miopenTuningPolicy_t``: what a Find, or a batchnorm call, does with the user's perf-db.

    See docs/miopen-tuning-policy.md for what each was seen to do, which is not always what its name
    or the header says.
    """

    NONE = 1
    DB_UPDATE = 2
    SEARCH = 3
    SEARCH_DB_UPDATE = 4
    DB_CLEAN = 5


class DataType(IntEnum):
    """``miopenDataType_t``; the types of this project's tensors."""

    Half = 0
    Float = 1
    Int32 = 2
    Int8 = 3
    BFloat16 = 5
    Double = 6
    Int64 = 9

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _ITEMSIZE[self]


_ITEMSIZE = {
    DataType.Half: 2,
    DataType.Float: 4,
    DataType.Int32: 4,
    DataType.Int8: 1,
    DataType.BFloat16: 2,
    DataType.Double: 8,
    DataType.Int64: 8,
}


class FindMode(IntEnum):
    """``miopenConvolutionFindMode_t``: how a Find uses the find-db. The library's default is 5."""

    Normal = 1
    Fast = 2
    Hybrid = 3
    DynamicHybrid = 5
    TrustVerify = 6
    TrustVerifyFull = 7


class ConvolutionMode(IntEnum):
    """``miopenConvolutionMode_t``; the two modes that are not deprecated."""

    Convolution = 0
    Transpose = 1


class ConvolutionAttribute(IntEnum):
    """``miopenConvolutionAttrib_t``."""

    Fp16AltImpl = 0
    Deterministic = 1


class ConvolutionAlgorithm(IntEnum):
    """``miopenConvAlgorithm_t``: the values that the forward, data and weights enums share."""

    GEMM = 0
    Direct = 1
    FFT = 2
    Winograd = 3
    TransposeGEMM = 4
    ImplicitGEMM = 5


class BatchNormMode(IntEnum):
    """``miopenBatchNormMode_t``: scale is [1,C,H,W] (PerActivation) or [1,C,1,1] (Spatial)."""

    PerActivation = 0
    Spatial = 1


class ActivationMode(IntEnum):
    """``miopenActivationMode_t``. CLAMP is newer than 3.4.0."""

    PASTHRU = 0
    LOGISTIC = 1
    TANH = 2
    RELU = 3
    SOFTRELU = 4
    ABS = 5
    POWER = 6
    CLIPPEDRELU = 7
    LEAKYRELU = 8
    ELU = 9
    CLAMP = 10


class TensorOp(IntEnum):
    """``miopenTensorOp_t``: the elementwise operation of OpTensor."""

    Add = 0
    Mul = 1
    Min = 2
    Max = 3


class ProblemDirection(IntEnum):
    """``miopenProblemDirection_t``."""

    Forward = 0
    Backward = 1
    BackwardWeights = 2


class TensorArgument(IntEnum):
    """``miopenTensorArgumentId_t``: the tensors of convolution, bias and activation problems."""

    ConvolutionX = 1
    ConvolutionW = 2
    ConvolutionY = 3
    ActivationX = 37
    ActivationY = 38
    BiasX = 41
    BiasY = 42
    Bias = 43


class FusionDirection(IntEnum):
    """``miopenFusionDirection_t``."""

    Vertical = 0
    Horizontal = 1
