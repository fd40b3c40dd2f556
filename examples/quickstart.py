"""A convolution with bias and ReLU: graph, engines, knobs, plan, execution.

Run it with `python examples/quickstart.py`.
"""

from __future__ import annotations

import numpy as np

from hipdnn_registry import BufferKind, DataType, Graph, default_registry

FLOAT = DataType.FLOAT

graph = Graph(
    "quickstart", io_data_type=FLOAT, intermediate_data_type=FLOAT, compute_data_type=FLOAT
)
x = graph.tensor(dims=[8, 64, 56, 56], name="x")
w = graph.tensor(dims=[64, 64, 3, 3], name="w")
bias = graph.tensor(dims=[1, 64, 1, 1], name="bias")
y = graph.pointwise("add", graph.conv_fprop(x, w, padding=1), bias)
graph.pointwise("relu_fwd", y).set_output().set_name("y")

registry = default_registry()
engines = registry.get_engine_configs(graph)  # best first: on a machine with a GPU that comes first
for info in engines:
    print(f"{info.engine_name} ({info.buffer_kind}): {', '.join(info.knobs.ids) or 'no knobs'}")

# the best of those that take numpy arrays; engines on a device take buffers there
engine = next(info for info in engines if info.buffer_kind is BufferKind.HOST)
plan = registry.create_execution_plan_ext(graph, engine.engine_id, {"global.benchmarking": 1})
print(plan)

random = np.random.default_rng(seed=1)
buffers = {
    "x": random.standard_normal((8, 64, 56, 56), dtype=np.float32),
    "w": random.standard_normal((64, 64, 3, 3), dtype=np.float32),
    "bias": random.standard_normal((1, 64, 1, 1), dtype=np.float32),
    "y": np.empty((8, 64, 56, 56), dtype=np.float32),
}
plan.execute(buffers)
print(f"y: mean {buffers['y'].mean():.4f}, max {buffers['y'].max():.4f}")
