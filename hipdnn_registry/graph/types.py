"""Enumerations of hipDNN's graph schema, by the spelling of its JSON form."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


class DataType(StrEnum):
    """Element type of a tensor or of a node's arithmetic; `UNSET` takes the graph's default."""

    UNSET = "unset"
    FLOAT = "float"
    HALF = "half"
    BFLOAT16 = "bfloat16"
    DOUBLE = "double"
    UINT8 = "uint8"
    INT32 = "int32"
    INT8 = "int8"
    FP8_E4M3 = "fp8_e4m3"
    FP8_E5M2 = "fp8_e5m2"
    FP8_E8M0 = "fp8_e8m0"
    FP4_E2M1 = "fp4_e2m1"
    FP6_E2M3 = "fp6_e2m3"
    FP6_E3M2 = "fp6_e3m2"
    INT4 = "int4"
    INT64 = "int64"
    BOOLEAN = "boolean"
    FP8_E4M3_FNUZ = "fp8_e4m3_fnuz"
    FP8_E5M2_FNUZ = "fp8_e5m2_fnuz"

    @property
    def bits(self) -> int:
        """Width of one element in bits; 0 for `UNSET`."""
        return _BITS[self]

    @property
    def is_floating(self) -> bool:
        """Whether the type is a floating-point type of any width."""
        return self in _FLOATING

    def numpy_dtype(self) -> np.dtype[np.generic]:
        """Return the numpy dtype of the same layout in memory.

        Raises:
            TypeError: The type has no numpy dtype (`UNSET`, and the types below 8 bits).
        """
        import ml_dtypes
        import numpy as np

        name = _NUMPY_NAMES.get(self)
        if name is None:
            raise TypeError(f"data type '{self}' has no numpy dtype")
        return np.dtype(getattr(ml_dtypes, name, None) or name)


_BITS = {
    DataType.UNSET: 0,
    DataType.FLOAT: 32,
    DataType.HALF: 16,
    DataType.BFLOAT16: 16,
    DataType.DOUBLE: 64,
    DataType.UINT8: 8,
    DataType.INT32: 32,
    DataType.INT8: 8,
    DataType.FP8_E4M3: 8,
    DataType.FP8_E5M2: 8,
    DataType.FP8_E8M0: 8,
    DataType.FP4_E2M1: 4,
    DataType.FP6_E2M3: 6,
    DataType.FP6_E3M2: 6,
    DataType.INT4: 4,
    DataType.INT64: 64,
    DataType.BOOLEAN: 8,
    DataType.FP8_E4M3_FNUZ: 8,
    DataType.FP8_E5M2_FNUZ: 8,
}

_FLOATING = frozenset(
    member
    for member in DataType
    if member.name.startswith(("FP", "BF")) or member.name in {"FLOAT", "HALF", "DOUBLE"}
)

_NUMPY_NAMES = {
    DataType.FLOAT: "float32",
    DataType.HALF: "float16",
    DataType.BFLOAT16: "bfloat16",
    DataType.DOUBLE: "float64",
    DataType.UINT8: "uint8",
    DataType.INT32: "int32",
    DataType.INT8: "int8",
    DataType.INT64: "int64",
    DataType.BOOLEAN: "bool",
    DataType.FP8_E4M3: "float8_e4m3fn",
    DataType.FP8_E5M2: "float8_e5m2",
    DataType.FP8_E8M0: "float8_e8m0fnu",
    DataType.FP8_E4M3_FNUZ: "float8_e4m3fnuz",
    DataType.FP8_E5M2_FNUZ: "float8_e5m2fnuz",
}


class ConvMode(StrEnum):
    """Whether the filter slides as it is, or flipped in every spatial axis."""

    NOT_SET = "NOT_SET"
    CROSS_CORRELATION = "CROSS_CORRELATION"
    CONVOLUTION = "CONVOLUTION"


class ValueType(StrEnum):
    """Kind of the compile-time constant that a pass-by-value tensor carries."""

    FLOAT32 = "Float32Value"
    FLOAT16 = "Float16Value"
    BFLOAT16 = "BFloat16Value"
    FLOAT8 = "Float8Value"
    INT32 = "Int32Value"
    FLOAT64 = "Float64Value"
    INT64 = "Int64Value"
    BOOL = "BoolValue"


VALUE_TYPE_OF = {
    DataType.FLOAT: ValueType.FLOAT32,
    DataType.HALF: ValueType.FLOAT16,
    DataType.BFLOAT16: ValueType.BFLOAT16,
    DataType.DOUBLE: ValueType.FLOAT64,
    DataType.INT32: ValueType.INT32,
    DataType.INT64: ValueType.INT64,
    DataType.BOOLEAN: ValueType.BOOL,
    DataType.FP8_E4M3: ValueType.FLOAT8,
    DataType.FP8_E5M2: ValueType.FLOAT8,
    DataType.FP8_E4M3_FNUZ: ValueType.FLOAT8,
    DataType.FP8_E5M2_FNUZ: ValueType.FLOAT8,
}


class PointwiseMode(StrEnum):
    """hipDNN's elementwise operations; arity in `pointwise_arity`."""

    UNSET = "unset"
    ABS = "abs"
    ADD = "add"
    ADD_SQUARE = "add_square"
    BINARY_SELECT = "binary_select"
    CEIL = "ceil"
    CMP_EQ = "cmp_eq"
    CMP_GE = "cmp_ge"
    CMP_GT = "cmp_gt"
    CMP_LE = "cmp_le"
    CMP_LT = "cmp_lt"
    CMP_NEQ = "cmp_neq"
    DIV = "div"
    ELU_BWD = "elu_bwd"
    ELU_FWD = "elu_fwd"
    ERF = "erf"
    EXP = "exp"
    FLOOR = "floor"
    GELU_APPROX_TANH_BWD = "gelu_approx_tanh_bwd"
    GELU_APPROX_TANH_FWD = "gelu_approx_tanh_fwd"
    GELU_BWD = "gelu_bwd"
    GELU_FWD = "gelu_fwd"
    GEN_INDEX = "gen_index"
    IDENTITY = "identity"
    LOG = "log"
    LOGICAL_AND = "logical_and"
    LOGICAL_NOT = "logical_not"
    LOGICAL_OR = "logical_or"
    MAX = "max_op"
    MIN = "min_op"
    MUL = "mul"
    NEG = "neg"
    RECIPROCAL = "reciprocal"
    RELU_BWD = "relu_bwd"
    RELU_FWD = "relu_fwd"
    RSQRT = "rsqrt"
    SIGMOID_BWD = "sigmoid_bwd"
    SIGMOID_FWD = "sigmoid_fwd"
    SIN = "sin"
    SOFTPLUS_BWD = "softplus_bwd"
    SOFTPLUS_FWD = "softplus_fwd"
    SQRT = "sqrt"
    SUB = "sub"
    SWISH_BWD = "swish_bwd"
    SWISH_FWD = "swish_fwd"
    TAN = "tan"
    TANH_BWD = "tanh_bwd"
    TANH_FWD = "tanh_fwd"

    @property
    def arity(self) -> int:
        """Number of tensors that the operation reads: 1, 2 or 3 (`binary_select`)."""
        if self is PointwiseMode.BINARY_SELECT:
            return 3
        return 2 if self in _BINARY or self.name.endswith("_BWD") else 1

    @classmethod
    def _missing_(cls, value: object) -> PointwiseMode | None:
        # Some hipDNN versions write "max" and "min", others avoid the reserved words.
        return {"max": cls.MAX, "min": cls.MIN}.get(value) if isinstance(value, str) else None


_BINARY = frozenset(
    {
        PointwiseMode.ADD,
        PointwiseMode.ADD_SQUARE,
        PointwiseMode.CMP_EQ,
        PointwiseMode.CMP_GE,
        PointwiseMode.CMP_GT,
        PointwiseMode.CMP_LE,
        PointwiseMode.CMP_LT,
        PointwiseMode.CMP_NEQ,
        PointwiseMode.DIV,
        PointwiseMode.LOGICAL_AND,
        PointwiseMode.LOGICAL_OR,
        PointwiseMode.MAX,
        PointwiseMode.MIN,
        PointwiseMode.MUL,
        PointwiseMode.SUB,
    }
)
