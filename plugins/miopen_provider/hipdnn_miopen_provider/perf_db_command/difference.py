"""`hipdnn perf-db diff`: what was added, removed and changed between two files or two folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.database_files import DatabaseFile, read_file, read_name
from hipdnn_miopen_provider.perf_db import (
    parse_batchnorm_key,
    parse_convolution_key,
    parse_find_value,
)
from hipdnn_registry import InvalidInputError
from hipdnn_registry.cli import Report, facts, note, size_text, table

from .source import damage_data, damage_in, exists, read

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

_DIRECTIONS = {"F": "forward", "B": "backward data", "W": "backward weights"}
_BATCHNORMS = {"Trn": "training", "Bwd": "backward"}


@dataclass(frozen=True, slots=True)
class Change:
    """A record that is not the same on both sides.

    Attributes:
        key: The problem, as the file has it.
        solver: The solver.
        before: Its value; `None` where the record was added.
        after: Its value; `None` where the record was removed.
    """

    key: str
    solver: str
    before: str | None
    after: str | None

    @property
    def verb(self) -> str:
        """Added, removed or changed."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


def diff_report(before: Path, after: Path) -> Report:
    """Report the differences of two files, or of the files of one name in two folders.

    Raises:
        InvalidInputError: One is missing or can't be read, or they are of different kinds.
    """
    pairs = _pairs(before, after)
    files = [file for pair in pairs.values() for file in pair if file is not None]
    changes = {name: changes_between(*pair) for name, pair in pairs.items()}
    data = {
        "before": str(before),
        "after": str(after),
        "files": [
            {"file": name, "changes": [_data(change) for change in changes[name]]} for name in pairs
        ],
        "damage": damage_data(files),
    }
    return Report(data, lambda: _view(pairs, changes, files))


_Pair = tuple[DatabaseFile | None, DatabaseFile | None]


def _pairs(before: Path, after: Path) -> dict[str, _Pair]:
    for path in (before, after):
        if not exists(path, "a side of the comparison"):
            raise InvalidInputError(f"'{path}' is to be compared, but there is no such file")
    if before.is_dir() != after.is_dir():
        folder, file = (before, after) if before.is_dir() else (after, before)
        raise InvalidInputError(
            f"'{folder}' is a folder and '{file}' a file; give two files or two folders"
        )
    if before.is_dir():
        old, new = (
            {file.path.name: file for file in read(path, "a side of the comparison")}
            for path in (before, after)
        )
        return {name: (old.get(name), new.get(name)) for name in sorted({*old, *new})}
    kinds = [read_name(path.name).kind for path in (before, after)]
    if None not in kinds and kinds[0] is not kinds[1]:
        raise InvalidInputError(
            f"'{before}' is a {kinds[0].value if kinds[0] else ''} and '{after}' a "
            f"{kinds[1].value if kinds[1] else ''}: they have no records in common"
        )
    sides = read_file(before), read_file(after)
    for side in sides:
        for damage in side.damage:
            if damage.line is None:
                raise InvalidInputError(str(damage))
    name = before.name if before.name == after.name else f"{before.name} -> {after.name}"
    return {name: sides}


def changes_between(before: DatabaseFile | None, after: DatabaseFile | None) -> list[Change]:
    """Return what differs, by problem and solver; a missing file has no records."""
    old = before.records if before else {}
    new = after.records if after else {}
    changes = []
    for key in [*old, *(key for key in new if key not in old)]:
        was, now = old.get(key, {}), new.get(key, {})
        solvers = sorted({*was, *now})
        changes += [Change(key, solver, was.get(solver), now.get(solver)) for solver in solvers]
    return [change for change in changes if change.before != change.after]


def _data(change: Change) -> dict[str, Any]:
    return {
        "change": change.verb,
        "key": change.key,
        "problem": problem_text(change.key),
        "solver": change.solver,
        "before": change.before,
        "after": change.after,
    }


def _view(
    pairs: dict[str, _Pair], changes: dict[str, list[Change]], files: list[DatabaseFile]
) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for name, (before, after) in pairs.items():
        if not changes[name]:
            continue
        only = " (only after)" if before is None else " (only before)" if after is None else ""
        parts.append(Text(f"{name}{only}", style="bold"))
        find = all(f.name.kind and f.name.kind.is_find for f in pairs[name] if f)
        for key in dict.fromkeys(change.key for change in changes[name]):
            problem = problem_text(key)
            parts.append(facts([("problem", problem)] * (problem != key) + [("key", key)]))
            rows = [
                (c.verb, c.solver, _value(c.before, find=find), _value(c.after, find=find))
                for c in changes[name]
                if c.key == key
            ]
            parts += [table(("change", "solver", "before", "after"), rows), Text("")]
    if not any(changes.values()):
        parts.append(f"no difference in {len(pairs)} file{'' if len(pairs) == 1 else 's'}")
    parts += [note(str(damage)) for damage in damage_in(files)]
    return Group(*parts)


def _value(text: str | None, *, find: bool) -> str:
    if text is None or not find:
        return text or ""
    value = parse_find_value(text)
    workspace = size_text(value.workspace_size)
    return f"{value.milliseconds:.4g} ms, workspace {workspace}, {value.algorithm}"


def problem_text(key: str) -> str:
    """Return a key for people, or as it is where it is of no known form."""
    for describe in (_convolution, _batchnorm):
        try:
            return describe(key)
        except ValueError:
            continue
    return key


def _convolution(text: str) -> str:
    key = parse_convolution_key(text)
    parts = [
        f"convolution {_DIRECTIONS[key.direction]}",
        f"N {key.batch}",
        f"{key.in_channels} x {_by(key.in_dims)} to {key.out_channels} channels",
        f"filter {_by(key.filter_dims)}",
    ]
    plain = (
        ("padding", key.padding, 0),
        ("stride", key.strides, 1),
        ("dilation", key.dilations, 1),
    )
    depth = len(key.in_dims)
    parts += [f"{name} {_by(given)}" for name, given, usual in plain if given != (usual,) * depth]
    parts += [f"{key.groups} groups"] if key.groups > 1 else []
    return ", ".join([*parts, f"{key.layout} {key.dtype}"])


def _batchnorm(text: str) -> str:
    key = parse_batchnorm_key(text)
    flags = (
        (key.saves, "saves statistics"),
        (key.updates_running, "updates running statistics"),
        (key.uses_saved, "uses saved statistics"),
    )
    parts = [f"batchnorm {_BATCHNORMS.get(key.direction, key.direction)}", _by(key.dims)]
    parts += [text for flag, text in flags if flag]
    return ", ".join([*parts, f"{key.layout} {key.dtype}"])


def _by(numbers: tuple[int, ...]) -> str:
    return "x".join(map(str, numbers))
