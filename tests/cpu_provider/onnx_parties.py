"""One-node ONNX models, run by onnxruntime or by onnx's reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator


def _model(op: str, inputs: dict[str, np.ndarray], outputs: int, **attributes: Any) -> Any:
    names = [f"out{index}" for index in range(outputs)]
    values = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
    ]
    kind = values[0].type.tensor_type.elem_type
    graph = helper.make_graph(
        [helper.make_node(op, list(inputs), names, **attributes)],
        op,
        values,
        [helper.make_tensor_value_info(name, kind, None) for name in names],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=onnx.IR_VERSION_2023_5_5
    )


def onnxruntime_run(op: str, *inputs: np.ndarray, **attributes: Any) -> np.ndarray:
    """The first output of ``op`` by onnxruntime's CPU provider."""
    named = {f"in{index}": np.ascontiguousarray(array) for index, array in enumerate(inputs)}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        _model(op, named, 1, **attributes).SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
    )
    result: np.ndarray = session.run(None, named)[0]
    return result


def reference_run(
    op: str, *inputs: np.ndarray, outputs: int = 1, **attributes: Any
) -> list[np.ndarray]:
    """All outputs of ``op`` by onnx's reference evaluator."""
    named = {f"in{index}": np.ascontiguousarray(array) for index, array in enumerate(inputs)}
    evaluator = ReferenceEvaluator(_model(op, named, outputs, **attributes))
    result: list[np.ndarray] = evaluator.run(None, named)
    return result
