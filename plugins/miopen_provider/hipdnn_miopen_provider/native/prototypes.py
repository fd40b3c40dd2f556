"""Prototypes of the MIOpen C API (``miopen.h``): the calls that the provider uses, and no others.

Every opaque pointer has a type of its own, so that ctypes refuses a tensor descriptor where a
convolution descriptor is meant. All calls but ``miopenGetErrorString`` return ``miopenStatus_t``.
"""

from __future__ import annotations

from ctypes import (
    POINTER,
    Structure,
    c_bool,
    c_double,
    c_float,
    c_int,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
)
from typing import Any


class HandleT(c_void_p):
    """``miopenHandle_t``."""


class TensorDescriptorT(c_void_p):
    """``miopenTensorDescriptor_t``."""


class ConvolutionDescriptorT(c_void_p):
    """``miopenConvolutionDescriptor_t``."""


class ActivationDescriptorT(c_void_p):
    """``miopenActivationDescriptor_t``."""


class FusionPlanT(c_void_p):
    """``miopenFusionPlanDescriptor_t``."""


class FusionOpT(c_void_p):
    """``miopenFusionOpDescriptor_t``; belongs to its plan, there is no call that destroys it."""


class OperatorArgsT(c_void_p):
    """``miopenOperatorArgs_t``."""


class ConvAlgoPerfT(Structure):
    """``miopenConvAlgoPerf_t``: one result of a Find. Time in ms, memory in bytes."""

    _fields_ = (("algo", c_int), ("time", c_float), ("memory", c_size_t))


class ConvSolutionT(Structure):
    """``miopenConvSolution_t``: one entry of the immediate mode's list. Time in ms."""

    _fields_ = (
        ("time", c_float),
        ("workspace_size", c_size_t),
        ("solution_id", c_uint64),
        ("algorithm", c_int),
    )


class ProblemT(c_void_p):
    """``miopenProblem_t``."""


class FindOptionsT(c_void_p):
    """``miopenFindOptions_t``."""


class SolutionT(c_void_p):
    """``miopenSolution_t``."""


class TensorArgumentT(Structure):
    """``miopenTensorArgument_t``. A null descriptor means: as the problem has it."""

    _fields_ = (("id", c_uint), ("descriptor", c_void_p), ("buffer", c_void_p))


_H = HandleT
_T = TensorDescriptorT
_C = ConvolutionDescriptorT
_A = ActivationDescriptorT
_F = FusionPlanT
_O = FusionOpT
_ARGS = OperatorArgsT
_P = ProblemT
_S = SolutionT
_DEVICE = c_void_p  # a device address
_SCALAR = c_void_p  # a host address: alpha or beta, float for all tensor types but double
_INT_P = POINTER(c_int)
_SIZE_P = POINTER(c_size_t)
_X = (_T, _DEVICE)  # a tensor: descriptor, then data

Prototype = tuple[Any, ...]


def _convolution(direction: str) -> dict[str, Prototype]:
    """The calls of one direction. Which tensor is which differs, see ``convolution.py``."""
    name = f"miopenConvolution{direction}"
    query = (_T, _T, _C, _T)
    return {
        f"{name}GetWorkSpaceSize": (_H, *query, _SIZE_P),
        f"{name}GetWorkSpaceSizeRange": (_H, *query, _SIZE_P, _SIZE_P),
        f"{name}GetSolutionCount": (_H, *query, _SIZE_P),
        f"{name}GetSolution": (_H, *query, c_size_t, _SIZE_P, POINTER(ConvSolutionT)),
        f"{name}GetSolutionWorkspaceSize": (_H, *query, c_uint64, _SIZE_P),
        f"{name}CompileSolution": (_H, *query, c_uint64),
        f"{name}Immediate": (_H, *_X, *_X, _C, *_X, _DEVICE, c_size_t, c_uint64),
        f"miopenFindConvolution{direction}Algorithm": (
            *(_H, *_X, *_X, _C, *_X),
            *(c_int, _INT_P, POINTER(ConvAlgoPerfT), _DEVICE, c_size_t, c_bool),
        ),
        name: (_H, _SCALAR, *_X, *_X, _C, c_int, _SCALAR, *_X, _DEVICE, c_size_t),
    }


_TRAINING_OUTPUTS: Prototype = (c_double, _DEVICE, _DEVICE, c_double, _DEVICE, _DEVICE)
_TRAINING_OUTPUTS_V3: Prototype = (c_double, *[_DEVICE] * 4, c_double, _DEVICE, _DEVICE)
_FORWARD: Prototype = (_H, c_int, _SCALAR, _SCALAR, *_X, *_X)
_BACKWARD: Prototype = (_H, c_int, *[_SCALAR] * 4, *_X, *_X, *_X)
_TRAINING_V2: Prototype = (*_FORWARD, _T, _T, _T, _T, _DEVICE, _DEVICE, *_TRAINING_OUTPUTS)
_INFERENCE_V2: Prototype = (*_FORWARD, _T, _T, _T, _T, *[_DEVICE] * 4, c_double)

PROTOTYPES: dict[str, Prototype] = {
    "miopenGetVersion": (_SIZE_P, _SIZE_P, _SIZE_P),
    # handles
    "miopenCreate": (POINTER(_H),),
    "miopenCreateWithStream": (POINTER(_H), c_void_p),
    "miopenDestroy": (_H,),
    "miopenSetStream": (_H, c_void_p),
    "miopenGetStream": (_H, POINTER(c_void_p)),
    "miopenSetTuningPolicy": (_H, c_int),
    "miopenGetTuningPolicy": (_H, _INT_P),
    # tensor descriptors
    "miopenCreateTensorDescriptor": (POINTER(_T),),
    "miopenSetTensorDescriptor": (_T, c_int, c_int, _INT_P, _INT_P),
    "miopenGetTensorDescriptorSize": (_T, _INT_P),
    "miopenGetTensorDescriptor": (_T, _INT_P, _INT_P, _INT_P),
    "miopenGetTensorNumBytes": (_T, _SIZE_P),
    "miopenDestroyTensorDescriptor": (_T,),
    # convolution descriptors
    "miopenCreateConvolutionDescriptor": (POINTER(_C),),
    "miopenInitConvolutionNdDescriptor": (_C, c_int, _INT_P, _INT_P, _INT_P, c_int),
    "miopenSetConvolutionGroupCount": (_C, c_int),
    "miopenSetTransposeConvNdOutputPadding": (_C, c_int, _INT_P),
    "miopenGetConvolutionNdForwardOutputDim": (_C, _T, _T, _INT_P, _INT_P),
    "miopenSetConvolutionAttribute": (_C, c_int, c_int),
    "miopenGetConvolutionAttribute": (_C, c_int, _INT_P),
    "miopenSetConvolutionFindMode": (_C, c_int),
    "miopenGetConvolutionFindMode": (_C, _INT_P),
    "miopenDestroyConvolutionDescriptor": (_C,),
    # convolution
    **_convolution("Forward"),
    **_convolution("BackwardData"),
    **_convolution("BackwardWeights"),
    "miopenConvolutionForwardBias": (_H, _SCALAR, *_X, _SCALAR, *_X),
    "miopenConvolutionBackwardBias": (_H, _SCALAR, *_X, _SCALAR, *_X),
    # convolution, bias and activation in one call
    "miopenConvolutionBiasActivationForward": (
        *(_H, _SCALAR, *_X, *_X, _C, c_int, _DEVICE, c_size_t),
        *(_SCALAR, *_X, *_X, _A, *_X),
    ),
    # fusion plans
    "miopenCreateFusionPlan": (POINTER(_F), c_int, _T),
    "miopenDestroyFusionPlan": (_F,),
    "miopenCompileFusionPlan": (_H, _F),
    "miopenFusionPlanGetWorkSpaceSize": (_H, _F, _SIZE_P, c_int),
    "miopenCreateOpConvForward": (_F, POINTER(_O), _C, _T),
    "miopenCreateOpBiasForward": (_F, POINTER(_O), _T),
    "miopenCreateOpActivationForward": (_F, POINTER(_O), c_int),
    "miopenCreateOperatorArgs": (POINTER(_ARGS),),
    "miopenDestroyOperatorArgs": (_ARGS,),
    "miopenSetOpArgsConvForward": (_ARGS, _O, _SCALAR, _SCALAR, _DEVICE),
    "miopenSetOpArgsBiasForward": (_ARGS, _O, _SCALAR, _SCALAR, _DEVICE),
    "miopenSetOpArgsActivForward": (_ARGS, _O, _SCALAR, _SCALAR, c_double, c_double, c_double),
    "miopenExecuteFusionPlan": (_H, _F, *_X, *_X, _ARGS),
    "miopenExecuteFusionPlan_v2": (_H, _F, *_X, *_X, _ARGS, _DEVICE, c_size_t),
    # problems, found solutions ("Find 2.0")
    "miopenCreateConvProblem": (POINTER(_P), _C, c_int),
    "miopenCreateBiasProblem": (POINTER(_P), c_int),
    "miopenCreateActivationProblem": (POINTER(_P), _A, c_int),
    "miopenFuseProblems": (_P, _P),
    "miopenSetProblemTensorDescriptor": (_P, c_uint, _T),
    "miopenDestroyProblem": (_P,),
    "miopenCreateFindOptions": (POINTER(FindOptionsT),),
    "miopenSetFindOptionTuning": (FindOptionsT, c_int),
    "miopenSetFindOptionWorkspaceLimit": (FindOptionsT, c_size_t),
    "miopenSetFindOptionPreallocatedWorkspace": (FindOptionsT, _DEVICE, c_size_t),
    "miopenSetFindOptionPreallocatedTensor": (FindOptionsT, c_uint, _DEVICE),
    "miopenDestroyFindOptions": (FindOptionsT,),
    "miopenFindSolutions": (_H, _P, FindOptionsT, POINTER(_S), _SIZE_P, c_size_t),
    "miopenRunSolution": (_H, _S, c_size_t, POINTER(TensorArgumentT), _DEVICE, c_size_t),
    "miopenGetSolutionWorkspaceSize": (_S, _SIZE_P),
    "miopenGetSolutionTime": (_S, POINTER(c_float)),
    "miopenGetSolutionSolverId": (_S, POINTER(c_uint64)),
    "miopenDestroySolution": (_S,),
    # batch normalization
    "miopenDeriveBNTensorDescriptor": (_T, _T, c_int),
    "miopenBatchNormalizationForwardTraining": (
        *(*_FORWARD, _T, _DEVICE, _DEVICE),
        *_TRAINING_OUTPUTS,
    ),
    "miopenBatchNormalizationForwardTraining_V2": _TRAINING_V2,
    "miopenBatchNormalizationForwardTraining_V3": (
        *(*_FORWARD, _T, _T, _T, _T, _DEVICE, _DEVICE),
        *_TRAINING_OUTPUTS_V3,
    ),
    "miopenBatchNormForwardTrainingActivation": (*_TRAINING_V2, _A),
    "miopenBatchNormalizationForwardInference": (*_FORWARD, _T, *[_DEVICE] * 4, c_double),
    "miopenBatchNormalizationForwardInference_V2": _INFERENCE_V2,
    "miopenBatchNormForwardInferenceActivation": (*_INFERENCE_V2, _A),
    "miopenBatchNormalizationBackward": (
        *(*_BACKWARD, _T, *[_DEVICE] * 3),
        *(c_double, _DEVICE, _DEVICE),
    ),
    "miopenBatchNormalizationBackward_V2": (
        *(*_BACKWARD, _T, _T, _T, _T, *[_DEVICE] * 3),
        *(c_double, _DEVICE, _DEVICE),
    ),
    "miopenBatchNormBackwardActivation": (
        *(*_BACKWARD, _T, _T, _T, _T, *[_DEVICE] * 4),
        *(c_double, _DEVICE, _DEVICE, _A),
    ),
    # pointwise
    "miopenCreateActivationDescriptor": (POINTER(_A),),
    "miopenSetActivationDescriptor": (_A, c_int, c_double, c_double, c_double),
    "miopenDestroyActivationDescriptor": (_A,),
    "miopenActivationForward": (_H, _A, _SCALAR, *_X, _SCALAR, *_X),
    "miopenActivationBackward": (_H, _A, _SCALAR, *_X, *_X, *_X, _SCALAR, *_X),
    "miopenOpTensor": (_H, c_int, _SCALAR, *_X, _SCALAR, *_X, _SCALAR, *_X),
}

OPTIONAL: frozenset[str] = frozenset(
    {
        "miopenSetTuningPolicy",
        "miopenGetTuningPolicy",
        "miopenExecuteFusionPlan_v2",
        "miopenBatchNormalizationForwardTraining_V3",
        "miopenBatchNormForwardTrainingActivation",
        "miopenBatchNormForwardInferenceActivation",
        "miopenBatchNormBackwardActivation",
        *(
            f"miopenConvolution{direction}GetWorkSpaceSizeRange"
            for direction in ("Forward", "BackwardData", "BackwardWeights")
        ),
    }
)
"""Calls that some releases lack. Whether the loaded library has one is looked up, not concluded
from its version: 3.4.0 has none of them, 3.5.1 lacks V3 and the ranges. The prototypes of those
four are from AMD's sources and were never called here."""
