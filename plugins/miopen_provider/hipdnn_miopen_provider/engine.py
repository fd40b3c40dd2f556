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
from hipdnn_miopen_provider.native import FindMode, MiopenError, NativeError, TuningPolicy, hip
from hipdnn_miopen_provider.operation import BuildOrder, Subject
from hipdnn_miopen_provider.progress import reported
from hipdnn_miopen_provider.records import Snapshot
from hipdnn_miopen_provider.support import operation_of
from hipdnn_miopen_provider.tensors import Unsupported
from hipdnn_miopen_provider.tuning import (
    FIND_MODE_KNOB,
    FOLLOW,
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
from hipdnn_registry.knobs.knob import BENCHMARKING_KNOB, WORKSPACE_SIZE_LIMIT_KNOB

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hipdnn_miopen_provider.machine import Machine, Place
    from hipdnn_miopen_provider.operation import Operation
    from hipdnn_miopen_provider.progress import TuningProgress
    from hipdnn_registry import CompiledPlan, EffectiveSetting, Environment, Graph

_DATABASE_VARIABLES = ("MIOPEN_USER_DB_PATH", "HOME")
_REMEMBERED = 1024  # operations are small: a few numbers and descriptors each
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
        order: How it is to be built; the effective policy is in it.
        place: Library and device.
        databases: Variables that say where the user's databases are.
        generation: See `Machine.generation`.
    """

    order: BuildOrder
    place: Place
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
        order, note = self._order(self._operation(graph), settings, environment)
        token = PlanToken(
            order,
            self._machine.place(hip.current_device()),
            databases=tuple([environment.variables.get(v) for v in _DATABASE_VARIABLES]),
            generation=self._machine.generation(graph.content_key.digest, tunes=order.tunes),
        )
        cacheable = order.policy is None or OBEDIENCE[order.policy].cacheable
        return Resolution(settings, token, cacheable, (note,) if note else ())

    def _order(
        self,
        operation: Operation,
        settings: Mapping[str, EffectiveSetting],
        environment: Environment,
    ) -> tuple[BuildOrder, str]:
        """Return how a plan is to be built, and a note that says who decided it."""
        policy, exhaustive, note = TuningPolicy.NONE, False, ""
        benchmarking = settings[BENCHMARKING_KNOB].value == 1
        if TUNING_POLICY_KNOB in settings:
            knob = cast("int", settings[TUNING_POLICY_KNOB].value)
            resolved = resolve_tuning_policy(knob, environment.force_benchmarking, benchmarking)
            policy, note = resolved.policy, resolved.note
        elif operation.exhaustive_find:  # a libMIOpen without policies tunes so
            exhaustive = benchmarking
            doing = "exhaustiveSearch" if exhaustive else "no search"
            note = f"tuning: {doing}; libMIOpen {self._machine.version} has no tuning policies"
        elif benchmarking:
            version = self._machine.version
            note = f"{BENCHMARKING_KNOB}: libMIOpen {version} has nothing to tune here"
        how = OBEDIENCE[policy]
        find_mode = FindMode.Normal if exhaustive else how.find_mode
        asked = settings.get(FIND_MODE_KNOB)
        if asked is not None and asked.value != FOLLOW:
            find_mode = find_mode_under(policy, find_mode, FindMode(cast("int", asked.value)))
        limit = settings.get(WORKSPACE_SIZE_LIMIT_KNOB)
        order = BuildOrder(
            policy if self._machine.has_policies else None,
            find_mode,
            exhaustive=(exhaustive or how.exhaustive) and operation.exhaustive_find,
            workspace_limit=None if limit is None else cast("int", limit.value),
            deterministic=self.deterministic,
        )
        return order, note

    def estimate_workspace(self, graph: Graph, resolution: Resolution) -> int | None:
        """Return what MIOpen asks for now in the find mode of the effective policy."""
        token = cast("PlanToken", resolution.cache_token)
        operation = self._operation(graph)
        try:
            with hip.on_device(token.place.ordinal), self._machine.query_handle() as handle:
                need = operation.workspace(handle, deterministic=self.deterministic)
        except NativeError as error:
            raise ExecutionError(f"{operation.name}: {explained(error)}") from error
        order = token.order
        size = need.default if order.find_mode is None else need.normal
        return size if order.workspace_limit is None else min(size, order.workspace_limit)

    def build(self, graph: Graph, resolution: Resolution) -> CompiledPlan:
        """Build a plan, and tune it as its policy says."""
        token = cast("PlanToken", resolution.cache_token)
        operation = self._operation(graph)
        order, ordinal = token.order, token.place.ordinal
        notes = warn_about_find_enforce(order, os.environ)
        enforced = bool(notes)
        subject = Subject(operation.name, graph.content_key.digest, order.policy)
        options = self._options
        try:
            if order.searches and operation.tunable and options.in_subprocess:
                notes += self._tune_in_child(graph, operation, order, ordinal, subject)
                order = order_after_tuning(order)
            return build_plan(
                operation,
                order,
                ordinal,
                subject=subject,
                enforced=enforced,
                notes=notes,
                on_progress=options.on_progress,
            )
        finally:
            if token.order.tunes or enforced:
                self._machine.next_generation(subject.digest, ordered=not resolution.cacheable)

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
        self, graph: Graph, operation: Operation, order: BuildOrder, ordinal: int, subject: Subject
    ) -> tuple[str, ...]:
        options, what = self._options, str(subject)
        with reported(what, options.on_progress) as details, recorded(operation, order, details):
            seconds = tune_in_child(
                graph, order, ordinal, what=what, time_limit=options.tuning_time_limit
            )
        how = "built here under None"
        if operation.exhaustive_find:  # the only ones that find modes mean something to
            how += " in NORMAL find mode"
        how += " from its record" if Snapshot.take(operation).records else ": it left no record"
        return (f"tuned in a child process in {seconds:.1f} s, {how}", *details)


class MiopenDeterministicEngine(MiopenEngine):
    """The same for convolutions, with MIOpen's deterministic attribute set."""

    name = "MIOPEN_ENGINE_DETERMINISTIC"
    description = "Convolutions by MIOpen's deterministic solvers"
    priority: int = EnginePriority.DEVICE_DETERMINISTIC
    deterministic = True
