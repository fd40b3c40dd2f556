"""What the provider adds to MIOpen's own calls: when a plan is built, and when it is executed.

The peer makes the same calls of libMIOpen and libamdhip64 by bare ctypes, in the same process. Both
sides take turns, so that what MIOpen keeps (kernels, databases in memory) serves both alike. On a
machine without an AMD GPU it runs on the stand-ins, twice: kernels are compiled, loaded and run
where MIOpen's work for a plan is measured, and accepted only, in no time, where it is to be small:

    hipdnn emulator run -- python -m benchmarks.miopen_overhead
    hipdnn emulator run --accept-only -- python -m benchmarks.miopen_overhead
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from ctypes import byref, c_float, c_int, c_size_t, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_emulator.launcher import KERNELS_VARIABLE
from hipdnn_registry import DataType, EngineRegistry, Graph

from .figures import Figure, print_figures
from .miopen_execution import (
    bare_batchnorm_training,
    bare_fused_convolution,
    batchnorm_training,
    execution_figures,
    fused_convolution,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

HAS_GPU = Path("/dev/kfd").exists()
"""Whether AMD's kernel driver is there, so an AMD GPU can be used."""

X, W = (16, 64, 28, 28), (64, 64, 3, 3)
Dims = tuple[int, ...]
POLICY = "miopen.tuning_policy"
_FLOAT, _CONVOLUTION, _NORMAL = 1, 0, 1
_NONE, _SEARCH_DB_UPDATE = 1, 4
_ONE, _ZERO = byref(c_float(1)), byref(c_float(0))


class Perf(ctypes.Structure):
    """miopenConvAlgoPerf_t."""

    _fields_ = (("algo", c_int), ("time", c_float), ("memory", c_size_t))


class Bare:
    """The calls of a convolution's plan by bare ctypes; checks that each succeeds."""

    def __init__(self) -> None:
        self.miopen, self.hip = ctypes.CDLL("libMIOpen.so.1"), ctypes.CDLL("libamdhip64.so")

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of MIOpen."""
        status = getattr(self.miopen, name)(*arguments)
        assert status == 0, (name, status)

    def tensor(self, dims: tuple[int, ...]) -> c_void_p:
        """Return a packed float tensor's descriptor."""
        descriptor, strides = c_void_p(), [1]
        for extent in reversed(dims[1:]):
            strides.insert(0, strides[0] * extent)
        ints = c_int * len(dims)
        self.call("miopenCreateTensorDescriptor", byref(descriptor))
        self.call(
            "miopenSetTensorDescriptor",
            *(descriptor, _FLOAT, len(dims), ints(*dims), ints(*strides)),
        )
        return descriptor

    @contextmanager
    def memory(self, nbytes: int) -> Iterator[c_void_p]:
        """Lend device memory."""
        pointer = c_void_p()
        if nbytes:
            assert self.hip.hipMalloc(byref(pointer), c_size_t(nbytes)) == 0
        yield pointer
        if nbytes:
            assert self.hip.hipFree(pointer) == 0

    @contextmanager
    def plan(self, policy: int, dims: Dims = X) -> Iterator[tuple[Any, ...]]:
        """Find under a policy, on a handle of its own; yield the arguments of the run."""
        handle, convolution = c_void_p(), c_void_p()
        self.call("miopenCreateWithStream", byref(handle), None)
        x, w, y = self.tensor(dims), self.tensor(W), self.tensor(dims)
        self.call("miopenCreateConvolutionDescriptor", byref(convolution))
        pair = c_int * 2
        geometry = (2, pair(1, 1), pair(1, 1), pair(1, 1), _CONVOLUTION)
        self.call("miopenInitConvolutionNdDescriptor", convolution, *geometry)
        if policy != _NONE:
            self.call("miopenSetConvolutionFindMode", convolution, _NORMAL)
        size, returned, results = c_size_t(), c_int(), (Perf * 5)()
        self.call(
            "miopenConvolutionForwardGetWorkSpaceSize",
            *(handle, w, x, convolution, y, byref(size)),
        )
        with (
            self.memory(nbytes(dims)) as x_data,
            self.memory(nbytes(W)) as w_data,
            self.memory(nbytes(dims)) as y_data,
            self.memory(size.value) as workspace,
        ):
            self.call("miopenSetTuningPolicy", handle, policy)
            self.call(
                "miopenFindConvolutionForwardAlgorithm",
                *(handle, x, x_data, w, w_data, convolution, y, y_data),
                *(5, byref(returned), results, workspace, size, False),
            )
            self.call("miopenSetTuningPolicy", handle, _NONE)
        yield handle, x, w, convolution, results[0].algo, y, results[0].memory
        self.call("miopenDestroyConvolutionDescriptor", convolution)
        for descriptor in (x, w, y):
            self.call("miopenDestroyTensorDescriptor", descriptor)
        self.call("miopenDestroy", handle)


def nbytes(dims: Dims) -> int:
    """Return the bytes of a packed float tensor."""
    n, c, h, w = dims
    return 4 * n * c * h * w


def convolution(dims: Dims = X) -> Graph:
    """Return the same convolution as a graph."""
    graph = Graph("conv", io_data_type=DataType.FLOAT, compute_data_type=DataType.FLOAT)
    x, w = graph.tensor(dims=dims, name="x"), graph.tensor(dims=W, name="w")
    graph.conv_fprop(x, w, padding=1).set_output().set_name("y")
    return graph.validate()


def _in_turns(
    first: Callable[[], object], second: Callable[[], object], rounds: int
) -> tuple[float, float]:
    """Return the best CPU times in ms of two actions that take turns.

    CPU time of the whole process, since MIOpen compiles in threads, and the machine may be shared.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for action, measured in zip((first, second), times, strict=True):
            start = time.process_time()
            action()
            measured.append((time.process_time() - start) * 1e3)
    return min(times[0]), min(times[1])


def _building_figure(bare: Bare, policy: int, what: str, rounds: int) -> Figure:
    registry, graph = EngineRegistry(allow=["miopen"], plan_cache_size=0), convolution()
    settings = {POLICY: policy}

    def by_hand() -> None:
        with bare.plan(policy):
            pass

    def by_registry() -> None:
        registry.create_execution_plan_ext(graph, "MIOPEN_ENGINE", settings)

    by_hand()
    by_registry()
    plain, ours = _in_turns(by_hand, by_registry, rounds)
    return Figure(
        f"building a plan, {what}",
        ours / plain,
        "x",
        1.05,
        detail=f"{ours:.2f} ms, bare calls {plain:.2f} ms",
    )


def _first_building_figure(bare: Bare, rounds: int) -> Figure:
    """Each problem is new to MIOpen, so that it compiles and measures. Both sides take turns."""
    registry = EngineRegistry(allow=["miopen"], plan_cache_size=0)
    times: tuple[list[float], list[float]] = ([], [])
    for round_ in range(4 * rounds):
        side = (round_ + round_ // 2) % 2  # 0 1 1 0: neither side gets all the even widths
        dims = (1, X[1], 7, 7 + round_)  # small: the CPU runs every solver's kernels
        graph = convolution(dims)
        registry.get_engine_config(graph, "MIOPEN_ENGINE")
        start = time.process_time()
        if side:
            registry.create_execution_plan_ext(graph, "MIOPEN_ENGINE", {POLICY: _NONE})
        else:
            with bare.plan(_NONE, dims):
                pass
        times[side].append((time.process_time() - start) * 1e3)
    plain, ours = (statistics.median(measured) for measured in times)
    return Figure(
        "building a plan, policy None, problem new to MIOpen",
        ours / plain,
        "x",
        1.05,
        detail=f"{ours:.1f} ms, bare calls {plain:.1f} ms",
    )


def _execution_figures(bare: Bare, repeat: int) -> list[Figure]:
    with bare.plan(_NONE) as (handle, x_desc, w_desc, conv, algorithm, y_desc, need):

        def convolve(at: Mapping[str, c_void_p], workspace: c_void_p) -> Callable[[], object]:
            run = bare.miopen.miopenConvolutionForward
            arguments = (
                *(handle, _ONE, x_desc, at["x"], w_desc, at["w"], conv, algorithm, _ZERO),
                *(y_desc, at["y"], workspace, c_size_t(need)),
            )
            return lambda: run(*arguments)

        figures = execution_figures("convolution", convolution(), convolve, repeat)
    with bare_batchnorm_training(bare) as normalize:
        figures += execution_figures("batchnorm training", batchnorm_training(), normalize, repeat)
    with bare_fused_convolution(bare) as fused:
        figures += execution_figures("fused convolution", fused_convolution(), fused, repeat)
    return figures


def miopen_figures(repeat: int, *, executed: bool, accepted: bool) -> list[Figure]:
    """Measure both overheads on the MIOpen of this process.

    Args:
        repeat: Rounds of a measurement.
        executed: Measure what kernels have to be loaded, or run, for.
        accepted: Measure what is to be seen best where kernels take no time.
    """
    bare, known = Bare(), "policy None, problem in the find-db"
    figures = []
    if executed:
        figures.append(_first_building_figure(bare, 1 + repeat))
        figures.append(_building_figure(bare, _NONE, known, 10 * repeat))
    if accepted:
        figures.append(_building_figure(bare, _NONE, f"{known}, nothing to load", 20 * repeat))
        figures.append(_building_figure(bare, _SEARCH_DB_UPDATE, "policy SearchDbUpdate", repeat))
        figures += _execution_figures(bare, repeat)
    return figures


def figures_inside_a_tree(*, quick: bool) -> list[Figure]:
    """Measure in a process that has a libMIOpen: an AMD GPU's, or on the stand-ins.

    Returns:
        The figures; none, and a word on stderr, where there is neither.
    """
    measure = ["-m", "benchmarks.miopen_overhead", "--json", *(["--quick"] if quick else [])]
    emulate = [sys.executable, "-m", "hipdnn_miopen_emulator", "run", "--or-skip"]
    commands = [
        [*emulate, "--", "python", *measure],
        [*emulate, "--accept-only", "--", "python", *measure],
    ]
    if HAS_GPU:
        commands = [[sys.executable, *measure]]
    listed: list[dict[str, Any]] = []
    for command in commands:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        listed += json.loads(done.stdout) if done.stdout.strip() else []
    return [Figure(**{k: v for k, v in figure.items() if k != "reached"}) for figure in listed]


def main() -> None:
    """Print the figures, with databases of their own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.miopen_overhead")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR"):
            os.environ[name] = str(Path(folder) / name.lower())
            Path(os.environ[name]).mkdir()
        os.environ.setdefault("MIOPEN_LOG_LEVEL", "2")
        if not HAS_GPU:  # the stand-ins lack the assembly kernels
            os.environ["MIOPEN_DEBUG_GCN_ASM_KERNELS"] = "0"
            os.environ["MIOPEN_DEBUG_TUNING_ITERATIONS_MAX"] = "10"
        accept_only = os.environ.get(KERNELS_VARIABLE) == "accept"
        figures = miopen_figures(
            2 if options.quick else 10,
            executed=not accept_only,
            accepted=HAS_GPU or accept_only,
        )
        print_figures(figures, as_json=options.json)


if __name__ == "__main__":
    main()
