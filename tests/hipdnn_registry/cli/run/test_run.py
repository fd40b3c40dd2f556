"""`hipdnn run` on the CPU provider's engines, and on engines that get it wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.graphs import batchnorm_graph, fused_graph
from tests.hipdnn_registry.cli.conftest import Hipdnn

SMALL = "-n 2 -c 8 -H 9 -W 7 -k 6 -y 3 -x 3 -p 1 -q 1"
CONV = f"MIOpenDriver conv {SMALL} -F 1"
CASES = (Path(__file__).parents[3] / "data" / "driver_commands.txt").read_text().splitlines()
QUICK = [line for line in CASES if re.search(r"bnorm -n [15] |-n 1 -c 1 |-c 224 ", line)]
"""Reported commands that take no more than milliseconds."""


@pytest.mark.parametrize(
    "line",
    [
        *QUICK,
        f"MIOpenDriver conv {SMALL} -g 2 -j 2",
        f"MIOpenDriver convfp16 {SMALL} -F 0 -I NHWC -O NHWC -f NHWC",
        f"MIOpenDriver convbfp16 {SMALL} -F 0 -u 2",
        f"MIOpenDriver conv {SMALL} -m trans",
        f"MIOpenDriver CBAInfer -F 4 {SMALL}",
        "MIOpenDriver bnormfp16 -n 8 -c 8 -H 12 -W 12 -D 12 -m 1 -F 1 -s 1 -r 1 -L NDHWC",
        "MIOpenDriver bnorm -n 8 -c 8 -H 12 -W 12 -m 0 -F 1 -b 1 -s 1",
    ],
)
def test_reported_commands_run_and_pass(hipdnn: Hipdnn, line: str) -> None:
    outcome = hipdnn("run", line, "--check", "--repeat", "1", "--json")
    assert outcome.status == 0, outcome.err
    for run in outcome.json["graphs"]:
        assert run["check"]["passed"]
        assert run["check"]["outputs"]


@pytest.mark.parametrize("make", [fused_graph, batchnorm_graph])
def test_json_graphs_run_and_pass(
    hipdnn: Hipdnn, tmp_path: Path, make: Callable[[], object]
) -> None:
    path = tmp_path / "graph.json"
    path.write_text(make().to_json())  # type: ignore[attr-defined]
    outcome = hipdnn("run", str(path), "--check", "--repeat", "2")
    assert outcome.status == 0, outcome.err
    assert "PASS" in outcome.out
    assert "FAIL" not in outcome.out


def test_what_people_see(hipdnn: Hipdnn) -> None:
    outcome = hipdnn("run", CONV, "-k", "global.benchmarking=1", "-k", "x.y=2", "--repeat", "3")
    assert outcome.status == 0
    assert outcome.err == ""
    text = " ".join(outcome.out.split())
    for part in (
        "conv_fwd key ",
        "note: knob 'x.y' (value 2) of engine CPU_GEMM_ENGINE",
        "engine CPU_GEMM_ENGINE of cpu ",
        "global.benchmarking = 1 (caller)",
        "(default)",
        "dropped x.y = 2",
        "workspace ",
    ):
        assert part in text
    assert re.search(r"time best [\d.]+ [um]s, median [\d.]+ [um]s of 3", text)
    assert re.search(r"rate [\d.]+ GFLOP/s \(0.0001089 GFLOP\)", text)  # 2*2*6*63*8*9 / 1e9


def test_the_json_document(hipdnn: Hipdnn) -> None:
    outcome = hipdnn(
        "run", CONV, "-k", "x.y=2", "--check", "--repeat", "4", "--seed", "9", "--json"
    )
    (run,) = outcome.json["graphs"]
    assert run["engine_name"] == "CPU_GEMM_ENGINE"
    assert run["settings"]["global.benchmarking"] == {"value": 0, "source": "default", "detail": ""}
    assert run["dropped_knobs"] == [{"knob_id": "x.y", "value": 2}]
    assert run["seed"] == 9
    assert len(run["seconds"]) == 4
    assert run["best_seconds"] == min(run["seconds"])
    assert run["flops"] == 2 * 2 * 6 * 63 * 8 * 9
    assert run["gflops_per_second"] == pytest.approx(run["flops"] / run["best_seconds"] / 1e9)
    assert run["host_memory"]["check"] == run["host_memory"]["outputs"] == 4 * 2 * 6 * 63
    assert run["workspace_size"] <= run["host_memory"]["workspace"]
    (output,) = run["check"]["outputs"]
    assert output["relative_error"] <= output["tolerance"] < 1e-4


def test_the_environment_is_shown_as_the_source(
    hipdnn: Hipdnn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIPDNN_FORCE_BENCHMARKING", "on")
    out = hipdnn("run", CONV, "--repeat", "1").out
    assert "global.benchmarking = 1  (HIPDNN_FORCE_BENCHMARKING)" in out


@pytest.mark.usefixtures("acme")
def test_knobs_are_typed_by_the_engine(hipdnn: Hipdnn, relu_file: str) -> None:
    knobs = ("acme.slack=1", "acme.label=12", "acme.tile=16", "acme.old_tile=4")
    options = [word for knob in knobs for word in ("--knob", knob)]
    outcome = hipdnn("run", relu_file, "--engine", "ACME_RELU", *options, "--json")
    assert outcome.status == 0, outcome.err
    (run,) = outcome.json["graphs"]
    values = {knob_id: setting["value"] for knob_id, setting in run["settings"].items()}
    assert (values["acme.slack"], type(values["acme.slack"])) == (1.0, float)
    assert values["acme.label"] == "12"
    assert run["workspace_size"] == 160
    assert any("'acme.old_tile'" in text and "is deprecated" in text for text in run["warnings"])
    assert run["gigabytes_per_second"] > 0
    assert run["flops"] is None


@pytest.mark.usefixtures("acme")
def test_engines_on_a_device_run_and_are_checked(hipdnn: Hipdnn, relu_file: str) -> None:
    outcome = hipdnn("run", relu_file, "--engine", "ACME_DEVICE", "--check", "--json")
    assert outcome.status == 0, outcome.err
    (run,) = outcome.json["graphs"]
    assert run["engine_name"] == "ACME_DEVICE"
    assert run["workspace_size"] == 16
    assert run["check"]["outputs"][0]["absolute_error"] == 0


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("engine", "error"), [("ACME_WRONG", r"\d\.\d+e-0\d"), ("ACME_UNWRITTEN", "inf")]
)
def test_a_wrong_result_fails(hipdnn: Hipdnn, relu_file: str, engine: str, error: str) -> None:
    assert hipdnn("run", relu_file, "-e", engine).status == 0
    outcome = hipdnn("run", relu_file, "-e", engine, "--check")
    assert outcome.status == 1
    assert "FAIL" in outcome.out
    (line,) = outcome.error_lines
    assert re.search(
        rf"engine {engine} differs from CPU_REFERENCE_ENGINE: output uid 1 \('y'\) has relative "
        rf"error {error}, tolerance \d",
        line,
    )
    document = hipdnn("run", relu_file, "-e", engine, "--check", "--json")
    assert document.status == 1
    assert document.json["graphs"][0]["check"]["passed"] is False


@pytest.mark.usefixtures("acme")
def test_checking_without_the_reference(
    hipdnn: Hipdnn, relu_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIPDNN_REGISTRY_BLOCK", "cpu")
    assert hipdnn("run", relu_file).status == 0
    outcome = hipdnn("run", relu_file, "--check")
    assert outcome.status == 1
    assert "--check needs the engine CPU_REFERENCE_ENGINE" in outcome.err
    assert "pip install 'hipdnn-registry[cpu]'" in outcome.err
