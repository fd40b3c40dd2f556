"""Forward convolutions of ResNet-50 (224x224, float32, NCHW): CPU_GEMM_ENGINE and onnxruntime.

Both run in this process with the same number of threads, in turn, and the best call counts.
onnxruntime gets the filter as a constant, so it may rearrange it ahead of time; the engine gets
it anew in every call, as hipDNN's execute does.

    python -m benchmarks.conv_vs_onnxruntime --batch 8
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from hipdnn_registry import DataType, Graph, default_registry

from .figures import Figure

if TYPE_CHECKING:
    from collections.abc import Callable

LAYERS = (
    # input channels, input height and width, output channels, taps, stride
    (3, 224, 64, 7, 2),
    (64, 56, 64, 1, 1),
    (64, 56, 64, 3, 1),
    (64, 56, 256, 1, 1),
    (256, 56, 64, 1, 1),
    (256, 56, 128, 1, 1),
    (128, 56, 128, 3, 2),
    (128, 28, 512, 1, 1),
    (256, 56, 512, 1, 2),
    (512, 28, 128, 1, 1),
    (128, 28, 128, 3, 1),
    (512, 28, 256, 1, 1),
    (256, 28, 256, 3, 2),
    (256, 14, 1024, 1, 1),
    (512, 28, 1024, 1, 2),
    (1024, 14, 256, 1, 1),
    (256, 14, 256, 3, 1),
    (1024, 14, 512, 1, 1),
    (512, 14, 512, 3, 2),
    (512, 7, 2048, 1, 1),
    (1024, 14, 2048, 1, 2),
    (2048, 7, 512, 1, 1),
    (512, 7, 512, 3, 1),
)
"""The distinct convolutions, with the stride in the 3x3 of a block (version 1.5)."""

HEADS = ("ms", "ort ms", "GFLOP/s", "ort", "speed")
TOLERANCE = 1e-4
"""Largest difference of the two results, relative to the largest output."""


@dataclass(frozen=True)
class Row:
    """One layer's result; times in milliseconds, speeds in GFLOP/s."""

    layer: str
    algorithm: str
    engine_ms: float
    onnxruntime_ms: float
    engine_gflops: float
    onnxruntime_gflops: float
    ratio: float
    difference: float


SETTLE_SECONDS = 0.15
"""Idle workers of BLAS and onnxruntime keep spinning for about this long after a call."""
CALLS_A_TURN = 3


def best_of(calls: list[Callable[[], Any]], turns: int) -> list[float]:
    """Shortest seconds of each call.

    They take turns, so that all meet the same disturbances. Each turn starts when the other's
    worker threads have gone to sleep, and with a call that does not count.
    """
    best = [math.inf] * len(calls)
    for _ in range(turns):
        for index, call in enumerate(calls):
            time.sleep(SETTLE_SECONDS)
            call()
            for _ in range(CALLS_A_TURN):
                start = time.perf_counter()
                call()
                best[index] = min(best[index], time.perf_counter() - start)
    return best


def onnxruntime_call(
    x: np.ndarray, w: np.ndarray, *, stride: int, padding: int, threads: int
) -> Callable[[], np.ndarray]:
    """A call that computes the convolution with onnxruntime's CPU provider."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[stride] * 2, pads=[padding] * 4)
    graph = helper.make_graph(
        [node],
        "conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w")],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=onnx.IR_VERSION_2023_5_5
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, {"x": x})[0]


def measure(
    layer: tuple[int, int, int, int, int], batch: int, repeat: int, threads: int, *, tune: bool
) -> Row:
    """Measure one layer and check that both results agree."""
    channels, size, outputs, taps, stride = layer
    graph = Graph(io_data_type=DataType.FLOAT, compute_data_type=DataType.FLOAT)
    shapes = {"x": (batch, channels, size, size), "w": (outputs, channels, taps, taps)}
    image, filters = (graph.tensor(dims=dims, name=name) for name, dims in shapes.items())
    result = graph.conv_fprop(image, filters, padding=taps // 2, stride=stride).set_output()
    result.set_name("y")
    plan = default_registry().create_execution_plan_ext(
        graph, "CPU_GEMM_ENGINE", {"global.benchmarking": int(tune)}
    )
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(dims, dtype=np.float32) for dims in shapes.values())
    y = np.empty(result.dims or (), np.float32)
    run = plan.bind({"x": x, "w": w, "y": y})
    reference = onnxruntime_call(x, w, stride=stride, padding=taps // 2, threads=threads)
    ours, theirs = best_of([run, reference], repeat)

    run()
    expected = reference()
    difference = float(np.abs(y - expected).max() / np.abs(expected).max())
    if not difference <= TOLERANCE:
        raise SystemExit(f"{layer}: results differ by {difference:.1e} (allowed {TOLERANCE:.0e})")
    flops = 2 * y.size * channels * taps * taps
    return Row(
        layer=f"{channels}x{size}x{size} -> {outputs}, {taps}x{taps}/{stride}",
        algorithm=plan.notes[0].split(": ")[1].split()[0],
        engine_ms=ours * 1e3,
        onnxruntime_ms=theirs * 1e3,
        engine_gflops=flops / ours / 1e9,
        onnxruntime_gflops=flops / theirs / 1e9,
        ratio=theirs / ours,
        difference=difference,
    )


def geometric_mean(rows: list[Row]) -> float:
    """Speed relative to onnxruntime over all layers."""
    return math.exp(math.fsum(math.log(row.ratio) for row in rows) / len(rows))


def convolution_figure(repeat: int, batch: int = 8) -> Figure:
    """Measure all layers, silently, and return the mean as a figure."""
    threads = max((info["num_threads"] for info in blas_info()), default=0)
    threads = threads or len(os.sched_getaffinity(0))
    rows = [measure(layer, batch, repeat, threads, tune=False) for layer in LAYERS]
    ratios = sorted(row.ratio for row in rows)
    return Figure(
        f"CPU_GEMM_ENGINE forward, ResNet-50, batch {batch}: speed / onnxruntime's",
        geometric_mean(rows),
        "x",
        0.7,
        at_most=False,
        detail=f"geometric mean of {len(rows)} layers, {ratios[0]:.2f} to {ratios[-1]:.2f}; "
        f"{threads} threads each",
    )


def blas_info() -> list[dict[str, Any]]:
    """What threadpoolctl knows of the BLAS in this process; empty if it is not installed."""
    try:
        from threadpoolctl import threadpool_info  # type: ignore[import-untyped]  # optional
    except ImportError:
        return []
    return [info for info in threadpool_info() if info["user_api"] == "blas"]


def main() -> None:
    """Measure all layers and print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=8, help="images (default 8)")
    parser.add_argument(
        "--repeat", type=int, default=5, help=f"turns of {CALLS_A_TURN} calls (default 5)"
    )
    parser.add_argument(
        "--threads", type=int, default=0, help="of both; default: what BLAS takes, one a core"
    )
    parser.add_argument("--tune", action="store_true", help="with global.benchmarking=1")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()

    blas = blas_info()
    threads = arguments.threads or max((info["num_threads"] for info in blas), default=0)
    threads = threads or len(os.sched_getaffinity(0))
    if arguments.threads:
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads)
    print(f"batch {arguments.batch}, {threads} threads, best of {arguments.repeat * CALLS_A_TURN}")
    print(
        f"numpy {np.__version__}, onnxruntime {onnxruntime.__version__}, {sys.version.split()[0]}"
    )
    for info in blas or [{"internal_api": "BLAS", "version": "? (threadpoolctl not installed)"}]:
        print(
            " ".join(str(info.get(key, "")) for key in ("internal_api", "version", "architecture"))
        )

    print(f"\n{'layer':32} {'algorithm':12}", *(f"{head:>8}" for head in HEADS))
    rows = []
    for layer in LAYERS:
        row = measure(layer, arguments.batch, arguments.repeat, threads, tune=arguments.tune)
        rows.append(row)
        print(
            f"{row.layer:32} {row.algorithm:12} {row.engine_ms:8.2f} {row.onnxruntime_ms:8.2f} "
            f"{row.engine_gflops:8.0f} {row.onnxruntime_gflops:8.0f} {row.ratio:8.2f}",
            flush=True,
        )
    mean = geometric_mean(rows)
    worst = max(row.difference for row in rows)
    print(f"\ngeometric mean of speed relative to onnxruntime: {mean:.2f}")
    print(f"largest difference relative to the largest output: {worst:.1e}")
    if arguments.json:
        result = {
            "batch": arguments.batch,
            "threads": threads,
            "numpy": np.__version__,
            "onnxruntime": onnxruntime.__version__,
            "blas": blas,
            "geometric_mean": mean,
            "layers": [asdict(row) for row in rows],
        }
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
