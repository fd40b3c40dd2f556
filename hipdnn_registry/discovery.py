"""From entry points to provider records: loaded, unavailable here, broken or blocked.

Order is fixed, since the first provider to claim an engine name keeps it: providers registered in
process come first, in the order of registration, then entry points sorted by distribution and
entry name. Each entry point is guarded on its own: whatever it raises becomes its record.
"""

from __future__ import annotations

import logging
import traceback
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pluggy

from . import hookspecs
from .engine_ids import engine_id
from .errors import ProviderError, ProviderUnavailableError
from .provider import PROVIDER_API_VERSION, Engine, Provider, ProviderInfo
from .selection import by_priority

if TYPE_CHECKING:
    from collections.abc import Iterable

_log = logging.getLogger("hipdnn_registry.discovery")


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


@dataclass(frozen=True, slots=True)
class ProviderFilter:
    """Which providers are not loaded. Names are those of entry points or of distributions."""

    allow: frozenset[str] | None = None
    block: frozenset[str] = frozenset()

    def refuses(self, *names: str | None) -> str | None:
        """Say why a provider of these names is not loaded, or return `None`."""
        known = {_normalized(name) for name in names if name}
        if known & {_normalized(name) for name in self.block}:
            return "is on the block list"
        if self.allow is not None and not known & {_normalized(name) for name in self.allow}:
            return "is not on the allow list"
        return None


class _LoadError(Exception):
    """A phase of loading failed; carries what the record should say."""

    def __init__(self, phase: str, error: BaseException) -> None:
        self.phase = phase
        self.error = error
        super().__init__(phase)


def discover(
    in_process: Iterable[Provider] = (),
    *,
    provider_filter: ProviderFilter | None = None,
    entry_points: bool = True,
    strict: bool = False,
) -> Catalog:
    """Find and load every provider.

    Args:
        in_process: Providers handed over by the program.
        provider_filter: What not to load.
        entry_points: Whether to look at installed distributions.
        strict: Raise on the first broken provider instead of recording it.

    Raises:
        ProviderError: A provider is broken and `strict` is set.
    """
    rules = provider_filter or ProviderFilter()
    loader = _Loader(strict)
    for provider in in_process:
        name = getattr(getattr(provider, "info", None), "name", type(provider).__name__)
        start = ProviderRecord(name=str(name), status=ProviderStatus.LOADED)
        loader.load(start, rules, provider)
    if entry_points:
        for entry in _entry_points():
            start = ProviderRecord(
                name=entry.name,
                status=ProviderStatus.LOADED,
                distribution=entry.dist.name if entry.dist else "unknown",
                distribution_version=entry.dist.version if entry.dist else "unknown",
                entry_point=entry.value,
            )
            loader.load(start, rules, entry)
    return loader.catalog()


def _entry_points() -> list[metadata.EntryPoint]:
    found = metadata.entry_points(group=hookspecs.ENTRY_POINT_GROUP)
    return sorted(found, key=lambda e: (_normalized(e.dist.name if e.dist else ""), e.name))


def _normalized(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


class _Loader:
    """Loads providers one after the other, each guarded on its own."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._plugins = pluggy.PluginManager(hookspecs.PROJECT)
        self._plugins.add_hookspecs(hookspecs)
        self._records: list[ProviderRecord] = []
        self._engines: dict[str, RegisteredEngine] = {}
        self._ids: dict[int, RegisteredEngine] = {}
        self._owners: dict[str, ProviderRecord] = {}
        self._names: dict[str, ProviderRecord] = {}

    def catalog(self) -> Catalog:
        ranking = by_priority(self._engines.values())
        return Catalog(tuple(self._records), self._engines, self._ids, ranking)

    def load(
        self, record: ProviderRecord, rules: ProviderFilter, source: Provider | metadata.EntryPoint
    ) -> None:
        """Add a record of what became of one provider."""
        refusal = rules.refuses(record.name, record.distribution)
        if refusal:
            self._records.append(replace(record, status=ProviderStatus.BLOCKED, reason=refusal))
            return
        try:
            provider = self._provider(source)
            record = self._check(replace(record, info=provider.info))
            self._admit(record, provider)
        except _LoadError as failure:
            self._records.append(self._failed(record, failure))

    def _provider(self, source: Provider | metadata.EntryPoint) -> Provider:
        if isinstance(source, metadata.EntryPoint):
            plugin = _guard("import", source.load)
            _guard("register", lambda: self._register(plugin, source))
            others = [other for other in self._plugins.get_plugins() if other is not plugin]
            caller = self._plugins.subset_hook_caller("hipdnn_get_provider", others)
            returned: Any = _guard("hook", caller)
            if len(returned) != 1:
                raise _LoadError(
                    "hook",
                    ProviderError("implements no hook hipdnn_get_provider that returns a provider"),
                )
            source = returned[0]
        if not isinstance(source, Provider):
            raise _LoadError(
                "hook", ProviderError(f"hipdnn_get_provider returned {source!r}, not a Provider")
            )
        return source

    def _register(self, plugin: object, entry: metadata.EntryPoint) -> None:
        name = f"{entry.name} ({entry.value})"
        self._plugins.register(plugin, name)
        try:
            self._plugins.check_pending()
        except pluggy.PluginValidationError:
            self._plugins.unregister(plugin)
            raise

    def _check(self, record: ProviderRecord) -> ProviderRecord:
        """Check what the provider says of itself."""
        info: object = record.info
        problem = None
        if not isinstance(info, ProviderInfo):
            problem = f"info must be a ProviderInfo, not {info!r}"
            raise _LoadError("contract", ProviderError(problem))
        major, wanted = info.api_version[0], PROVIDER_API_VERSION[0]
        if major != wanted:
            older, newer = ("provider", "registry") if major < wanted else ("registry", "provider")
            problem = (
                f"was written for provider API {_dotted(info.api_version)}, but this "
                f"hipdnn-registry speaks {_dotted(PROVIDER_API_VERSION)}: upgrade the {older}, or "
                f"install an older {newer}"
            )
        elif not info.name or not info.version:
            problem = f"info must have a name and a version, but is {info!r}"
        elif info.name in self._names:
            problem = (
                f"calls itself '{info.name}', which {self._names[info.name].origin} does already"
            )
        if problem:
            raise _LoadError("contract", ProviderError(problem))
        self._names[info.name] = record
        return record

    def _admit(self, record: ProviderRecord, provider: Provider) -> None:
        """Take the provider's engines, except those whose name or id is taken."""
        engines = _guard("engines", lambda: list(provider.engines()))
        admitted: list[str] = []
        refused: dict[str, str] = {}
        for engine in engines:
            name = getattr(engine, "name", None)
            if not isinstance(engine, Engine) or not isinstance(name, str) or not name:
                refused[repr(engine)] = "is no Engine with a name"
                continue
            identity = engine_id(name)
            other = self._ids.get(identity)
            if other is not None:
                first = self._owners[other.name]
                refused[name] = (
                    f"engine '{name}' of {record.origin} is refused: {first.origin} claims "
                    f"{'it' if other.name == name else repr(other.name) + ', of the same id,'} "
                    "already and comes first"
                )
                _log.error("%s", refused[name])
                continue
            registered = RegisteredEngine(name, identity, engine, provider.info)
            self._engines[name] = self._ids[identity] = registered
            self._owners[name] = record
            admitted.append(name)
        self._records.append(replace(record, engines=tuple(admitted), refused=refused))

    def _failed(self, record: ProviderRecord, failure: _LoadError) -> ProviderRecord:
        error = failure.error
        if isinstance(error, ProviderUnavailableError):
            _log.info("%s is unavailable here: %s", record.origin, error)
            return replace(
                record,
                status=ProviderStatus.UNAVAILABLE,
                reason=str(error),
                phase=failure.phase,
                exception=error,
            )
        reason = (
            str(error) if isinstance(error, ProviderError) else f"{type(error).__name__}: {error}"
        )
        if self._strict:
            raise ProviderError(
                f"{record.origin} is broken in phase '{failure.phase}': {reason}"
            ) from error
        _log.error("%s is broken in phase '%s': %s", record.origin, failure.phase, reason)
        return replace(
            record,
            status=ProviderStatus.BROKEN,
            reason=reason,
            phase=failure.phase,
            exception=error,
            traceback="".join(traceback.format_exception(error)),
        )


def _guard(phase: str, action: Any) -> Any:
    """Run a provider's code; whatever it raises, short of an interrupt, is its failure."""
    try:
        return action()
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise _LoadError(phase, error) from None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
