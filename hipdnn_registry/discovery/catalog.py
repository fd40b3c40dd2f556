"""What discovery finds: a record for every provider, and the engines of those that loaded."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hipdnn_registry.provider import Engine, ProviderInfo


class ProviderStatus(StrEnum):
    """What became of a provider."""

    LOADED = "loaded"
    UNAVAILABLE = "unavailable"
    BROKEN = "broken"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class ProviderRecord:
    """Everything known of a provider that was found, whether it loaded or not.

    Attributes:
        name: Name of the entry point, or of the provider where it was registered in process.
        status: Loaded, unavailable here, broken or blocked.
        distribution: Distribution that brought it; `None` in process.
        distribution_version: Version of that distribution.
        entry_point: The entry point's value, `module` or `module:attribute`.
        info: What the provider says of itself, once it got as far as saying it.
        engines: Names of its engines, in its order.
        refused: Engines that were refused, and why.
        reason: Why it is not loaded; for people.
        phase: Where it failed: import, register, hook, contract or engines.
        exception: What was raised.
        traceback: Its traceback, as text.
    """

    name: str
    status: ProviderStatus
    distribution: str | None = None
    distribution_version: str | None = None
    entry_point: str | None = None
    info: ProviderInfo | None = None
    engines: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    phase: str = ""
    exception: BaseException | None = None
    traceback: str = ""

    @property
    def origin(self) -> str:
        """Where the provider comes from, for messages."""
        if self.distribution is None:
            return f"provider '{self.name}' (registered in process)"
        return (
            f"provider '{self.name}' ({self.distribution} {self.distribution_version}, "
            f"entry point {self.entry_point})"
        )


@dataclass(frozen=True, slots=True)
class RegisteredEngine:
    """An engine with the provider that brought it."""

    name: str
    engine_id: int
    engine: Engine
    info: ProviderInfo


@dataclass(frozen=True, slots=True)
class Catalog:
    """What discovery found: a record for each provider, and every engine.

    Attributes:
        records: The providers, in order of discovery.
        engines: The engines by name, in order of discovery.
        by_id: The engines by id.
        ranking: The engines by priority.
    """

    records: tuple[ProviderRecord, ...]
    engines: dict[str, RegisteredEngine]
    by_id: dict[int, RegisteredEngine]
    ranking: tuple[RegisteredEngine, ...]
