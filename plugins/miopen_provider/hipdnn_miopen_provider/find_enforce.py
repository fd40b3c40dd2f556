"""MIOPEN_FIND_ENFORCE, which no call can switch off under tuning policy None."""

from __future__ import annotations

import os
import threading
import warnings
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import TuningPolicy
from hipdnn_miopen_provider.progress import log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hipdnn_miopen_provider.operation import BuildOrder

VARIABLE = "MIOPEN_FIND_ENFORCE"
_OFF = frozenset({"", "NONE", "1"})
_NUMBERS = [str(policy.value) for policy in TuningPolicy]

_lock = threading.Lock()
_warned = False


def value_problem() -> str:
    """Return what is wrong with the variable's value, over which MIOpen fails, or ''."""
    value = os.environ.get(VARIABLE, "").strip()
    if not value or value.upper() in TuningPolicy.__members__ or value in _NUMBERS:
        return ""
    return (
        f"{VARIABLE} is {value!r}, but must be one of {', '.join(TuningPolicy.__members__)}, or "
        f"their number, {_NUMBERS[0]} to {_NUMBERS[-1]}"
    )


class FindEnforceWarning(UserWarning):
    """MIOPEN_FIND_ENFORCE rules where a plan's tuning policy is None."""


def warn_about_find_enforce(order: BuildOrder, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Warn, once a process, that the variable acts although a plan's policy is None.

    Policies 2 to 5 win over the variable; under 1 it is as if no policy had been set.

    Returns:
        The note for the plan, if it is concerned.
    """
    global _warned
    value = variables.get(VARIABLE, "").strip()
    if value.upper() in _OFF or order.policy not in {None, TuningPolicy.NONE}:
        return ()
    message = (
        f"{VARIABLE}={value} rules here: tuning policy None (1) does not switch it off, MIOpen "
        "takes it for 'not set'"
    )
    with _lock:
        first, _warned = not _warned, True
    if first:
        log.warning("%s", message)
        warnings.warn(message, FindEnforceWarning, stacklevel=2)
    return (message,)
