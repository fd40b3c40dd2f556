"""Where the `hipdnn` command starts, and how every error ends: one message and an exit code."""

from __future__ import annotations

import errno
import sys
import traceback
from functools import partial
from typing import TYPE_CHECKING

import typer

from hipdnn_registry.errors import HipdnnError, InvalidInputError, described

from . import output
from .app import app
from .interrupts import INTERRUPTED, INTERRUPTION, ending_on_interrupt

if TYPE_CHECKING:
    from collections.abc import Sequence

DONE, FAILED, WRONG_INPUT = 0, 1, 2
PIPE_CLOSED = 141  # what a shell reports for SIGPIPE

_TRACEBACK = "--traceback"
_EXHAUSTED = frozenset(
    {
        errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM,
        errno.ENOSPC, errno.EROFS,
    }
)  # fmt: skip
"""What the system says when it has no more to give; nobody's defect."""

_USAGE_ERROR: type = typer.BadParameter.__mro__[1]
"""The base of all complaints about arguments; from `click` in older typers, then typer's own."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: Without the program's name; `None`: those of the process.

    Returns:
        The exit code: 0 done, 1 the work failed, 2 the input is wrong, 130 interrupted, 141 the
        reader of the output has gone.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    output.prepare_streams()
    if sys.stdout is None:
        output.complain("stdout is closed, so there is nowhere to print to")
        return FAILED
    try:
        return _run(given)
    except BrokenPipeError:
        output.abandon(sys.stdout)
        return PIPE_CLOSED
    except output.StdoutError as error:
        output.abandon(sys.stdout)
        output.complain(str(error))
        return FAILED


def _run(arguments: list[str]) -> int:
    own = _own(arguments)
    # allowed after the command, too
    words = [word for word in own if word != _TRACEBACK] + arguments[len(own) :]
    status: object
    try:
        with ending_on_interrupt():
            status = app(words, prog_name="hipdnn", standalone_mode=False)
        output.flush()
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except (BrokenPipeError, output.StdoutError):
        raise
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # how typer and rich take it
            return PIPE_CLOSED
        return _report(error, arguments)
    except Exception as error:
        return _report(error, arguments)
    if status == INTERRUPTED:  # newer typers return it
        output.complain(INTERRUPTION)
    return status if isinstance(status, int) else DONE


def _own(arguments: list[str]) -> list[str]:
    """What is before '--'; the rest belongs to somebody else's command."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _report(error: BaseException, arguments: list[str]) -> int:
    """Say what went wrong. Options are looked up as typed: the error may be theirs."""
    arguments = _own(arguments)
    if isinstance(error, OSError):
        output.flush()  # what typer printed may be what failed
    if _TRACEBACK in arguments:
        output.to_stderr(partial(traceback.print_exception, error))
    message, status = _verdict(error, arguments)
    if "--json" in arguments:
        output.write_json({"error": output.error_data(error, message)})
    output.complain(message)
    return status


def _verdict(error: BaseException, arguments: list[str]) -> tuple[str, int]:
    if isinstance(error, _USAGE_ERROR):
        message = error.format_message()  # type: ignore[attr-defined]  # found at run time
        # newer typers say by what they validate
        message = message.replace(": Value error, ", ": ", 1)
        return message + _quoting_hint(arguments), WRONG_INPUT
    if isinstance(error, HipdnnError):
        status = WRONG_INPUT if isinstance(error, InvalidInputError) else FAILED
        return output.message_of(error), status
    if isinstance(error, OSError) and error.errno in _EXHAUSTED:
        where = f"'{error.filename}': " if error.filename else ""
        return f"{where}{error.strerror}", FAILED
    if isinstance(error, MemoryError):
        return f"out of memory: {error}", FAILED
    message = (
        f"unexpected {described(error)}; this is a defect of hipdnn-registry or of a "
        "provider: please report it with what 'hipdnn --traceback ...' prints"
    )
    return message, FAILED


def _quoting_hint(arguments: list[str]) -> str:
    if any(word.endswith("MIOpenDriver") for word in arguments):
        return "; quote the MIOpenDriver line, so that it is one argument"
    return ""
