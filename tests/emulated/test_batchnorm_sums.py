"""MIOpen's own defect in spatial batch normalization, see docs/findings.md.

If one of these fails the library has been repaired, and the provider may serve those problems.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from hipdnn_miopen_emulator.pytest_plugin import Emulation
from hipdnn_miopen_provider.native import (
    BatchNormMode,
    BatchNormProblem,
    DataType,
    DeviceBuffer,
    Handle,
    TensorDescriptor,
    batchnorm,
    copy_to_device,
    copy_to_host,
)
from hipdnn_registry import ExecutionError, graph_from_driver_command
from tests.native.engines import new_registry
from tests.numbers.cases import batchnorm as batchnorm_line

ROOT = Path(__file__).parents[2]
NUMPY = {DataType.Float: np.float32, DataType.Half: np.float16}
WORK_GROUP, VECTOR = 1024, 4


def gradient_of_bias(dims: tuple[int, int, int, int], dtype: DataType) -> tuple[np.ndarray, ...]:
    """What MIOpen returns for a random dy of small integers, and that dy."""
    rng = np.random.default_rng(0)
    dy = rng.integers(-8, 8, dims).astype(NUMPY[dtype])
    with ExitStack() as stack:
        x = stack.enter_context(TensorDescriptor(dtype, dims))
        statistics = stack.enter_context(TensorDescriptor.for_batchnorm(x, BatchNormMode.Spatial))
        handle = stack.enter_context(Handle())
        image, gradient, dx = (stack.enter_context(DeviceBuffer(x.nbytes)) for _ in range(3))
        scale, dscale, dbias, mean, inverse = (
            stack.enter_context(DeviceBuffer(statistics.nbytes)) for _ in range(5)
        )
        for memory in (image, dx, scale, mean, inverse):
            memory.fill(0)
        copy_to_device(gradient, dy)
        problem = BatchNormProblem(BatchNormMode.Spatial, x, statistics)
        batchnorm.backward(handle, problem, epsilon=1e-5).bind(
            x=image,
            dy=gradient,
            dx=dx,
            scale=scale,
            dscale=dscale,
            dbias=dbias,
            mean=mean,
            inv_variance=inverse,
        )()
        got = np.empty(dims[1], np.float32)
        copy_to_host(got, dbias)
    return got, dy


def as_variant_1_reads(dy: np.ndarray) -> np.ndarray:
    """The sum of each channel by the addresses in the kernel's source.

    Work item i of a channel's group reads four elements at 4 i, 4 (i + 1024), ... of the channel's
    N * H * W, each time from where the first of the four lies.
    """
    batch, channels, height, width = dy.shape
    plane = height * width
    memory = dy.reshape(-1).astype(np.float64)
    sums = np.zeros(channels)
    for channel in range(channels):
        for first in range(0, batch * plane, VECTOR):
            image, place = divmod(first, plane)
            start = (image * channels + channel) * plane + place
            if start < memory.size - 3:
                sums[channel] += memory[start : start + VECTOR].sum()
    return sums


@pytest.mark.parametrize(
    ("dims", "dtype"),
    [((3, 5, 7, 9), DataType.Half), ((2, 3, 33, 33), DataType.Float)],
    ids=str,
)
def test_backward_reads_into_the_next_channel(
    dims: tuple[int, int, int, int], dtype: DataType
) -> None:
    got, dy = gradient_of_bias(dims, dtype)
    np.testing.assert_array_equal(got, as_variant_1_reads(dy))
    assert (got != dy.astype(np.float64).sum((0, 2, 3))).all()


def test_with_whole_vectors_it_does_not() -> None:
    got, dy = gradient_of_bias((3, 5, 8, 8), DataType.Half)
    np.testing.assert_array_equal(got, as_variant_1_reads(dy))
    np.testing.assert_array_equal(got, dy.astype(np.float64).sum((0, 2, 3)))


SEARCH = """
import os, re
from pathlib import Path
from hipdnn_miopen_provider.native import TuningPolicy
from tests.native.problems import batchnorm_case, fresh_handle
with batchnorm_case((8, 5, 5, 5)) as case, fresh_handle(TuningPolicy.SEARCH_DB_UPDATE) as handle:
    case.backward(handle)
(file,) = Path(os.environ["MIOPEN_USER_DB_PATH"]).glob("batchnorm*.udb.txt")
text, count = re.subn(r"Variant\\d", "Variant1", file.read_text())
assert count
file.write_text(text)
"""


@pytest.mark.miopen_emulator
def test_a_record_that_chooses_variant_1_is_noticed(
    miopen_emulator: Emulation, tmp_path: Path
) -> None:
    """Without one MIOpen chooses another variant for 5x5."""
    line = batchnorm_line("backward", "5x5", "float", "NCHW")
    run = ["hipdnn", "run", line, "--engine", "MIOPEN_ENGINE", "--check"]
    env = dict(os.environ) | {"MIOPEN_USER_DB_PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    right = miopen_emulator.run(run, env=env)
    assert right.returncode == 0, right.stderr
    assert "not tuned: a search may choose a kernel that sums the wrong elements" in " ".join(
        right.stdout.split()
    )
    recorded = miopen_emulator.run([sys.executable, "-c", SEARCH], env=env, cwd=ROOT)
    assert recorded.returncode == 0, recorded.stderr
    wrong = miopen_emulator.run(run, env=env)
    assert wrong.returncode == 1
    assert "sums the wrong elements (H * W = 25 is no multiple of 4" in wrong.stderr
    (file,) = tmp_path.glob("batchnorm*.udb.txt")
    (record,) = file.read_text().splitlines()
    key, _, value = record.partition("=")
    solver, _, parameters = value.partition(":")
    assert (
        f"because of a perf-db record ({file}: key {key}, solver {solver}, parameters {parameters}"
        "). Remove that line, or the file, while no process uses MIOpen"
    ) in wrong.stderr
    shown = miopen_emulator.run(["hipdnn", "perf-db", "show", line, "--json"], env=env)
    assert {file.name, key, solver, parameters} <= set(re.findall(r'"([^"]*)"', shown.stdout))
    file.write_text("")
    assert miopen_emulator.run(run, env=env).returncode == 0, "what it says helps"


def test_a_kernel_that_miopen_chooses_by_itself_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a newer library might where today's shapes are declined."""
    monkeypatch.setattr("hipdnn_miopen_provider.batchnorm_graphs.refuse_hazard", lambda *_: None)
    (graph,) = graph_from_driver_command(batchnorm_line("backward", "33x33", "float", "NCHW"))
    with pytest.raises(ExecutionError, match=r"no multiple of 4.*, by itself: the perf-db in .* f"):
        new_registry().create_execution_plan_ext(graph, "MIOPEN_ENGINE")


@pytest.mark.miopen_emulator
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("backward 2 3 33 33", "WRONG"),
        ("backward 2 3 32 32", "right"),
        ("training 1 2 65 65", "WRONG"),
    ],
)
def test_the_reproduction(miopen_emulator: Emulation, arguments: str, found: str) -> None:
    program = ROOT / "examples" / "miopen_batchnorm_sums.py"
    done = miopen_emulator.run([sys.executable, str(program), *arguments.split()])
    assert done.returncode == (1 if found == "WRONG" else 0), done.stderr
    assert re.search(rf"\b{found}$", done.stdout.strip())
