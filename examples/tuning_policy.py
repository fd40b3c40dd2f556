"""One convolution and one batch normalization under every tuning policy of MIOpen.

Prints which policy ruled and why, the workspace, the solver, and what changed in MIOpen's user
perf-db, which is a folder of its own here. Needs ROCm with an AMD GPU and `pip install
hipdnn-miopen-provider[hip]`; elsewhere it says what is missing.

Run it with `python examples/tuning_policy.py`, or without a GPU with
`hipdnn emulator run --accept-only -- python examples/tuning_policy.py`.
"""

from __future__ import annotations

import os
import sys
import tempfile

from hipdnn_registry import (
    EngineRegistry,
    ExecutionPlan,
    Graph,
    ProviderStatus,
    graph_from_driver_command,
)

ENGINE, POLICY = "MIOPEN_ENGINE", "miopen.tuning_policy"
LINES = (
    "MIOpenDriver conv -n 2 -c 8 -H 16 -W 16 -k 8 -y 3 -x 3 -p 1 -q 1 -F 1",
    "MIOpenDriver bnorm -n 4 -c 8 -H 16 -W 16 -m 1 --forw 1 -b 0 -s 1 -r 1",
)
SEQUENCE = (1, 3, 3, 2, 4, 5, 1)


def run(plan: ExecutionPlan) -> None:
    """Execute a plan on buffers of the device."""
    memory = plan.device_memory
    if memory is None:
        raise RuntimeError(f"{plan.engine_name} does not run on a device")
    buffers = {t.uid: memory.allocate(t.span_bytes) for t in plan.graph.io_tensors}
    try:
        plan.execute(buffers)
        memory.synchronize()
    finally:
        for buffer in buffers.values():
            buffer.close()


def show(registry: EngineRegistry, graph: Graph) -> None:
    """Build and run a plan under one policy after the other."""
    knobs = registry.get_knobs_for_engine(graph, ENGINE)
    print(f"{graph.name}: knobs {', '.join(knobs.ids)}")
    if POLICY not in knobs:
        print("  this libMIOpen has no tuning policies")
        return
    for policy in SEQUENCE:
        plan = registry.create_execution_plan_ext(graph, ENGINE, {POLICY: policy}, strict=True)
        run(plan)
        print(f"  {POLICY}={policy}{' (from the plan cache)' if plan.from_cache else ''}")
        for note in plan.notes:
            print(f"    {note}")


def main() -> int:
    """Run the sequence on both problems."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MIOPEN_USER_DB_PATH"] = folder  # before MIOpen is loaded: it reads this once
        registry = EngineRegistry(allow=["miopen"])
        for record in registry.providers():
            if record.name == "miopen" and record.status is not ProviderStatus.LOADED:
                print(f"MIOpen's engines are {record.status}: {record.reason}")
                return 1
        for line in LINES:
            for graph in graph_from_driver_command(line):
                show(registry, graph)
    return 0


if __name__ == "__main__":
    sys.exit(main())
