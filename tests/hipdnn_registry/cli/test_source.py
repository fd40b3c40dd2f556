"""The GRAPH argument in each of its forms."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from hipdnn_registry import GraphError, InvalidInputError
from hipdnn_registry.cli.source import read_graphs
from tests.graphs import fused_graph

LINE = "MIOpenDriver conv -n 1 -c 2 -H 5 -W 5 -k 2 -y 3 -x 3 -p 1 -q 1"
LOGGED = f"MIOpen(HIP): Command [LogCmdConvolution] ./bin/{LINE} -F 1 -t 1\n"
CASES = Path(__file__).parents[2] / "data"


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("file", sorted((CASES / "graphs").glob("*.json")), ids=lambda p: p.stem)
def test_a_json_file(file: Path) -> None:
    (graph,) = read_graphs(str(file))
    assert graph.nodes


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (f"{LINE} -F 1", ["conv_fwd"]),
        (f"{LINE} -F 6", ["conv_bwd", "conv_wrw"]),
        (LINE.removeprefix("MIOpenDriver "), ["conv_fwd", "conv_bwd", "conv_wrw"]),
        (LOGGED, ["conv_fwd"]),
    ],
)
def test_a_driver_line(
    line: str, names: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert [graph.name for graph in read_graphs(line)] == names
    pipe(monkeypatch, line.encode())
    assert [graph.name for graph in read_graphs("-")] == names
    (tmp_path / "line.txt").write_text(line)
    assert [graph.name for graph in read_graphs(str(tmp_path / "line.txt"))] == names


@pytest.mark.parametrize("mark", ["", "\ufeff", "\n  "])
def test_json_on_stdin(monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    graph = fused_graph()
    pipe(monkeypatch, (mark + graph.to_json()).encode())
    assert read_graphs("-")[0].content_key.digest == graph.content_key.digest


def test_a_file_with_blanks_in_its_name_is_no_line(tmp_path: Path) -> None:
    path = tmp_path / "MIOpenDriver conv.json"
    path.write_text(fused_graph().to_json())
    assert read_graphs(str(path))[0].name == "fused"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; give a JSON file"),
        (b"\xef\xbb\xbf \n", "is empty"),
        (b"{", "not valid JSON"),
        (b"[1]", "a graph must be a JSON object, not list"),
        (b'{"nodes": NaN}', "NaN is not allowed"),
        (b'{"nodes": []}', "tensors is missing"),
        (b"\xff\xfe{}", "is not UTF-8 text"),
        (b"[" * 100_000, "not valid JSON: nested too deeply"),
        (b"[" + b"7" * 5000 + b"]", "not valid JSON: a number of 5000 digits is too long"),
        (b"MIOpenDriver conv -q", "-q"),
    ],
    ids=lambda value: repr(value[:12]),
)
def test_bad_content_is_named_with_its_origin(
    content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(content)
    for argument, origin in ((str(path), str(path)), ("-", "stdin")):
        pipe(monkeypatch, content)
        with pytest.raises(InvalidInputError) as caught:
            read_graphs(argument)
        told = "".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
        assert message in told
        assert origin in told


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="Is a directory"):
        read_graphs(str(tmp_path))
    with pytest.raises(InvalidInputError, match="no such file"):
        read_graphs("conv")
    with pytest.raises(GraphError, match=r"flag|base|expected"):
        read_graphs("x " * 5000)
    with pytest.raises(InvalidInputError, match="no such file"):
        read_graphs("x" * 5000)


def test_without_stdin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    closed = io.TextIOWrapper(io.BytesIO())
    closed.close()
    for stdin in (None, closed):
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(InvalidInputError, match="GRAPH is '-', but stdin is closed"):
            read_graphs("-")
    with (tmp_path / "only-written").open("w") as unreadable:
        raw = io.FileIO(unreadable.fileno(), "r", closefd=False)
        with io.TextIOWrapper(io.BufferedReader(raw)) as unreadable_stdin:
            monkeypatch.setattr("sys.stdin", unreadable_stdin)
            with pytest.raises(InvalidInputError, match="stdin can't be read: Bad file descript"):
                read_graphs("-")


def test_an_endless_file() -> None:
    with pytest.raises(InvalidInputError, match="'/dev/zero' has more than 67108864 bytes"):
        read_graphs("/dev/zero")
