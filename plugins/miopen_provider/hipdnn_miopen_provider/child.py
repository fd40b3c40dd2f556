"""Tuning in a child process, because a search can end the process that runs it.

MIOpen lets an exception escape from a search (a kernel that does not compile is enough), which
ends in `std::terminate`. A child takes that; what it recorded in the perf-db is used by the parent,
whose own build then searches nothing.

The child is a new Python (never a fork: HIP does not survive one), started as `sys.executable`, so
that it runs in the same environment and through the same loader. It ends when its parent does, who
alone minds the time limit.
"""

from __future__ import annotations

import json
import math
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.building import build_plan
from hipdnn_miopen_provider.native import FindMode, TuningPolicy
from hipdnn_miopen_provider.operation import BuildOrder, Subject
from hipdnn_miopen_provider.progress import log
from hipdnn_miopen_provider.support import operation_of
from hipdnn_registry import ExecutionError, Graph, HipdnnError
from hipdnn_registry.errors import described

if TYPE_CHECKING:
    from collections.abc import Mapping

TUNE_IN_SUBPROCESS = "HIPDNN_MIOPEN_TUNE_IN_SUBPROCESS"
"""On: plans are tuned in child processes."""

TUNE_TIME_LIMIT = "HIPDNN_MIOPEN_TUNE_TIME_LIMIT"
"""Seconds that a child may take; a positive number."""

DEFAULT_TIME_LIMIT = 7200.0
"""Seconds; MIOpen itself gives one solver that much (MIOPEN_TUNING_TIME_MS_MAX)."""

_INFO = 5
"""MIOPEN_LOG_LEVEL at which a search names its solver."""

_LOOK_SECONDS = 1.0
"""How often a child looks whether it still has its parent."""

_REQUEST, _LOG = "request.json", "log"
"""What is in the folder of a child."""

_SEARCHES = re.compile(r"Search Start: \S+ : ([^\s,]+)")


class TuningError(ExecutionError):
    """A child process failed to tune a plan.

    Attributes:
        signal: The signal that ended it, if one did.
        solver: The solver that was being searched, if the log names one.
        log: What the child and MIOpen in it wrote; kept.
    """

    signal: signal.Signals | None = None
    solver: str | None = None
    log: Path | None = None


def positive_seconds(value: object) -> float | None:
    """Return a time span, or `None` where the value is no finite, positive number."""
    try:
        seconds = float(value)  # type: ignore[arg-type]  # whatever it is: that is the question
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < math.inf else None


def time_limit_of(variables: Mapping[str, str]) -> float:
    """Return the time limit that the environment sets, or the default.

    Empty is unset; what is no time span is unset, with a warning that names variable and value.
    """
    text = variables.get(TUNE_TIME_LIMIT, "")
    seconds = positive_seconds(text)
    if seconds is None and text.strip():
        log.warning(
            "%s=%r is not recognised and counts as unset (%g); use a positive number of seconds",
            *(TUNE_TIME_LIMIT, text, DEFAULT_TIME_LIMIT),
        )
    return DEFAULT_TIME_LIMIT if seconds is None else seconds


def order_after_tuning(order: BuildOrder) -> BuildOrder:
    """Return the order by which the parent builds from the child's record.

    Policy None uses a record; NORMAL find mode, because the default one would not look at it where
    the find-db knows the problem.
    """
    policy = None if order.policy is None else TuningPolicy.NONE
    return order._replace(policy=policy, find_mode=FindMode.Normal, exhaustive=False)


def tune_in_child(
    graph: Graph, order: BuildOrder, ordinal: int, *, what: str, time_limit: float
) -> float:
    """Build a plan in a child process and throw it away; its record stays.

    Args:
        graph: The graph.
        order: How to build it.
        ordinal: The device.
        what: Operation, graph and policy, for messages.
        time_limit: Seconds after which the child is killed.

    Returns:
        How many seconds it took.

    Raises:
        TuningError: It crashed, failed or took too long.
    """
    folder = Path(tempfile.mkdtemp(prefix="hipdnn-miopen-tuning-"))
    request = folder / _REQUEST
    request.write_text(
        json.dumps({"graph": graph.to_dict(), "ordinal": ordinal, "order": order._asdict()})
    )
    start = time.perf_counter()
    written = folder / _LOG
    try:
        with written.open("wb") as output:
            child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-m", __name__, str(request)],
                stdin=subprocess.PIPE,  # ends when this process does, see `end_with_parent`
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(os.environ),
            )
            with child:
                try:
                    code = child.wait(time_limit)
                except BaseException:  # too long, or interrupted: then there is no use in it
                    child.kill()
                    child.wait()  # leaving the block doesn't, after a KeyboardInterrupt
                    raise
    except subprocess.TimeoutExpired:
        raise _failure(what, f"took longer than {time_limit:g} s and was killed", written) from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    seconds = time.perf_counter() - start
    if code < 0:
        error = _failure(what, f"was ended by {_signal(code).name} after {seconds:.1f} s", written)
        error.signal = _signal(code)
        raise error
    if code:
        raise _failure(what, f"failed after {seconds:.1f} s: {_last_line(written)}", written)
    shutil.rmtree(folder, ignore_errors=True)
    return seconds


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    level = variables.get("MIOPEN_LOG_LEVEL", "")
    verbose = level.isdigit() and int(level) > _INFO
    return {
        **variables,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "MIOPEN_LOG_LEVEL": level if verbose else str(_INFO),
    }


def _failure(what: str, how: str, written: Path) -> TuningError:
    solvers = _SEARCHES.findall(written.read_text(errors="replace"))
    where = f" while it searched {solvers[-1]}" if solvers else ""
    error = TuningError(f"{what}: the child process {how}{where}; its log is kept in {written}")
    error.solver = solvers[-1] if solvers else None
    error.log = written
    return error


def _signal(code: int) -> signal.Signals:
    return signal.Signals(-code)


def _last_line(written: Path) -> str:
    lines = [line for line in written.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "without a word"


def end_with_parent(pipe: int, folder: Path) -> None:
    """End this process when its parent ends, however it does, SIGKILL included.

    Its folder goes with it: nobody is left to remove that, or to read the log in it.

    The system closes the parent's end of a pipe then, unless a process that the parent forked
    meanwhile holds it as well; so the parent's id is looked at, too. A call into MIOpen, which a
    search is, doesn't hold up the thread: ctypes releases the interpreter's lock.

    Args:
        pipe: File descriptor of this end; nothing is ever written to the other.
        folder: Folder of the request and the log; with anything else in it, it stays.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent and not select.select([pipe], [], [], _LOOK_SECONDS)[0]:
            pass
        with suppress(OSError):
            for name in (_REQUEST, _LOG):
                (folder / name).unlink(missing_ok=True)
            folder.rmdir()
        os._exit(1)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()


def main(request: Path) -> int:
    """Tune what a parent asks for: what the child runs. Its standard input is the parent's life.

    Args:
        request: File with the graph, the device and the order.

    Returns:
        Exit code: 0, or 1 with the reason as the last line of the output.
    """
    asked: dict[str, Any] = json.loads(request.read_text())
    order = _read_order(asked["order"])
    try:
        graph = Graph.from_json(asked["graph"])
        operation = operation_of(graph, deterministic=order.deterministic)
        build_plan(
            operation,
            order,
            asked["ordinal"],
            subject=Subject(operation.name, graph.content_key.digest, order.policy),
        )
    except HipdnnError as error:
        print(described(error), flush=True)
        return 1
    return 0


def _read_order(fields: dict[str, Any]) -> BuildOrder:
    policy, mode = fields.pop("policy"), fields.pop("find_mode")
    return BuildOrder(
        policy=None if policy is None else TuningPolicy(policy),
        find_mode=None if mode is None else FindMode(mode),
        **fields,
    )


if __name__ == "__main__":
    request = Path(sys.argv[1])
    end_with_parent(sys.stdin.fileno(), request.parent)
    sys.exit(main(request))
