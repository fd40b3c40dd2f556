"""Graphs for MIOpen's engines, and what is needed to run them through the registry."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.plan import MiopenPlan
from hipdnn_registry import DataType, EngineRegistry, Graph
from tests.graphs import batchnorm_graph, conv_graph, new_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hipdnn_registry import DeviceBuffer, ExecutionPlan, TensorAttributes

ENGINE, DETERMINISTIC = "MIOPEN_ENGINE", "MIOPEN_ENGINE_DETERMINISTIC"
POLICY, BENCHMARKING = "miopen.tuning_policy", "global.benchmarking"
LIMIT = "global.workspace_size_limit"
FIND_MODE = "miopen.find_mode"
FLOAT, HALF, BFLOAT16 = DataType.FLOAT, DataType.HALF, DataType.BFLOAT16


def new_registry(**options: Any) -> EngineRegistry:
    """A registry of the installed MIOpen provider alone."""
    return EngineRegistry(allow=["miopen"], **options)


def miopen_plan(plan: ExecutionPlan) -> MiopenPlan:
    """What the engine built."""
    compiled = plan._compiled
    assert isinstance(compiled, MiopenPlan)
    return compiled


@contextmanager
def buffers_for(plan: ExecutionPlan) -> Iterator[dict[Any, DeviceBuffer]]:
    """Device buffers for every tensor that takes one, by uid."""
    memory = plan.device_memory
    assert memory is not None
    with ExitStack() as stack:
        yield {
            tensor.uid: stack.enter_context(memory.allocate(tensor.span_bytes))
            for tensor in plan.graph.io_tensors
        }


def run(plan: ExecutionPlan) -> None:
    """Execute a plan on buffers of its own, with its own workspace and with a given one."""
    assert plan.device_memory is not None
    with buffers_for(plan) as buffers:
        plan.execute(buffers)
        if plan.workspace_size:
            with plan.device_memory.allocate(plan.workspace_size) as workspace:
                plan.execute(buffers, workspace)


def conv_forward(width: int = 16) -> Graph:
    return conv_graph((2, 8, 16, width), (8, 8, 3, 3))


def conv_backward_data(width: int = 16) -> Graph:
    graph = new_graph("dgrad")
    dy = graph.tensor(dims=[2, 8, 16, width], name="dy")
    w = graph.tensor(dims=[8, 8, 3, 3], name="w")
    graph.conv_dgrad(dy, w, padding=1).set_output().set_name("dx")
    return graph


def conv_backward_weights(width: int = 16) -> Graph:
    graph = new_graph("wgrad")
    dy = graph.tensor(dims=[2, 4, 12, width], name="dy")
    x = graph.tensor(dims=[2, 8, 12, width], name="x")
    graph.conv_wgrad(dy, x, padding=1).set_dim([4, 8, 3, 3]).set_output().set_name("dw")
    return graph


def conv_bias_relu(
    width: int = 16,
    *,
    bias: bool = True,
    activation: str | None = "relu_fwd",
    io: DataType = FLOAT,
    spatial: tuple[int, ...] = (16,),
    **clips: float,
) -> Graph:
    graph = new_graph("fused", io)
    rank = len(spatial) + 1
    x = graph.tensor(dims=[2, 8, *spatial, width], name="x")
    y = graph.conv_fprop(x, graph.tensor(dims=[8, 8, *[3] * rank], name="w"), padding=1)
    if bias:
        y = graph.pointwise("add", y, graph.tensor(dims=[1, 8, *[1] * rank], name="bias"))
    if activation is not None:
        y = graph.pointwise(activation, y, **clips)  # type: ignore[arg-type]  # clips are float
    y.set_output().set_name("y")
    return graph


def bn_training(width: int = 16) -> Graph:
    return batchnorm_graph((4, 8, 16, width))


def bn_training_relu(width: int = 16, *, running: bool = True) -> Graph:
    graph = new_graph("batchnorm + relu")
    stats = [1, 8, 1, 1]

    def parameter(name: str) -> TensorAttributes:
        return graph.tensor(dims=stats, name=name)

    result = graph.batchnorm(
        graph.tensor(dims=[4, 8, 16, width], name="x"),
        parameter("scale"),
        parameter("bias"),
        graph.scalar(1e-5, name="epsilon"),
        prev_running_mean=parameter("prev_mean") if running else None,
        prev_running_variance=parameter("prev_variance") if running else None,
        momentum=graph.scalar(0.1, name="momentum") if running else None,
    )
    for tensor, name in zip(
        result[1:], ("mean", "inv_variance", "next_mean", "next_variance"), strict=True
    ):
        if tensor is not None:
            tensor.set_output().set_name(name)
    graph.pointwise("relu_fwd", result.y).set_output().set_name("y")
    return graph


def bn_backward(width: int = 16, *, saved: bool = True) -> Graph:
    graph = new_graph("batchnorm backward")
    dy, x = (graph.tensor(dims=[4, 8, 16, width], name=name) for name in ("dy", "x"))
    scale, mean, inv_variance = (
        graph.tensor(dims=[1, 8, 1, 1], name=name) if name == "scale" or saved else None
        for name in ("scale", "mean", "inv_variance")
    )
    assert scale is not None
    result = graph.batchnorm_backward(dy, x, scale, mean=mean, inv_variance=inv_variance)
    for tensor, name in zip(result, ("dx", "dscale", "dbias"), strict=True):
        tensor.set_output().set_name(name)
    return graph


def bn_inference(width: int = 16, *, inverse: bool = True, activation: str | None = None) -> Graph:
    graph = new_graph("batchnorm inference")
    x = graph.tensor(dims=[4, 8, 16, width], name="x")
    mean, variance, scale, bias = (
        graph.tensor(dims=[1, 8, 1, 1], name=name) for name in ("mean", "var", "scale", "bias")
    )
    if inverse:
        y = graph.batchnorm_inference(x, mean, variance, scale, bias)
    else:
        epsilon = graph.scalar(1e-5, name="epsilon")
        y = graph.batchnorm_inference_variance_ext(x, mean, variance, scale, bias, epsilon)
    if activation is not None:
        y = graph.pointwise(activation, y)
    y.set_output().set_name("y")
    return graph


def bn_backward_relu(width: int = 16) -> Graph:
    """The gradient through relu(batchnorm_inference(x))."""
    graph = new_graph("batchnorm + relu backward")
    dy, x = (graph.tensor(dims=[4, 8, 16, width], name=name) for name in ("dy", "x"))
    mean, inv_variance, scale, bias = (
        graph.tensor(dims=[1, 8, 1, 1], name=n) for n in ("mean", "inv_variance", "scale", "bias")
    )
    y = graph.batchnorm_inference(x, mean, inv_variance, scale, bias)
    dy = graph.pointwise("relu_bwd", dy, y)
    result = graph.batchnorm_backward(dy, x, scale, mean=mean, inv_variance=inv_variance)
    for tensor, name in zip(result, ("dx", "dscale", "dbias"), strict=True):
        tensor.set_output().set_name(name)
    return graph


TUNABLE = {
    "forward": conv_forward,
    "backward data": conv_backward_data,
    "backward weights": conv_backward_weights,
    "fused": conv_bias_relu,
    "batchnorm training": bn_training,
    "batchnorm backward": bn_backward,
}
