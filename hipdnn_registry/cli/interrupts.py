"""Ctrl-C while an engine's native code runs, during which Python can raise nothing.

A search of a library can take an hour in one call. Python's own handler would wait for its end.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from . import output

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERRUPTED = 130
"""What a shell reports for SIGINT."""

INTERRUPTION = "interrupted; engines' caches and databases are as they were then"
"""What is said of it, wherever it came."""

GRACE = 5.0
"""Seconds for a KeyboardInterrupt to be raised and all to be put away."""


@contextmanager
def ending_on_interrupt(grace: float = GRACE) -> Iterator[None]:
    """End the process if a block is still running `grace` seconds after Ctrl-C, or at a second one.

    Does nothing outside of the main thread, where no KeyboardInterrupt would arrive either.

    Args:
        grace: Seconds.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    watcher = threading.Thread(target=_watch, args=(reader, grace), daemon=True)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        writer.close()  # ends the watcher
        watcher.join()
        reader.close()


def _watch(reader: socket.socket, grace: float) -> None:
    """Read the numbers of signals until the writer is closed."""
    while number := reader.recv(1):
        if number[0] != signal.SIGINT:
            continue
        reader.settimeout(grace)
        try:
            while number := reader.recv(1):
                if number[0] == signal.SIGINT:
                    break
        except TimeoutError:
            pass
        else:
            if not number:  # it went as Python would have it
                return
        output.complain(INTERRUPTION)
        os._exit(INTERRUPTED)
