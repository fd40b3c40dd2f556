"""CPU_REFERENCE_ENGINE: float64 sums in a fixed order, tap by tap; the oracle for other engines."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hipdnn_registry import Declined, Engine, EngineOffer, EnginePriority
from hipdnn_registry.graph import ConvolutionBwdNode, ConvolutionFwdNode, ConvolutionWrwNode

from .kernels import conv_reference
from .kernels.arena import workspace_bytes
from .kernels.conv_algorithms import Direction
from .plan import CpuPlan
from .steps import Array, Arrays, ConvolutionProblem, Step, other_step
from .storage import plan_storage
from .support import unsupported

if TYPE_CHECKING:
    from hipdnn_registry import CompiledPlan, Graph, Resolution
    from hipdnn_registry.graph import Wiring

_KERNELS = {
    Direction.FPROP: conv_reference.conv_fprop,
    Direction.DGRAD: conv_reference.conv_dgrad,
    Direction.WGRAD: conv_reference.conv_wgrad,
}


class CpuReferenceEngine(Engine):
    """Slow and exact. Results round once, to the type of each tensor that the graph names."""

    name = "CPU_REFERENCE_ENGINE"
    description = "float64 accumulation in a fixed order; deterministic, for checking"
    priority = EnginePriority.REFERENCE

    def query(self, graph: Graph) -> EngineOffer | Declined:
        """Serve any graph of the operations and types in `support`; without knobs."""
        reason = unsupported(graph)
        if reason:
            return Declined(reason)
        return EngineOffer(workspace_size=workspace_bytes(plan_storage(graph).size))

    def build(self, graph: Graph, resolution: Resolution) -> CompiledPlan:
        """Build the plan; there is nothing to choose."""
        del resolution
        steps = [_step(wiring) for wiring in graph.structure.wirings]
        return CpuPlan(graph, steps, plan_storage(graph), scratch_size=0)


def _step(wiring: Wiring) -> Step:
    node = wiring.node
    if isinstance(node, ConvolutionFwdNode | ConvolutionBwdNode | ConvolutionWrwNode):
        return partial(_convolution, ConvolutionProblem(wiring))
    return other_step(wiring, double=True)


def _convolution(problem: ConvolutionProblem, arrays: Arrays, scratch: Array) -> None:
    del scratch
    a, b, out = (arrays[uid] for uid in problem.uids)
    _KERNELS[problem.direction](a, b, out, problem.geometry)
