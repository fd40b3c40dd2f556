"""A child lives no longer than its parent; what it does meanwhile is native."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from hipdnn_miopen_provider.child import tune_in_child
from hipdnn_miopen_provider.native import TuningPolicy
from hipdnn_miopen_provider.operation import BuildOrder
from tests.graphs import conv_graph

CHILD = """
import sys, time
from pathlib import Path
from hipdnn_miopen_provider.child import end_with_parent
end_with_parent(0, Path(sys.argv[1]))
print("watching", flush=True)
time.sleep(60)
"""

PARENT = f"""
import os, subprocess, sys, time
folder, *inherited = sys.argv[1:]
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}, folder], stdin=subprocess.PIPE)
end = [child.stdin.fileno()] if inherited else []
heir = subprocess.Popen(["sleep", "60"], pass_fds=end, stdout=subprocess.DEVNULL)
print(heir.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a parent makes for a child."""
    folder = tmp_path / "hipdnn-miopen-tuning-x"
    folder.mkdir()
    for name in ("request.json", "log"):
        (folder / name).touch()
    return folder


def outlive_parent(folder: Path, *, inherited: bool) -> None:
    """Kill the parent of a child, and wait until that has ended as well."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder), *["inherited"] * inherited],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        said = {parent.stdout.readline().strip() for _ in range(2)}
        (heir,) = said - {"watching"}
        assert (folder / "log").exists()
        try:
            parent.kill()
            # the child holds the other end of its output: this ends when it does, or fails
            parent.communicate(timeout=10)
        finally:
            with suppress(ProcessLookupError):
                os.kill(int(heir), signal.SIGKILL)


def test_an_interrupted_child_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(subprocess.Popen[bytes]):
        """A real process, but for the Ctrl-C while it is waited for."""

        def wait(self, timeout: float | None = None) -> int:
            children.append(self)
            if timeout is not None:
                raise KeyboardInterrupt
            return super().wait()

    children: list[Interrupted] = []
    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    order = BuildOrder(TuningPolicy.SEARCH)
    with pytest.raises(KeyboardInterrupt):
        tune_in_child(conv_graph(), order, 0, what="x", time_limit=60.0)
    assert children[0].returncode == -signal.SIGKILL


@pytest.mark.parametrize("inherited", [False, True])
def test_a_child_ends_with_its_parent_and_leaves_no_folder(inherited: bool, folder: Path) -> None:
    """Also where another process has inherited the parent's end of the pipe."""
    outlive_parent(folder, inherited=inherited)
    assert not folder.exists()


def test_a_folder_with_files_of_others_stays(folder: Path) -> None:
    (folder / "notes").touch()
    outlive_parent(folder, inherited=False)
    assert [path.name for path in folder.iterdir()] == ["notes"]
