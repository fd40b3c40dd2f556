"""What the engines build plans of: an operation in MIOpen's terms, and its way to a launcher.

    graph --support--> Operation --compile, on a handle under a policy--> Launcher --> MiopenPlan

An `Operation` holds numbers only. `compile` makes descriptors, finds (and tunes) solvers on scratch
buffers of its own and returns a `Launcher`, which enqueues the work on buffers it is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from hipdnn_miopen_provider.native import NO_MEMORY, DeviceBuffer, Handle, TuningPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager, ExitStack

    from hipdnn_miopen_provider.native import DeviceMemory, FindMode
    from hipdnn_miopen_provider.perf_db import BatchNormKey, ConvolutionKey
    from hipdnn_miopen_provider.tensors import TensorSpec

    Run = Callable[[DeviceMemory], None]
    """Enqueues the work; takes the workspace."""

_ALIGNMENT = 512
"""Bytes; what a driver gives at the least is 256."""


class Region:
    """Device memory of someone else's: address and size. Made at every execution, so kept small."""

    __slots__ = ("address", "nbytes")

    def __init__(self, address: int, nbytes: int) -> None:
        self.address = address
        self.nbytes = nbytes


@dataclass(frozen=True, slots=True)
class WorkspaceNeed:
    """Bytes of workspace.

    Attributes:
        least: Without which no solver that MIOpen lists can run.
        default: What MIOpen asks for in its default find mode: enough for policy None.
        normal: What it asks for in NORMAL find mode: enough for every policy.
    """

    least: int = 0
    default: int = 0
    normal: int = 0


class BuildOrder(NamedTuple):
    """How a plan is to be built.

    Attributes:
        policy: Tuning policy; `None` where the library has none.
        find_mode: Find mode of convolutions; `None` is the library's default.
        exhaustive: Find's exhaustiveSearch.
        workspace_limit: Bytes that solvers may take; `None`: as many as they ask for.
        deterministic: Only solvers that repeat their results bit by bit.
    """

    policy: TuningPolicy | None
    find_mode: FindMode | None = None
    exhaustive: bool = False
    workspace_limit: int | None = None
    deterministic: bool = False

    @property
    def tunes(self) -> bool:
        """Whether building may change the user's perf-db."""
        return self.exhaustive or self.policy not in {None, TuningPolicy.NONE}

    @property
    def rewrites(self) -> bool:
        """Whether building searches even where there is a record, and replaces it."""
        updates = self.policy is TuningPolicy.DB_UPDATE and self.exhaustive
        return updates or self.policy is TuningPolicy.SEARCH_DB_UPDATE

    @property
    def searches(self) -> bool:
        """Whether building may start a search."""
        return self.tunes and self.policy is not TuningPolicy.DB_CLEAN


class Subject(NamedTuple):
    """What is built, for messages.

    Attributes:
        operation: Name of the operation.
        digest: Of the graph's content.
        policy: Tuning policy; `None` where the library has none.
    """

    operation: str
    digest: str
    policy: TuningPolicy | None

    def __str__(self) -> str:
        policy = "without a policy"
        if self.policy is not None:
            policy = f"under {self.policy.name} ({self.policy.value})"
        return f"{self.operation} of graph {self.digest[:12]} {policy}"


class Solver(NamedTuple):
    """A chosen solver.

    Attributes:
        kind: Its algorithm, or its number.
        milliseconds: Measured by MIOpen when it was found.
        workspace_size: Bytes that it needs.
    """

    kind: str
    milliseconds: float
    workspace_size: int

    def __str__(self) -> str:
        return f"{self.kind}, {self.milliseconds:.4g} ms, {self.workspace_size} bytes of workspace"


@dataclass
class Compilation:
    """A build in progress: its order, what the plan will own, and what is worth telling.

    Attributes:
        order: How to build.
        owned: Closes all that the plan keeps: handles, descriptors, solutions.
        notes: Sentences for the plan.
        solvers: The chosen solvers, where MIOpen tells.
    """

    order: BuildOrder
    owned: ExitStack
    notes: list[str] = field(default_factory=list)
    solvers: list[Solver] = field(default_factory=list)

    def new_handle(self) -> Handle:
        """Make a handle that the plan keeps. A policy is obeyed on a fresh one only."""
        handle = Handle()
        self.owned.callback(handle.close)
        return handle

    def under_policy(self, handle: Handle) -> AbstractContextManager[None]:
        """Set the policy on a handle within the block, and restore the old one whatever happens."""
        return handle.under_policy(self.order.policy)


class Scratch(DeviceBuffer):
    """Device memory for the time of a compilation; what it holds is undefined.

    Tuning runs on it: a caller's buffers are not touched before `execute`. One allocation, since
    each costs a call of the driver, and each release waits for the device.

    Args:
        sizes: Bytes of every tensor by uid.
        workspace_size: Bytes of workspace.

    Attributes:
        memory: The tensors' memory by uid.
        workspace: The workspace.
    """

    def __init__(self, sizes: Mapping[int, int], workspace_size: int = 0) -> None:
        starts, end = [], 0
        for size in sizes.values():
            starts.append(end)
            end += size + -size % _ALIGNMENT
        super().__init__(end + workspace_size)
        first = self.address
        self.memory: dict[int, DeviceMemory] = {
            uid: Region(first + start, size)
            for start, (uid, size) in zip(starts, sizes.items(), strict=True)
        }
        self.workspace: DeviceMemory = NO_MEMORY
        if workspace_size:
            self.workspace = Region(first + end, workspace_size)


class Launcher(ABC):
    """Enqueues a compiled operation on its handles, any number of times, one thread at a time.

    Attributes:
        handles: The handles that it enqueues on; the plan sets their stream.
        workspace_size: Bytes of workspace that its solvers need.
    """

    handles: tuple[Handle, ...]
    workspace_size: int = 0

    @abstractmethod
    def bind(self, memory: Mapping[int, DeviceMemory]) -> Run:
        """Return the function that runs it on these tensors, by uid."""


class CallLauncher(Launcher):
    """One call of MIOpen, or several as one, that takes its tensors by name.

    Args:
        handle: The handle that it was prepared on.
        bind: Takes the tensors' memory by keyword, and returns the call on them.
        uids: Uid of each tensor by its name in the call.
        workspace_size: Bytes of workspace that it needs.
    """

    def __init__(
        self,
        handle: Handle,
        bind: Callable[..., Run],
        uids: Mapping[str, int],
        workspace_size: int = 0,
    ) -> None:
        self.handles = (handle,)
        self.workspace_size = workspace_size
        self._bind = bind
        self._uids = uids

    def bind(self, memory: Mapping[int, DeviceMemory]) -> Run:
        """Return the call on these tensors."""
        return self._bind(**{name: memory[uid] for name, uid in self._uids.items()})


class Operation(ABC):
    """A graph that MIOpen can run.

    Attributes:
        name: What it is, for people.
        has_workspace_limit: Whether it has solvers of different workspace to choose from.
        has_find_mode: Whether a find mode decides how it is found.
        exhaustive_find: Whether it is found by a call with an exhaustive-search flag: then it can
            be tuned where the library has no policies.
    """

    name: ClassVar[str]
    has_workspace_limit: ClassVar[bool] = False
    has_find_mode: ClassVar[bool] = False
    exhaustive_find: ClassVar[bool] = False

    @property
    @abstractmethod
    def tensors(self) -> Mapping[int, TensorSpec]:
        """Every tensor that takes a buffer, by uid."""

    @property
    def tunable(self) -> bool:
        """Whether a tuning policy was seen to act on it."""
        return self.exhaustive_find

    @property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        """Written and read tensors, by uid, that may be the same memory."""
        return ()

    @cached_property
    def sizes(self) -> Mapping[int, int]:
        """Bytes of every tensor that takes a buffer, by uid."""
        return {uid: spec.nbytes for uid, spec in self.tensors.items()}

    def workspace(self, handle: Handle, *, deterministic: bool) -> WorkspaceNeed:
        """Ask MIOpen for the workspace. Launches nothing.

        Raises:
            Unsupported: MIOpen has no solver.
        """
        del handle, deterministic
        return WorkspaceNeed()

    @abstractmethod
    def compile(self, compilation: Compilation) -> Launcher:
        """Find solvers, tuning as ordered, and compile them.

        Takes device memory for one set of the tensors and the workspace asked for, and gives it
        back before it returns.

        Raises:
            NativeError: MIOpen or HIP failed.
            ExecutionError: No solver fits.
        """

    def concerns(self, key: ConvolutionKey | BatchNormKey) -> bool:
        """Whether a perf-db or find-db record is about this operation."""
        del key
        return False
