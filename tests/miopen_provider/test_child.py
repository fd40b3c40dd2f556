"""A child lives no longer than its parent; what it does meanwhile is native."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

CHILD = """
import sys, time
from hipdnn_miopen_provider.child import end_with_parent
end_with_parent(0)
print("watching", flush=True)
time.sleep(60)
"""

PARENT = f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdin=subprocess.PIPE)
end = [child.stdin.fileno()] if sys.argv[1:] else []
heir = subprocess.Popen(["sleep", "60"], pass_fds=end, stdout=subprocess.DEVNULL)
print(heir.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("inherited", [False, True])
def test_a_child_ends_with_its_parent(inherited: bool) -> None:
    """Also where another process has inherited the parent's end of the pipe."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, *["inherited"] * inherited],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        said = {parent.stdout.readline().strip() for _ in range(2)}
        (heir,) = said - {"watching"}
        try:
            parent.kill()
            # the child holds the other end of its output: this ends when it does, or fails
            parent.communicate(timeout=10)
        finally:
            with suppress(ProcessLookupError):
                os.kill(int(heir), signal.SIGKILL)
