"""Ctrl-C: a KeyboardInterrupt where Python runs, an end of the process where native code does."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from hipdnn_registry.cli.interrupts import INTERRUPTION, ending_on_interrupt

NATIVE = "hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)"  # minutes within one call of C
PYTHON = "time.sleep(60)"
SCRIPT = """
import hashlib, sys, time
from hipdnn_registry.cli.interrupts import ending_on_interrupt
try:
    with ending_on_interrupt(grace={grace}):
        print("ready", flush=True)
        {work}
except KeyboardInterrupt:
    sys.exit(3)
"""


@pytest.mark.parametrize(
    ("work", "grace", "signals", "code", "complaint"),
    [
        (NATIVE, 0.2, 1, 130, f"error: {INTERRUPTION}\n"),
        (NATIVE, 600, 2, 130, f"error: {INTERRUPTION}\n"),
        (PYTHON, 600, 1, 3, ""),
    ],
    ids=["native", "native, twice", "python"],
)
def test_ctrl_c(work: str, grace: float, signals: int, code: int, complaint: str) -> None:
    command = [sys.executable, "-c", SCRIPT.format(work=work, grace=grace)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            for _ in range(signals):
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=60)
        finally:
            process.kill()  # its work would take minutes
    assert process.returncode == code
    assert stderr == complaint


def test_a_block_that_ends_leaves_nothing() -> None:
    before = threading.active_count()
    with ending_on_interrupt():
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
    assert signal.set_wakeup_fd(-1) == -1
