"""MIOpenDriver lines: made of the flags there are, and real ones with mistakes in them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from hipdnn_registry.graph.driver.flags import Flag
from hipdnn_registry.graph.driver.tables import BNORM, CBAINFER, CONV

REAL = [
    line.removeprefix("! ")
    for line in (Path(__file__).parents[1] / "data" / "driver_commands.txt")
    .read_text()
    .splitlines()
]

_TABLES = {
    "conv": CONV,
    "convfp16": CONV,
    "convbfp16": CONV,
    "CBAInfer": CBAINFER,
    "CBAInferfp16": CBAINFER,
    "bnorm": BNORM,
    "bnormfp16": BNORM,
    "bnormbfp16fp32": BNORM,
}
_PREFIXES = (
    "",
    "MIOpenDriver ",
    "./bin/MIOpenDriver ",
    "MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver ",
    "MIOpen(HIP): Command [LogCmdBNorm] ./bin/MIOpenDriver ",
)
_ODD_WORDS = st.one_of(
    st.sampled_from(
        [
            "",
            "-",
            "--",
            "-1",
            "0",
            "1.5",
            "nan",
            "inf",
            "1e9",
            "x",
            "NHWC",
            "nchw",
            "NCDHW",
            "2147483647",
            "2147483648",
            "-2147483649",
            str(2**63),
            "9" * 40,
            "9" * 5000,
            "conv",
            "MIOpenDriver",
            "'",
            '"',
            "\\",
            "#",
            "=",
            "--forw=1",
            "\u0663",
            "\x00",
            "\ud800",
        ]
    ),
    st.integers().map(str),
    st.text(max_size=8),
)


def _value(flag: Flag) -> st.SearchStrategy[str]:
    """A value that the flag takes; mostly one that suits small graphs of two dimensions."""
    if flag.name.endswith("layout"):
        return st.sampled_from(["NCHW", "NHWC", "NHWC", "NCHW", "NDHWC"])
    if flag.choices:
        return st.sampled_from((*flag.choices[:1] * 3, *flag.choices))
    if isinstance(flag.default, int):
        least = int(max(flag.low, 0))
        small = st.integers(least, int(min(flag.high, least + 3)))
        large = st.integers(least, int(flag.high))
        return st.one_of(*[small] * 15, large).map(str)
    return st.just(str(flag.default))


@st.composite
def _made(draw: st.DrawFn) -> list[str]:
    """A line of some base's flags."""
    base = draw(st.sampled_from(sorted(_TABLES)))
    words = [base]
    for flag in draw(st.lists(st.sampled_from(_TABLES[base]), max_size=10)):
        names = [f"--{flag.name}", *(f"-{letter}" for letter in flag.letters)]
        words += [draw(st.sampled_from(names)), draw(_value(flag))]
    return words


def _words(line: str) -> list[str]:
    return line.removeprefix("MIOpenDriver ").split(" ")


@st.composite
def driver_lines(draw: st.DrawFn) -> str:
    """A line, with none to three of its words lost, doubled, swapped or replaced."""
    words = draw(st.one_of(_made(), st.sampled_from(REAL).map(_words)))
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2, 3]))):
        if not words:
            break
        place = draw(st.integers(0, len(words) - 1))
        kind = draw(st.sampled_from(["lose", "double", "swap", "replace", "insert"]))
        if kind == "lose":
            del words[place]
        elif kind == "double":
            words.insert(place, words[place])
        elif kind == "swap":
            other = draw(st.integers(0, len(words) - 1))
            words[place], words[other] = words[other], words[place]
        elif kind == "replace":
            words[place] = draw(_ODD_WORDS)
        else:
            words.insert(place, draw(_ODD_WORDS))
    separator = draw(st.sampled_from([*[" "] * 12, "  ", "\t", "\n", " \\\n"]))
    return draw(st.sampled_from(_PREFIXES)) + separator.join(words)
