"""One engine: forward convolution of one group as numpy's sliding windows times the filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hipdnn_registry import (
    CompiledPlan,
    ConvMode,
    Declined,
    Engine,
    EngineOffer,
    Knob,
    Provider,
    ProviderInfo,
    StringConstraint,
)
from hipdnn_registry.graph import ConvolutionFwdNode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hipdnn_registry import Graph, Resolution

ACCUMULATE = Knob(
    "sliding_window.accumulate",
    "Type that products are summed in",
    "float32",
    StringConstraint(valid_values=("float32", "float64")),
)


class SlidingWindowPlan(CompiledPlan):
    """What is known before any buffer is: which uids, how to pad and step, and the knob."""

    def __init__(self, node: ConvolutionFwdNode, accumulate: str) -> None:
        self._x, self._w = node.inputs.x_tensor_uid, node.inputs.w_tensor_uid
        self._y = node.outputs.y_tensor_uid
        parameters = node.parameters
        self._padding = [
            (0, 0),
            (0, 0),
            *zip(parameters.pre_padding, parameters.post_padding, strict=True),
        ]
        self._steps = tuple(slice(None, None, stride) for stride in parameters.stride)
        self._type = np.dtype(accumulate)

    def execute(
        self, buffers: Mapping[int, Any], workspace: Any | None, stream: int | None
    ) -> None:
        """Write y; needs no workspace and, on a CPU, no stream."""
        del workspace, stream
        x, w = buffers[self._x].astype(self._type), buffers[self._w].astype(self._type)
        axes = tuple(range(2, x.ndim))
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(x, self._padding), w.shape[2:], axes
        )[(slice(None), slice(None), *self._steps)]
        taps = tuple(range(x.ndim, windows.ndim))
        y = np.tensordot(windows, w, axes=((1, *taps), tuple(range(1, w.ndim))))
        buffers[self._y][...] = np.moveaxis(y, -1, 1)


class SlidingWindowEngine(Engine):
    """Serves single forward convolutions of one group without dilation."""

    name = "SLIDING_WINDOW_ENGINE"
    description = "Forward convolution by numpy's sliding windows"
    priority = -50

    def query(self, graph: Graph) -> EngineOffer | Declined:
        """Accept, with the knob, or say which node or tensor is in the way."""
        node = graph.nodes[0]
        if len(graph.nodes) != 1 or not isinstance(node, ConvolutionFwdNode):
            return Declined("takes a single forward convolution only")
        x, w = graph.tensors[node.inputs.x_tensor_uid], graph.tensors[node.inputs.w_tensor_uid]
        if x.data_type not in {"float", "double"}:
            return Declined(f"tensor {x.label} is of type {x.data_type}, not float or double")
        if x.dims and w.dims and x.dims[1] != w.dims[1]:
            return Declined(f"node '{node.name}' has {x.dims[1] // w.dims[1]} groups, not one")
        if max(node.parameters.dilation) > 1 or node.parameters.conv_mode is ConvMode.CONVOLUTION:
            return Declined(f"node '{node.name}' dilates or flips the filter")
        return EngineOffer(knobs=[ACCUMULATE])

    def build(self, graph: Graph, resolution: Resolution) -> CompiledPlan:
        """Build the plan; the resolution holds every knob's effective value."""
        (node,) = graph.nodes
        assert isinstance(node, ConvolutionFwdNode)
        return SlidingWindowPlan(node, resolution["sliding_window.accumulate"])


class SlidingWindowProvider(Provider):
    """Who the provider is; its name is also the first part of its knobs' ids."""

    info = ProviderInfo("sliding_window", "1.0.0", description="Example of a provider")

    def engines(self) -> Sequence[Engine]:
        """Return the one engine."""
        return [SlidingWindowEngine()]
