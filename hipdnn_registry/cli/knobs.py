"""`hipdnn knobs`: what can be set on the engines that serve a graph."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .engines import serving
from .knob_text import allowed_text
from .output import Report, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hipdnn_registry import EngineRegistry, Graph, Knob, KnobList


def knobs_report(registry: EngineRegistry, graph: Graph, engine: int | str | None) -> Report:
    """Report the knobs of one engine, or of all that serve a graph."""
    if engine is None:
        found = {info.engine_name: info.knobs for info in serving(registry, graph)}
    else:
        knobs = registry.get_knobs_for_engine(graph, engine)
        infos = registry.get_engine_configs(graph)
        name = next(i.engine_name for i in infos if engine in {i.engine_name, i.engine_id})
        found = {name: knobs}
    data = {
        "engines": [
            {
                "engine_name": name,
                "knobs": [knob_data(knob) for knob in knobs],
                "json_schema": knobs.json_schema(),
            }
            for name, knobs in found.items()
        ]
    }
    return Report(data, lambda: _knobs(found))


def knob_data(knob: Knob) -> dict[str, Any]:
    """Return a knob for `--json`."""
    constraint = knob.constraint
    return {
        "knob_id": knob.knob_id,
        "description": knob.description,
        "type": knob.value_type.value,
        "default_value": knob.default_value,
        "constraint": (
            None
            if constraint is None
            else {"kind": type(constraint).__name__, **asdict(constraint)}
        ),
        "deprecated": knob.deprecated,
        "replacement": knob.replacement,
    }


def _knobs(found: dict[str, KnobList]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from .tables import table

    parts: list[RenderableType] = []
    for name, knobs in found.items():
        parts.append(Text(plain(name), style="bold"))
        if not knobs:
            parts.append(Text("  no knobs for this graph"))
            continue
        parts.append(
            table(
                ("knob", "type", "default", "allowed", "what it does"),
                [
                    (
                        knob.knob_id,
                        knob.value_type.value,
                        str(knob.default_value),
                        allowed_text(knob),
                        _description(knob),
                    )
                    for knob in knobs
                ],
            )
        )
    return Group(*parts)


def _description(knob: Knob) -> str:
    if not knob.deprecated:
        return knob.description
    use = f"; use {knob.replacement}" if knob.replacement else ""
    return f"{knob.description} (deprecated{use})"
