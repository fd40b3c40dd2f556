"""What the engines know of this machine: the loaded libraries, the devices, handles for queries."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from hipdnn_miopen_provider.native import (
    Device,
    Handle,
    hip,
    library,
    supports_tuning_policy,
    unavailable_reason,
)
from hipdnn_miopen_provider.plan import Kept
from hipdnn_registry import ProviderUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator


class Place(NamedTuple):
    """Where a plan is built and runs.

    Attributes:
        version: libMIOpen's.
        library_path: The file that it was loaded from.
        ordinal: HIP's number of the device.
        target: Its full target id.
        compute_units: Its number of compute units; with the target it names MIOpen's databases.
    """

    version: str
    library_path: str
    ordinal: int
    target: str
    compute_units: int


class Machine:
    """The libraries and devices of this process.

    Attributes:
        version: libMIOpen's.
        library_path: The file that it was loaded from.
        hip_version: The HIP runtime's.
        has_policies: Whether libMIOpen has the tuning-policy calls.

    Raises:
        ProviderUnavailableError: hip-python, libamdhip64, libMIOpen or a device is missing.
    """

    def __init__(self) -> None:
        reason = unavailable_reason()
        if reason is not None:
            raise ProviderUnavailableError(reason)
        miopen = library.load()
        self.version = ".".join(map(str, miopen.version))
        self.library_path = miopen.path
        major, rest = divmod(hip.runtime_version(), 10_000_000)
        self.hip_version = f"{major}.{rest // 100_000}.{rest % 100_000}"
        self.has_policies = supports_tuning_policy()
        self._lock = threading.Lock()
        self._handles: dict[int, Handle] = {}
        self._places: dict[int, Place] = {}
        self._generations: dict[str, tuple[int, int]] = {}

    @contextmanager
    def query_handle(self) -> Iterator[Handle]:
        """Lend a handle on the current device for questions that launch nothing."""
        ordinal = hip.current_device()
        with self._lock:
            handle = self._handles.get(ordinal)
            if handle is None:
                handle = self._handles[ordinal] = Handle()
                Kept(self, ordinal, ExitStack()).owned.callback(handle.close)
            yield handle

    def place(self, ordinal: int) -> Place:
        """Return the place of a device; devices don't change while a process runs."""
        place = self._places.get(ordinal)
        if place is None:
            device = Device.query(ordinal)
            place = self._places[ordinal] = Place(
                self.version, self.library_path, ordinal, device.target, device.compute_units
            )
        return place

    def generation(self, digest: str, *, tunes: bool) -> int:
        """Return how many builds for a graph may have changed what a plan of it is built from.

        What was built from the perf-db before such a build may not be what it would be now.

        Args:
            digest: The graph.
            tunes: Whether the plan's own build may search: then another search changes nothing.
        """
        ordered, searched = self._generations.get(digest, (0, 0))
        return ordered if tunes else ordered + searched

    def next_generation(self, digest: str, *, ordered: bool) -> None:
        """Count a build that may have changed the perf-db.

        Args:
            digest: The graph.
            ordered: Whether the caller asked for the change (to write, or to clean), and not for a
                search where there is no record.
        """
        with self._lock:
            before = self._generations.get(digest, (0, 0))
            self._generations[digest] = (before[0] + ordered, before[1] + (not ordered))
