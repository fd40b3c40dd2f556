"""A plan executed on host arrays: as they are, or through buffers on the plan's device."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hipdnn_registry.errors import HipdnnError
from hipdnn_registry.provider import BufferKind

from .arrays import storage
from .inputs import poisoned_outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hipdnn_registry import ExecutionPlan

    from .arrays import Array


class _Buffers(NamedTuple):
    """What a plan runs on.

    Attributes:
        variant_pack: A buffer for each tensor, by uid.
        workspace: The plan's scratch memory, if it needs any.
        wait: Returns when all that was enqueued is done.
        fetch: Brings the results into the host arrays.
    """

    variant_pack: dict[int, Any]
    workspace: Any | None
    wait: Callable[[], None]
    fetch: Callable[[], None]


def execute(plan: ExecutionPlan, inputs: dict[int, Array]) -> dict[int, Array]:
    """Run a plan once and return its outputs, by uid."""
    return timed(plan, inputs, repeat=0)[0]


def timed(
    plan: ExecutionPlan, inputs: dict[int, Array], repeat: int
) -> tuple[dict[int, Array], list[float]]:
    """Run a plan once with all checks, then so many times for the clock.

    Returns:
        The outputs, by uid, and the seconds of each run.

    Raises:
        HipdnnError: The plan fails, or its device's memory can't be reached.
    """
    outputs = poisoned_outputs(plan.graph)
    with _buffers(plan, inputs, outputs) as buffers:
        plan.execute(buffers.variant_pack, buffers.workspace)
        buffers.wait()
        run = plan.bind(buffers.variant_pack, buffers.workspace)
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            run()
            buffers.wait()
            seconds.append(time.perf_counter() - start)
        buffers.fetch()
    return outputs, seconds


@contextmanager
def _buffers(
    plan: ExecutionPlan, inputs: dict[int, Array], outputs: dict[int, Array]
) -> Iterator[_Buffers]:
    if plan.buffer_kind is BufferKind.HOST:
        workspace = np.empty(plan.workspace_size, np.uint8)
        yield _Buffers({**inputs, **outputs}, workspace, _nothing, _nothing)
        return
    memory = plan.device_memory
    if memory is None:
        raise HipdnnError(
            f"engine {plan.engine_name} of provider '{plan.provider_name}' takes buffers on a "
            "device and gives no access to its memory, so it can't be run from here; choose "
            "another one with --engine ('hipdnn engines GRAPH' lists them)"
        )
    with ExitStack() as owned:
        pack = {}
        for uid, array in (*inputs.items(), *outputs.items()):
            flat = storage(array)
            pack[uid] = owned.enter_context(memory.allocate(flat.nbytes))
            pack[uid].write(flat)
        size = plan.workspace_size
        workspace_there = owned.enter_context(memory.allocate(size)) if size else None

        def fetch() -> None:
            for uid, array in outputs.items():
                pack[uid].read(storage(array))

        yield _Buffers(pack, workspace_there, memory.synchronize, fetch)


def _nothing() -> None:
    """Do nothing: host plans are done when they return, with their results in place."""
