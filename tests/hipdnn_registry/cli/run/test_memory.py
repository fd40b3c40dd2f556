"""What a run needs, what is left, and the refusal."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hipdnn_registry import graph_from_driver_command
from hipdnn_registry.cli.run.memory import (
    Available,
    MemoryShortageError,
    Need,
    available_memory,
    refuse_if_too_large,
)
from tests.graphs import conv_graph
from tests.hipdnn_registry.cli.conftest import COMMAND, ROOT, Hipdnn

HUGE = "MIOpenDriver conv -n 100000 -c 2048 -H 64 -W 64 -k 64 -y 1 -x 1 -F 1"
MIB = 1 << 20


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


MEMINFO = {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    8192 kB\n"}
V2 = {
    "proc/self/cgroup": "0::/work/job\n",
    "sys/fs/cgroup/work/job/memory.max": "max\n",
    "sys/fs/cgroup/work/job/memory.current": "10\n",
    "sys/fs/cgroup/work/memory.max": f"{6 * MIB}\n",
    "sys/fs/cgroup/work/memory.current": f"{3 * MIB}\n",
    "sys/fs/cgroup/work/memory.stat": f"anon 5\ninactive_file {MIB}\n",
}
V1 = {
    "proc/self/cgroup": "4:cpu,cpuacct:/x\n3:memory:/docker/1\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{3 * MIB}\n",
    "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{MIB}\n",
}


@pytest.mark.parametrize(
    ("files", "size", "source"),
    [
        (MEMINFO, 8 * MIB, "MemAvailable of /proc/meminfo"),
        (MEMINFO | V2, 4 * MIB, "memory.max of the control group {}/sys/fs/cgroup/work"),
        (MEMINFO | V1, 2 * MIB, "memory.limit_in_bytes of the control group {}/sys/fs/cgroup/mem"),
    ],
    ids=["machine", "cgroup2", "cgroup1"],
)
def test_the_tightest_limit_counts(
    tmp_path: Path, files: dict[str, str], size: int, source: str
) -> None:
    available = available_memory(write(tmp_path, files))
    assert available is not None
    assert available.size == size
    assert available.source.startswith(source.format(tmp_path))


def test_where_nothing_is_known_nothing_is_refused(tmp_path: Path) -> None:
    assert available_memory(tmp_path) is None
    need = Need.of(conv_graph(), workspace=1 << 60, check=False, benchmarking=False)
    refuse_if_too_large(need, None)


def test_this_machine_is_known() -> None:
    available = available_memory()
    assert available is not None
    assert 0 < available.size < 1 << 50


def test_needs_add_up() -> None:
    graph = conv_graph().validate()
    x, w, y = 4 * 2 * 4 * 64, 4 * 6 * 4 * 9, 4 * 2 * 6 * 64
    plain = Need.of(graph, workspace=1000, check=False, benchmarking=False)
    assert (plain.inputs, plain.outputs, plain.workspace) == (x + w, y, 1000)
    assert plain.total == x + w + y + 1000 + plain.temporaries
    full = Need.of(graph, workspace=1000, check=True, benchmarking=True)
    assert full.total - plain.total == y + (x + w + y)
    with pytest.raises(MemoryShortageError, match=r"needs .*\(inputs 2\.8 KiB.* 1\.0 KiB of mem"):
        refuse_if_too_large(plain, Available(1024, "a test"))


@pytest.mark.parametrize(
    ("forced", "options", "counted"),
    [("on", (), True), ("", ("-k", "global.benchmarking=1"), True), ("", (), False)],
)
def test_benchmarking_takes_scratch_copies(
    hipdnn: Hipdnn,
    monkeypatch: pytest.MonkeyPatch,
    forced: str,
    options: tuple[str, ...],
    counted: bool,
) -> None:
    monkeypatch.setenv("HIPDNN_FORCE_BENCHMARKING", forced)
    assert ("benchmarking 3.1 TiB" in hipdnn("run", HUGE, *options).err) == counted


@pytest.mark.parametrize("options", [(), ("--check",)])
def test_a_huge_graph_is_refused_before_anything_is_allocated(
    hipdnn: Hipdnn, options: tuple[str, ...]
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = hipdnn("run", HUGE, *options)
    assert outcome.status == 1
    assert "inputs 3.1 TiB" in outcome.err
    assert ("check 97.7 GiB" in outcome.err) == bool(options)
    assert "of memory are available here (" in outcome.err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_a_limit_on_the_address_space_is_known() -> None:
    """1 GiB for the whole process; the graph alone has more."""
    (graph,) = graph_from_driver_command(line := f"{HUGE.replace('100000', '50')}")
    assert Need.of(graph, workspace=0, check=False, benchmarking=False).total > 1 << 30

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    result: Any = subprocess.run(
        [*COMMAND, "run", line],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        preexec_fn=limit,
    )
    assert result.returncode == 1
    assert "RLIMIT_AS, see ulimit -v" in result.stderr
    assert len(result.stderr.splitlines()) == 1
