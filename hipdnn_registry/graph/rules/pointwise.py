"""Shapes of the elementwise operations: operands broadcast to the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hipdnn_registry.graph.types import PointwiseMode

if TYPE_CHECKING:
    from hipdnn_registry.graph.nodes import PointwiseNode
    from hipdnn_registry.graph.tensor import TensorAttributes
    from hipdnn_registry.graph.wiring import Wiring


def apply_pointwise(wiring: Wiring) -> None:
    """out_0 from in_0, in_1, in_2; a scalar of dims [1] broadcasts to any rank."""
    settings = cast("PointwiseNode", wiring.node).inputs
    mode = settings.operation
    if mode is PointwiseMode.UNSET:
        wiring.fail("pointwise.operation", "operation is not set")
    operands = [f"in_{index}" for index in range(3)]
    for index, port in enumerate(operands):
        if (index < mode.arity) != (port in wiring.inputs):
            wiring.fail(
                "pointwise.operands",
                f"operation '{mode}' takes {mode.arity} operand(s), but {port} is "
                f"{'set' if port in wiring.inputs else 'missing'}",
            )
    lower, upper = settings.relu_lower_clip, settings.relu_upper_clip
    if lower is not None and upper is not None and lower > upper:
        wiring.fail("pointwise.clips", f"relu_lower_clip {lower} is above relu_upper_clip {upper}")
    tensors = [wiring.inputs[port] for port in operands[: mode.arity]]
    out = wiring.outputs["out_0"]
    dims = _broadcast(wiring, tensors)
    if out.dims is not None and _fits(dims, out.dims):
        dims = out.dims  # a result may be larger than all its operands
    like = max(tensors, key=lambda tensor: tensor.element_count)  # a broadcast bias has no layout
    wiring.settle(out, dims, like=like, why="the operands' broadcast shape")


def _fits(dims: tuple[int, ...], target: tuple[int, ...]) -> bool:
    if dims == (1,):
        return True
    return len(dims) == len(target) and all(
        extent in {1, wanted} for extent, wanted in zip(dims, target, strict=True)
    )


def _broadcast(wiring: Wiring, tensors: list[TensorAttributes]) -> tuple[int, ...]:
    result: tuple[int, ...] = (1,)
    for tensor in tensors:
        dims = wiring.dims(tensor)
        if dims == (1,):
            continue
        if result == (1,):
            result = dims
            continue
        if len(dims) != len(result) or any(
            1 not in pair and pair[0] != pair[1] for pair in zip(dims, result, strict=True)
        ):
            wiring.fail(
                "pointwise.broadcast",
                f"dims {list(dims)} do not broadcast with {list(result)}: each extent must be "
                "equal or 1",
                tensor,
            )
        result = tuple(max(pair) for pair in zip(dims, result, strict=True))
    return result
