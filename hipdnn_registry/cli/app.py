"""The commands and their options. What they do is in the modules beside; each loads its own."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from hipdnn_registry import __version__

from .contributed import CommandGroup

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(
    cls=CommandGroup,
    add_completion=False,
    rich_markup_mode=None,  # help is plain text: it starts quickly and survives a pipe
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_LINE = "'MIOpenDriver conv -n 8 -c 64 -H 56 -W 56 -k 64 -y 3 -x 3 -p 1 -q 1 -F 1'"
_EXIT_CODES = (
    "Exit codes: 0 done; 1 the work failed; 2 the input is wrong (stderr has one 'error:' line). "
    "With --traceback, anywhere on the line, a traceback comes before it."
)
_GRAPH_FORMS = """\
GRAPH is a JSON file in hipDNN's form (HIPDNN_LOG_GRAPH_DIR writes such files), '-' to read one \
from stdin, or a MIOpenDriver line in quotes, typed or as MIOPEN_ENABLE_LOGGING_CMD=1 logs it. A \
line that asks for several directions gives several graphs; each is reported on its own."""


def epilog(*examples: str, text: str = _GRAPH_FORMS) -> str:
    """Return the end of a command's help: examples and exit codes.

    Args:
        examples: Command lines.
        text: What comes before them; by default the forms of a GRAPH argument.
    """
    shown = "\n".join(f"  {example}" for example in examples)
    return f"{text}\n\n\b\nExamples:\n{shown}\n\n{_EXIT_CODES}"


GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        show_default=False,
        help="JSON file, '-' for stdin, or a quoted MIOpenDriver line.",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine", "-e", metavar="NAME", help="Engine by name or id; default: the best-ranked one."
    ),
]
KnobsEngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        "-e",
        metavar="NAME",
        help="Only this engine, by name or id; default: all that serve the graph.",
    ),
]


def _whole_number(least: int) -> Callable[[object], int]:
    def read(given: object) -> int:
        text = str(given)
        if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or int(text) < least:
            raise typer.BadParameter(f"'{text}' is not an integer from {least} to 999999999")
        return int(text)

    return read


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hipdnn-registry {__version__}")
        raise typer.Exit


@app.callback(
    invoke_without_command=True,
    epilog=epilog(
        "hipdnn providers",
        f"hipdnn run {_LINE} --check",
        "hipdnn explain graph.json",
        text="Start with 'hipdnn providers', which shows what is installed; "
        "'hipdnn COMMAND --help' has examples of each command.",
    ),
)
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Print a traceback before the 'error:' line.")
    ] = False,
) -> None:
    """Ask engines about hipDNN operation graphs, and run them."""
    del version, traceback  # both are read from the command line before this runs
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog=epilog("hipdnn providers", "hipdnn providers --json", text=""))
def providers(as_json: JsonOption = False) -> None:
    """List the providers found: loaded, unavailable, broken or blocked."""
    from .output import publish
    from .providers import providers_report

    publish(providers_report, as_json=as_json)


@app.command(epilog=epilog(f"hipdnn engines {_LINE}", "hipdnn engines graph.json --json"))
def engines(graph: GraphArgument, as_json: JsonOption = False) -> None:
    """List the engines that serve a graph, best first.

    Exit code 1 where there is none.
    """
    from .engines import engines_report
    from .output import publish_each

    publish_each(graph, engines_report, as_json=as_json)


@app.command(epilog=epilog(f"hipdnn explain {_LINE}", "hipdnn explain - < graph.json"))
def explain(graph: GraphArgument, as_json: JsonOption = False) -> None:
    """Show every engine's answer to a graph, with its reason.

    Exit code 0 also where no engine serves it: the explanation is the work.
    """
    from .engines import explain_report
    from .output import publish_each

    publish_each(graph, explain_report, as_json=as_json)


@app.command(
    epilog=epilog(f"hipdnn knobs {_LINE}", "hipdnn knobs graph.json --engine CPU_GEMM_ENGINE")
)
def knobs(
    graph: GraphArgument, engine: KnobsEngineOption = None, as_json: JsonOption = False
) -> None:
    """List what can be set on the engines that serve a graph."""
    from .knob_text import engine_of
    from .knobs import knobs_report
    from .output import publish_each

    publish_each(graph, partial(knobs_report, engine=engine_of(engine)), as_json=as_json)


@app.command(
    epilog=epilog(
        f"hipdnn run {_LINE} --check",
        "hipdnn run graph.json --engine CPU_GEMM_ENGINE --knob global.benchmarking=1",
        "hipdnn run graph.json --seed 7 --repeat 20 --json",
        text=_GRAPH_FORMS
        + """

Inputs are random but reproducible: the same seed gives the same values in any layout, scaled so \
that results are near 1; variances are positive. The graph is run once with all checks and then \
REPEAT times for the clock. GFLOP/s counts 2 * N * K * prod(out) * C / groups * prod(filter) for a \
convolution in any direction; a graph without convolutions shows GB/s, each buffer counted once.

--check runs CPU_REFERENCE_ENGINE on the same inputs. The error of an output is the largest \
|y - reference| / max(|reference|, rms(reference)); it may be 4 u + 4 c sqrt(n), with u the \
distance from 1 to the next number in the coarsest type of output and intermediates (float \
1.2e-07, half 9.8e-04, bfloat16 7.8e-03, double 2.2e-16), c the same of the compute type, and n \
the terms of the graph's sums. Where a graph computes statistics of few values it may also be 8 s, \
with s how far the reference's result moves with inputs one unit away. Integers must be equal.

A graph that does not fit into memory is refused before anything is allocated.""",
    )
)
def run(
    graph: GraphArgument,
    engine: EngineOption = None,
    knob: Annotated[
        list[str] | None,
        typer.Option(
            "--knob",
            "-k",
            metavar="ID=VALUE",
            help="Set a knob; may be repeated. One that the engine lacks is dropped with a note.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with CPU_REFERENCE_ENGINE; exit 1 on FAIL.")
    ] = False,
    seed: Annotated[
        int,
        typer.Option(parser=_whole_number(0), metavar="N", help="Seed of the random inputs."),
    ] = 0,
    repeat: Annotated[
        int, typer.Option(parser=_whole_number(1), metavar="N", help="Number of timed runs.")
    ] = 5,
    as_json: JsonOption = False,
) -> None:
    """Plan a graph, run it on random inputs, time and check it."""
    from .knob_text import engine_of, split_settings
    from .output import publish_each
    from .run import RunOptions, run_report

    options = RunOptions(
        engine=engine_of(engine),
        knobs=split_settings(knob or ()),
        check=check,
        seed=seed,
        repeat=repeat,
    )
    publish_each(graph, partial(run_report, options=options), as_json=as_json)


@app.command(epilog=epilog(f"hipdnn show {_LINE}", "hipdnn show --json graph.json"))
def show(graph: GraphArgument, as_json: JsonOption = False) -> None:
    """Draw a graph as a tree of nodes and their tensors.

    With --json it is printed in hipDNN's own form, as "document".
    """
    from .output import publish_each
    from .show import show_report

    publish_each(graph, show_report, as_json=as_json)


@app.command(epilog=epilog("hipdnn versions", text=""))
def versions(as_json: JsonOption = False) -> None:
    """Print what a bug report should say of this installation."""
    from .output import publish
    from .providers import versions_report

    publish(versions_report, as_json=as_json)
