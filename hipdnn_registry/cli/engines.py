"""`hipdnn engines` and `hipdnn explain`: who serves a graph, and why the others don't."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hipdnn_registry.discovery.catalog import ProviderStatus

from .output import Report
from .providers import NO_PROVIDER, record_data

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hipdnn_registry import (
        EngineAnswer,
        EngineConfigInfo,
        EngineRegistry,
        Explanation,
        Graph,
        ProviderRecord,
    )


def serving(registry: EngineRegistry, graph: Graph) -> list[EngineConfigInfo]:
    """Return the engines that serve a graph, best first.

    Raises:
        NoEngineError: There are none; carries every reason.
    """
    explanation = registry.explain(graph)
    infos = [answer.info for answer in explanation.answers if answer.info is not None]
    if not infos:
        raise explanation.no_engine_error()
    return infos


def engines_report(registry: EngineRegistry, graph: Graph) -> Report:
    """Report the engines that serve a graph, best first."""
    infos = serving(registry, graph)
    return Report({"engines": [engine_data(info) for info in infos]}, lambda: _engines(infos))


def engine_data(info: EngineConfigInfo) -> dict[str, Any]:
    """Return an engine's configuration for `--json`; workspace in bytes."""
    return {
        "engine_id": info.engine_id,
        "engine_name": info.engine_name,
        "provider_name": info.provider_name,
        "provider_version": info.provider_version,
        "estimated_workspace_size": info.estimated_workspace_size,
        "supports_exhaustive": info.supports_exhaustive,
        "behavior_notes": [behavior.name for behavior in info.behavior_notes],
        "knobs": list(info.knobs.ids),
        "defects": list(info.defects),
    }


def _engines(infos: list[EngineConfigInfo]) -> RenderableType:
    from .tables import table
    from .text import size_text

    return table(
        ("engine", "provider", "workspace", "knobs", "notes"),
        [
            (
                info.engine_name,
                f"{info.provider_name} {info.provider_version}",
                size_text(info.estimated_workspace_size),
                str(len(info.knobs)),
                _remarks(info),
            )
            for info in infos
        ],
        right="workspace,knobs",
    )


def explain_report(registry: EngineRegistry, graph: Graph) -> Report:
    """Report every engine's answer to a graph, and the providers that bring no engines here."""
    explanation = registry.explain(graph)
    absent = [r for r in explanation.providers if r.status is not ProviderStatus.LOADED]
    data = {
        "engines": [_answer_data(answer) for answer in explanation.answers],
        "absent_providers": [record_data(record) for record in absent],
    }
    return Report(data, lambda: _explanation(explanation, absent))


def _answer_data(answer: EngineAnswer) -> dict[str, Any]:
    return {
        "engine_name": answer.engine.name,
        "provider_name": answer.engine.info.name,
        "serves": answer.info is not None,
        "reason": answer.reason,
        "defect": answer.exception is not None,
        "config": engine_data(answer.info) if answer.info else None,
    }


def _explanation(explanation: Explanation, absent: list[ProviderRecord]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from .tables import note, table

    rows = []
    for answer in explanation.answers:
        if answer.info is not None:
            verdict, why = Text("serves", "green"), _remarks(answer.info)
        else:
            verdict = Text("defect", "red") if answer.exception else Text("declines", "yellow")
            why = answer.reason
        provider = f"{answer.engine.info.name} {answer.engine.info.version}"
        rows.append((answer.engine.name, provider, verdict, why))
    parts: list[RenderableType] = []
    if rows:
        parts.append(table(("engine", "provider", "answer", "why"), rows))
    parts += [note(f"{record.origin} is {record.status}: {record.reason}") for record in absent]
    if not explanation.providers:
        parts.append(note(NO_PROVIDER))
    return Group(*parts)


def _remarks(info: EngineConfigInfo) -> str:
    behaviors = [behavior.name.lower().replace("_", " ") for behavior in info.behavior_notes]
    return "; ".join([*behaviors, *(f"defect: {defect}" for defect in info.defects)])
