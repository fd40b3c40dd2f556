"""CPU_GEMM_ENGINE: convolutions as matrix products in blocks that fit a workspace."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hipdnn_registry import (
    Declined,
    Engine,
    EngineOffer,
    EnginePriority,
    benchmarking_knob,
    workspace_size_limit_knob,
)
from hipdnn_registry.graph import ConvolutionBwdNode, ConvolutionFwdNode, ConvolutionWrwNode
from hipdnn_registry.knobs.knob import BENCHMARKING_KNOB, WORKSPACE_SIZE_LIMIT_KNOB

from .kernels.arena import payload_bytes, workspace_bytes
from .kernels.conv_algorithms import Algorithm, algorithms
from .kernels.correlation import TooManyResiduesError
from .plan import CpuPlan
from .steps import Array, Arrays, ConvolutionProblem, Step, other_step
from .storage import Storage, plan_storage
from .support import unsupported

if TYPE_CHECKING:
    from hipdnn_registry import CompiledPlan, Graph, Resolution
    from hipdnn_registry.graph import Wiring

    from .kernels.geometry import TensorSpec

_TIMED_RUNS = 3  # the first of them also brings the scratch data into memory


@dataclass(frozen=True, slots=True)
class _Choice:
    """A convolution with the algorithms that it can be computed by, the likely best first."""

    problem: ConvolutionProblem
    candidates: tuple[Algorithm, ...]

    @property
    def least(self) -> int:
        return min(algorithm.min_workspace for algorithm in self.candidates)

    @property
    def most(self) -> int:
        return max(algorithm.max_workspace for algorithm in self.candidates)

    def within(self, budget: int) -> tuple[Algorithm, ...]:
        return tuple(a for a in self.candidates if a.min_workspace <= budget)


class CpuGemmEngine(Engine):
    """im2col and per-tap products, and Winograd's algorithm where it applies.

    Which one, is decided by shape, or with `global.benchmarking` by timing each on random data
    when the plan is built (that takes memory for one more set of the convolution's tensors, freed
    before the plan is returned). Arithmetic is float32, or float64 where the graph says double.
    """

    name = "CPU_GEMM_ENGINE"
    description = "Convolutions by BLAS in blocks within a workspace limit"
    priority = EnginePriority.HOST

    def query(self, graph: Graph) -> EngineOffer | Declined:
        """Serve any graph of the operations and types in `support`.

        `global.workspace_size_limit` is advertised where there is a convolution; its least value
        includes the virtual tensors that need memory of their own.
        """
        reason = unsupported(graph)
        if reason:
            return Declined(reason)
        try:
            choices, storage = _choices(graph), plan_storage(graph)
        except TooManyResiduesError as error:
            return Declined(str(error))
        least, most = _workspace_range(choices, storage)
        knobs = [benchmarking_knob()] if choices else []
        if choices:
            knobs.append(workspace_size_limit_knob(least, most))
        return EngineOffer(knobs, workspace_size=most)

    def estimate_workspace(self, graph: Graph, resolution: Resolution) -> int | None:
        """Return the limit where there is one: a plan takes no more."""
        del graph
        limit = resolution.settings.get(WORKSPACE_SIZE_LIMIT_KNOB)
        return None if limit is None else int(limit.value)

    def build(self, graph: Graph, resolution: Resolution) -> CompiledPlan:
        """Choose an algorithm for each convolution and bind it."""
        choices, storage = _choices(graph), plan_storage(graph)
        budget = 0
        if choices:
            budget = payload_bytes(resolution[WORKSPACE_SIZE_LIMIT_KNOB]) - storage.size
        measure = bool(choices) and resolution[BENCHMARKING_KNOB] == 1
        steps: list[Step] = []
        notes: list[str] = []
        scratch_size = 0
        for index, wiring in enumerate(graph.structure.wirings):
            choice = choices.get(index)
            if choice is None:
                steps.append(other_step(wiring, double=False))
                continue
            candidates = choice.within(budget)
            algorithm = candidates[0]
            reason = "by shape"
            if measure and len(candidates) > 1:
                algorithm, reason = _fastest(choice.problem, candidates, budget)
            size = min(algorithm.max_workspace, budget)
            scratch_size = max(scratch_size, size)
            notes.append(f"node '{choice.problem.name}': {algorithm.name} {reason}")
            steps.append(partial(_convolution, choice.problem.uids, algorithm, size))
        return CpuPlan(graph, steps, storage, scratch_size, tuple(notes))


def _convolution(
    uids: tuple[int, ...], algorithm: Algorithm, size: int, arrays: Arrays, scratch: Array
) -> None:
    a, b, out = (arrays[uid] for uid in uids)
    algorithm.run(a, b, out, scratch[:size])


def _choices(graph: Graph) -> dict[int, _Choice]:
    """The convolutions of a graph, by position of their node."""
    return {
        index: _choice(wiring)
        for index, wiring in enumerate(graph.structure.wirings)
        if isinstance(wiring.node, ConvolutionFwdNode | ConvolutionBwdNode | ConvolutionWrwNode)
    }


def _choice(wiring: Wiring) -> _Choice:
    problem = ConvolutionProblem(wiring)
    a, b, out = problem.specs
    return _Choice(
        problem,
        algorithms(problem.direction, a, b, out, problem.geometry, double=problem.double),
    )


def _workspace_range(choices: dict[int, _Choice], storage: Storage) -> tuple[int, int]:
    least = max((choice.least for choice in choices.values()), default=0)
    most = max((choice.most for choice in choices.values()), default=0)
    return workspace_bytes(storage.size + least), workspace_bytes(storage.size + most)


def _fastest(
    problem: ConvolutionProblem, candidates: tuple[Algorithm, ...], budget: int
) -> tuple[Algorithm, str]:
    """Time every candidate on random data; best of a few runs."""
    a, b, out = (_random(spec) for spec in problem.specs)
    times: dict[str, float] = {}
    for algorithm in candidates:
        workspace = np.empty(min(algorithm.max_workspace, budget), np.uint8)
        best = float("inf")
        for _ in range(_TIMED_RUNS):
            start = time.perf_counter()
            algorithm.run(a, b, out, workspace)
            best = min(best, time.perf_counter() - start)
        times[algorithm.name] = best
    winner = min(candidates, key=lambda algorithm: times[algorithm.name])
    measured = ", ".join(f"{name} {seconds * 1e3:.3g} ms" for name, seconds in times.items())
    return winner, f"measured: {measured}"


def _random(spec: TensorSpec) -> Array:
    """Return an array of a spec, filled with normal numbers, over memory of its own."""
    itemsize = spec.dtype.itemsize
    span = 1 + sum((n - 1) * s for n, s in zip(spec.shape, spec.strides, strict=True))
    some = np.random.default_rng(0).standard_normal(min(span, 1 << 16), dtype=np.float32)
    memory = np.resize(some.astype(spec.dtype), span)
    return np.lib.stride_tricks.as_strided(
        memory, spec.shape, tuple(stride * itemsize for stride in spec.strides)
    )
