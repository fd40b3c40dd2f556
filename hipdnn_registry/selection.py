"""Which engine is tried first where the caller names none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .discovery.catalog import RegisteredEngine
    from .graph import Graph


def by_priority(engines: Iterable[RegisteredEngine]) -> tuple[RegisteredEngine, ...]:
    """Order engines by priority, and among equals by order of discovery."""
    return tuple(sorted(engines, key=lambda entry: -entry.engine.priority))


def ranked(ranking: tuple[RegisteredEngine, ...], graph: Graph) -> tuple[RegisteredEngine, ...]:
    """Move the graph's preferred engine to the front.

    hipDNN's preference is a soft one: an engine that does not serve the graph is passed over.
    """
    preferred = graph.preferred_engine_id
    if preferred is None:
        return ranking
    return tuple(sorted(ranking, key=lambda entry: entry.engine_id != preferred))
