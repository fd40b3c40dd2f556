"""Prints what each tuning policy did to each kind of problem: the table of
docs/miopen-tuning-policy.md. Run it inside a tree, from the repository's root:

hipdnn emulator run --accept-only -- python -m tests.native.measure
hipdnn emulator run --accept-only -- python -m tests.native.measure fused \\
    MIOPEN_FIND_MODE_FUSION=NORMAL

Arguments are names of the measurements (all by default) and settings of MIOpen. With
MIOPEN_EMULATOR_ASM=1 in the environment solvers with assembly kernels take part.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import (
    BatchNormMode,
    ConvolutionMode,
    DataType,
    Direction,
    NativeError,
    TensorOp,
    TuningPolicy,
    pointwise,
)
from tests.native.environment import WITH_ASSEMBLY, private_environment
from tests.native.observe import observe
from tests.native.problems import batchnorm_case, convolution_case, fresh_handle

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from hipdnn_miopen_provider.native import Handle
    from tests.native.problems import Convolution

    Step = Callable[[TuningPolicy, bool], object]

STEPS = [
    (TuningPolicy.NONE, False),
    (TuningPolicy.DB_UPDATE, False),
    (TuningPolicy.SEARCH, False),
    (TuningPolicy.SEARCH, False),
    (TuningPolicy.DB_UPDATE, False),
    (TuningPolicy.DB_UPDATE, True),
    (TuningPolicy.SEARCH_DB_UPDATE, False),
    (TuningPolicy.DB_CLEAN, False),
    (TuningPolicy.NONE, False),
]


def measure(name: str, step: Step) -> None:
    """Runs the policies in turn on one problem, a fresh handle each, and prints what was seen."""
    print(f"\n{name}")
    for policy, exhaustive in STEPS:
        error = ""
        with observe() as seen:
            try:
                step(policy, exhaustive)
            except (NativeError, ValueError) as failure:
                error = f"  {failure}"
        print(
            f"  {policy.value} {policy.name:16} {'T' if exhaustive else 'F'} searched "
            f"{len(seen.searched)} loaded {len(seen.loaded)} +{len(seen.added)} "
            f"-{len(seen.removed)} perf-db {'written' if seen.perf_db_written else '-':8} "
            f"find-db {'written' if seen.find_db_written else '-':8} launches {seen.launches:4} "
            f"{sorted({key for key, _ in seen.added})}{error}",
            flush=True,
        )


@dataclass(frozen=True)
class Geometry:
    """Dimensions of x and w, and what else makes a convolution."""

    name: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    padding: int = 1
    groups: int = 1
    mode: ConvolutionMode = ConvolutionMode.Convolution
    dtype: DataType = DataType.Float
    nhwc: bool = False

    def case(self, direction: Direction) -> AbstractContextManager[Convolution]:
        return convolution_case(
            direction,
            self.x,
            self.w,
            padding=self.padding,
            groups=self.groups,
            mode=self.mode,
            dtype=self.dtype,
            nhwc=self.nhwc,
        )


CONVOLUTIONS = (
    Geometry("2-D", (2, 8, 16, 20), (4, 8, 3, 5)),
    Geometry("3-D", (2, 8, 6, 10, 12), (4, 8, 3, 3, 3)),
    Geometry("grouped", (2, 8, 16, 20), (4, 4, 3, 3), groups=2),
    Geometry("depthwise", (2, 8, 16, 20), (8, 1, 3, 3), groups=8),
    Geometry("transposed", (2, 8, 16, 20), (8, 4, 3, 3), mode=ConvolutionMode.Transpose),
    Geometry("1-D as 2-D", (2, 8, 1, 32), (4, 8, 1, 3)),
    Geometry("half", (2, 16, 16, 20), (16, 16, 3, 3), dtype=DataType.Half),
    Geometry("bfloat16", (2, 16, 16, 20), (16, 16, 3, 3), dtype=DataType.BFloat16),
    Geometry("half NHWC", (2, 8, 16, 20), (4, 8, 3, 3), dtype=DataType.Half, nhwc=True),
)

FUSED = (
    Geometry("3x3", (2, 8, 16, 24), (8, 8, 3, 3)),
    Geometry("3x3 of 64 channels", (16, 64, 28, 28), (64, 64, 3, 3)),
    Geometry("1x1", (2, 16, 16, 24), (16, 16, 1, 1), padding=0),
    Geometry("grouped", (2, 8, 16, 24), (8, 4, 3, 3), groups=2),
    Geometry("half", (2, 16, 16, 24), (16, 16, 3, 3), dtype=DataType.Half),
    Geometry("half NHWC", (2, 16, 16, 24), (16, 16, 3, 3), dtype=DataType.Half, nhwc=True),
    Geometry("3-D", (2, 8, 6, 10, 12), (8, 8, 3, 3, 3)),
)


def measure_convolutions() -> None:
    for geometry in CONVOLUTIONS:
        for direction in Direction:
            with geometry.case(direction) as case:
                measure(f"{geometry.name} {direction.name}", find(case))


def measure_fused() -> None:
    for geometry in FUSED:
        with geometry.case(Direction.FORWARD) as case:
            measure(f"fused find, {geometry.name}", fused_find(case))
            measure(f"single call, {geometry.name}", without_flag(case.fused_call))
            if os.environ.get("MIOPEN_FIND_MODE_FUSION") == "NORMAL":  # else 3 and 4 crash
                measure(f"fusion plan, {geometry.name}", without_flag(case.fusion_plan))


def find(case: Convolution) -> Step:
    return lambda policy, exhaustive: case.find(policy, exhaustive=exhaustive)


def fused_find(case: Convolution) -> Step:
    return lambda policy, exhaustive: case.fused_find(policy, exhaustive=exhaustive)


def without_flag(call: Callable[[TuningPolicy], object]) -> Step:
    return lambda policy, _: call(policy)


def on_fresh_handle(call: Callable[[Handle], object]) -> Step:
    def step(policy: TuningPolicy, _: bool) -> None:
        with fresh_handle(policy) as handle:
            call(handle)

    return step


def measure_batchnorm() -> None:
    for mode in BatchNormMode:
        for dims in ((4, 8, 16, 20), (4, 8, 5, 6, 7)):
            for fused in (False, True):
                with batchnorm_case(dims, mode) as case:
                    for call in (case.train, case.infer, case.backward):
                        name = f"{mode.name} batchnorm {call.__name__} {dims}"
                        step = on_fresh_handle(partial(call, fused=fused))
                        measure(f"{name}{' with ReLU' if fused else ''}", step)


def measure_pointwise() -> None:
    with convolution_case(Direction.FORWARD, (2, 8, 16, 20), (8, 8, 3, 3)) as case:
        x, y, bias = (case.problem.x, "x"), (case.problem.y, "y"), (case.bias[0], "bias")
        memory = {"x": case.buffers.x, "y": case.buffers.y}

        def relu(handle: Handle) -> None:
            pointwise.activation_forward(handle, case.relu, x, y).bind(**memory)()

        def add(handle: Handle) -> None:
            call = pointwise.op_tensor(handle, TensorOp.Add, x, bias, y)
            call.bind(**memory, bias=case.bias[1])()

        measure("pointwise ReLU", on_fresh_handle(relu))
        measure("pointwise add", on_fresh_handle(add))


MEASUREMENTS = {
    "convolution": measure_convolutions,
    "fused": measure_fused,
    "batchnorm": measure_batchnorm,
    "pointwise": measure_pointwise,
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = private_environment(Path(folder))
        if os.environ.get("MIOPEN_EMULATOR_ASM"):
            settings |= WITH_ASSEMBLY
        os.environ.update(settings)
        names = [argument for argument in sys.argv[1:] if "=" not in argument]
        os.environ.update(dict(a.split("=", 1) for a in sys.argv[1:] if "=" in a))
        for name in names or MEASUREMENTS:
            MEASUREMENTS[name]()


if __name__ == "__main__":
    main()
