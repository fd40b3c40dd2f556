"""The command's subcommands and options. What they do is in the modules beside, loaded when run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hipdnn_registry.cli import GraphArgument, JsonOption, epilog, publish, publish_each

_FOLDER = "The folder is --path, else MIOPEN_USER_DB_PATH, else ~/.config/miopen. "
_CONV = "'MIOpenDriver conv -n 8 -c 64 -H 56 -W 56 -k 64 -y 3 -x 3 -p 1 -q 1 -F 1'"

app = typer.Typer(add_completion=False, rich_markup_mode=None)


def _not_empty(given: str | None) -> str | None:
    if given == "":  # `Path` makes the current folder of it; it is rather a variable that is unset
        raise typer.BadParameter("'' is no path; the current folder is '.'")
    return given


def _folder(given: str | None) -> Path | None:
    return None if given is None else Path(given)


PathOption = Annotated[
    str | None,
    typer.Option(
        "--path",
        metavar="FOLDER",
        callback=_not_empty,
        show_default=False,
        help="Folder of the databases.",
    ),
]
BeforeArgument = Annotated[
    str,
    typer.Argument(
        metavar="BEFORE", callback=_not_empty, show_default=False, help="File or folder."
    ),
]
AfterArgument = Annotated[
    str,
    typer.Argument(
        metavar="AFTER", callback=_not_empty, show_default=False, help="Another of the same kind."
    ),
]


@app.callback(
    invoke_without_command=True,
    epilog=epilog(
        "hipdnn perf-db list",
        f"hipdnn perf-db show {_CONV}",
        "hipdnn perf-db diff saved/ ~/.config/miopen",
        text=f"{_FOLDER}Nothing is ever written, and neither libMIOpen nor a GPU is needed.",
    ),
)
def perf_db(context: typer.Context) -> None:
    """Show MIOpen's tuned parameters and measured solvers."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list", epilog=epilog("hipdnn perf-db list --path saved/", text=_FOLDER))
def list_(path: PathOption = None, as_json: JsonOption = False) -> None:
    """List the files: kind, device, MIOpen version, records, size, age."""
    from .listing import list_report

    publish(lambda _: list_report(_folder(path)), as_json=as_json)


@app.command(epilog=epilog(f"hipdnn perf-db show {_CONV}"))
def show(graph: GraphArgument, path: PathOption = None, as_json: JsonOption = False) -> None:
    """Show the records of a graph's convolutions and batch normalizations.

    Where there are none it says under which keys it looked; the exit code is 0 all the same.
    """
    from .showing import show_report

    publish_each(graph, partial(show_report, path=_folder(path)), as_json=as_json)


@app.command(epilog=epilog("hipdnn perf-db diff before.udb.txt after.udb.txt", text=""))
def diff(before: BeforeArgument, after: AfterArgument, as_json: JsonOption = False) -> None:
    """Compare two files, or two folders file by file.

    The exit code is 0 whether or not they differ.
    """
    from .difference import diff_report

    publish(lambda _: diff_report(Path(before), Path(after)), as_json=as_json)
