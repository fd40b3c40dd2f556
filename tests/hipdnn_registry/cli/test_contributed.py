"""Commands of other packages: found, guarded one by one, and treated as the core's are."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from tests.hipdnn_registry.cli.conftest import Hipdnn
from tests.hipdnn_registry.conftest import Site

ONE = """
    import typer
    from hipdnn_registry import InvalidInputError, ExecutionError
    from hipdnn_registry.cli import GraphArgument, JsonOption, Report, facts, publish, publish_each

    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    def nodes(graph: GraphArgument, as_json: JsonOption = False, fail: str = "") -> None:
        "Count a graph's nodes."
        def report(registry, graph):
            print("said while working")
            if fail == "input":
                raise InvalidInputError("--fail is 'input', but must be another word")
            if fail == "work":
                raise ExecutionError("the counter is stuck")
            if fail:
                raise LookupError(fail)
            count = len(graph.nodes)
            return Report({"nodes": count}, lambda: facts([("nodes", str(count))]))
        publish_each(graph, report, as_json=as_json)
"""
SEVERAL = """
    import typer
    app = typer.Typer(rich_markup_mode=None, help="Two in one.")
    app.command("first")(lambda: print("the first ran"))
    app.command("second")(lambda: print("the second ran"))
"""
BROKEN = {
    "import a_module_that_is_not_there": "ModuleNotFoundError: No module named 'a_module_that",
    "import sys; sys.exit(3)": "SystemExit: 3",
    "raise OSError('no card\\nin this machine')": "OSError: no card in this machine",
    "x = 1": "AttributeError: module 'hipdnn_tool' has no attribute 'app'",
    "app = 3": "TypeError: 3 is neither a typer app nor a command of one",
    "import typer; app = typer.Typer()": "RuntimeError: Could not get a command",
}
CONV = "MIOpenDriver conv -n 1 -c 2 -H 5 -W 5 -k 2 -y 3 -x 3 -p 1 -q 1 -F 3"

Install = Callable[..., None]


@pytest.fixture
def install(site: Site) -> Install:
    """Install distributions with one command each."""

    def install(command: str, source: str, *, dist: str = "hipdnn-tool") -> None:
        site.install(dist, source, "hipdnn_registry.commands", command, ":app")

    return install


def warnings_of(err: str) -> list[str]:
    """Of this test's distributions, not of what is installed beside them."""
    return [line for line in err.splitlines() if "-tool" in line]


def test_a_command_is_listed_and_runs(hipdnn: Hipdnn, install: Install) -> None:
    install("nodes", ONE)
    outcome = hipdnn("--help")
    assert outcome.status == 0
    assert "  nodes      Count a graph's nodes.\n" in outcome.out
    assert warnings_of(outcome.err) == []

    outcome = hipdnn("nodes", CONV)
    assert outcome.status == 0
    assert outcome.out.count("nodes  1") == 2
    assert outcome.err == "said while working\n" * 2
    document = hipdnn("nodes", CONV, "--json").json
    assert [entry["nodes"] for entry in document["graphs"]] == [1, 1]

    help_text = hipdnn("nodes", "-h").out
    assert help_text.startswith("Usage: hipdnn nodes [OPTIONS]")
    assert "completion" not in help_text


def test_an_app_of_several_commands(hipdnn: Hipdnn, install: Install) -> None:
    install("pair", SEVERAL)
    assert hipdnn("pair", "second").out == "the second ran\n"
    assert "Usage: hipdnn pair [OPTIONS] COMMAND" in hipdnn("pair", "--help").out
    outcome = hipdnn("pair", "third")
    assert outcome.status == 2
    assert outcome.err.startswith("error: No such command 'third'")


def test_nothing_is_looked_at_for_the_cores_own(
    hipdnn: Hipdnn, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("nodes", ONE)
    install("other", SEVERAL, dist="other-tool")
    assert hipdnn("show", CONV).status == 0
    assert "hipdnn_tool" not in sys.modules
    assert hipdnn("nodes", CONV).status == 0
    assert "other_tool" not in sys.modules


@pytest.mark.parametrize(
    ("fail", "status", "message"),
    [
        ("input", 2, "--fail is 'input', but must be another word"),
        ("work", 1, "the counter is stuck"),
        ("oops", 1, "unexpected LookupError: oops; this is a defect of hipdnn-registry or of"),
    ],
)
def test_its_errors_are_the_cores(
    hipdnn: Hipdnn, install: Install, fail: str, status: int, message: str
) -> None:
    install("nodes", ONE)
    graph = CONV.replace("-F 3", "-F 1")
    outcome = hipdnn("nodes", graph, "--fail", fail)
    assert outcome.status == status
    (line,) = outcome.error_lines
    assert line.startswith(f"error: {message}")
    outcome = hipdnn("nodes", graph, "--fail", fail, "--json")
    assert outcome.status == status
    document = outcome.json
    error = document["error"] if "error" in document else document["graphs"][0]["error"]
    assert error["message"].startswith(message)


def test_its_arguments_are_checked_as_the_cores(hipdnn: Hipdnn, install: Install) -> None:
    install("nodes", ONE)
    outcome = hipdnn("nodes", "--fats", CONV)
    assert (outcome.status, len(outcome.error_lines)) == (2, 1)
    assert "No such option: --fats" in outcome.err
    assert hipdnn("nodes", "absent.json").status == 2


@pytest.mark.parametrize(("source", "reason"), BROKEN.items())
def test_a_broken_command_is_one_line_and_hides_no_other(
    hipdnn: Hipdnn, install: Install, source: str, reason: str
) -> None:
    install("aaa", source)
    install("nodes", ONE, dist="zzz-tool")
    start = "command 'aaa' of hipdnn-tool 1.5 (hipdnn_tool:app) is broken: "

    outcome = hipdnn("--help")
    assert outcome.status == 0
    assert "  nodes " in outcome.out
    assert "aaa" not in outcome.out
    (warning,) = warnings_of(outcome.err)
    assert warning.startswith(f"warning: {start}{reason}")
    assert hipdnn("nodes", CONV).status == 0

    outcome = hipdnn("aaa", "--json")
    assert outcome.status == 1
    assert len(outcome.err.splitlines()) == 1
    assert outcome.err.startswith(f"error: {start}{reason}")
    assert outcome.json["error"]["type"] == "ProviderError"


def test_a_name_of_the_core_is_refused(hipdnn: Hipdnn, install: Install) -> None:
    install("show", ONE)
    (warning,) = warnings_of(hipdnn("--help").err)
    assert warning == (
        "warning: command 'show' of hipdnn-tool 1.5 (hipdnn_tool:app) is refused: "
        "hipdnn-registry has that name already"
    )
    assert "conv_fwd" in hipdnn("show", CONV).out
    assert "hipdnn_tool" not in sys.modules


def test_the_first_distribution_keeps_a_name(hipdnn: Hipdnn, install: Install) -> None:
    install("nodes", SEVERAL, dist="zzz-tool")
    install("nodes", ONE, dist="aaa-tool")
    (warning,) = warnings_of(hipdnn("--help").err)
    assert warning.startswith("warning: command 'nodes' of zzz-tool 1.5 (zzz_tool:app) is refused")
    assert "command 'nodes' of aaa-tool 1.5" in warning
    assert hipdnn("nodes", CONV).status == 0


def test_a_misspelt_one_is_suggested(hipdnn: Hipdnn, install: Install) -> None:
    install("nodes", ONE)
    outcome = hipdnn("nodse", CONV)
    assert outcome.status == 2
    assert "No such command 'nodse'. Did you mean 'nodes'" in outcome.err
