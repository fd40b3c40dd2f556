"""`MiopenHandle`: a policy, a stream, and the plans of the calls that were made with it."""

from __future__ import annotations

import itertools
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NoReturn, Self

from hipdnn_miopen_provider.native import NativeError, TuningPolicy, hip
from hipdnn_miopen_provider.tuning import FIND_MODE_KNOB, TUNING_POLICY_KNOB
from hipdnn_registry import EngineRegistry, Environment, UnknownEngineError, default_registry
from hipdnn_registry.knobs.knob import WORKSPACE_SIZE_LIMIT_KNOB

from .arguments import enum_member, instance, integer, stream_address
from .buffers import require_usable
from .errors import BadParm, NotInitialized, UnsupportedOp, translated
from .forwarding import (
    ENGINE,
    WRITES,
    bounded,
    check_enabled,
    engine_for,
    named,
    require_advertised,
    settings_for,
)
from .graphs import graph_of
from .plan_key import PlanKey, Problem
from .plan_store import FoundPlan, PlanStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from hipdnn_registry import EngineConfigInfo, ExecutionPlan, Graph

    from .forwarding import EntryPoint

_numbers = itertools.count(1)

DEFAULT_PLANS = 256


class MiopenHandle:
    """A MIOpen handle whose calls are forwarded to MIOpen's engines, under the handle's policy.

    A context manager. A policy counts from the next call on:

        with MiopenHandle() as handle:
            handle.set_tuning_policy(TuningPolicy.SEARCH)
            convolution_forward(handle, x_desc, x, w_desc, w, conv_desc, y_desc, y)

    Plans are kept by `PlanKey`. Going back to a policy finds the plan of before, unless it is one
    that writes to the perf-db (DbUpdate, SearchDbUpdate, DbClean), or one has acted on the problem
    meanwhile: what was built from the perf-db before it is built anew. Every `set_tuning_policy`,
    also with the same value, starts an epoch, and a policy that writes acts on the first call for
    each problem in it. Later plans of that problem in the epoch (with another epsilon, or another
    workspace) are built under None, from what the first one left. What another handle does to the
    perf-db does not touch this one's plans, as in MIOpen.

    Any number of threads may use one handle: calls, and settings, take turns, and a call runs under
    the policy and on the stream that the handle had when its turn came. A call that tunes makes
    the others wait. Threads that want policies of their own want handles of their own.

    Args:
        stream: Where work is enqueued, as `set_stream` takes it.
        registry: Where engines come from; default: the registry of the process.
        plans: How many plans to keep, at least one.

    Raises:
        NotInitialized: The registry has no MIOPEN_ENGINE; says why.
        BadParm: An argument is wrong.
    """

    def __init__(
        self,
        stream: Any | None = None,
        *,
        registry: EngineRegistry | None = None,
        plans: int = DEFAULT_PLANS,
    ) -> None:
        where = "miopenCreate"
        if registry is None:
            registry = default_registry()
        self._registry = instance(EngineRegistry, registry, where, "registry")
        if ENGINE not in registry.engine_names():
            raise NotInitialized(where, _why_not(registry))
        self._number = next(_numbers)
        self._lock = threading.RLock()
        self._plans = PlanStore(integer(plans, where, "plans", least=1))
        self._device = _current_device()
        self._stream = stream_address(stream, where)
        self._policy, self._epoch = TuningPolicy.NONE, 0
        self._acted: set[Problem] = set()
        self._closed = False

    # What callers set

    def set_tuning_policy(self, policy: TuningPolicy) -> None:
        """Set the policy: `miopenSetTuningPolicy`. Starts an epoch, also with the same value.

        Args:
            policy: A `TuningPolicy`, or its number, 1 to 5.

        Raises:
            BadParm: Anything else.
        """
        where = "miopenSetTuningPolicy"
        policy = enum_member(TuningPolicy, policy, where, "policy")
        with self._lock:
            self._require_open(where)
            self._policy = policy
            self._epoch += 1
            self._acted.clear()

    def get_tuning_policy(self) -> TuningPolicy:
        """Return the policy: `miopenGetTuningPolicy`; None (1) where none was set."""
        with self._lock:
            self._require_open("miopenGetTuningPolicy")
            return self._policy

    def set_stream(self, stream: Any | None) -> None:
        """Set where work is enqueued: `miopenSetStream`.

        Args:
            stream: A `hipStream_t` as an int, or an object with it as `address`; `None` is the
                null stream. Its owner keeps it alive.

        Raises:
            BadParm: Not a stream.
        """
        where = "miopenSetStream"
        address = stream_address(stream, where)
        with self._lock:
            self._require_open(where)
            self._stream = address

    def get_stream(self) -> int | None:
        """Return the stream's address: `miopenGetStream`; `None` for the null stream."""
        with self._lock:
            self._require_open("miopenGetStream")
            return self._stream

    @property
    def registry(self) -> EngineRegistry:
        """Where its engines come from."""
        return self._registry

    @property
    def plan_count(self) -> int:
        """How many plans it keeps."""
        with self._lock:
            return len(self._plans)

    def close(self) -> None:
        """Let go of its plans: `miopenDestroy`. Later calls are refused; idempotent."""
        with self._lock:
            self._closed = True
            self._plans.clear()
            self._acted.clear()

    def __enter__(self) -> Self:
        self._require_open("MiopenHandle")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a MiopenHandle can't be copied or pickled: make another one")

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"policy {named(self._policy)}"
        return f"<MiopenHandle {self._number}: {state}, {len(self._plans)} plans>"

    # What the entry points are made of

    def estimate_workspace(self, entry_point: EntryPoint, problem: Problem) -> int:
        """Return the bytes of workspace for a problem under the policy; builds and tunes nothing.

        Raises:
            MiopenStatusError: As `find`.
        """
        with self._lock, translated(entry_point):
            self._start(entry_point)
            graph = graph_of(problem, entry_point)
            with self._on_device():
                info, settings = self._request(problem, graph, False, entry_point)
                if self._policy is TuningPolicy.DB_UPDATE and FIND_MODE_KNOB not in settings:
                    settings[TUNING_POLICY_KNOB] = self._policy.value  # enough for its search, too
                size = self._registry.estimate_workspace(graph, info.engine_name, settings)
            found = self._plans.get(self._key(problem))
            return size if found is None else max(size, found.plan.workspace_size)

    def find(
        self,
        entry_point: EntryPoint,
        problem: Problem,
        buffers: Mapping[str, Any],
        workspace: Any | None,
        *,
        workspace_limit: int | None,
        exhaustive: bool,
    ) -> ExecutionPlan:
        """Build a plan, tuning as policy and arguments say, or return the one that is there.

        Args:
            entry_point: The call, for messages and MIOPEN_DISABLE_HIPDNN_FOR.
            problem: What to compute.
            buffers: By the tensors' names: checked, and left alone.
            workspace: Checked likewise.
            workspace_limit: Bytes that the solver may take; `None`: as many as it likes.
            exhaustive: Find's exhaustiveSearch.

        Raises:
            UnsupportedOp: Declined: switched off, not served, or under this policy not served.
            BadParm: An argument is wrong.
            AllocFailed: The device is out of memory.
            InternalError: MIOpen failed. The handle then has no plan, and its policy as before.
        """
        with self._lock, translated(entry_point):
            self._start(entry_point)
            exhaustive = exhaustive and self._policy in {TuningPolicy.NONE, TuningPolicy.DB_UPDATE}
            found = self._plans.get(self._key(problem))
            if found is None or not found.serves(
                exhaustive=exhaustive, workspace_limit=workspace_limit
            ):
                found = self._build(
                    *(entry_point, problem, buffers, workspace),
                    exhaustive=exhaustive,
                    workspace_limit=workspace_limit,
                )
            plan = found.plan
            plan.bind(buffers, workspace if plan.workspace_size else None, stream=self._stream)
            return plan

    def run(
        self,
        entry_point: EntryPoint,
        problem: Problem,
        buffers: Mapping[str, Any],
        workspace: Any | None = None,
        workspace_limit: int | None = None,
    ) -> ExecutionPlan:
        """Enqueue the plan that was found for a problem, or else build one first.

        Arguments and errors are those of `find`.
        """
        with self._lock, translated(entry_point):
            self._start(entry_point)
            found = self._plans.get(self._key(problem))
            if found is None:
                found = self._build(
                    entry_point, problem, buffers, workspace, workspace_limit=workspace_limit
                )
            plan = found.plan
            plan.execute(buffers, workspace if plan.workspace_size else None, stream=self._stream)
            return plan

    # Everything below runs under the lock

    def _start(self, entry_point: EntryPoint) -> None:
        self._require_open(entry_point)
        check_enabled(entry_point)

    def _require_open(self, where: str) -> None:
        if self._closed:
            raise BadParm(where, "this MiopenHandle has been closed")

    def _on_device(self) -> AbstractContextManager[None]:
        return nullcontext() if self._device is None else hip.on_device(self._device)

    def _key(self, problem: Problem) -> PlanKey:
        policy = self._policy
        writes = policy in WRITES and problem.has_something_to_tune
        force = Environment.read().force_benchmarking if policy is TuningPolicy.NONE else None
        return PlanKey(self._number, problem, policy, self._epoch if writes else 0, force)

    def _request(
        self, problem: Problem, graph: Graph, exhaustive: bool, where: str
    ) -> tuple[EngineConfigInfo, dict[str, int]]:
        policy, engine = self._policy, engine_for(problem)
        try:
            info = self._registry.get_engine_config(graph, engine)
        except UnknownEngineError as error:
            raise UnsupportedOp(where, f"there is no {engine} to forward to: {error}") from error
        settings = settings_for(problem, policy, exhaustive=exhaustive, where=where)
        require_advertised(settings, info, problem, policy, where)
        return info, settings

    def _build(
        self,
        where: str,
        problem: Problem,
        buffers: Mapping[str, Any],
        workspace: Any | None,
        *,
        exhaustive: bool = False,
        workspace_limit: int | None = None,
    ) -> FoundPlan:
        key, tuned = self._key(problem), problem.tuned
        graph = graph_of(problem, where)
        with self._on_device():
            info, settings = self._request(problem, graph, exhaustive, where)
            given = workspace if workspace_limit else None
            require_usable(graph, info.buffer_kind, buffers, given)
            acts = settings.get(TUNING_POLICY_KNOB) in WRITES
            if acts and tuned in self._acted:  # once an epoch: this plan uses what that left
                settings[TUNING_POLICY_KNOB] = TuningPolicy.NONE.value
                acts = False
            limit = bounded(workspace_limit, info, where)
            if limit is not None:
                settings[WORKSPACE_SIZE_LIMIT_KNOB] = limit
            try:
                plan = self._registry.create_execution_plan_ext(
                    graph, info.engine_name, settings, strict=True
                )
            finally:
                if acts:  # also a failure may have changed the perf-db
                    self._plans.forget(tuned)
        if acts and self._epoch == key.epoch:  # a progress callback may have begun another
            self._acted.add(tuned)
        found = FoundPlan(plan, exhaustive, limit)
        self._plans.put(key, found)
        return found


def _current_device() -> int | None:
    try:
        return hip.current_device()
    except NativeError:  # an engine of that name may need no device
        return None


def _why_not(registry: EngineRegistry) -> str:
    reasons = [
        f"provider '{record.name}' is {record.status}: {record.reason}"
        for record in registry.providers()
        if record.name == "miopen"
    ]
    return f"the registry has no {ENGINE}: " + (
        "; ".join(reasons) or "hipdnn-miopen-provider is not among its providers"
    )
