"""From entry points to provider records: loaded, unavailable here, broken or blocked.

Order is fixed, since the first provider to claim an engine name keeps it: providers registered in
process come first, in the order of registration, then entry points sorted by distribution and
entry name. Each entry point is guarded on its own: whatever it raises becomes its record.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pluggy

from hipdnn_registry import hookspecs
from hipdnn_registry.errors import (
    ProviderError,
    ProviderUnavailableError,
    described,
    near_spellings,
    text_of,
)
from hipdnn_registry.graph.engine_ids import engine_id
from hipdnn_registry.provider import PROVIDER_API_VERSION, Engine, Provider, ProviderInfo
from hipdnn_registry.selection import by_priority

from .catalog import Catalog, ProviderRecord, ProviderStatus, RegisteredEngine
from .contract import CODE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Sequence

_log = logging.getLogger("hipdnn_registry.discovery.loading")

_NAMESPACE = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ProviderFilter:
    """Which providers are not loaded. Names are those of entry points or of distributions.

    Attributes:
        allow: The only ones that are loaded; `None`: all.
        block: Those that are not.
        allow_origin: What set `allow`, for messages.
        block_origin: What set `block`.
    """

    allow: frozenset[str] | None = None
    block: frozenset[str] = frozenset()
    allow_origin: str = "allow"
    block_origin: str = "block"

    def refuses(self, *names: str | None) -> str | None:
        """Say why a provider of these names is not loaded, or return `None`."""
        known = {_normalized(name) for name in names if name}
        if known & {_normalized(name) for name in self.block}:
            return f"on the block list ({self.block_origin}: {_listed(self.block)})"
        if self.allow is not None and not known & {_normalized(name) for name in self.allow}:
            return f"not on the allow list ({self.allow_origin}: {_listed(self.allow)})"
        return None

    def warn_of_unknown(self, records: Sequence[ProviderRecord]) -> None:
        """Log the names on the lists that no provider has, and that may be misspelt.

        On the block list only those near to one that is there: a list for many machines may well
        block what this one doesn't have.
        """
        found = [name for r in records for name in (r.name, r.distribution) if name]
        known = {_normalized(name) for name in found}
        listed = [(self.allow_origin, name, True) for name in sorted(self.allow or ())]
        listed += [(self.block_origin, name, False) for name in sorted(self.block)]
        for origin, name, is_due in listed:
            if _normalized(name) in known:
                continue
            near = near_spellings(name, found)
            if near or is_due:
                _log.warning(
                    "%s: no provider or distribution is called '%s'; found: %s%s",
                    *(origin, name, ", ".join(dict.fromkeys(r.name for r in records)) or "none"),
                    near,
                )


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


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
        start = ProviderRecord(name=_name_in_process(provider), status=ProviderStatus.LOADED)
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
    catalog = loader.catalog()
    rules.warn_of_unknown(catalog.records)
    return catalog


def _name_in_process(provider: object) -> str:
    try:
        return str(provider.info.name)  # type: ignore[attr-defined]  # its record will say so
    except CODE_ERRORS:
        return type(provider).__name__


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
            info = _guard("contract", lambda: _checked_info(provider))
            record = replace(record, info=info)
            self._check_name(info)
            engines = _guard("engines", lambda: _engines(provider))
            self._admit(record, info, engines)
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
                problem = f"hipdnn_get_provider returned {source!r:.100}, not a Provider"
                raise _LoadError("hook", ProviderError(problem))
        if not isinstance(source, Provider):
            problem = f"what was registered in process is {source!r:.100}, not a Provider"
            raise _LoadError("register", ProviderError(problem))
        return source

    def _register(self, plugin: object, entry: metadata.EntryPoint) -> None:
        name = f"{entry.name} ({entry.value})"
        self._plugins.register(plugin, name)
        try:
            self._plugins.check_pending()
        except pluggy.PluginValidationError:
            self._plugins.unregister(plugin)
            raise

    def _check_name(self, info: ProviderInfo) -> None:
        first = self._names.get(info.name)
        if first is not None:
            problem = f"calls itself '{info.name}', which {first.origin} does already"
            raise _LoadError("contract", ProviderError(problem))

    def _admit(
        self, record: ProviderRecord, info: ProviderInfo, engines: list[tuple[str, object]]
    ) -> None:
        """Take the provider's engines, except those that are none or whose name or id is taken."""
        admitted: list[str] = []
        refused: dict[str, str] = {}
        for name, engine in engines:
            if not isinstance(engine, Engine):
                refused[name] = (
                    f"{name:.100} of {record.origin} is no Engine with a text for a name and an "
                    "int for a priority"
                )
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
            registered = RegisteredEngine(name, identity, engine, info)
            self._engines[name] = self._ids[identity] = registered
            self._owners[name] = record
            admitted.append(name)
        self._names[info.name] = record
        self._records.append(replace(record, engines=tuple(admitted), refused=refused))

    def _failed(self, record: ProviderRecord, failure: _LoadError) -> ProviderRecord:
        error = failure.error
        if isinstance(error, ProviderUnavailableError):
            reason = text_of(error)
            _log.info("%s is unavailable here: %s", record.origin, reason)
            return replace(
                record,
                status=ProviderStatus.UNAVAILABLE,
                reason=reason,
                phase=failure.phase,
                exception=error,
            )
        reason = text_of(error) if isinstance(error, ProviderError) else described(error)
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


def _checked_info(provider: Provider) -> ProviderInfo:
    """Check what a provider says of itself."""
    info: object = getattr(provider, "info", None)
    if not isinstance(info, ProviderInfo):
        raise ProviderError(f"info must be a ProviderInfo, not {info!r:.100}")
    version = info.api_version
    if not (isinstance(version, tuple) and [type(part) for part in version] == [int, int]):
        raise ProviderError(f"api_version must be two ints such as (1, 0), not {version!r}")
    if version[0] != PROVIDER_API_VERSION[0]:
        older, newer = ("provider", "registry")
        if version[0] > PROVIDER_API_VERSION[0]:
            older, newer = newer, older
        raise ProviderError(
            f"was written for provider API {_dotted(version)}, but this hipdnn-registry speaks "
            f"{_dotted(PROVIDER_API_VERSION)}: upgrade the {older}, or install an older {newer}"
        )
    for what in ("name", "version"):
        value = getattr(info, what)
        if not isinstance(value, str) or not value:
            raise ProviderError(f"info.{what} must be a text, not {value!r:.100}")
    given = info.knob_namespace
    if not isinstance(given, str) or (given and not _NAMESPACE.fullmatch(given)):
        raise ProviderError(
            f"info.knob_namespace must be a name of letters, digits and '_', not {given!r:.100}"
        )
    if info.namespace == "global":
        raise ProviderError(
            "the knob namespace 'global' is reserved; give another name, or a knob_namespace"
        )
    if not isinstance(info.libraries, Mapping):
        raise ProviderError(f"info.libraries must be a mapping, not {info.libraries!r:.100}")
    return info


def _engines(provider: Provider) -> list[tuple[str, object]]:
    """A provider's engines with their names."""
    engines: object = provider.engines()
    if isinstance(engines, str) or not isinstance(engines, Iterable):
        raise ProviderError(
            f"engines() must return a sequence of Engine objects, not {engines!r:.100}"
        )
    return [_named(engine) for engine in engines]


def _named(engine: object) -> tuple[str, object]:
    """An engine with its name; what is no sound engine comes as something else than an `Engine`."""
    name = getattr(engine, "name", None)
    sound = isinstance(engine, Engine) and isinstance(name, str) and name
    priority: object = getattr(engine, "priority", None)
    if sound and isinstance(priority, int) and not isinstance(priority, bool):
        return str(name), engine
    return repr(engine), repr(engine)


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
