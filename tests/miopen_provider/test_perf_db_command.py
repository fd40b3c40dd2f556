"""`hipdnn perf-db` on files as MIOpen 3.5.1 wrote them, without libMIOpen and hip-python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipdnn_miopen_provider.database_files import FileKind, FileName, read_file, read_name
from hipdnn_miopen_provider.perf_db import (
    BatchNormKey,
    ConvolutionKey,
    parse_batchnorm_key,
    parse_convolution_key,
)
from hipdnn_miopen_provider.perf_db_command.difference import changes_between
from hipdnn_miopen_provider.perf_db_command.listing import age_text
from hipdnn_miopen_provider.record_keys import batchnorm_perf_db_key, keys_of, perf_db_key
from hipdnn_registry import DataType, Graph, graph_from_driver_command
from hipdnn_registry.cli import main
from tests.graphs import batchnorm_graph, conv_graph, new_graph, relu_graph

ROOT = Path(__file__).parents[2]

PERF, FIND = "gfx90a6e.HIP.3_5_1_.udb.txt", "gfx90a6e.HIP.3_5_1_.ufdb.txt"
FUSION, BATCHNORM = "gfx90a6e.HIP.3_5_1_.fusion.ufdb.txt", f"batchnorm_{PERF}"
OLDER = "gfx1100_48.HIP.3_4_0_037eb6dc4-dirty.udb.txt"

CONV = "2x8x16x20x1x3x3x1x4x2x1x1x0x1x1x0x1x1x0x0x2xNCHWxFP32xF"
FUSED_CONV = "2x8x16x24x1x3x3x1x8x2x1x1x0x1x1x0x1x1x0x0x1xNCHWxFP32xF"
FUSED_FIND = (
    "2, 8, 16, 24FP322, 8, 16, 24FP328x16x24x3x3x8x16x24x2xNCHWxFP32x1x1x1x1x1x1x1xFxDefault"
    "biasOnActivFwd3"
)
FILES = {
    PERF: f"""\
{CONV}=ConvOclDirectFwd:8,16,16,32,2,2,8,2,1;ConvAsm3x3U:0,1,4
2x8x16x20x1x3x3x1x4x2x1x1x0x1x1x0x1x1x0x0x1xNCHWxFP32xB=ConvOclDirectFwd:8,16,16,32,2,2,8,2,1
2x4x9x11x1x3x3x1x8x2x1x1x0x2x2x0x1x1x0x0x1xNCHWxFP32xB=ConvOclDirectFwd:16,16,16,16,1,1,1,1,1
{FUSED_CONV}=ConvOclDirectFwdFused:8,16,16,32,2,2,8,2,1
""",
    FIND: """\
8-16-20-3x3-4-16-20-2-1x1-1x1-1x1-0-NCHW-FP32-F_g2=GemmFwdRest:1.722,92160,\
miopenConvolutionFwdAlgoGEMM;ConvOclDirectFwd:0.495,0,miopenConvolutionFwdAlgoDirect
8-16-20-3x3-4-16-20-2-1x1-1x1-1x1-0-NCHW-FP32-B=GemmBwdRest:1.774,46080,\
miopenConvolutionBwdDataAlgoGEMM
8-16-20-3x3-4-16-20-2-1x1-1x1-1x1-0-NHWC-NHWC-NHWC-FP16-F=ConvDirectNaiveConvFwd:0.366,0,\
miopenConvolutionFwdAlgoDirect
""",
    FUSION: f"{FUSED_FIND}=ConvOclDirectFwdFused:0.734,0,miopenConvolutionFwdAlgoDirect\n",
    BATCHNORM: """\
2x4x8x16x20x1x1x1x0xNCHWxTrnxFP32x1=BnFwdTrainingSpatial:Variant1-1
2x4x8x30x7x1x0x0x1xNCHWxBwdxFP32x1=BnBwdTrainingSpatial:Variant0-1
""",
    OLDER: f"{CONV}=ConvOclDirectFwd:8,16,16,16,1,1,8,2,1\n",
}
LONG = "x" * 300
GROUPED = "MIOpenDriver conv -n 2 -c 8 -H 16 -W 20 -k 4 -y 3 -x 3 -p 1 -q 1 -g 2 -F 1"


class Outcome(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """Lines of the view, blanks squeezed."""
        return [" ".join(line.split()) for line in self.out.splitlines()]


PerfDb = Callable[..., Outcome]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's databases, where MIOpen looks for them."""
    folder = tmp_path / "miopen"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / f"{PERF}.time").write_text("1")
    (folder / "miopen-lockfiles").mkdir()
    monkeypatch.setenv("MIOPEN_USER_DB_PATH", str(folder))
    return folder


def install_entry_points(site: Path) -> None:
    """Install what the package declares, as a distribution of its name."""
    project = tomllib.loads((ROOT / "plugins/miopen_provider/pyproject.toml").read_text())
    commands = project["project"]["entry-points"]["hipdnn_registry.commands"]
    info = site / "hipdnn_miopen_provider-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: hipdnn-miopen-provider\nVersion: 0.1.0\n"
    )
    lines = [f"{name} = {value}" for name, value in commands.items()]
    (info / "entry_points.txt").write_text("\n".join(["[hipdnn_registry.commands]", *lines, ""]))


@pytest.fixture
def perf_db(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> PerfDb:
    """Run `hipdnn perf-db` in this process, found through its entry point."""
    install_entry_points(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: str | Path) -> Outcome:
        status = main(["perf-db", *map(str, arguments)])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Outcome(status, out, err)

    return run


# The command


def test_help(perf_db: PerfDb) -> None:
    for arguments in ((), ("--help",)):
        outcome = perf_db(*arguments)
        assert outcome.status == 0
        assert [
            line.split()[0] for line in outcome.lines if line[:5] in {"list ", "show ", "diff "}
        ]
    for command in ("list", "show", "diff"):
        outcome = perf_db(command, "--help")
        assert f"  hipdnn perf-db {command}" in outcome.out.partition("Examples:")[2]


def test_its_import_loads_little() -> None:
    """It is imported for `hipdnn --help`."""
    heavy = ("numpy", "pydantic", "rich", "hipdnn_registry.graph", "hipdnn_miopen_provider.native")
    program = (
        "import sys, hipdnn_miopen_provider.perf_db_command; "
        f"sys.exit(', '.join(name for name in {heavy!r} if name in sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert result.stderr.strip() == ""


# list


def test_list(perf_db: PerfDb, folder: Path) -> None:
    os.utime(folder / PERF, (0, 0))
    document = perf_db("list", "--json").json
    assert document["folder"] == str(folder)
    assert document["damage"] == []
    files = {file.pop("file"): file for file in document["files"]}
    assert set(files) == set(FILES)
    assert files[PERF].pop("age_seconds") > 1e9
    assert files[PERF] == {
        "kind": "perf-db",
        "architecture": "gfx90a",
        "compute_units": 110,
        "miopen_version": "3.5.1",
        "problems": 4,
        "records": 5,
        "size": len(FILES[PERF]),
        "modified": "1970-01-01T00:00:00+00:00",
    }
    assert {name: file["kind"] for name, file in files.items()} == {
        PERF: "perf-db",
        FIND: "find-db",
        FUSION: "fusion find-db",
        BATCHNORM: "batchnorm perf-db",
        OLDER: "perf-db",
    }
    plain = perf_db("list")
    assert f"in {folder}" in plain.lines
    older = next(line for line in plain.lines if line.startswith(OLDER))
    assert older.startswith(f"{OLDER} perf-db gfx1100 48 3.4.0 037eb6dc4-dirty 1 1 ")


def test_the_folder_can_be_given(perf_db: PerfDb, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    outcome = perf_db("list", "--path", other)
    assert (outcome.status, outcome.lines) == (0, [f"note: no user databases of MIOpen in {other}"])
    assert perf_db("list", "--path", other, "--json").json["files"] == []


def test_a_folder_that_miopen_has_not_made_yet_is_empty(
    perf_db: PerfDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MIOPEN_USER_DB_PATH", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    default = tmp_path / ".config" / "miopen"
    assert perf_db("list").lines == [f"note: no user databases of MIOpen in {default}"]
    assert f"note: no perf-db in {default}" in perf_db("show", GROUPED).lines


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (PERF, FileName(FileKind.PERF, "gfx90a", 110, "3.5.1")),
        ("gfx90878.HIP.3_5_1_.ufdb.txt", FileName(FileKind.FIND, "gfx908", 120, "3.5.1")),
        ("gfx906_64.HIP.2_16_0_a.udb.txt", FileName(FileKind.PERF, "gfx906", 64, "2.16.0 a")),
        ("gfx942130.HIP.3_5_1_.udb.txt", FileName(FileKind.PERF, "gfx942", 304, "3.5.1")),
        ("gfx110060.HIP.3_5_1_.udb.txt", FileName(FileKind.PERF, "gfx1100", 96, "3.5.1")),
        (BATCHNORM, FileName(FileKind.BATCHNORM_PERF, "gfx90a", 110, "3.5.1")),
        ("tpu7.HIP.3_5_1_.udb.txt", FileName(FileKind.PERF, "tpu7", None, "3.5.1")),
        (f"{PERF}.time", FileName()),
        ("gfx90a6e.db.txt", FileName()),
    ],
)
def test_names_of_files(name: str, expected: FileName) -> None:
    assert read_name(name) == expected


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0 s"), (59.9, "59 s"), (60, "1 min"), (7300, "2 h"), (1e6, "11 d")]
)
def test_age(seconds: float, text: str) -> None:
    assert age_text(seconds) == text


# show


def shown(outcome: Outcome) -> list[dict[str, Any]]:
    assert outcome.status == 0
    return [node for graph in outcome.json["graphs"] for node in graph["nodes"]]


@pytest.mark.usefixtures("folder")
def test_show_a_convolution(perf_db: PerfDb) -> None:
    (node,) = shown(perf_db("show", GROUPED, "--json"))
    assert node["operation"] == "convolution forward"
    assert node["keys"] == {
        "perf-db": CONV,
        "find-db": "8-16-20-3x3-4-16-20-2-1x1-1x1-1x1-0-NCHW-FP32-F_g2",
    }
    found = [(one["file"], one["solver"], one.get("parameters")) for one in node["records"]]
    assert found == [
        (OLDER, "ConvOclDirectFwd", "8,16,16,16,1,1,8,2,1"),
        (PERF, "ConvOclDirectFwd", "8,16,16,32,2,2,8,2,1"),
        (PERF, "ConvAsm3x3U", "0,1,4"),
        (FIND, "ConvOclDirectFwd", None),
        (FIND, "GemmFwdRest", None),
    ]
    slowest = node["records"][-1]
    assert (slowest["milliseconds"], slowest["workspace_size"]) == (1.722, 92160)
    assert slowest["algorithm"] == "miopenConvolutionFwdAlgoGEMM"

    lines = perf_db("show", GROUPED).lines
    assert f"perf-db {CONV}" in lines
    assert f"{PERF} ConvAsm3x3U 0,1,4" in lines
    assert f"{FIND} GemmFwdRest 1.722 ms 90.0 KiB miopenConvolutionFwdAlgoGEMM" in lines


@pytest.mark.usefixtures("folder")
def test_a_transposed_convolution_is_the_other_direction_of_the_plain_one(perf_db: PerfDb) -> None:
    line = "MIOpenDriver conv -n 2 -c 8 -H 16 -W 20 -k 4 -y 3 -x 3 -p 1 -q 1 -m trans -F 1"
    (node,) = shown(perf_db("show", line, "--json"))
    assert node["operation"] == "convolution backward data"
    assert node["keys"]["perf-db"].endswith("xB")
    assert [one["solver"] for one in node["records"]] == ["ConvOclDirectFwd", "GemmBwdRest"]


@pytest.mark.usefixtures("folder")
def test_a_fused_convolution_shares_the_plain_ones_perf_db_key(perf_db: PerfDb) -> None:
    line = "MIOpenDriver CBAInfer -n 2 -c 8 -H 16 -W 24 -k 8 -y 3 -x 3 -p 1 -q 1 -F 4"
    (node,) = shown(perf_db("show", line, "--json"))
    assert node["operation"] == "convolution forward + bias + activation RELU"
    assert node["keys"]["perf-db"] == FUSED_CONV
    assert node["keys"]["fusion find-db"] == FUSED_FIND
    assert [(one["kind"], one["solver"]) for one in node["records"]] == [
        ("fusion find-db", "ConvOclDirectFwdFused"),
        ("perf-db", "ConvOclDirectFwdFused"),
    ]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("line", "solver"),
    [
        ("-n 4 -c 8 -H 16 -W 20 -m 1 --forw 1 -b 0 -s 1 -r 1", "BnFwdTrainingSpatial"),
        ("-n 4 -c 8 -D 5 -H 6 -W 7 -m 1 --forw 0 -b 1 -s 1 -r 1", "BnBwdTrainingSpatial"),
    ],
)
def test_show_a_batchnorm(perf_db: PerfDb, line: str, solver: str) -> None:
    (node,) = shown(perf_db("show", f"MIOpenDriver bnorm {line}", "--json"))
    assert [one["solver"] for one in node["records"]] == [solver]
    assert node["records"][0]["kind"] == "batchnorm perf-db"


@pytest.mark.usefixtures("folder")
def test_without_a_record_it_says_where_it_looked(perf_db: PerfDb) -> None:
    outcome = perf_db("show", GROUPED.replace("-n 2", "-n 3"))
    assert outcome.status == 0
    key = CONV.replace("x4x2x", "x4x3x", 1)
    assert f"perf-db {key}" in outcome.lines
    assert "note: no record under this key in 2 perf-db files" in outcome.lines
    assert "note: no record under this key in 1 find-db file" in outcome.lines


@pytest.mark.usefixtures("folder")
def test_where_there_can_be_no_record_it_says_why(perf_db: PerfDb, tmp_path: Path) -> None:
    (tmp_path / "relu.json").write_text(relu_graph().to_json())
    assert (
        "has no convolution and no batch normalization"
        in perf_db("show", tmp_path / "relu.json").out
    )
    inference = "MIOpenDriver bnorm -n 5 -c 33 -H 27 -W 1 -m 1 --forw 2 -b 0"
    assert "nothing to tune in spatial batchnorm inference" in perf_db("show", inference).out
    (tmp_path / "double.json").write_text(conv_graph(io=DataType.DOUBLE).to_json())
    outcome = perf_db("show", tmp_path / "double.json")
    assert "has data type 'double', but MIOpen's engines take" in outcome.out


def test_every_node_of_a_graph_is_looked_at_alone() -> None:
    """MIOpen's engines serve no graph like this one."""
    graph = new_graph("two", DataType.HALF)
    x = graph.tensor(dims=[2, 8, 16, 20], name="x", data_type=DataType.FLOAT)
    y = graph.conv_fprop(
        x, graph.tensor(dims=[4, 8, 3, 3], name="w", data_type=DataType.FLOAT), padding=1
    )
    scale, bias = (
        graph.tensor(dims=[1, 4, 1, 1], name=name, data_type=DataType.FLOAT)
        for name in ("scale", "bias")
    )
    result = graph.batchnorm(y, scale, bias, graph.scalar(1e-5, name="epsilon"))
    graph.pointwise("relu_fwd", result[0]).set_output().set_name("z")
    convolution, batchnorm = keys_of(graph.validate())
    assert convolution.keys[FileKind.PERF].endswith("x0x1xNCHWxFP32xF")
    assert batchnorm.keys[FileKind.BATCHNORM_PERF] == "2x2x4x16x20x1x0x0x0xNCHWxTrnxFP32x1"


def find_key(graph: Graph) -> str:
    (node,) = keys_of(graph.validate())
    return node.keys[FileKind.FIND]


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (
            "convfp16 -n 2 -c 8 -H 16 -W 20 -k 4 -y 3 -x 3 -p 1 -q 1 -F 1 -I NHWC -f NHWC -O NHWC",
            "8-16-20-3x3-4-16-20-2-1x1-1x1-1x1-0-NHWC-NHWC-NHWC-FP16-F",
        ),
        (
            "conv -n 2 -c 8 -H 17 -W 21 -k 4 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -F 2",
            "4-9-11-3x3-8-17-21-2-1x1-2x2-1x1-0-NCHW-FP32-B",
        ),
        (
            "conv -n 2 -c 8 -H 18 -W 22 -k 4 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -F 2",
            "4-9-11-3x3-8-18-22-2-1x1-2x2-1x1-0-NCHW-FP32-B",
        ),
        (
            "conv -_ 3 -n 2 -c 8 -! 6 -H 10 -W 12 -k 4 -@ 3 -y 3 -x 3 -$ 1 -p 1 -q 1 -F 4",
            "4-6-10-12-3x3x3-8-6-10-12-2-1x1x1-1x1x1-1x1x1-0-NCDHW-FP32-W",
        ),
    ],
)
def test_find_db_keys(line: str, key: str) -> None:
    (graph,) = graph_from_driver_command(f"MIOpenDriver {line}")
    assert find_key(graph) == key


def test_running_statistics_are_in_a_batchnorms_key() -> None:
    (with_them,) = keys_of(batchnorm_graph((4, 8, 16, 20)).validate())
    (without,) = keys_of(batchnorm_graph((4, 8, 16, 20), running=False).validate())
    assert with_them.keys == {FileKind.BATCHNORM_PERF: "2x4x8x16x20x1x1x1x0xNCHWxTrnxFP32x1"}
    assert without.keys == {FileKind.BATCHNORM_PERF: "2x4x8x16x20x1x1x0x0xNCHWxTrnxFP32x1"}


_NUMBER = st.integers(1, 9999)


@st.composite
def convolution_keys(draw: st.DrawFn) -> ConvolutionKey:
    rank = draw(st.integers(2, 3))
    spatial = st.tuples(*[_NUMBER] * rank)
    return ConvolutionKey(
        batch=draw(_NUMBER),
        in_channels=draw(_NUMBER),
        in_dims=draw(spatial),
        filter_dims=draw(spatial),
        out_channels=draw(_NUMBER),
        padding=draw(st.tuples(*[st.integers(0, 99)] * rank)),
        strides=draw(spatial),
        dilations=draw(spatial),
        groups=draw(_NUMBER),
        layout=draw(st.sampled_from(["NCHW", "NHWC"] if rank == 2 else ["NCDHW", "NDHWC"])),
        dtype=draw(st.sampled_from(["FP32", "FP16", "BF16"])),
        direction=draw(st.sampled_from("FBW")),
    )


@given(convolution_keys())
def test_a_perf_db_key_is_read_back(key: ConvolutionKey) -> None:
    assert parse_convolution_key(perf_db_key(key)) == key


@given(
    st.builds(
        BatchNormKey,
        dims=st.tuples(*[_NUMBER] * 4),
        saves=st.booleans(),
        updates_running=st.booleans(),
        uses_saved=st.booleans(),
        layout=st.sampled_from(["NCHW", "NHWC"]),
        direction=st.sampled_from(["Trn", "Bwd"]),
        dtype=st.sampled_from(["FP32", "FP16", "BF16"]),
    )
)
def test_a_batchnorm_key_is_read_back(key: BatchNormKey) -> None:
    assert parse_batchnorm_key(batchnorm_perf_db_key(key)) == key


# diff


def test_diff_of_two_files(perf_db: PerfDb, folder: Path, tmp_path: Path) -> None:
    after = tmp_path / PERF
    lines = FILES[PERF].splitlines()
    lines[0] = f"{CONV}=ConvOclDirectFwd:8,16,16,32,2,2,8,2,1;ConvAsm3x3U:7,1,5;ConvNew:1"
    after.write_text("\n".join(reversed(lines[:3])))
    before = folder / PERF
    document = perf_db("diff", before, after, "--json").json
    (file,) = document["files"]
    assert [(c["change"], c["solver"], c["before"], c["after"]) for c in file["changes"]] == [
        ("changed", "ConvAsm3x3U", "0,1,4", "7,1,5"),
        ("added", "ConvNew", None, "1"),
        ("removed", "ConvOclDirectFwdFused", "8,16,16,32,2,2,8,2,1", None),
    ]
    assert file["changes"][0]["problem"] == (
        "convolution forward, N 2, 8 x 16x20 to 4 channels, filter 3x3, padding 1x1, 2 groups, "
        "NCHW FP32"
    )
    outcome = perf_db("diff", before, after)
    assert outcome.status == 0
    for line in (
        f"key {CONV}",
        "changed ConvAsm3x3U 0,1,4 7,1,5",
        "added ConvNew 1",
        "removed ConvOclDirectFwdFused 8,16,16,32,2,2,8,2,1",
    ):
        assert line in outcome.lines


def test_diff_of_two_folders(perf_db: PerfDb, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in (PERF, BATCHNORM, OLDER):
        (other / name).write_text(FILES[name])
    (other / FIND).write_text(FILES[FIND].replace("1.774,46080", "1.5,0"))
    (other / BATCHNORM).write_text("")
    outcome = perf_db("diff", folder, other)
    assert outcome.status == 0
    assert f"{FUSION} (only before)" in outcome.lines
    assert (
        "changed GemmBwdRest 1.774 ms, workspace 45.0 KiB, miopenConvolutionBwdDataAlgoGEMM "
        "1.5 ms, workspace 0 B, miopenConvolutionBwdDataAlgoGEMM"
    ) in outcome.lines
    assert (
        "problem batchnorm training, 4x8x16x20, saves statistics, updates running statistics, "
        "NCHW FP32"
    ) in outcome.lines
    files = {
        f["file"]: f["changes"] for f in perf_db("diff", folder, other, "--json").json["files"]
    }
    assert {name: len(changes) for name, changes in files.items()} == {
        PERF: 0,
        OLDER: 0,
        BATCHNORM: 2,
        FIND: 1,
        FUSION: 1,
    }
    assert perf_db("diff", folder, folder).lines == ["no difference in 5 files"]


_PART = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=3)
_RECORDS = st.dictionaries(_PART, st.dictionaries(_PART, _PART, min_size=1), max_size=4)


@given(_RECORDS, _RECORDS)
def test_changes_lead_from_one_file_to_the_other(
    tmp_path_factory: pytest.TempPathFactory,
    old: dict[str, dict[str, str]],
    new: dict[str, dict[str, str]],
) -> None:
    folder = tmp_path_factory.mktemp("diff")
    for name, records in (("old", old), ("new", new)):
        lines = (f"{k}={';'.join(map(':'.join, r.items()))}\n" for k, r in records.items())
        (folder / name).write_text("".join(lines))
    changed = {(key, solver): value for key, r in old.items() for solver, value in r.items()}
    for change in changes_between(read_file(folder / "old"), read_file(folder / "new")):
        assert changed.pop((change.key, change.solver), None) == change.before != change.after
        if change.after is not None:
            changed[change.key, change.solver] = change.after
    assert changed == {
        (key, solver): value for key, r in new.items() for solver, value in r.items()
    }


# What is wrong


def test_damaged_lines_are_named_and_the_others_used(perf_db: PerfDb, folder: Path) -> None:
    good = FILES[PERF]
    (folder / PERF).write_bytes(
        f"nonsense\n\n{good}{CONV}=Other:1\n".encode() + b"\xff\x00=\x1b[31m"
    )
    (folder / FIND).write_text(f"{FILES[FIND]}key=GemmFwdRest:fast;Other:1.5,0,algorithm\n")
    expected = [
        (str(folder / PERF), 1, "not KEY=SOLVER:VALUE;...: 'nonsense'"),
        (str(folder / PERF), 7, f"left out, a second line of key '{CONV}'"),
        (str(folder / PERF), 8, "not KEY=SOLVER:VALUE;...: '\\\\xff\\x00=\\x1b[31m'"),
        (
            str(folder / FIND),
            4,
            "solver GemmFwdRest has not a find-db value (time,workspace,algorithm): 'fast'",
        ),
    ]
    for arguments in (("list",), ("show", GROUPED), ("diff", folder, folder)):
        outcome = perf_db(*arguments, "--json")
        assert outcome.status == 0
        document = outcome.json["graphs"][0] if arguments[0] == "show" else outcome.json
        damage = [(one["file"], one["line"], one["problem"]) for one in document["damage"]]
        assert list(dict.fromkeys(damage)) == expected
        plain = perf_db(*arguments)
        assert f"note: {folder / PERF}, line 1: not KEY=SOLVER:VALUE;...: 'nonsense'" in plain.lines
    (node,) = shown(perf_db("show", GROUPED, "--json"))
    assert len(node["records"]) == 5


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_hides_no_other(perf_db: PerfDb, folder: Path) -> None:
    (folder / FIND).chmod(0)
    outcome = perf_db("list")
    assert outcome.status == 0
    assert f"note: {folder / FIND}: can't be read: Permission denied" in outcome.lines


def test_a_folder_with_a_databases_name_hides_no_other(perf_db: PerfDb, folder: Path) -> None:
    (folder / FIND).unlink()
    (folder / FIND).mkdir()
    outcome = perf_db("list")
    assert outcome.status == 0
    assert f"note: {folder / FIND}: can't be read: Is a directory" in outcome.lines
    assert f"{FIND} find-db gfx90a 110 3.5.1 - - - -" in outcome.lines
    (file,) = (f for f in perf_db("list", "--json").json["files"] if f["file"] == FIND)
    unknown = ("problems", "records", "size", "modified", "age_seconds")
    assert [file[name] for name in unknown] == [None] * 5
    assert any(line.startswith(PERF) for line in outcome.lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "--path", "{0}/absent"), "--path is '{0}/absent', but there is no such folder"),
        (
            ("show", GROUPED, "--path", "{0}/absent"),
            "--path is '{0}/absent', but there is no such folder",
        ),
        (("list", "--path", LONG), f"--path is '{LONG}', which can't be read: File name too long"),
        (("diff", "{0}", LONG), f"a side of the comparison is '{LONG}', which can't be read: "),
        (("list", "--path", ""), "Invalid value for '--path': '' is no path"),
        (("show", GROUPED, "--path", ""), "Invalid value for '--path': '' is no path"),
        (("diff", "", "{0}"), "Invalid value for 'BEFORE': '' is no path"),
        (("diff", "{0}", ""), "Invalid value for 'AFTER': '' is no path"),
        (
            ("show", GROUPED, "--path", f"{{0}}/{PERF}"),
            f"--path is '{{0}}/{PERF}', which can't be read as a folder: Not a directory",
        ),
        (("show", "absent.json"), "GRAPH is 'absent.json', but there is no such file"),
        (("diff", "{0}", "{0}/absent"), "'{0}/absent' is to be compared, but there is no such"),
        (
            ("diff", "{0}", f"{{0}}/{PERF}"),
            f"'{{0}}' is a folder and '{{0}}/{PERF}' a file; give two files or two folders",
        ),
        (
            ("diff", f"{{0}}/{PERF}", f"{{0}}/{FIND}"),
            f"'{{0}}/{PERF}' is a perf-db and '{{0}}/{FIND}' a find-db: they have no records in",
        ),
        (("diff", "{0}"), "Missing argument 'AFTER'"),
        (("lits",), "No such command 'lits'. Did you mean 'list'"),
    ],
)
def test_wrong_input_is_2_and_one_line(
    perf_db: PerfDb, folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    given = [argument.format(folder) for argument in arguments]
    outcome = perf_db(*given)
    assert outcome.status == 2
    assert outcome.err.startswith(f"error: {message.format(folder)}")
    assert outcome.err.count("\n") == 1
    document = perf_db(*given, "--json")
    assert document.status == 2
    assert document.json["error"]["message"].startswith(message.format(folder))


def test_the_variables_name_is_in_its_error(
    perf_db: PerfDb, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIOPEN_USER_DB_PATH", str(folder / PERF))
    outcome = perf_db("list")
    assert outcome.status == 2
    assert outcome.err.startswith(f"error: MIOPEN_USER_DB_PATH is '{folder / PERF}', which can't")
