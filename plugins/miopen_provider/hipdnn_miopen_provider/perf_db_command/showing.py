"""`hipdnn perf-db show`: the records that concern a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.perf_db import FindValue, parse_find_value
from hipdnn_miopen_provider.record_keys import keys_of
from hipdnn_registry.cli import Report, facts, note, size_text, table

from .source import damage_data, damage_in, databases, file_data

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from hipdnn_miopen_provider.database_files import DatabaseFile, FileKind
    from hipdnn_miopen_provider.record_keys import NodeKeys
    from hipdnn_registry import EngineRegistry, Graph

NO_NODES = "the graph has no convolution and no batch normalization: MIOpen keeps no other records"


@dataclass(frozen=True, slots=True)
class Found:
    """A record that concerns a node.

    Attributes:
        file: Where it is.
        solver: The solver.
        parameters: What was tuned; empty in a find-db.
        measured: What was measured; `None` in a perf-db.
    """

    file: DatabaseFile
    solver: str
    parameters: str = ""
    measured: FindValue | None = None


def show_report(registry: EngineRegistry, graph: Graph, path: Path | None) -> Report:
    """Report the records of a graph's nodes; none is no failure."""
    del registry
    folder, files = databases(path)
    nodes = [(keys, _records(keys, files)) for keys in keys_of(graph)]
    data = {
        "folder": str(folder),
        "nodes": [_node_data(keys, found) for keys, found in nodes],
        "damage": damage_data(files),
    }
    return Report(data, lambda: _view(folder, files, nodes))


def _records(keys: NodeKeys, files: list[DatabaseFile]) -> list[Found]:
    """Return a node's records, file by file; measured solvers fastest first."""
    found = []
    for file in files:
        kind = file.name.kind
        key = keys.keys.get(kind) if kind else None
        if kind is None or key is None:
            continue
        record = file.records.get(key, {})
        if kind.is_find:
            measured = [Found(file, s, "", parse_find_value(v)) for s, v in record.items()]
            found += sorted(measured, key=_milliseconds)
        else:
            found += [Found(file, solver, value) for solver, value in record.items()]
    return found


def _milliseconds(found: Found) -> float:
    return found.measured.milliseconds if found.measured else 0.0


def _node_data(keys: NodeKeys, found: list[Found]) -> dict[str, Any]:
    return {
        "node": keys.node,
        "operation": keys.operation,
        "keys": {kind.value: key for kind, key in keys.keys.items()},
        "reason": keys.reason,
        "records": [_record_data(one) for one in found],
    }


def _record_data(found: Found) -> dict[str, Any]:
    data = {**file_data(found.file), "solver": found.solver}
    if found.measured is None:
        return {**data, "parameters": found.parameters}
    return {
        **data,
        "milliseconds": found.measured.milliseconds,
        "workspace_size": found.measured.workspace_size,
        "algorithm": found.measured.algorithm,
    }


def _view(
    folder: Path, files: list[DatabaseFile], nodes: list[tuple[NodeKeys, list[Found]]]
) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for keys, found in nodes:
        parts.append(facts([("node", keys.node or "(unnamed)"), ("operation", keys.operation)]))
        if keys.reason:
            parts.append(note(keys.reason))
        for kind, key in keys.keys.items():
            of_kind = [file for file in files if file.name.kind is kind]
            here = [one for one in found if one.file.name.kind is kind]
            parts.append(Text(""))
            parts.append(facts([(kind.value, key)]))
            if here:
                parts.append(_measured_table(here) if kind.is_find else _tuned_table(here))
            else:
                parts.append(note(_absence(kind, folder, len(of_kind))))
    if not nodes:
        parts.append(note(NO_NODES))
    parts += [note(str(damage)) for damage in damage_in(files)]
    return Group(*parts)


def _absence(kind: FileKind, folder: Path, count: int) -> str:
    if not count:
        return f"no {kind.value} in {folder}"
    return f"no record under this key in {count} {kind.value} file{'s' if count > 1 else ''}"


def _tuned_table(found: list[Found]) -> RenderableType:
    rows = [(one.file.path.name, one.solver, one.parameters) for one in found]
    return table(("file", "solver", "tuned parameters"), rows)


def _measured_table(found: list[Found]) -> RenderableType:
    rows = [
        (
            one.file.path.name,
            one.solver,
            f"{one.measured.milliseconds:.4g} ms",
            size_text(one.measured.workspace_size),
            one.measured.algorithm,
        )
        for one in found
        if one.measured
    ]
    columns = ("file", "solver", "time", "workspace", "algorithm")
    return table(columns, rows, right="time,workspace")
