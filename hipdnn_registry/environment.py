"""Every environment variable that the registry obeys, in one place.

`HIPDNN_FORCE_BENCHMARKING`, `HIPDNN_LOG_LEVEL`, `HIPDNN_LOG_FILE` and `HIPDNN_LOG_GRAPH_DIR` mean
what they mean in hipDNN. `HIPDNN_REGISTRY_*` are this project's.
"""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

FORCE_BENCHMARKING = "HIPDNN_FORCE_BENCHMARKING"
"""Overrides `global.benchmarking` of every engine that has it; read at each plan creation."""

STRICT_KNOBS = "HIPDNN_REGISTRY_STRICT_KNOBS"
"""On: a knob that the engine does not advertise raises instead of being dropped with a warning."""

STRICT = "HIPDNN_REGISTRY_STRICT"
"""On: a broken provider raises at discovery instead of being recorded."""

BLOCK = "HIPDNN_REGISTRY_BLOCK"
"""Comma-separated providers (or their distributions) that are not loaded."""

ALLOW = "HIPDNN_REGISTRY_ALLOW"
"""Comma-separated providers (or their distributions): only these are loaded."""

LOG_LEVEL = "HIPDNN_LOG_LEVEL"
"""off, info, warn, error or fatal."""

LOG_FILE = "HIPDNN_LOG_FILE"
"""File that log lines are appended to; else stderr."""

LOG_GRAPH_DIR = "HIPDNN_LOG_GRAPH_DIR"
"""Folder that every graph is written to in hipDNN's JSON form."""

_ON = frozenset({"1", "true", "on", "yes", "enable", "enabled"})
_OFF = frozenset({"0", "false", "off", "no", "disable", "disabled"})

_log = logging.getLogger("hipdnn_registry")


class Environment(NamedTuple):
    """The environment as one request sees it.

    Attributes:
        force_benchmarking: `HIPDNN_FORCE_BENCHMARKING`: on, off, or `None` where unset.
        variables: All variables, for those that only an engine knows.
    """

    force_benchmarking: bool | None
    variables: Mapping[str, str]

    @classmethod
    def read(cls, variables: Mapping[str, str] | None = None) -> Environment:
        """Read the environment of the process, or what is given in its place."""
        given = os.environ if variables is None else variables
        return cls(switch(FORCE_BENCHMARKING, given), given)

    @property
    def strict_knobs(self) -> bool:
        """`HIPDNN_REGISTRY_STRICT_KNOBS`; only read where a knob would be dropped."""
        return switch(STRICT_KNOBS, self.variables) is True


def switch(name: str, variables: Mapping[str, str]) -> bool | None:
    """Read an on/off variable as hipDNN does.

    Trimmed, any case; on: 1, true, on, yes, enable, enabled; off: 0, false, off, no, disable,
    disabled. Empty is unset; anything else is unset, with a warning that names variable and value.
    """
    text = variables.get(name)
    if not text:
        return None
    value = _parse(text)
    if value is None and text.strip():
        _log.warning(
            "%s=%r is not recognised and counts as unset; use one of %s or %s",
            name,
            text,
            ", ".join(sorted(_ON)),
            ", ".join(sorted(_OFF)),
        )
    return value


@lru_cache(maxsize=64)
def _parse(text: str) -> bool | None:
    word = text.strip().lower()
    return True if word in _ON else False if word in _OFF else None


def names(name: str, variables: Mapping[str, str] | None = None) -> frozenset[str] | None:
    """Read a comma-separated list of names; `None` where unset or empty."""
    text = (os.environ if variables is None else variables).get(name, "")
    found = frozenset(word.strip() for word in text.split(",") if word.strip())
    return found or None
