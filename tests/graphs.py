"""Graphs that many tests need."""

from __future__ import annotations

from collections.abc import Sequence

from hipdnn_registry import DataType, Graph, TensorAttributes

FLOAT = DataType.FLOAT


def new_graph(name: str = "test", io: DataType = FLOAT) -> Graph:
    return Graph(name, io_data_type=io, intermediate_data_type=FLOAT, compute_data_type=FLOAT)


def conv_graph(
    x: Sequence[int] = (2, 4, 8, 8),
    w: Sequence[int] = (6, 4, 3, 3),
    padding: int | Sequence[int] = 1,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    io: DataType = FLOAT,
) -> Graph:
    graph = new_graph("conv", io)
    image = graph.tensor(dims=x, name="x")
    filters = graph.tensor(dims=w, name="w")
    y = graph.conv_fprop(image, filters, padding=padding, stride=stride, dilation=dilation)
    y.set_output().set_name("y")
    return graph


def relu_graph(dims: Sequence[int] = (2, 3), uid_base: int = 0, names: str = "xy") -> Graph:
    graph = new_graph("relu")
    x = graph.tensor(dims=dims, name=names[0], uid=uid_base)
    graph.pointwise("relu_fwd", x).set_output().set_name(names[1]).set_uid(uid_base + 1)
    return graph


def fused_graph() -> Graph:
    """conv + bias + residual add + relu: four nodes, three of them pointwise."""
    graph = new_graph("fused")
    x = graph.tensor(dims=[2, 4, 8, 8], name="x")
    w = graph.tensor(dims=[6, 4, 3, 3], name="w")
    bias = graph.tensor(dims=[1, 6, 1, 1], name="bias")
    residual = graph.tensor(dims=[2, 6, 8, 8], name="residual")
    y = graph.conv_fprop(x, w, padding=1)
    y = graph.pointwise("add", y, bias)
    y = graph.pointwise("add", y, residual)
    graph.pointwise("relu_fwd", y).set_output().set_name("y")
    return graph


def batchnorm_graph(
    x: Sequence[int] = (2, 3, 4, 4), *, running: bool = True, per_activation: bool = False
) -> Graph:
    graph = new_graph("batchnorm")
    stats = [1, *x[1:]] if per_activation else [1, x[1], *[1] * (len(x) - 2)]

    def parameter(name: str) -> TensorAttributes:
        return graph.tensor(dims=stats, name=name)

    result = graph.batchnorm(
        graph.tensor(dims=x, name="x"),
        parameter("scale"),
        parameter("bias"),
        graph.scalar(1e-5, name="epsilon"),
        prev_running_mean=parameter("prev_mean") if running else None,
        prev_running_variance=parameter("prev_variance") if running else None,
        momentum=graph.scalar(0.1, name="momentum") if running else None,
    )
    for tensor, name in zip(
        result, ("y", "mean", "inv_variance", "next_mean", "next_variance"), strict=True
    ):
        if tensor is not None:
            tensor.set_output().set_name(name)
    return graph
