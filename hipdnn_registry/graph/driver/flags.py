"""What a flag may be, and the values that a command gives its flags."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from hipdnn_registry.errors import GraphError, near_spellings

from .command import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .command import Command

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
FLOAT32_MAX = 3.4028234e38

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag of MIOpenDriver; the type of the default is the type of the value.

    Attributes:
        name: Long name, without dashes.
        letters: The short names that MIOpen's releases gave it, one character each.
        default: MIOpenDriver's default.
        low: Least number allowed; MIOpenDriver's integers have 32 bits.
        high: Largest number allowed.
        choices: The words allowed, if not any. Where all of them are upper case, lower case is
            taken as well.
        because: Why nothing else is allowed, where that is not plain.
    """

    name: str
    letters: str
    default: int | float | str
    low: float = INT32_MIN
    high: float = INT32_MAX
    choices: tuple[str, ...] = ()
    because: str = ""

    @property
    def label(self) -> str:
        """How messages call the flag: by its long and its short name."""
        return f"--{self.name}" + (f" (-{self.letters[0]})" if self.letters else "")

    def parse(self, text: str) -> int | float | str:
        """Return the value written as `text`, or raise a `GraphError` that says what is allowed."""
        if isinstance(self.default, str):
            word = text.upper() if all(choice.isupper() for choice in self.choices) else text
            if not self.choices:
                return text
            if word in self.choices:
                return word
        elif isinstance(self.default, float):
            if _NUMBER.fullmatch(text) and self.low <= float(text) <= self.high:
                return float(text)
        elif _INTEGER.fullmatch(text) and len(text) < 20 and self.low <= int(text) <= self.high:
            return int(text)
        because = f": {self.because}" if self.because else ""
        raise GraphError(
            f"flag {self.label} is {shown(text)}, but must be {self._allowed()}{because}",
            rule="driver.value",
        )

    def _allowed(self) -> str:
        if isinstance(self.default, str):
            return " or ".join(repr(choice) for choice in self.choices)
        if self.low == self.high:
            return f"{self.low:g}"
        if isinstance(self.default, float):
            return f"a number from {self.low:g} to {self.high:g}"
        return f"an integer from {self.low} to {self.high}"


class Flags:
    """The values of a base's flags in one command; of a repeated flag the last one counts.

    Args:
        command: The command; its flags are looked up and their values parsed.
        table: The flags that its base takes.

    Raises:
        GraphError: A flag is unknown, or its value malformed or out of range.
    """

    def __init__(self, command: Command, table: Iterable[Flag]) -> None:
        self._flags = {flag.name: flag for flag in table}
        spellings = {f"--{name}": name for name in self._flags}
        for flag in self._flags.values():
            spellings |= {f"-{letter}": flag.name for letter in flag.letters}
        written = {}
        for spelling, text in command.settings:
            if spelling not in spellings:
                raise GraphError(
                    f"base '{command.base}' has no flag {shown(spelling)} (value {shown(text)})"
                    + (
                        near_spellings(spelling[:60], list(spellings))
                        or f"; it has {_list(spellings)}"
                    ),
                    rule="driver.flag",
                )
            written[spellings[spelling]] = text
        self._values = {name: self._flags[name].parse(text) for name, text in written.items()}

    def given(self, name: str) -> bool:
        """Whether the command sets the flag."""
        return name in self._values

    def integer(self, name: str) -> int:
        """Return the value of an integer flag, or its default."""
        value = self._values.get(name, self._flags[name].default)
        if not isinstance(value, int):
            raise TypeError(f"flag {name} is no integer flag")
        return value

    def number(self, name: str) -> float:
        """Return the value of a float flag, or its default."""
        return float(self._values.get(name, self._flags[name].default))

    def text(self, name: str) -> str:
        """Return the value of a flag that takes a word, or its default."""
        return str(self._values.get(name, self._flags[name].default))

    def fail(self, name: str, why: str, rule: str = "driver.value") -> NoReturn:
        """Raise the `GraphError` that names the flag, its value and what is wrong with it."""
        value = self._values.get(name, self._flags[name].default)
        default = "" if self.given(name) else " by default"
        raise GraphError(f"flag {self._flags[name].label} is {value!r}{default}: {why}", rule=rule)


def _list(spellings: Iterable[str]) -> str:
    return ", ".join(spelling for spelling in spellings if spelling.startswith("--"))
