"""From an operation and an order to a plan: everything that happens when a plan is created."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.database_folder import explained, folder_problem
from hipdnn_miopen_provider.kernel_defects import precision_note
from hipdnn_miopen_provider.native import NativeError, TuningPolicy, hip
from hipdnn_miopen_provider.operation import Compilation
from hipdnn_miopen_provider.plan import MiopenPlan
from hipdnn_miopen_provider.progress import log, reported
from hipdnn_miopen_provider.records import NO_CHANGE, Snapshot, solver_name
from hipdnn_registry import ExecutionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hipdnn_miopen_provider.operation import BuildOrder, Launcher, Operation, Solver, Subject
    from hipdnn_miopen_provider.progress import TuningProgress


def build_plan(
    operation: Operation,
    order: BuildOrder,
    ordinal: int,
    *,
    subject: Subject,
    enforced: bool = False,
    notes: Sequence[str] = (),
    on_progress: Callable[[TuningProgress], None] | None = None,
) -> MiopenPlan:
    """Build a plan on a device. On failure nothing is left, apart from what MIOpen wrote to disk.

    Takes device memory for one set of the operation's tensors and the workspace that MIOpen asks
    for (a fused graph's parts one after the other), all given back before the return.

    Args:
        operation: What to compute.
        order: How to build it.
        ordinal: The device.
        subject: What is built, for messages.
        enforced: Whether it may tune although the order doesn't say so: MIOPEN_FIND_ENFORCE does.
        notes: Sentences that the plan's own are added to.
        on_progress: Told about the tuning, if it may tune.

    Raises:
        ExecutionError: MIOpen or HIP failed, or no solver fits; says what the perf-db has gained
            or lost by then.
    """
    compilation, changes = Compilation(order, ExitStack()), list[str]()
    with hip.on_device(ordinal):
        try:
            if order.tunes or enforced:
                report = reported(str(subject), on_progress)
                with report as changes, recorded(operation, order, changes):
                    launcher = _compile(operation, compilation, subject)
            else:
                launcher = _compile(operation, compilation, subject)
            told = (
                *notes,
                *[_told(operation, order, solver) for solver in compilation.solvers],
                f"workspace: {launcher.workspace_size} bytes",
                *compilation.notes,
                *changes,
            )
            return MiopenPlan(launcher, operation, compilation.owned, ordinal, told)
        except BaseException:
            compilation.owned.close()
            raise


def _told(operation: Operation, order: BuildOrder, solver: Solver) -> str:
    # the name is in a file, which is worth reading where a search took its time anyway
    name = None if order.find_mode is None else solver_name(operation, solver)
    if name is None:
        return f"solver: {solver}"
    return f"solver: {name} ({solver}){precision_note(name, operation.tensors.values())}"


@contextmanager
def recorded(operation: Operation, order: BuildOrder, details: list[str]) -> Iterator[None]:
    """Append what a block changed in the perf-db to `details`; an error says it too."""

    def changes() -> str:
        return before.changes(Snapshot.take(operation), rewrites=order.rewrites)

    before = Snapshot.take(operation)
    try:
        yield
    except ExecutionError as error:
        error.args = (f"{error}; MIOpen left the user's perf-db with {changes()}",)
        raise
    except BaseException as error:
        error.add_note(f"MIOpen left the user's perf-db with {changes()}")
        raise
    told = changes()
    due = _change_is_due(order, had_records=bool(before.records))
    if due and told == NO_CHANGE and (problem := folder_problem()):
        told += f"; {problem}"
        log.warning("a tuning changed nothing in the user's perf-db: %s", problem)
    details.append(f"user perf-db: {told}")


def _change_is_due(order: BuildOrder, *, had_records: bool) -> bool:
    """Whether a tuning is to leave another perf-db, if there is anything to tune."""
    if order.policy is TuningPolicy.DB_CLEAN:
        return had_records
    return order.rewrites or not had_records


def _compile(operation: Operation, compilation: Compilation, subject: Subject) -> Launcher:
    try:
        return operation.compile(compilation)
    except NativeError as error:
        raise ExecutionError(f"{subject}: {explained(error)}") from error
