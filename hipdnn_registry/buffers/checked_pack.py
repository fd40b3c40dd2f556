"""Knowing again a variant pack that was checked before: loops come back with the same buffers."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Self

from hipdnn_registry.provider import DeviceBuffer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    _Remembered = tuple[Callable[[], Any], int]


class CheckedPack:
    """Device buffers that passed all checks, and what the engine is given for them.

    The caller's buffers are not kept alive.

    Attributes:
        buffers: Addresses by the plan's uids.
        workspace: Address of the workspace.
        stream: Handle of the stream.
    """

    __slots__ = ("_entries", "_numbered", "_workspace", "buffers", "stream", "workspace")

    def __init__(
        self,
        entries: tuple[tuple[Any, _Remembered], ...],
        stream: int | None,
        buffers: Mapping[int, Any],
        workspace: tuple[_Remembered, Any],
    ) -> None:
        self._entries, self.stream, self.buffers = entries, stream, buffers
        self._workspace, self.workspace = workspace
        self._numbered = any(type(key) is int for key, _ in entries)

    @classmethod
    def of(
        cls,
        pack: Mapping[Any, Any],
        workspace: Any,
        stream: int | None,
        buffers: Mapping[int, Any],
        address: Any,
    ) -> Self | None:
        """Return what knows a pack again; `None` where one of its objects could change unseen.

        `DeviceBuffer`s and numbers can't; tensors of other libraries can be reshaped in place.

        Args:
            pack: As the caller gave it, as are workspace and stream.
            workspace: See there.
            stream: See there.
            buffers: Addresses by the plan's uids, after the checks.
            address: Address of the workspace, after the checks.
        """
        try:
            entries = tuple([(key, _remembered(value)) for key, value in pack.items()])
            return cls(entries, stream, buffers, (_remembered(workspace), address))
        except TypeError:
            return None

    def is_of(self, pack: Mapping[Any, Any], workspace: Any, stream: Any) -> bool:
        """Whether these are the buffers, workspace and stream that were checked."""
        if type(pack) is not dict or len(pack) != len(self._entries):
            return False
        if stream is not self.stream and (type(stream) is not int or stream != self.stream):
            return False
        known, address = self._workspace
        if workspace is not known():
            return False
        # known() is None, too, where it was a buffer that nobody has any more
        if address and (workspace is None or workspace.address != address):
            return False
        for key, (known, address) in self._entries:
            value = pack.get(key)
            if value is None or value is not known() or (address and value.address != address):
                return False
        # False and 0.0 are found under 0, but are no uids
        return not self._numbered or all(type(key) in {int, str} for key in pack)


def _remembered(value: Any) -> _Remembered:
    """What gives an object back while it exists, and the address that it must still have.

    Raises:
        TypeError: The object could change unseen, or can't be referred to weakly.
    """
    if isinstance(value, DeviceBuffer):
        return weakref.ref(value), value.address
    if value is None or type(value) is int:
        return (lambda: value), 0
    raise TypeError(value)
