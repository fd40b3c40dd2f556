"""The pluggy hooks of hipdnn-registry: one page, one hook.

A provider package names a module (or any object) that has the hook in the entry-point group
`hipdnn_registry.providers`:

    # pyproject.toml
    [project.entry-points."hipdnn_registry.providers"]
    acme = "acme_provider"

    # acme_provider/__init__.py
    from hipdnn_registry import hookimpl

    @hookimpl
    def hipdnn_get_provider():
        from acme_provider.provider import AcmeProvider
        return AcmeProvider()

Discovery calls hooks; planning and execution never do.

A package may also add commands to `hipdnn`: see `hipdnn_registry.cli.contributed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from .provider import Provider

PROJECT = "hipdnn_registry"
ENTRY_POINT_GROUP = "hipdnn_registry.providers"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def hipdnn_get_provider() -> Provider:  # type: ignore[empty-body]  # a specification has no body
    """Return the provider. Called once, at the first question to the registry.

    Raises:
        ProviderUnavailableError: It can't work on this machine; the message says what is missing.
    """
