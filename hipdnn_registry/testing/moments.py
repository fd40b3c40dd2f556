"""A graph with a rounding error in the moments of its batch statistics.

Arithmetic keeps a mean and a variance in numbers of its own precision, and may take the variance
as the difference of two moments, the mean of the squares and the square of the mean, as MIOpen's
kernels do. How far a rounding error there moves a result is not what the inputs decide: of two
values, with d half their distance, h = +-d / sqrt(d**2 + epsilon) is almost +-1 whatever they are.
The gradient dy - mean(dy) - h * mean(dy * h) is then the part epsilon / (d**2 + epsilon) of its
terms, exactly; but only as long as one and the same h is squared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hipdnn_registry.graph import (
    BACKWARD_EPSILON,
    BatchnormBackwardNode,
    BatchnormNode,
    DataType,
    Graph,
)

if TYPE_CHECKING:
    from hipdnn_registry.graph import TensorAttributes, Wiring

_DOUBLE = DataType.DOUBLE


def computes_statistics(wiring: Wiring) -> bool:
    """Whether a node takes the statistics of a batch itself."""
    node, given = wiring.node, "mean" in wiring.inputs
    return isinstance(node, BatchnormNode) or (
        isinstance(node, BatchnormBackwardNode) and not given
    )


def with_rounded_moments(graph: Graph, rounding: float) -> Graph:
    """Return a graph of the same inputs that computes the same outputs with statistics a bit off.

    Means are multiplied by 1 - rounding and means of squares by 1 + rounding: the variance between
    them moves by the sum of both errors, and stays positive. Running statistics are of the exact
    ones. It has further outputs, since a graph can't leave out what a node computes.

    Args:
        graph: A validated graph; its tensors keep their uids.
        rounding: The relative error.
    """
    near = graph.copy()
    given: dict[int, tuple[TensorAttributes, TensorAttributes]] = {}
    replaced: list[tuple[TensorAttributes, TensorAttributes]] = []
    for wiring in filter(computes_statistics, graph.structure.wirings):
        ports = {port: near.find_tensor(uid) for port, uid in wiring.input_uids}
        results = {port: near.find_tensor(uid) for port, uid in wiring.output_uids}
        mean, inv_variance = _statistics(near, ports, rounding)
        if isinstance(wiring.node, BatchnormBackwardNode):
            given[wiring.output_uids[0][1]] = mean, inv_variance
            continue
        y = near.batchnorm_inference(
            *(ports["x"], mean, inv_variance, ports["scale"], ports["bias"]),
            compute_data_type=_DOUBLE,
        )
        replaced.append((results["y"], y.set_output(True).set_data_type(results["y"].data_type)))
        for port, value in (("mean", mean), ("inv_variance", inv_variance)):
            if port in results:
                copy = _pointwise(near, "identity", value).set_output(True)
                replaced.append((results[port], copy))
    form = near.to_dict()
    swapped = {a.uid: b.uid for pair in replaced for a, b in (pair, pair[::-1])}
    for node in form["nodes"]:
        _rewire(node, swapped, given)
    return Graph.from_json(form)


def _rewire(
    node: dict[str, Any],
    swapped: dict[int | None, int | None],
    given: dict[int, tuple[TensorAttributes, TensorAttributes]],
) -> None:
    """Let a node of the JSON form write other tensors, or read statistics that it computed."""
    outputs: dict[str, Any] = node["outputs"]
    for port, uid in outputs.items():
        if uid in given:
            mean, inv_variance = given[uid]
            node["inputs"]["mean_tensor_uid"] = mean.uid
            node["inputs"]["inv_variance_tensor_uid"] = inv_variance.uid
        if uid in swapped:
            outputs[port] = swapped[uid]


def _statistics(
    graph: Graph, ports: dict[str, TensorAttributes], rounding: float
) -> tuple[TensorAttributes, TensorAttributes]:
    """Add the mean and the inverse variance of x, from moments that are rounded."""
    x, scale = ports["x"], ports["scale"]
    epsilon = ports.get("epsilon") or graph.scalar(BACKWARD_EPSILON, _DOUBLE)
    exact = graph.batchnorm(x, scale, scale, epsilon, compute_data_type=_DOUBLE)
    exact.y.set_output(True).set_data_type(x.data_type)  # nobody reads it
    exact_mean, inverse = (t.set_data_type(_DOUBLE) for t in (exact.mean, exact.inv_variance))
    variance = _pointwise(graph, "reciprocal", _pointwise(graph, "mul", inverse, inverse))
    square = _pointwise(graph, "add", variance, _pointwise(graph, "mul", exact_mean, exact_mean))
    below, above = (graph.scalar(1 + error, _DOUBLE) for error in (-rounding, rounding))
    mean = _pointwise(graph, "mul", exact_mean, below)
    difference = _pointwise(
        *(graph, "sub", _pointwise(graph, "mul", square, above)),
        _pointwise(graph, "mul", mean, mean),
    )
    return mean.set_output(True), _pointwise(graph, "rsqrt", difference).set_output(True)


def _pointwise(graph: Graph, operation: str, *operands: TensorAttributes) -> TensorAttributes:
    result = graph.pointwise(operation, *operands, compute_data_type=_DOUBLE)
    return result.set_data_type(_DOUBLE)
