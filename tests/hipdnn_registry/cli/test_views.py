"""What the commands show of providers, engines, knobs and graphs, to people and as JSON."""

from __future__ import annotations

import json
import math
import os
import pty
import subprocess
from collections import Counter
from collections.abc import Callable
from importlib import metadata

import pytest

import hipdnn_registry
from hipdnn_registry import FloatConstraint, Graph, Knob, engine_id, graph_from_driver_command
from hipdnn_registry.cli.knobs import knob_data
from hipdnn_registry.cli.output import write_json
from hipdnn_registry.cli.text import layout_name, size_text, time_text
from tests.graphs import fused_graph
from tests.hipdnn_registry.cli.conftest import COMMAND, ROOT, Hipdnn
from tests.hipdnn_registry.conftest import Site

LINE = "MIOpenDriver convfp16 -n 2 -c 8 -H 9 -W 7 -k 8 -y 3 -x 3 -p 1 -q 1 -g 2 -F 1 -I NHWC"
FORWARD = "MIOpenDriver conv -n 1 -c 2 -H 5 -W 5 -k 2 -y 3 -x 3 -p 1 -q 1 -F 1"
BOTH = "MIOpenDriver conv -n 1 -c 2 -H 5 -W 5 -k 2 -y 3 -x 3 -p 1 -q 1 -F 3"


def every_command(graph: str) -> list[tuple[str, ...]]:
    on_graphs = ("engines", "explain", "knobs", "show", "run")
    return [("providers",), ("versions",), *((command, graph) for command in on_graphs)]


@pytest.mark.usefixtures("acme")
def test_providers(hipdnn: Hipdnn) -> None:
    outcome = hipdnn("providers")
    assert outcome.status == 0
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert "acme loaded" in lines
    assert "acme_absent unavailable" in lines
    assert "reason no ACME card in this machine (phase hook)" in lines
    assert "acme_broken broken" in lines
    assert any("No module named 'acme_no_such_module'" in line for line in lines)
    assert "library libacme 3.1" in lines

    records = {r["name"]: r for r in hipdnn("providers", "--json").json["providers"]}
    assert records["acme"]["engines"][0] == "ACME_RELU"
    assert records["acme"]["libraries"] == {"libacme": "3.1"}
    assert records["cpu"]["distribution"] == "hipdnn-cpu-provider"
    assert records["acme_broken"]["phase"] == "import"
    assert "ModuleNotFoundError" in records["acme_broken"]["traceback"]


def test_a_blocked_provider(hipdnn: Hipdnn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPDNN_REGISTRY_BLOCK", "cpu")
    outcome = hipdnn("providers")
    assert "cpu  blocked\n  reason        on the block list" in outcome.out
    assert "provider 'cpu' is blocked: on the block list" in hipdnn("engines", LINE).err


def test_no_provider(hipdnn: Hipdnn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    outcome = hipdnn("providers")
    assert outcome.status == 0
    assert "pip install 'hipdnn-registry[cpu]'" in outcome.out
    assert hipdnn("providers", "--json").json == {"providers": []}
    assert "pip install 'hipdnn-registry[cpu]'" in hipdnn("explain", LINE).out


@pytest.mark.usefixtures("acme")
def test_versions(hipdnn: Hipdnn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPDNN_LOG_LEVEL", "off")
    document = hipdnn("versions", "--json").json
    assert document["hipdnn-registry"] == hipdnn_registry.__version__
    assert document["packages"]["hipdnn-acme"] == "1.0"
    assert document["packages"]["numpy"][0].isdecimal()
    assert document["environment"]["HIPDNN_LOG_LEVEL"] == "off"

    plain = " ".join(hipdnn("versions").out.split())
    assert "provider acme 1.0, libacme 3.1, loaded" in plain
    assert "provider acme_absent of unknown version, unavailable: no ACME card" in plain
    assert "HIPDNN_LOG_LEVEL off" in plain


def test_versions_has_what_brings_commands_and_what_is_required(hipdnn: Hipdnn, site: Site) -> None:
    """Also where a provider is unavailable, and says nothing of what it stands on."""
    site.install(
        "hipdnn-absent", "raise ImportError('no card')", "hipdnn_registry.providers", "x", ""
    )
    requires = (
        "Requires-Dist: Hypothesis.no_such>=1\nRequires-Dist: PyTest_XDist>=3; extra == 'x'\n"
    )
    with (site.folder / "hipdnn_absent-1.5.dist-info/METADATA").open("a") as file:
        file.write(requires)
    site.install("hipdnn-tool", "app = 1", "hipdnn_registry.commands", "tool", ":app")
    packages = hipdnn("versions", "--json").json["packages"]
    assert packages["hipdnn-absent"] == packages["hipdnn-tool"] == "1.5"
    assert packages["pytest-xdist"] == metadata.version("pytest-xdist")
    assert not any("such" in name for name in packages)
    assert len({name.replace("_", "-") for name in packages}) == len(packages)
    assert "hipdnn-registry" not in packages


@pytest.mark.usefixtures("acme")
def test_engines(hipdnn: Hipdnn, relu_file: str) -> None:
    engines = hipdnn("engines", relu_file, "--json").json["graphs"][0]["engines"]
    assert engines[0]["engine_name"] == "ACME_RELU"  # the one of highest priority
    assert engines[0]["engine_id"] == engine_id("ACME_RELU")
    assert engines[0]["supports_exhaustive"] is True
    assert "acme.tile" in engines[0]["knobs"]
    names = [engine["engine_name"] for engine in engines]
    assert "ACME_FORWARD" not in names
    assert "ACME_DEFECT" not in names

    rows = hipdnn("engines", relu_file).out.splitlines()
    assert [row.split()[0] for row in rows[3:]] == names


@pytest.mark.usefixtures("acme")
def test_explain(hipdnn: Hipdnn, relu_file: str) -> None:
    outcome = hipdnn("explain", relu_file)
    assert outcome.status == 0
    rows = {row.split()[0]: row for row in outcome.out.splitlines()}
    assert "serves" in rows["ACME_RELU"]
    assert "declines" in rows["ACME_FORWARD"]
    assert "is no convolution forward" in rows["ACME_FORWARD"]
    assert "ZeroDivisionError: 0 tiles" in rows["ACME_DEFECT"]
    assert "is unavailable: no ACME card in this machine" in outcome.out

    (document,) = hipdnn("explain", relu_file, "--json").json["graphs"]
    answers = {answer["engine_name"]: answer for answer in document["engines"]}
    assert answers["ACME_RELU"]["config"]["provider_name"] == "acme"
    assert answers["ACME_DEFECT"]["defect"] is True
    assert answers["ACME_FORWARD"]["reason"].endswith("is no convolution forward")
    absent = [p["name"] for p in document["absent_providers"]]  # others may be installed as well
    assert [name for name in absent if name.startswith("acme")] == ["acme_absent", "acme_broken"]


@pytest.mark.usefixtures("acme")
def test_knobs(hipdnn: Hipdnn, relu_file: str) -> None:
    outcome = hipdnn("knobs", relu_file, "--engine", str(engine_id("ACME_RELU")))
    rows = [" ".join(line.split()) for line in outcome.out.splitlines()]
    for row in (
        "ACME_RELU",
        "acme.tile int 8 1 to 64 Tile size",
        "acme.width int 4 4, 8 Vector width",
        "acme.slack float 0.5 0.0 to 1.0 Slack",
        "acme.kernel str auto auto, fast Kernel",
        "acme.label str text of at most 8 bytes Label",
        "acme.old_tile int 8 any value Tile size (deprecated; use acme.tile)",
    ):
        assert row in rows
    assert "ACME_UNWRITTEN" not in outcome.out

    (graph,) = hipdnn("knobs", relu_file, "--engine", "ACME_RELU", "--json").json["graphs"]
    (engine,) = graph["engines"]
    tile = engine["knobs"][0]
    assert (tile["knob_id"], tile["type"], tile["default_value"]) == ("acme.tile", "int", 8)
    assert tile["constraint"]["kind"] == "IntConstraint"
    assert tile["constraint"]["max_value"] == 64
    assert engine["json_schema"]["properties"]["acme.tile"]["maximum"] == 64


def test_show(hipdnn: Hipdnn) -> None:
    out = hipdnn("show", LINE).out
    assert "convfp16_fwd" in out
    assert "stride [1, 1]" in out
    assert "half [2, 8, 9, 7] NHWC" in out
    assert "half [8, 4, 3, 3] NCHW" in out
    layernorm = hipdnn("show", str(ROOT / "tests/data/graphs/layernorm_training.json")).out
    assert "float [2, 3, 4] packed" in layernorm
    assert "double [1] = 1e-05" in layernorm


def test_show_json_is_a_graph_again(hipdnn: Hipdnn) -> None:
    documents = [g["document"] for g in hipdnn("show", BOTH, "--json").json["graphs"]]
    for document, graph in zip(documents, graph_from_driver_command(BOTH), strict=True):
        assert Graph.from_json(document).content_key.digest == graph.content_key.digest


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("arguments", every_command(BOTH), ids=lambda a: a[0])
def test_json_alone_is_on_stdout(hipdnn: Hipdnn, arguments: tuple[str, ...]) -> None:
    outcome = hipdnn(*arguments, "--json")
    assert outcome.status == 0
    if len(arguments) > 1:
        names = [graph["graph"]["name"] for graph in outcome.json["graphs"]]
        assert names == ["conv_fwd", "conv_bwd"]
    assert ("ACME greets you" in outcome.err) == (arguments[0] != "show")


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("arguments", every_command(BOTH), ids=lambda a: a[0])
def test_narrow_terminals(
    hipdnn: Hipdnn, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    wide = hipdnn(*arguments).out
    monkeypatch.setenv("COLUMNS", "60")
    narrow = hipdnn(*arguments).out
    assert max(map(len, narrow.splitlines())) <= 60
    if arguments[0] != "run":  # whose times differ
        assert letters(narrow) >= letters(without_headings(wide))


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("columns", [25, 40, 60, 80])
@pytest.mark.parametrize("command", ["engines", "explain", "knobs"])
def test_ids_and_names_are_never_broken(
    hipdnn: Hipdnn, monkeypatch: pytest.MonkeyPatch, command: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", "")
    (graph,) = hipdnn(command, FORWARD, "--json").json["graphs"]
    names = [engine["engine_name"] for engine in graph["engines"]]
    if command == "knobs":
        names += [knob["knob_id"] for engine in graph["engines"] for knob in engine["knobs"]]
    monkeypatch.setenv("COLUMNS", str(columns))
    words = set(hipdnn(command, FORWARD).out.split())
    assert len(names) > 3
    assert words >= set(names)


def test_what_is_not_finite_is_null_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = {"a": [math.inf, (-math.inf, math.nan)], "b": {"c": 1.5, "d": 2**70, "e": True}}
    write_json(numbers)
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert told == {"a": [None, [None, None]], "b": {"c": 1.5, "d": 2**70, "e": True}}


def test_knobs_without_finite_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    knob = Knob("acme.any", "", 0.0, FloatConstraint(-math.inf, math.inf))
    write_json(knob_data(knob))
    constraint = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["constraint"]
    assert constraint["min_value"] is constraint["max_value"] is None


def without_headings(text: str) -> str:
    """Leave out what stands above a rule; rows that don't fit are lists with headings of theirs."""
    lines = text.splitlines()
    return "\n".join(
        line
        for line, below in zip(lines, [*lines[1:], ""], strict=True)
        if not below.startswith("\u2500")
    )


def letters(text: str) -> Counter[str]:
    return Counter(char for char in text if char.isalnum())


def test_a_name_cannot_write_to_the_terminal(
    hipdnn: Hipdnn, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    graph = fused_graph().set_name("\x1b[2Jcl\u00e9ar \ud800")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(graph.to_json().encode())))
    out = hipdnn("show", "-").out
    assert out.startswith("\\x1b[2Jcl\u00e9ar \\ud800  key ")


@pytest.mark.parametrize(
    ("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_are_for_terminals(variables: dict[str, str], coloured: bool) -> None:
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", **variables}
    subprocess.run([*COMMAND, "show", LINE], stdout=follower, env=environment, cwd=ROOT, check=True)
    os.close(follower)
    output = b""
    try:
        while block := os.read(leader, 65536):
            output += block
    except OSError:  # how a pseudo-terminal says that its other end is closed
        pass
    os.close(leader)
    assert b"ConvolutionFprop_0" in output
    assert (b"\x1b[36m" in output) == coloured


def test_an_encoding_without_boxes(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start("show", LINE, PYTHONIOENCODING="ascii")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "ConvolutionFprop_0" in out
    assert out.isascii()


def test_sizes_and_times() -> None:
    assert [size_text(n) for n in (0, 1023, 1024, 1536, 1 << 30, 1 << 60)] == [
        "0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 GiB", "1.0 EiB",
    ]  # fmt: skip
    assert [time_text(s) for s in (0.0, 2.5e-6, 0.00125, 61.0)] == [
        "0.00 us", "2.50 us", "1.25 ms", "61.00 s",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("dims", "strides", "name"),
    [
        ((2, 3, 4, 5), (60, 20, 5, 1), "NCHW"),
        ((2, 3, 4, 5), (60, 1, 15, 3), "NHWC"),
        ((2, 3, 4), (12, 1, 3), "NWC"),
        ((2, 3, 4, 5, 6), (360, 1, 90, 18, 3), "NDHWC"),
        ((2, 3, 1, 1), (3, 1, 3, 3), "NCHW"),
        ((2, 3, 4, 5), (64, 20, 5, 1), "strides [64, 20, 5, 1]"),
        ((2, 3), (3, 1), "packed"),
    ],
)
def test_layout_names(dims: tuple[int, ...], strides: tuple[int, ...], name: str) -> None:
    assert layout_name(dims, strides) == name
