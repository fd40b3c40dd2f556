"""How the command ends: exit codes, one error line, and never a traceback nobody asked for."""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

import hipdnn_registry
from hipdnn_registry.cli import main
from hipdnn_registry.cli.interrupts import INTERRUPTION
from tests.graphs import conv_graph
from tests.hipdnn_registry.cli.conftest import COMMAND, ROOT, Hipdnn

CONV = "MIOpenDriver conv -n 1 -c 2 -H 5 -W 5 -k 2 -y 3 -x 3 -p 1 -q 1"
FORWARD = f"{CONV} -F 1"
COMMANDS = ("engines", "explain", "knobs", "run", "show")

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_help_names_every_command(hipdnn: Hipdnn, arguments: tuple[str, ...]) -> None:
    outcome = hipdnn(*arguments)
    assert outcome.status == 0
    for command in (*COMMANDS, "providers", "versions"):
        assert re.search(rf"^  {command}  +\w", outcome.out, re.MULTILINE)


@pytest.mark.parametrize("command", [*COMMANDS, "providers", "versions"])
def test_help_teaches(hipdnn: Hipdnn, command: str) -> None:
    outcome = hipdnn(command, "--help")
    assert outcome.status == 0
    assert f"  hipdnn {command}" in outcome.out.partition("Examples:")[2]
    assert "Exit codes: 0 done; 1 the work failed; 2 the input is wrong" in outcome.out
    assert "--traceback" in outcome.out


def test_version(hipdnn: Hipdnn) -> None:
    outcome = hipdnn("--version")
    assert (outcome.status, outcome.out) == (0, f"hipdnn-registry {hipdnn_registry.__version__}\n")


WRONG_INPUT: dict[tuple[str, ...], str] = {
    ("enginse", FORWARD): "No such command 'enginse'",
    ("run",): "Missing argument 'GRAPH'",
    ("run", FORWARD, "--fast"): "No such option: --fast",
    (
        "run",
        FORWARD,
        "--repeat",
        "0",
    ): "Invalid value for '--repeat': '0' is not an integer from 1 to 999999999",
    ("run", FORWARD, "--seed", "x"): "Invalid value for '--seed': 'x' is not an integer from 0",
    ("run", FORWARD, "--knob", "tile"): "--knob is 'tile', but must be ID=VALUE",
    ("run", FORWARD, "--knob", "=1"): "--knob is '=1', but must be ID=VALUE",
    ("run", FORWARD, "--engine", "CPU_GEM_ENGINE"): "did you mean 'CPU_GEMM_ENGINE' or",
    ("knobs", FORWARD, "--engine", "12345"): "no engine id 12345; known engines: CPU_GEMM_ENGINE",
    ("run", "MIOpenDriver", "conv", "-n", "1"): "quote the MIOpenDriver line",
    ("show", "absent.json"): "GRAPH is 'absent.json', but there is no such file; give a JSON file",
    ("show", "MIOpenDriver conv --batchsize x"): "flag --batchsize (-n) is 'x', but must be",
    ("show", "MIOpenDriver gemm -m 3"): "base 'gemm' is not one of conv,",
    ("show", ""): "there is no such file",
}


@pytest.mark.parametrize(("arguments", "message"), WRONG_INPUT.items())
def test_wrong_input_is_2_and_one_line(
    hipdnn: Hipdnn, arguments: tuple[str, ...], message: str
) -> None:
    outcome = hipdnn(*arguments)
    assert outcome.status == 2
    assert message in outcome.err
    assert outcome.err.splitlines() == outcome.error_lines
    assert len(outcome.error_lines) == 1


@pytest.mark.parametrize("arguments", [a for a in WRONG_INPUT if a[-1] != ""])
def test_wrong_input_is_a_json_document_too(hipdnn: Hipdnn, arguments: tuple[str, ...]) -> None:
    outcome = hipdnn(*arguments, "--json")
    assert outcome.status == 2
    error = outcome.json["error"]
    assert outcome.err == f"error: {error['message']}\n"
    assert error["type"]


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("acme.tile=65", "value 65 is out of range [1, 64]"),
        ("acme.tile=1.0", "value '1.0', from --knob, is not an int; allowed: 1 to 64"),
        (f"acme.tile={10**25}", f"'{10**25}', from --knob, does not fit in 64 bits; allowed: 1 to"),
        ("acme.width=5", "value 5 is not in the list of valid values [4, 8]"),
        ("acme.slack=nan", "value 'nan', from --knob, is not finite; allowed: 0.0 to 1.0"),
        ("acme.slack=two", "value 'two', from --knob, is not a float; allowed: 0.0 to 1.0"),
        ("acme.kernel=slow", "value 'slow' is not in the list of valid values ['auto', 'fast']"),
        ("acme.label=ninebytes", "exceeds maximum length 8"),
    ],
)
def test_a_bad_knob_value_is_wrong_input(
    hipdnn: Hipdnn, relu_file: str, setting: str, message: str
) -> None:
    outcome = hipdnn("run", relu_file, "--engine", "ACME_RELU", "--knob", setting)
    assert outcome.status == 2
    assert f"knob '{setting.partition('=')[0]}'" in outcome.err
    assert "of engine ACME_RELU (provider acme" in outcome.err
    assert message in outcome.err
    assert len(outcome.error_lines) == 1


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("ACME_RAISING", "engine ACME_RAISING failed: RuntimeError: the ACME card is on fire"),
        (
            "ACME_UNREACHABLE",
            "engine ACME_UNREACHABLE of provider 'acme' takes buffers on a device",
        ),
        ("ACME_HUGE", "workspace 1.0 EiB"),
        (
            "ACME_DEFECT",
            "engine ACME_DEFECT of provider 'acme' failed in query: ZeroDivisionError: 0 tiles",
        ),
    ],
)
def test_failed_work_is_1(hipdnn: Hipdnn, relu_file: str, engine: str, message: str) -> None:
    plain = hipdnn("run", relu_file, "--engine", engine)
    assert plain.status == 1
    assert message in plain.err
    assert len(plain.error_lines) == 1

    document = hipdnn("run", relu_file, "--engine", engine, "--json")
    assert document.status == 1
    assert message in document.json["graphs"][0]["error"]["message"]


def test_a_declined_graph_is_failed_work(hipdnn: Hipdnn) -> None:
    outcome = hipdnn(
        "run", str(ROOT / "tests/data/graphs/layernorm_training.json"), "-e", "CPU_GEMM_ENGINE"
    )
    assert outcome.status == 1
    assert "engine CPU_GEMM_ENGINE of provider 'cpu' declines the graph: " in outcome.err


@pytest.mark.parametrize("command", ["engines", "knobs", "run"])
def test_without_a_provider_the_error_says_what_to_install(
    hipdnn: Hipdnn, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    outcome = hipdnn(command, FORWARD)
    assert outcome.status == 1
    assert "pip install 'hipdnn-registry[cpu]'" in outcome.err


@pytest.mark.usefixtures("acme")
def test_where_one_graph_fails_the_others_are_still_reported(hipdnn: Hipdnn) -> None:
    plain = hipdnn("knobs", f"{CONV} -F 3", "--engine", "ACME_FORWARD")
    assert plain.status == 1
    assert "acme.tile" in plain.out
    (line,) = plain.error_lines
    assert line.startswith("error: conv_bwd: engine ACME_FORWARD of provider 'acme' declines")

    outcome = hipdnn("knobs", f"{CONV} -F 3", "--engine", "ACME_FORWARD", "--json")
    assert outcome.status == 1
    forward, backward = outcome.json["graphs"]
    assert forward["engines"][0]["engine_name"] == "ACME_FORWARD"
    assert backward["graph"]["name"] == "conv_bwd"
    assert backward["error"]["type"] == "UnsupportedGraphError"


def test_an_unexpected_exception_is_one_line_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> None:
        raise LookupError("beyond the map")

    monkeypatch.setattr("hipdnn_registry.cli.source.read_graphs", fail)
    assert main(["show", FORWARD]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: unexpected LookupError: beyond the map; this is a defect")
    assert main(["--traceback", "show", FORWARD]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_help_loads_nothing_heavy() -> None:
    """Of the core; what commands of other packages load is theirs."""
    heavy = "numpy", "pydantic", "pluggy", "rich", "hipdnn_registry.graph"
    program = (
        "import sys, importlib.metadata; importlib.metadata.entry_points = lambda **_: (); "
        "from hipdnn_registry.cli import main; main(['--help']); "
        f"sys.exit(', '.join(name for name in {heavy!r} if name in sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert result.stderr.strip() == ""


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_reader_that_has_gone_is_no_error(start: Start, options: tuple[str, ...]) -> None:
    """The output is longer than a pipe holds, and nobody reads it."""
    graph = conv_graph()
    graph.set_name("x" * 1_000_000)
    with start("show", "-", *options) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        process.stdin.write(graph.to_json())
        process.stdin.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 141


def test_an_interrupt_is_130(start: Start) -> None:
    """It waits for stdin when it is interrupted."""
    with start("--traceback", "show", "-") as process:
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=2)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert err.strip() == f"error: {INTERRUPTION}"


def test_installed_as_a_command() -> None:
    result = subprocess.run(
        [*COMMAND, "run", FORWARD, "--engine", "NONE"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert result.returncode == 2
    assert result.stderr.startswith("error: no engine 'NONE'")


def shell(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command, `"$@"`, as a shell line redirects it."""
    return subprocess.run(
        ["/bin/sh", "-c", line, "sh", *COMMAND],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **variables},
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("line", "status", "error"),
    [
        (f"engines '{FORWARD}' --json >/dev/full", 1, "stdout can't be written: No space left on"),
        (f"engines '{FORWARD}' >/dev/full", 1, "stdout can't be written: No space left on device"),
        ("engines absent --json >/dev/full", 1, "stdout can't be written: No space left on"),
        ("--help >/dev/full", 1, "No space left on device"),
        ("engines absent >/dev/full", 2, "GRAPH is 'absent'"),
        (f"engines '{FORWARD}' >&-", 1, "stdout is closed"),
        ("engines - <&-", 2, "GRAPH is '-', but stdin is closed"),
        ("engines - </dev/null", 2, "stdin is empty"),
        (f"engines '{FORWARD}' 2>&-", 0, None),
        ("engines absent 2>&-", 2, None),
        ("engines absent 2>/dev/full", 2, None),
        (f"engines '{FORWARD}' <&- >&- 2>&-", 1, None),
    ],
)
def test_bad_streams_are_one_line(
    line: str, status: int, error: str | None, unbuffered: str
) -> None:
    result = shell(f'"$@" {line}', PYTHONUNBUFFERED=unbuffered)
    assert result.returncode == status
    lines = result.stderr.splitlines()
    if error is None:
        assert lines == []
    else:
        assert len(lines) == 1
        assert lines[0].startswith("error: ")
        assert error in lines[0]


def test_a_full_system_is_nobodys_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/some/file")

    monkeypatch.setattr("hipdnn_registry.cli.source.read_graphs", fail)
    assert main(["show", FORWARD]) == 1
    assert capsys.readouterr().err == "error: '/some/file': Too many open files\n"


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize(
    ("variable", "value", "arguments"),
    [
        ("HIPDNN_FORCE_BENCHMARKING", "maybe", ("run",)),
        ("HIPDNN_REGISTRY_STRICT_KNOBS", "maybe", ("run", "-k", "acme.none=1")),
        ("HIPDNN_LOG_GRAPH_DIR", "/proc/x", ("engines",)),
    ],
)
def test_warnings_are_notes_on_stderr(
    hipdnn: Hipdnn,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    arguments: tuple[str, ...],
    options: tuple[str, ...],
) -> None:
    """Each once, and a dropped knob only where the report says it."""
    monkeypatch.setenv(variable, value)
    outcome = hipdnn(*arguments, f"{CONV} -F 1", *options)
    assert outcome.status == 0
    (line,) = outcome.err.splitlines()
    assert line.startswith(f"note: {variable}")
    assert outcome.out.count("is dropped") == ("acme.none=1" in arguments)
    assert not [h for h in logging.getLogger("hipdnn_registry").handlers if h.level]


def test_a_log_level_says_itself_which_warnings_are_wanted() -> None:
    for level, expected in (("off", []), ("warn", ["[WARNING] HIPDNN_LOG_GRAPH_DIR"])):
        result = shell(
            f"\"$@\" engines '{FORWARD}'", HIPDNN_LOG_LEVEL=level, HIPDNN_LOG_GRAPH_DIR="/proc/x"
        )
        lines = sorted({line[line.find(" [WARN") + 1 :] for line in result.stderr.splitlines()})
        assert len(lines) == len(expected)
        for line, part in zip(lines, expected, strict=True):
            assert line.startswith(part)


@pytest.mark.parametrize("arguments", [("--traceback", "show"), ("show", "--traceback")])
def test_a_traceback_may_be_asked_for_anywhere(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert main([*arguments, "absent"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last)")
    assert "InvalidInputError: GRAPH is 'absent'" in err
    assert main([*arguments, FORWARD]) == 0
    # what is behind '--' is not the command's own
    assert main(["show", "--", "--traceback"]) == 2
    assert capsys.readouterr().err.startswith("error: GRAPH is '--traceback'")
