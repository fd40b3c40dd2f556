"""MIOPEN_ENGINE and MIOPEN_ENGINE_DETERMINISTIC."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from hipdnn_miopen_provider.building import build_plan, recorded
from hipdnn_miopen_provider.child import (
    DEFAULT_TIME_LIMIT,
    TUNE_IN_SUBPROCESS,
    order_after_tuning,
    tune_in_child,
)
from hipdnn_miopen_provider.database_folder import explained
from hipdnn_miopen_provider.find_enforce import warn_about_find_enforce
from hipdnn_miopen_provider.machine import device
from hipdnn_miopen_provider.native import FindMode, MiopenError, NativeError, TuningPolicy, hip
from hipdnn_miopen_provider.operation import BuildOrder
from hipdnn_miopen_provider.progress import reported
from hipdnn_miopen_provider.support import operation_of
from hipdnn_miopen_provider.tensors import Unsupported
from hipdnn_miopen_provider.tuning import (
    FIND_MODE_KNOB,
    OBEDIENCE,
    TUNING_POLICY_KNOB,
    find_mode_knob,
    find_mode_under,
    resolve_tuning_policy,
    tuning_policy_knob,
)
from hipdnn_registry import (
    BehaviorNote,
    BufferKind,
    Declined,
    Engine,
    EngineOffer,
    EnginePriority,
    ExecutionError,
    Resolution,
    benchmarking_knob,
    workspace_size_limit_knob,
)
from hipdnn_registry.environment import switch
from hipdnn_registry.knobs import BENCHMARKING_KNOB, WORKSPACE_SIZE_LIMIT_KNOB

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hipdnn_miopen_provider.machine import Machine
    from hipdnn_miopen_provider.operation import Operation
    from hipdnn_miopen_provider.progress import TuningProgress
    from hipdnn_registry import CompiledPlan, EffectiveSetting, Environment, Graph

_DATABASE_VARIABLES = ("MIOPEN_USER_DB_PATH", "HOME")
_REMEMBERED = 1024  # operations are small: a few numbers each
_NOTES = (BehaviorNote.RUNTIME_COMPILATION, BehaviorNote.EXTERNAL_LIBRARY_DEPENDENCY)


@dataclass(frozen=True)
class EngineOptions:
    """What a provider was made with.

    Attributes:
        on_progress: Told about tuning.
        tune_in_subprocess: Whether child processes tune; `None`: as the environment says.
        tuning_time_limit: Seconds that a child may take.
    """

    on_progress: Callable[[TuningProgress], None] | None = None
    tune_in_subprocess: bool | None = None
    tuning_time_limit: float = DEFAULT_TIME_LIMIT

    @property
    def in_subprocess(self) -> bool:
        """Whether child processes tune, as things are now."""
        if self.tune_in_subprocess is None:
            return switch(TUNE_IN_SUBPROCESS, os.environ) is True
        return self.tune_in_subprocess


class PlanToken(NamedTuple):
    """What changes a plan beside its graph and settings, and how it is to be built.

    Attributes:
        policy: Effective policy; `None` where libMIOpen has none.
        find_mode: Find mode of its convolutions; `None` is the library's default.
        exhaustive: Find's exhaustiveSearch.
        miopen: Version and file of libMIOpen.
        ordinal: HIP's number of the device.
        target: Its full target id.
        compute_units: Its number of compute units; with the target it names MIOpen's databases.
        databases: Variables that say where the user's databases are.
        generation: See `Machine.generation`.
    """

    policy: TuningPolicy | None
    find_mode: FindMode | None
    exhaustive: bool
    miopen: tuple[str, str]
    ordinal: int
    target: str
    compute_units: int
    databases: tuple[str | None, ...]
    generation: int


class MiopenEngine(Engine):
    """Runs graphs by libMIOpen, under the tuning policy that a caller asks for.

    Args:
        machine: The libraries and devices.
        options: What the provider was made with.
    """

    name = "MIOPEN_ENGINE"
    description = "Convolution, batch normalization and pointwise operations by MIOpen"
    priority: int = EnginePriority.DEVICE
    deterministic = False

    def __init__(self, machine: Machine, options: EngineOptions) -> None:
        self._machine, self._options = machine, options
        self._lock = threading.Lock()
        self._operations: OrderedDict[tuple[str, tuple[int, ...]], Operation] = OrderedDict()

    def query(self, graph: Graph) -> EngineOffer | Declined:
        """Serve what `support` can read and MIOpen has a solver for.

        `global.benchmarking` is advertised on every graph, as hipDNN's provider does;
        `miopen.tuning_policy` where there is something to tune, if the loaded libMIOpen has tuning
        policies; `global.workspace_size_limit` on convolutions, and `miopen.find_mode` on plain
        ones.
        """
        try:
            operation = self._operation(graph)
            with self._machine.query_handle() as handle:
                need = operation.workspace(handle, deterministic=self.deterministic)
        except Unsupported as reason:
            return Declined(str(reason))
        except MiopenError as error:
            return Declined(f"MIOpen refuses: {explained(error)}")
        knobs = [benchmarking_knob()]
        if operation.has_workspace_limit:
            knobs.append(workspace_size_limit_knob(need.least, need.normal))
        if operation.tunable and self._machine.has_policies:
            knobs.append(tuning_policy_knob())
        if operation.has_find_mode:
            knobs.append(find_mode_knob())
        return EngineOffer(
            knobs,
            workspace_size=need.normal,
            behavior_notes=_NOTES,
            buffer_kind=BufferKind.DEVICE,
        )

    def query_scope(self) -> int:
        """Return the current device: solvers and workspace are its own."""
        return hip.current_device()

    def resolve(
        self, graph: Graph, settings: Mapping[str, EffectiveSetting], environment: Environment
    ) -> Resolution:
        """Decide the policy, and what else enters the plan's cache key."""
        policy, exhaustive, note = TuningPolicy.NONE, False, ""
        if TUNING_POLICY_KNOB in settings:
            resolved = resolve_tuning_policy(
                cast("int", settings[TUNING_POLICY_KNOB].value),
                environment.force_benchmarking,
                settings[BENCHMARKING_KNOB].value == 1,
            )
            policy, note = resolved.policy, f"tuning policy: {resolved}"
        else:
            benchmarking = settings[BENCHMARKING_KNOB].value == 1
            if self._operation(graph).exhaustive_find:  # a libMIOpen without policies tunes so
                exhaustive = benchmarking
                doing = "exhaustiveSearch" if exhaustive else "no search"
                note = f"tuning: {doing}; libMIOpen {self._machine.version} has no tuning policies"
            elif benchmarking:
                version = self._machine.version
                note = f"{BENCHMARKING_KNOB}: libMIOpen {version} has nothing to tune here"
        how = OBEDIENCE[policy]
        find_mode = FindMode.Normal if exhaustive else how.find_mode
        if FIND_MODE_KNOB in settings:
            asked = cast("int", settings[FIND_MODE_KNOB].value)
            find_mode = find_mode_under(policy, find_mode, asked)
        ordinal = hip.current_device()
        properties = device(ordinal)
        token = PlanToken(
            policy=policy if self._machine.has_policies else None,
            find_mode=find_mode,
            exhaustive=exhaustive or how.exhaustive,
            miopen=(self._machine.version, self._machine.library_path),
            ordinal=ordinal,
            target=properties.target,
            compute_units=properties.compute_units,
            databases=tuple([environment.variables.get(v) for v in _DATABASE_VARIABLES]),
            generation=self._machine.generation(
                graph.content_key.digest, tunes=exhaustive or policy is not TuningPolicy.NONE
            ),
        )
        return Resolution(settings, token, how.cacheable, (note,) if note else ())

    def estimate_workspace(self, graph: Graph, resolution: Resolution) -> int | None:
        """Return what MIOpen asks for now in the find mode of the effective policy."""
        token = cast("PlanToken", resolution.cache_token)
        operation = self._operation(graph)
        try:
            with hip.on_device(token.ordinal), self._machine.query_handle() as handle:
                need = operation.workspace(handle, deterministic=self.deterministic)
        except NativeError as error:
            raise ExecutionError(f"{operation.name}: {explained(error)}") from error
        size = need.default if token.find_mode is None else need.normal
        limit = resolution.settings.get(WORKSPACE_SIZE_LIMIT_KNOB)
        return size if limit is None else min(size, cast("int", limit.value))

    def build(self, graph: Graph, resolution: Resolution) -> CompiledPlan:
        """Build a plan, and tune it as its policy says."""
        token = cast("PlanToken", resolution.cache_token)
        operation = self._operation(graph)
        limit = resolution.settings.get(WORKSPACE_SIZE_LIMIT_KNOB)
        order = BuildOrder(
            policy=token.policy,
            find_mode=token.find_mode,
            exhaustive=token.exhaustive and operation.exhaustive_find,
            workspace_limit=None if limit is None else cast("int", limit.value),
            deterministic=self.deterministic,
        )
        tunes = order.tunes
        notes = warn_about_find_enforce(order, os.environ)
        what = _what(operation, graph, order)
        options = self._options
        try:
            if order.searches and operation.tunable and options.in_subprocess:
                notes += self._tune_in_child(graph, operation, order, token.ordinal, what)
                order = order_after_tuning(order)
            return build_plan(
                operation,
                order,
                token.ordinal,
                what=what,
                notes=notes,
                on_progress=options.on_progress,
            )
        finally:
            if tunes:
                digest = graph.content_key.digest
                self._machine.next_generation(digest, ordered=not resolution.cacheable)

    def _operation(self, graph: Graph) -> Operation:
        """Read a graph, or remember what it was: equal graphs with equal uids are one."""
        key = (graph.content_key.digest, graph.content_key.uids)
        operation = self._operations.get(key)
        if operation is None:
            operation = operation_of(graph, deterministic=self.deterministic)
            with self._lock:
                self._operations[key] = operation
                while len(self._operations) > _REMEMBERED:
                    self._operations.popitem(last=False)
        return operation

    def _tune_in_child(
        self, graph: Graph, operation: Operation, order: BuildOrder, ordinal: int, what: str
    ) -> tuple[str, ...]:
        options = self._options
        with reported(what, options.on_progress) as details, recorded(operation, order, details):
            seconds = tune_in_child(
                graph, order, ordinal, what=what, time_limit=options.tuning_time_limit
            )
        how = "built here under None in NORMAL find mode from its record"
        return (f"tuned in a child process in {seconds:.1f} s, {how}", *details)


class MiopenDeterministicEngine(MiopenEngine):
    """The same for convolutions, with MIOpen's deterministic attribute set."""

    name = "MIOPEN_ENGINE_DETERMINISTIC"
    description = "Convolutions by MIOpen's deterministic solvers"
    priority: int = EnginePriority.DEVICE_DETERMINISTIC
    deterministic = True


def _what(operation: Operation, graph: Graph, order: BuildOrder) -> str:
    policy = "without a policy"
    if order.policy is not None:
        policy = f"under {order.policy.name} ({order.policy.value})"
    return f"{operation.name} of graph {graph.content_key.digest[:12]} {policy}"
