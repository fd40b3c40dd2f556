"""What a framework does before it relies on a knob: it asks whether the engine has it.

`create_execution_plan_ext` drops a knob that the engine does not advertise for the graph. It warns
and lists it, but a caller that depends on the knob's effect must not get as far as that.

Run it with `python examples/query_knobs.py [KNOB VALUE]`.
"""

from __future__ import annotations

import json
import sys

from hipdnn_registry import (
    EngineConfigInfo,
    ExecutionPlan,
    Graph,
    default_registry,
    graph_from_driver_command,
)

LINE = "MIOpenDriver conv -n 2 -c 16 -H 28 -W 28 -k 32 -y 3 -x 3 -p 1 -q 1 -F 1"


def engine_with_knob(graph: Graph, knob_id: str, value: int) -> EngineConfigInfo | None:
    """Return the best engine that honours a knob at this value for this graph, if any does."""
    for info in default_registry().get_engine_configs(graph):
        knob = info.knobs.get(knob_id)
        if knob is None:
            print(f"{info.engine_name} does not advertise {knob_id}")
        elif knob.constraint is not None and knob.constraint.violation(value):
            print(f"{info.engine_name}: {value} {knob.constraint.violation(value)}")
        else:
            return info
    return None


def plan_with_knob(graph: Graph, knob_id: str, value: int) -> ExecutionPlan:
    """Create a plan that has the knob at this value, or raise."""
    info = engine_with_knob(graph, knob_id, value)
    if info is None:
        raise LookupError(f"no engine honours {knob_id}={value} for graph '{graph.name}'")
    return default_registry().create_execution_plan_ext(
        graph, info.engine_id, {knob_id: value}, strict=True
    )


def main(knob_id: str, value: str) -> int:
    """Ask for a knob at the value that the command line has."""
    try:
        wanted = int(value)
    except ValueError:
        print(f"error: VALUE of {knob_id} is '{value}', but must be an integer", file=sys.stderr)
        return 2
    (graph,) = graph_from_driver_command(LINE)
    for info in default_registry().get_engine_configs(graph):
        print(info.engine_name, json.dumps(info.knobs.json_schema()["properties"], indent=1))
    try:
        plan = plan_with_knob(graph, knob_id, wanted)
    except LookupError as error:
        print(error)
        return 1
    effective = plan.settings[knob_id]
    print(
        f"{plan.engine_name} runs with {knob_id}={effective.value}, set by the {effective.source}"
    )
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in {1, 3}:
        print("error: a KNOB goes with a VALUE: query_knobs.py [KNOB VALUE]", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:] or ("global.workspace_size_limit", "1048576")))
