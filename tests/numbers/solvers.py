"""Every solver that MIOpen has for a convolution, run by its number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

from hipdnn_miopen_provider.convolution import Convolution
from hipdnn_miopen_provider.native import (
    ConvolutionAlgorithm,
    ConvolutionBuffers,
    DeviceBuffer,
    Direction,
    FindMode,
    Handle,
    Solution,
    convolution,
    copy_to_device,
    copy_to_host,
    hip,
)
from hipdnn_miopen_provider.support import operation_of
from hipdnn_registry import EngineRegistry, Graph
from hipdnn_registry.testing.arrays import storage
from hipdnn_registry.testing.inputs import poisoned_outputs, random_inputs
from tests.numbers.checking import Comparison, compared, reference_of


def solver_comparisons(
    registry: EngineRegistry, graph: Graph, before_each: Callable[[], None] = lambda: None
) -> Iterator[tuple[Solution, list[Comparison]]]:
    """Run all solvers in immediate mode, each on poisoned memory.

    Without a find-db record MIOpen lists two or three of them; a Find in NORMAL mode makes one with
    all. `before_each` is called when a solver has been compiled and is about to run.
    """
    operation = operation_of(graph, deterministic=False)
    assert isinstance(operation, Convolution)
    inputs = random_inputs(graph, seed=0)
    reference = reference_of(registry, graph, inputs)
    with ExitStack() as owned, Handle() as handle:
        problem = operation.describe(owned, FindMode.Normal, deterministic=False)
        memory = {
            uid: owned.enter_context(DeviceBuffer(size)) for uid, size in operation.sizes.items()
        }
        buffers = ConvolutionBuffers(*(memory[uid] for uid in operation.uids))
        size = convolution.workspace_size(handle, problem)
        with DeviceBuffer(size) as workspace:
            convolution.find(handle, problem, buffers, workspace)
        listed = convolution.solutions(handle, problem)
        size = max(solution.workspace_size for solution in listed)  # may be more than was asked for
        workspace = owned.enter_context(DeviceBuffer(size))
        for solution in listed:
            outputs = poisoned_outputs(graph)
            for uid, array in (inputs | outputs).items():
                copy_to_device(memory[uid], storage(array))
            workspace.fill(0xFF)  # NaN, that nobody takes for zeros
            convolution.compile_solution(handle, problem, solution.solution_id)
            before_each()
            convolution.run_immediate(handle, problem, solution.solution_id, buffers, workspace)
            hip.synchronize_device()
            for uid, array in outputs.items():
                copy_to_host(storage(array), memory[uid])
            partial_sums = solution.algorithm is ConvolutionAlgorithm.Direct or (
                solution.algorithm is ConvolutionAlgorithm.GEMM
                and operation.direction is Direction.BACKWARD_DATA
            )
            yield solution, compared(graph, outputs, reference, partial_sums=partial_sums)
