"""`hipdnn emulator build`, and the progress of any build."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_emulator.archive import size_of
from hipdnn_miopen_emulator.cache import cache_folder
from hipdnn_miopen_emulator.steps import Step, Steps
from hipdnn_miopen_emulator.trees import DEFAULT, build_tree, tree_folder
from hipdnn_registry.cli import Report, facts, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Group, RenderableType


def build_report(miopen: str) -> Report:
    """Build the tree of one MIOpen version and report its steps."""
    with shown_steps() as steps:
        tree = build_tree(miopen, steps)
    data: dict[str, Any] = {
        "miopen": miopen,
        "tree": str(tree),
        "toolchain": str((tree / "toolchain").resolve()),
        "cache": str(cache_folder()),
        "size": size_of([tree, (tree / "toolchain").resolve()]),
        "steps": [
            {"name": step.name, "size": step.size, "seconds": step.seconds} for step in steps.steps
        ],
    }
    return Report(data, lambda: _view(data))


def _view(data: dict[str, Any]) -> RenderableType:
    seconds = sum(step["seconds"] for step in data["steps"])
    return facts(
        [
            ("MIOpen", data["miopen"]),
            ("tree", data["tree"]),
            ("compiler", data["toolchain"]),
            ("size", size_text(data["size"])),
            ("built", f"in {seconds:.1f} s" if data["steps"] else "already"),
            ("use", "hipdnn emulator run -- COMMAND"),
        ]
    )


def ensure_tree(miopen: str = DEFAULT) -> Path:
    """Return the tree of one MIOpen version; where it has to be built first, stderr says so."""
    if tree_folder(miopen).exists():
        return build_tree(miopen)
    print(f"building the emulator of MIOpen {miopen} first:", file=sys.stderr)
    with shown_steps() as steps:
        return build_tree(miopen, steps)


@contextmanager
def shown_steps() -> Iterator[Steps]:
    """Give steps that are shown on stderr: live on a terminal, else a line for each that ended."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        steps = Steps()
        console = Console(stderr=True, highlight=False)
        with Live(get_renderable=lambda: _drawn(steps), console=console, refresh_per_second=8):
            yield steps
    else:
        yield _PrintedSteps()


class _PrintedSteps(Steps):
    """Prints each step when it has ended."""

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        with super().step(name) as step:
            yield step
        print(_text(step), file=sys.stderr, flush=True)


def _drawn(steps: Steps) -> Group:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.spinner import Spinner

    parts: list[RenderableType] = []
    for step in steps.steps:
        if step.seconds is not None:
            parts.append(_text(step))
            continue
        parts.append(Spinner("dots", text=_text(step)))
        if step.total:
            parts.append(ProgressBar(total=step.total, completed=step.size, width=60))
    return Group(*parts)


def _text(step: Step) -> str:
    size = f"{size_text(step.size)} " if step.size else ""
    if step.seconds is None:
        return f"{step.name}  {size}{f'of {size_text(step.total)}' if step.total else ''}".rstrip()
    return f"{step.name}  {size}in {step.seconds:.1f} s"
