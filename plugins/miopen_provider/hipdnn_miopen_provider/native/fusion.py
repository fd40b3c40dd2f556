"""Convolution, bias and activation in one: the single call, and the fusion-plan API."""

from __future__ import annotations

from ctypes import byref, c_float, c_size_t
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import library
from hipdnn_miopen_provider.native.enums import ConvolutionAlgorithm, FusionDirection
from hipdnn_miopen_provider.native.memory import NO_MEMORY
from hipdnn_miopen_provider.native.owned import Owned
from hipdnn_miopen_provider.native.prototypes import FusionOpT, FusionPlanT, OperatorArgsT

if TYPE_CHECKING:
    from hipdnn_miopen_provider.native.convolution import ConvolutionBuffers, ConvolutionProblem
    from hipdnn_miopen_provider.native.descriptors import ActivationDescriptor, TensorDescriptor
    from hipdnn_miopen_provider.native.enums import ActivationMode
    from hipdnn_miopen_provider.native.handle import Handle
    from hipdnn_miopen_provider.native.memory import DeviceMemory

EXECUTE_WITH_WORKSPACE = "miopenExecuteFusionPlan_v2"


def convolution_bias_activation(
    handle: Handle,
    problem: ConvolutionProblem,
    algorithm: ConvolutionAlgorithm,
    buffers: ConvolutionBuffers,
    bias: tuple[TensorDescriptor, DeviceMemory],
    activation: ActivationDescriptor,
    workspace: DeviceMemory = NO_MEMORY,
) -> None:
    """Computes y = activation(convolution(x, w) + bias) by miopenConvolutionBiasActivationForward.

    Raises:
        MiopenError: MIOpen has no fused solver for this, or failed.
    """
    problem.check_sizes(buffers)
    x, w, y = problem.tensors("xwy")
    library.load().call(
        "miopenConvolutionBiasActivationForward",
        handle.raw,
        byref(c_float(1.0)),
        *(x.raw, buffers.x.address, w.raw, buffers.w.address, problem.convolution.raw, algorithm),
        *(workspace.address, workspace.nbytes),
        byref(c_float(0.0)),  # the addend z is not used: its scale is 0, and y stands in for it
        *(y.raw, buffers.y.address),
        *(bias[0].raw, bias[1].address, activation.raw),
        *(y.raw, buffers.y.address),
    )


class FusionPlan(Owned[FusionPlanT]):
    """A fused convolution, optional bias and activation, compiled for one handle.

    Compiling is where MIOpen looks for a fused solver, under the handle's tuning policy.

    Args:
        handle: The handle to compile for and to run on.
        problem: A forward convolution.
        bias: Descriptor of the bias, of dims [1, K, 1, 1]; None for no bias.
        activation: Mode of the activation; its parameters are given to ``execute``.

    Raises:
        MiopenError: There is no fused solver for this (UnsupportedOp), or one failed to compile.
    """

    def __init__(
        self,
        handle: Handle,
        problem: ConvolutionProblem,
        bias: TensorDescriptor | None,
        activation: ActivationMode,
    ) -> None:
        miopen = library.load()
        raw = FusionPlanT()
        miopen.call("miopenCreateFusionPlan", byref(raw), FusionDirection.Vertical, problem.x.raw)
        super().__init__(raw, _destroy_plan)
        self._handle, self._problem = handle, problem
        self._convolution, self._bias, self._activation = FusionOpT(), FusionOpT(), FusionOpT()
        self._has_bias = bias is not None
        try:
            miopen.call(
                "miopenCreateOpConvForward",
                *(raw, byref(self._convolution), problem.convolution.raw, problem.w.raw),
            )
            if bias is not None:
                miopen.call("miopenCreateOpBiasForward", raw, byref(self._bias), bias.raw)
            miopen.call("miopenCreateOpActivationForward", raw, byref(self._activation), activation)
            miopen.call("miopenCompileFusionPlan", handle.raw, raw)
        except BaseException:
            self.close()
            raise

    def workspace_size(self, algorithm: ConvolutionAlgorithm) -> int:
        """Bytes of workspace that the plan asks for with an algorithm."""
        size = c_size_t()
        library.load().call(
            "miopenFusionPlanGetWorkSpaceSize", self._handle.raw, self.raw, byref(size), algorithm
        )
        return size.value

    def execute(
        self,
        buffers: ConvolutionBuffers,
        bias: DeviceMemory = NO_MEMORY,
        *,
        alpha: float = 0.0,
        beta: float = 0.0,
        gamma: float = 0.0,
        workspace: DeviceMemory = NO_MEMORY,
    ) -> None:
        """Runs the plan. ``alpha``, ``beta`` and ``gamma`` are the activation's parameters.

        Raises:
            MissingSymbolError: A workspace was given, and this libMIOpen can't take one here.
            MiopenError: MIOpen failed.
            ValueError: A buffer is smaller than its tensor.
        """
        self._problem.check_sizes(buffers)
        with _OperatorArguments() as arguments:
            one, zero = byref(c_float(1.0)), byref(c_float(0.0))
            miopen = library.load()
            miopen.call(
                "miopenSetOpArgsConvForward",
                *(arguments.raw, self._convolution, one, zero, buffers.w.address),
            )
            if self._has_bias:
                miopen.call(
                    "miopenSetOpArgsBiasForward", arguments.raw, self._bias, one, zero, bias.address
                )
            parameters = (alpha, beta, gamma)
            miopen.call(
                "miopenSetOpArgsActivForward",
                *(arguments.raw, self._activation, one, zero, *parameters),
            )
            tensors = (
                *(self._problem.x.raw, buffers.x.address),
                *(self._problem.y.raw, buffers.y.address),
            )
            if workspace.nbytes:
                scratch = (workspace.address, workspace.nbytes)
                miopen.call(
                    EXECUTE_WITH_WORKSPACE,
                    *(self._handle.raw, self.raw, *tensors, arguments.raw, *scratch),
                )
            else:
                miopen.call(
                    "miopenExecuteFusionPlan",
                    *(self._handle.raw, self.raw, *tensors, arguments.raw),
                )


class _OperatorArguments(Owned[OperatorArgsT]):
    def __init__(self) -> None:
        raw = OperatorArgsT()
        library.load().call("miopenCreateOperatorArgs", byref(raw))
        super().__init__(raw, _destroy_arguments)


def _destroy_plan(raw: FusionPlanT) -> None:
    library.load().call("miopenDestroyFusionPlan", raw)


def _destroy_arguments(raw: OperatorArgsT) -> None:
    library.load().call("miopenDestroyOperatorArgs", raw)
