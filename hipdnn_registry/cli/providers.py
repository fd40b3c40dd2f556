"""`hipdnn providers` and `hipdnn versions`: what is installed here, and in which state."""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from importlib import metadata
from typing import TYPE_CHECKING, Any

from hipdnn_registry import __version__

from .contributed import contributing
from .output import Report, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import RenderableType

    from hipdnn_registry import EngineRegistry, ProviderRecord

NO_PROVIDER = (
    "no provider is installed: pip install 'hipdnn-registry[cpu]' brings the CPU provider, "
    "'hipdnn-registry[miopen]' the one for AMD GPUs"
)

_STYLES = {"loaded": "green", "unavailable": "yellow", "blocked": "yellow", "broken": "red"}
_PACKAGES = ("numpy", "ml-dtypes", "pydantic", "pydantic-core", "pluggy", "typer", "rich")
_NAME = re.compile(r"[\w.-]+")
"""What a requirement starts with."""


def providers_report(registry: EngineRegistry) -> Report:
    """Report every provider that was found, loaded or not."""
    records = registry.providers()
    return Report({"providers": [record_data(r) for r in records]}, lambda: _providers(records))


def record_data(record: ProviderRecord) -> dict[str, Any]:
    """Return a provider's record for `--json`."""
    info = record.info
    return {
        "name": record.name,
        "status": record.status.value,
        "version": info.version if info else None,
        "api_version": list(info.api_version) if info else None,
        "description": info.description if info else None,
        "url": info.url if info else None,
        "knob_namespace": info.namespace if info else None,
        "libraries": dict(info.libraries) if info else {},
        "distribution": record.distribution,
        "distribution_version": record.distribution_version,
        "entry_point": record.entry_point,
        "engines": list(record.engines),
        "refused": record.refused,
        "reason": record.reason,
        "phase": record.phase,
        "traceback": record.traceback,
    }


def _providers(records: list[ProviderRecord]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from .tables import facts

    if not records:
        return NO_PROVIDER
    parts: list[RenderableType] = []
    for record in records:
        heading = (plain(record.name), "bold"), "  ", (record.status.value, _STYLES[record.status])
        parts += [Text.assemble(*heading), facts(_record_facts(record))]
    return Group(*parts)


def _record_facts(record: ProviderRecord) -> list[tuple[str, str]]:
    info = record.info
    rows = [("reason", record.reason + (f" (phase {record.phase})" if record.phase else ""))]
    if info:
        api = ".".join(map(str, info.api_version))
        rows += [("version", f"{info.version}, provider API {api}"), ("about", info.description)]
        rows += [("library", f"{name} {version}") for name, version in info.libraries.items()]
        rows.append(("see", info.url))
    if record.distribution:
        package = f"{record.distribution} {record.distribution_version}"
        rows.append(
            ("installed by", f"{package}, entry point {record.name} = {record.entry_point}")
        )
    if record.traceback:
        rows.append(("traceback", "hipdnn providers --json shows it"))
    rows += [("engine", name) for name in record.engines]
    rows += [("refused", reason) for reason in record.refused.values()]
    return [(label, value) for label, value in rows if value]


def versions_report(registry: EngineRegistry) -> Report:
    """Report what a bug report should say of this machine and installation."""
    records = registry.providers()
    brought = {r.distribution: r.distribution_version for r in records if r.distribution}
    brought |= contributing()
    packages = {name: _installed(name) for name in _PACKAGES} | brought
    for name, version in _required_by(brought):
        if name != "hipdnn-registry":
            packages.setdefault(name, version)
    data = {
        "hipdnn-registry": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "cpus": len(os.sched_getaffinity(0)),
        "packages": packages,
        "providers": [record_data(record) for record in records],
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith("HIPDNN_")},
    }
    return Report(data, lambda: _versions(data, records))


def _required_by(distributions: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield name and version of what distributions require, extras included, where it is here."""
    for distribution in distributions:
        try:
            requirements = metadata.requires(distribution) or []
        except metadata.PackageNotFoundError:  # metadata that somebody wrote by hand
            continue
        for requirement in requirements:
            name = re.sub(r"[-_.]+", "-", _NAME.findall(requirement)[0]).lower()
            with suppress(metadata.PackageNotFoundError):
                yield name, metadata.version(name)


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _versions(data: dict[str, Any], records: list[ProviderRecord]) -> RenderableType:
    from rich.console import Group

    from .tables import facts

    rows = [(name, str(data[name])) for name in ("hipdnn-registry", "python", "platform", "cpus")]
    rows += list(data["packages"].items())
    for record in records:
        version = record.info.version if record.info else "of unknown version"
        libraries = "".join(
            f", {name} {version}"
            for name, version in (record.info.libraries if record.info else {}).items()
        )
        why = f": {record.reason}" if record.reason else ""
        rows.append((f"provider {record.name}", f"{version}{libraries}, {record.status}{why}"))
    if not records:
        rows.append(("providers", NO_PROVIDER))
    rows += list(data["environment"].items())
    return Group(facts(rows))
