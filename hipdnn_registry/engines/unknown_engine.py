"""What to say where a caller asks for an engine that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from hipdnn_registry.discovery.catalog import ProviderStatus
from hipdnn_registry.errors import HipdnnError, ProviderError, UnknownEngineError, near_spellings

if TYPE_CHECKING:
    from hipdnn_registry.discovery.catalog import Catalog, ProviderRecord


def raise_unknown_engine(engine: int | str, catalog: Catalog) -> NoReturn:
    """Raise the error for an engine nobody has: near spellings, and which providers are missing.

    Its cause is the error of the provider that most likely would have brought the engine.
    """
    asked = f"'{engine}'" if isinstance(engine, str) else f"id {engine}"
    missing = [r for r in catalog.records if r.status is not ProviderStatus.LOADED]
    hint = ""
    if isinstance(engine, str) and not any(_would_bring(record, engine) for record in missing):
        hint = near_spellings(engine, list(catalog.engines))
    notes = "".join(f"; {r.origin} is {r.status}: {r.reason}" for r in missing)
    notes += "".join(f"; refused: {why}" for r in catalog.records for why in r.refused.values())
    cause = _likely_cause(engine, missing)
    raise UnknownEngineError(
        f"no engine {asked}; known engines: {', '.join(catalog.engines) or 'none'}{hint}{notes}"
    ) from cause


def _would_bring(record: ProviderRecord, engine: int | str) -> bool:
    """Whether an engine is called after a provider."""
    return isinstance(engine, str) and engine.upper().startswith(record.name.upper())


def _likely_cause(engine: int | str, records: list[ProviderRecord]) -> BaseException | None:
    """The error of the provider that most likely would have brought the engine."""
    failed = [r for r in records if r.exception is not None]
    failed.sort(
        key=lambda r: (
            not _would_bring(r, engine),
            r.status is not ProviderStatus.BROKEN,
        )
    )
    if not failed:
        return None
    cause = failed[0]
    if isinstance(cause.exception, HipdnnError):
        return cause.exception
    error = ProviderError(f"{cause.origin} is broken in phase '{cause.phase}': {cause.reason}")
    error.__cause__ = cause.exception
    return error
