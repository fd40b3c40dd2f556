"""A provider that finds nothing to work with."""

from __future__ import annotations

from hipdnn_registry import Provider, ProviderUnavailableError, hookimpl


@hookimpl
def hipdnn_get_provider() -> Provider:
    raise ProviderUnavailableError("no ACME card in this machine")
