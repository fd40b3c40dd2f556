"""The command's subcommands and options. What they do is in the modules beside, loaded when run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hipdnn_registry.cli import JsonOption, epilog, publish

_FOLDER = """\
Everything is in one folder: MIOPEN_EMULATOR_CACHE, else hipdnn-registry/emulator in the user's \
cache folder. Needed are Linux on x86-64, apt, dpkg and Debian's keyring; no root rights and no \
compiler."""

app = typer.Typer(add_completion=False, rich_markup_mode=None)


class Clock(StrEnum):
    """What kernels' times are: invented but repeatable, or measured."""

    VIRTUAL = "virtual"
    REAL = "real"


MiopenOption = Annotated[
    str, typer.Option("--miopen", metavar="VERSION", help="MIOpen's version: 3.5.1 or 3.4.0.")
]


CommandArgument = Annotated[
    list[str],
    typer.Argument(metavar="COMMAND", show_default=False, help="The command to start."),
]
AcceptOnlyOption = Annotated[
    bool,
    typer.Option("--accept-only", help="Accept kernels without running them: fast, no numbers."),
]
GuardOption = Annotated[
    bool, typer.Option("--guard", help="Find accesses outside of buffers, and to freed ones.")
]
ClockOption = Annotated[
    Clock | None,
    typer.Option("--clock", show_default=False, help="Times that MIOpen sees; default: virtual."),
]
LogOption = Annotated[
    Path | None,
    typer.Option(
        "--log", metavar="FILE", show_default=False, help="Append launches to FILE as JSON lines."
    ),
]
OrSkipOption = Annotated[
    bool,
    typer.Option(
        "--or-skip", help="Where this machine can't build it, say so and succeed, unless CI=true."
    ),
]


@app.callback(
    invoke_without_command=True,
    epilog=epilog(
        "hipdnn emulator run -- pytest tests",
        "hipdnn emulator run --guard -- ./my_miopen_program",
        "hipdnn emulator status",
        text=_FOLDER,
    ),
)
def emulator(context: typer.Context) -> None:
    """Run MIOpen programs on this CPU, by the real libMIOpen."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog=epilog("hipdnn emulator build", text=_FOLDER))
def build(miopen: MiopenOption = "3.5.1", as_json: JsonOption = False) -> None:
    """Fetch libMIOpen and its compiler, and compile the stand-ins.

    What is there already is not made again.
    """
    from .building import build_report

    publish(lambda _: build_report(miopen), as_json=as_json)


@app.command(
    epilog=epilog(
        "hipdnn emulator run -- pytest tests/test_convolution.py",
        "hipdnn emulator run --accept-only -- python -m pytest tests/native -n auto",
        "hipdnn emulator run --log launches.jsonl -- ./my_miopen_program",
        text="""\
COMMAND is a Python, a script of one (those of this virtual environment are found by name), or any \
program that is linked dynamically. Its children are under the emulator where they are Pythons, \
started as 'python', 'python3' or sys.executable, or this command, started as 'hipdnn'. What is \
not there yet is built first. The exit code is COMMAND's own.

Options become environment variables, which may be set instead; the README of \
hipdnn-miopen-emulator lists them. MIOpen's databases and kernel cache are in the emulator's \
folder, unless MIOPEN_USER_DB_PATH and MIOPEN_CUSTOM_CACHE_DIR say where.""",
    ),
    context_settings={"allow_interspersed_args": False},
)
def run(
    command: CommandArgument,
    accept_only: AcceptOnlyOption = False,
    guard: GuardOption = False,
    clock: ClockOption = None,
    log: LogOption = None,
    miopen: MiopenOption = "3.5.1",
    or_skip: OrSkipOption = False,
) -> None:
    """Start a command under the emulator."""
    from .running import RunOptions, run_command

    options = RunOptions(
        accept_only=accept_only,
        guard=guard,
        clock=clock.value if clock else None,
        log=log,
        miopen=miopen,
        or_skip=or_skip,
    )
    run_command(command, options)


@app.command(epilog=epilog("hipdnn emulator status --json", text=_FOLDER))
def status(as_json: JsonOption = False) -> None:
    """Show what is built, its versions and sizes, and whether this process is under it.

    Also whether hip-python is here, which Python programs need.
    """
    from .status import status_report

    publish(lambda _: status_report(), as_json=as_json)


@app.command(epilog=epilog("hipdnn emulator clean --kernels", text=_FOLDER))
def clean(
    kernels: Annotated[
        bool, typer.Option("--kernels", help="Only compiled kernels and MIOpen's databases.")
    ] = False,
    outdated: Annotated[
        bool, typer.Option("--outdated", help="Only what another version of this package built.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove what was fetched, built and compiled: all of it, or what the options name."""
    from .cleaning import clean_report

    publish(lambda _: clean_report(kernels=kernels, outdated=outdated), as_json=as_json)


@app.command(epilog=epilog("hipdnn emulator pins", text=""))
def pins() -> None:
    """Print what the archive has now of the pinned packages, as TOML."""
    from .pinning import print_pins

    print_pins()
