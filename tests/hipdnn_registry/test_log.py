"""HIPDNN_LOG_LEVEL, HIPDNN_LOG_FILE, HIPDNN_LOG_GRAPH_DIR, and what importing costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hipdnn_registry
from hipdnn_registry import EngineRegistry, Graph
from tests.graphs import fused_graph, relu_graph
from tests.providers import AcmeProvider

PLAN = """
from hipdnn_registry import EngineRegistry
from tests.graphs import relu_graph
from tests.providers import AcmeProvider
registry = EngineRegistry([AcmeProvider()], entry_points=False)
import warnings; warnings.simplefilter("ignore")
registry.create_execution_plan_ext(relu_graph(), None, {"acme.typo": 1})
"""


BASIC = "import logging; logging.basicConfig(format='own %(levelname)s %(message)s')"
AGAIN = "registry.create_execution_plan_ext(relu_graph((2, 2)))"


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HIPDNN_")}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[2])} | variables
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (None, []),
        ("off", []),
        ("error", []),
        ("warn", ["[WARNING] knob 'acme.typo'"]),
        ("INFO", ["[WARNING] knob 'acme.typo'", "[INFO] <ExecutionPlan ACME_RELU"]),
        ("loud", ["HIPDNN_LOG_LEVEL='loud' is not recognised", "[WARNING] knob 'acme.typo'"]),
    ],
)
def test_levels(level: str | None, expected: list[str]) -> None:
    done = run(PLAN, **({} if level is None else {"HIPDNN_LOG_LEVEL": level}))
    lines = done.stderr.splitlines()
    assert len(lines) == len(expected)
    for line, part in zip(lines, expected, strict=True):
        assert part in line
    assert done.stdout == ""


@pytest.mark.parametrize("code", [f"{BASIC}\n{PLAN}", f"{PLAN}\n{BASIC}\n{AGAIN}"])
def test_nothing_is_printed_twice(code: str, tmp_path: Path) -> None:
    """Before or after the first registry: a program's root handlers take over stderr."""
    own = run(code, HIPDNN_LOG_LEVEL="info").stderr.splitlines()
    assert len([line for line in own if "<ExecutionPlan" in line]) == code.count("plan_ext")
    assert any(line.startswith("own INFO <ExecutionPlan") for line in own)
    target = tmp_path / "hipdnn.log"
    own = run(code, HIPDNN_LOG_LEVEL="info", HIPDNN_LOG_FILE=str(target)).stderr.splitlines()
    assert any(line.startswith("own INFO <ExecutionPlan") for line in own)
    assert target.read_text().count("<ExecutionPlan") == code.count("plan_ext")


def test_a_log_file_is_appended_to(tmp_path: Path) -> None:
    target = tmp_path / "hipdnn.log"
    for _ in range(2):
        done = run(PLAN, HIPDNN_LOG_LEVEL="info", HIPDNN_LOG_FILE=str(target))
        assert done.stderr == ""
    assert target.read_text().count("<ExecutionPlan ACME_RELU") == 2


def test_a_log_file_that_cant_be_written(tmp_path: Path) -> None:
    target = tmp_path / "missing" / "hipdnn.log"
    done = run(PLAN, HIPDNN_LOG_LEVEL="warn", HIPDNN_LOG_FILE=str(target))
    assert "HIPDNN_LOG_FILE" in done.stderr
    assert "acme.typo" in done.stderr, "falls back to stderr"


def test_graphs_are_written_in_hipdnns_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new" / "graphs"
    monkeypatch.setenv("HIPDNN_LOG_GRAPH_DIR", str(folder))
    registry = EngineRegistry([AcmeProvider()], entry_points=False)
    for graph in (relu_graph(), relu_graph(), fused_graph()):
        registry.get_engine_configs(graph)
    written = {Graph.from_json(path.read_text()).content_key for path in folder.iterdir()}
    assert written == {relu_graph().content_key, fused_graph().content_key}
    assert all(path.name.startswith("graph_") for path in folder.iterdir())


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o007, 0o660)])
def test_a_graphs_file_has_the_mode_of_any_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int, mode: int
) -> None:
    monkeypatch.setenv("HIPDNN_LOG_GRAPH_DIR", str(tmp_path))
    before = os.umask(mask)
    try:
        EngineRegistry([AcmeProvider()], entry_points=False).is_supported(relu_graph())
    finally:
        os.umask(before)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == mode


def test_a_graph_folder_that_cant_be_written_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("HIPDNN_LOG_GRAPH_DIR", str(file))
    registry = EngineRegistry([AcmeProvider()], entry_points=False)
    assert registry.is_supported(relu_graph())
    assert "HIPDNN_LOG_GRAPH_DIR" in caplog.text


def test_importing_imports_no_numpy_and_no_provider() -> None:
    code = "import hipdnn_registry, sys; print(*sys.modules)"
    loaded = set(run(code).stdout.split())
    assert not loaded & {"numpy", "pydantic", "pluggy", "hipdnn_cpu_provider", "logging"}


def test_every_public_name_is_there_and_no_other() -> None:
    stub = (Path(hipdnn_registry.__file__).parent / "__init__.pyi").read_text()
    public = vars(hipdnn_registry)["__all__"]  # the stub that type checkers read has none
    for name in public:
        assert getattr(hipdnn_registry, name) is not None
        assert name in dir(hipdnn_registry)
        assert f"{name} as {name}" in stub or name == "__version__"
    assert stub.count(" as ") == len(public) - 1
    with pytest.raises(AttributeError, match="no_such_name"):
        hipdnn_registry.no_such_name  # type: ignore[attr-defined]  # noqa: B018
    for name in ("engine_id", "Graph"):
        assert callable(getattr(hipdnn_registry, name)), "no submodule shadows a public name"
