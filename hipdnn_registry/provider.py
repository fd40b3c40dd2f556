"""The contract between the registry and a provider.

A provider brings engines. For a graph, an engine says whether it serves it and with which knobs
(`query`), turns settings into what will really apply (`resolve`), and builds a plan (`build`).
Everything here is called by the registry; nothing here calls it.

    class MyEngine(Engine):
        name = "ACME_CONV_ENGINE"

        def query(self, graph):
            if len(graph.nodes) != 1:
                return Declined("takes single-node graphs only")
            return EngineOffer(knobs=(Knob("acme.tile", "Tile size", 8, IntConstraint(1, 64)),))

        def build(self, graph, resolution):
            return MyPlan(graph, tile=resolution["acme.tile"])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import numpy as np

    from .environment import Environment
    from .graph import Graph
    from .knobs.constraints import KnobValue
    from .knobs.knob import Knob

PROVIDER_API_VERSION = (1, 0)
"""Major and minor version of this contract. A provider of another major version is refused."""


class BehaviorNote(IntEnum):
    """What a caller may want to know before choosing an engine; values are hipDNN's."""

    RUNTIME_COMPILATION = 0
    REQUIRES_LAYOUT_TRANSFORM = 1
    SUPPORTS_GRAPH_CAPTURE = 2
    EXTERNAL_LIBRARY_DEPENDENCY = 3
    SUPPORTS_EXECUTION_PLAN_SERIALIZATION = 4


class SettingSource(StrEnum):
    """Who decided an effective setting."""

    DEFAULT = "default"
    ENVIRONMENT = "environment"
    CALLER = "caller"


class EffectiveSetting(NamedTuple):
    """A knob's value as it applies to a plan.

    Attributes:
        value: The value.
        source: Who decided it.
        detail: How, where that is not obvious: the variable, or what it overrode.
    """

    value: KnobValue
    source: SettingSource = SettingSource.DEFAULT
    detail: str = ""


class BufferKind(StrEnum):
    """Where a plan's buffers live, and so what its `execute` gets."""

    HOST = "host"
    """numpy arrays, checked to have the tensor's shape, dtype and strides."""

    DEVICE = "device"
    """Addresses in the memory of the plan's device."""


@dataclass(frozen=True, slots=True)
class EngineOffer:
    """An engine serves the graph.

    Attributes:
        knobs: The knobs that it honours for this graph.
        workspace_size: Bytes of workspace that suffice for any setting of these knobs.
        behavior_notes: hipDNN's behaviour notes.
        buffer_kind: Where the buffers of its plans live.
    """

    knobs: Sequence[Knob] = ()
    workspace_size: int = 0
    behavior_notes: Sequence[BehaviorNote] = ()
    buffer_kind: BufferKind = BufferKind.HOST


@dataclass(frozen=True, slots=True)
class Declined:
    """An engine does not serve the graph.

    Attributes:
        reason: One sentence a user can act on; names the node or tensor that it is about.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """What applies to one request.

    Attributes:
        settings: Effective value of every advertised knob. A value that differs from what was asked
            for obeys the knob's constraint, and its `detail` says why it differs.
        cache_token: Whatever else changes what the plan does or writes: library version, device,
            environment variables that the engine obeys.
        cacheable: Whether a plan built once may serve later requests. `False` where building has
            an effect that the caller asked for, such as writing a database.
        notes: Sentences for the plan's `notes`.
    """

    settings: Mapping[str, EffectiveSetting]
    cache_token: Hashable = ()
    cacheable: bool = True
    notes: tuple[str, ...] = ()

    def __getitem__(self, knob_id: str) -> Any:
        """Return the effective value of a knob."""
        return self.settings[knob_id].value


class DeviceBuffer(ABC):
    """Memory on a device, owned: released by `close`, or at the end of a `with` block.

    Attributes:
        address: Where it begins, in the device's address space.
        size: Bytes.
    """

    address: int
    size: int

    @abstractmethod
    def write(self, array: np.ndarray[Any, Any]) -> None:
        """Copy a contiguous host array of at most `size` bytes in, and wait for it."""

    @abstractmethod
    def read(self, array: np.ndarray[Any, Any]) -> None:
        """Copy as many bytes out as a contiguous host array takes, and wait for them."""

    @abstractmethod
    def close(self) -> None:
        """Release the memory; idempotent. `address` and `size` are 0 from then on."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class DeviceMemory(ABC):
    """Access to the memory of a plan's device, for callers that have nothing of their own.

    `hipdnn run` is one. The registry never copies between host and device by itself.
    """

    @abstractmethod
    def allocate(self, size: int) -> DeviceBuffer:
        """Return `size` bytes of device memory."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for all that was enqueued on the device."""


class CompiledPlan(ABC):
    """What an engine builds: ready to run any number of times, from any number of threads.

    It may outlive the request that it was built for and serve others with an equal graph, so it
    must not keep anything of a request. Uids are those of the graph that it was built from.

    Attributes:
        workspace_size: Bytes of workspace that `execute` needs.
        buffer_kind: What the buffers are: the kind that the offer for the graph named.
        device_memory: Access to the device's memory, if `buffer_kind` is `DEVICE`.
        notes: Sentences about how the plan came about, for people.
        in_place: Pairs of a tensor that the graph writes and one that it reads, by uid, that may
            be one and the same buffer. Every other overlap of a written buffer is refused.
    """

    workspace_size: int = 0
    buffer_kind: ClassVar[BufferKind] = BufferKind.HOST
    device_memory: DeviceMemory | None = None
    notes: tuple[str, ...] = ()
    in_place: tuple[tuple[int, int], ...] = ()

    @abstractmethod
    def execute(
        self, buffers: Mapping[int, Any], workspace: Any | None, stream: int | None
    ) -> None:
        """Run the plan.

        Args:
            buffers: For every non-virtual, non-constant tensor its buffer, by uid, checked.
            workspace: At least `workspace_size` bytes, or `None`: then the plan brings its own.
            stream: Stream to enqueue on; `None` is the plan's own. Host plans ignore it.
        """

    def bind(
        self, buffers: Mapping[int, Any], workspace: Any | None, stream: int | None
    ) -> Callable[[], None]:
        """Return a callable that runs the plan on these buffers; override to prepare more."""
        return partial(self.execute, dict(buffers), workspace, stream)


class Engine(ABC):
    """Something that can run graphs.

    Attributes:
        name: Stable, unique name in hipDNN's style, such as `"ACME_CONV_ENGINE"`; its hash is the
            engine's id. Never renamed once released.
        description: One sentence for people.
        priority: Where the choice is the registry's, higher goes first. Use the marks of
            `EnginePriority`.
    """

    name: str
    description: str = ""
    priority: int = 0

    @abstractmethod
    def query(self, graph: Graph) -> EngineOffer | Declined:
        """Say whether the engine serves a validated graph, and how.

        Must be quick, pure and thread-safe: answers are remembered by the graph's content and
        `query_scope`.
        """

    def query_scope(self) -> Hashable:
        """Return what the answer to a graph depends on beside the graph, as it is now.

        For an engine whose answers differ between devices, the current device. Asked at every
        request, so it must be as quick as reading a variable.
        """
        return None

    def resolve(
        self,
        graph: Graph,
        settings: Mapping[str, EffectiveSetting],
        environment: Environment,
    ) -> Resolution:
        """Turn what was asked for into what applies. Must be quick and pure.

        Args:
            graph: The graph.
            settings: Every advertised knob: the caller's value, the default, or for
                `global.benchmarking` what HIPDNN_FORCE_BENCHMARKING says. All are valid.
            environment: The environment of this request.

        Raises:
            KnobError: Settings that are good one by one do not go together.
        """
        del graph, environment
        return Resolution(settings)

    def estimate_workspace(self, graph: Graph, resolution: Resolution) -> int | None:
        """Return the bytes of workspace of a plan with these settings; `None`: as offered."""
        del graph, resolution
        return None

    @abstractmethod
    def build(self, graph: Graph, resolution: Resolution) -> CompiledPlan:
        """Build a plan. May take long; on failure leaves nothing behind."""


class EnginePriority(IntEnum):
    """Marks for `Engine.priority`, by hipDNN's order: devices first, deterministic ones last."""

    DEVICE = 100
    DEVICE_DETERMINISTIC = 50
    HOST = 0
    REFERENCE = -100


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """Who a provider is.

    Attributes:
        name: Short name, such as `"miopen"`; also its knob namespace unless one is given.
        version: The provider's own version, which enters every plan's cache key.
        api_version: Version of this contract that the provider was written for; (1, 0) if it
            does not say.
        description: One sentence for people.
        url: Where to read more.
        knob_namespace: First part of the ids of its knobs: letters, digits and '_', not `global`.
        libraries: Versions of what it stands on, such as `{"MIOpen": "3.5.1"}`, for reports.
    """

    name: str
    version: str
    api_version: tuple[int, int] = (1, 0)
    description: str = ""
    url: str = ""
    knob_namespace: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """The knob namespace."""
        return self.knob_namespace or self.name


class Provider(ABC):
    """A group of engines from one package.

    Its constructor, or the hook that returns it, raises `ProviderUnavailableError` where it can't
    work on this machine.
    """

    info: ProviderInfo

    @abstractmethod
    def engines(self) -> Sequence[Engine]:
        """Return the engines; called once."""
