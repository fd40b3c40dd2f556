"""A MIOpenDriver line taken apart: where it came from, its base argument, its flags and values."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hipdnn_registry.errors import GraphError, near_spellings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_CHARACTERS = 20_000
"""Longer text is no command line; real ones have some hundred characters."""

_PROGRAM = re.compile(r"(?:^|[\s/\\])MIOpenDriver(?:\.exe)?(?=\s|$)")
_LOGGED = re.compile(r"\[LogCmd|MIOpen\(\w+\):")
_COMMENT = re.compile(r"(?:^|\s)#")  # not the short flag -#, which follows a dash


@dataclass(frozen=True, slots=True)
class Command:
    """What a command line says, before its flags are given a meaning.

    Attributes:
        base: MIOpenDriver's first argument, such as `convfp16`.
        settings: Flags as written and their values, in order; every flag takes one value.
        logged: Whether MIOpen printed the line (MIOPEN_ENABLE_LOGGING_CMD=1), rather than a person
            typed it.
    """

    base: str
    settings: tuple[tuple[str, str], ...]
    logged: bool


def read_command(text: str, bases: Sequence[str]) -> Command:
    """Take a command line apart.

    Whatever precedes `MIOpenDriver` (a path, a log prefix, environment variables) is skipped, and
    so are a comment behind ` #` and line continuations.

    Args:
        text: The command line.
        bases: The base arguments that are known.

    Raises:
        GraphError: The text is no str, or holds no command, more than one, another base, or a flag
            without a value.
    """
    if not isinstance(text, str):
        raise GraphError(
            f"a MIOpenDriver command must be a str, but got {type(text).__name__}",
            rule="driver.command",
        )
    line = _single_line(text)
    program = _PROGRAM.search(line)
    words = _words(line, program.end() if program else 0)
    if not words:
        raise GraphError(
            f"expected a MIOpenDriver command such as 'MIOpenDriver conv -n 1 -c 3', "
            f"but got {shown(line)}",
            rule="driver.command",
        )
    base, *rest = words
    if base not in bases:
        raise GraphError(
            f"MIOpenDriver base {shown(base)} is not one of {', '.join(bases)}"
            + near_spellings(base[:60], bases),
            rule="driver.base",
        )
    logged = program is not None and _LOGGED.search(line[: program.start()]) is not None
    return Command(base, _pairs(rest), logged)


def shown(value: str) -> str:
    """Quote a value for a message, shortened if need be."""
    return repr(value if len(value) <= 60 else f"{value[:57]}...")


def _single_line(text: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise GraphError(
            f"a MIOpenDriver command has at most {MAX_CHARACTERS} characters, "
            f"but this text has {len(text)}",
            rule="driver.command",
        )
    lines = re.sub(r"\\\r?\n", " ", text).splitlines()
    commands = [command for line in lines if (command := _COMMENT.split(line, 1)[0].strip())]
    if len(commands) > 1:
        raise GraphError(
            f"expected one MIOpenDriver command, but got {len(commands)} lines; the second is "
            f"{shown(commands[1])}",
            rule="driver.command",
        )
    return commands[0] if commands else ""


def _words(line: str, start: int) -> list[str]:
    try:
        return shlex.split(line[start:])
    except ValueError as error:  # an open quote, a trailing backslash
        raise GraphError(f"{shown(line)}: {error}", rule="driver.syntax") from None


def _pairs(words: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = []
    remaining = iter(words)
    for word in remaining:
        flag, equals, value = word.partition("=")
        if word.startswith("--") and len(flag) > 2:
            if not equals:
                value = _value(word, remaining)
        elif re.fullmatch(r"-[^-\s]", word):
            flag, value = word, _value(word, remaining)
        elif word.startswith("-") and len(word) > 2:
            raise GraphError(
                f"{shown(word)} is no flag: a short flag is one character with its value apart, "
                "such as '-n 1', and a long one starts with two dashes, such as '--batchsize 1'",
                rule="driver.syntax",
            )
        else:
            raise GraphError(
                f"expected a flag such as '-n' or '--batchsize', but got {shown(word)}",
                rule="driver.syntax",
            )
        pairs.append((flag, value))
    return tuple(pairs)


def _value(flag: str, remaining: Iterator[str]) -> str:
    value = next(remaining, None)
    if value is None:
        raise GraphError(f"flag {shown(flag)} has no value", rule="driver.syntax")
    return value
