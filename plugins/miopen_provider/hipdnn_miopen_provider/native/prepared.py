"""Calls that are made many times: bound to their memory once, and from then on just made.

    PreparedCall(name, *arguments)    converts what stays the same from call to call
    .bind(x=..., y=...)               checks and converts the tensors' memory; returns a BoundCall
    bound(workspace)                  makes the call

Converting a dozen arguments takes ctypes longer than MIOpen takes to enqueue a kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from ctypes import c_size_t, c_void_p
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hipdnn_miopen_provider.native import library
from hipdnn_miopen_provider.native.memory import NO_MEMORY, check_size
from hipdnn_miopen_provider.native.prototypes import PROTOTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from hipdnn_miopen_provider.native.memory import DeviceMemory

WORKSPACE = "workspace"
"""Name of the slot that is filled at each call, not by ``bind``."""


class Later(ABC):
    """Stands among the arguments of a prepared call for one that depends on tensors' memory."""

    __slots__ = ()

    @property
    @abstractmethod
    def names(self) -> Collection[str]:
        """What ``bind`` and errors call the tensors."""

    @abstractmethod
    def argument(self, memory: Mapping[str, DeviceMemory]) -> Any:
        """The argument, as an object of ctypes, for memory by name.

        Raises:
            ValueError: Some memory is too small, or left out.
        """


@dataclass(frozen=True, slots=True)
class Slot(Later):
    """Stands for a tensor's address, or that of the workspace.

    Attributes:
        name: The tensor's, or ``WORKSPACE``.
        nbytes: The bytes of memory that it needs.
        optional: Whether it may be left out; MIOpen gets a null pointer then.
    """

    name: str
    nbytes: int
    optional: bool = False

    @property
    def names(self) -> tuple[str]:
        """The one name."""
        return (self.name,)

    def argument(self, memory: Mapping[str, DeviceMemory]) -> c_void_p:
        """The address of its memory.

        Raises:
            ValueError: The memory is too small, or left out.
        """
        given = memory.get(self.name, NO_MEMORY)
        if given.nbytes < self.nbytes and not (self.optional and given is NO_MEMORY):
            check_size(self.name, given, self.nbytes)
        return c_void_p(given.address)


WORKSPACE_SIZE = object()
"""Stands for the bytes of the workspace, at each call."""


class BoundCall(Protocol):
    """A call with all its arguments but the workspace; those that need none ignore it.

    It has to be made by one thread at a time.

    Raises:
        MiopenError: MIOpen refused or failed.
        ValueError: The workspace is too small.
    """

    def __call__(self, workspace: DeviceMemory = NO_MEMORY, /) -> None:
        """Enqueues the call on its handle's stream."""


class PreparedCall:
    """A call of MIOpen whose arguments are checked and converted once.

    Whoever prepares it keeps the handle and the descriptors among its arguments open.

    Args:
        name: Name of the call.
        arguments: By its prototype; a ``Slot`` or another ``Later`` for what is bound later.

    Raises:
        MissingSymbolError: This libMIOpen doesn't export it.
    """

    def __init__(self, name: str, *arguments: Any) -> None:
        self._name, self._library = name, library.load()
        self._function = self._library.unchecked(name)
        self._kept = arguments  # what was converted may refer to it
        self._converted: list[Any] = []
        self._later: list[tuple[int, Later]] = []
        self._workspace: tuple[int, Slot] | None = None
        self._workspace_size: int | None = None
        for at, (kind, argument) in enumerate(zip(PROTOTYPES[name], arguments, strict=True)):
            converted = None
            if argument is WORKSPACE_SIZE:
                self._workspace_size = at
            elif isinstance(argument, Slot) and argument.name == WORKSPACE:
                self._workspace = at, argument
            elif isinstance(argument, Later):
                self._later.append((at, argument))
            else:
                converted = kind.from_param(argument)
            self._converted.append(converted)
        self._names = {name for _, later in self._later for name in later.names}

    def bind(self, **memory: DeviceMemory) -> BoundCall:
        """Returns the call on the memory of its tensors, by name.

        Raises:
            TypeError: It has no tensor of a name.
            ValueError: Some memory is too small, or left out.
        """
        if unknown := memory.keys() - self._names:
            raise TypeError(
                f"{self._name} takes no {', '.join(sorted(unknown))}, but "
                f"{', '.join(sorted(self._names))}"
            )
        arguments = list(self._converted)
        for at, later in self._later:
            arguments[at] = later.argument(memory)
        function = self._function

        def call(_: DeviceMemory = NO_MEMORY, /) -> None:
            status = function(*arguments)
            if status:
                self._library.fail(self._name, status)

        if self._workspace is None:
            return call
        at_address, slot = self._workspace
        at_size = self._workspace_size
        address: int | None = None
        nbytes = 0

        def call_in(workspace: DeviceMemory = NO_MEMORY, /) -> None:
            nonlocal address, nbytes
            # loops come back with the same workspace
            if workspace.address != address or workspace.nbytes != nbytes:
                arguments[at_address] = slot.argument({WORKSPACE: workspace})
                address, nbytes = workspace.address, workspace.nbytes
                if at_size is not None:
                    arguments[at_size] = c_size_t(nbytes)
            call()

        return call_in


def in_sequence(*calls: Callable[[DeviceMemory], None]) -> BoundCall:
    """Several calls as one; all get the same workspace."""

    def call_all(workspace: DeviceMemory = NO_MEMORY, /) -> None:
        for call in calls:
            call(workspace)

    return call_all
