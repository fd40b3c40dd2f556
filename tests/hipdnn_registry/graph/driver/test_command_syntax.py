"""What is taken for a command, what is refused and how, and that nothing else can happen."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hipdnn_registry.errors import GraphError
from hipdnn_registry.graph.driver import graph_from_driver_command

PLAIN = "conv -n 1 -c 1 -H 3 -W 3 -k 2 -y 2 -x 2 -F 1"
REPORTED = [
    line.removeprefix("! ")
    for line in (Path(__file__).parents[3] / "data" / "driver_commands.txt")
    .read_text()
    .splitlines()
]


def key(text: str) -> str:
    (graph,) = graph_from_driver_command(text)
    return graph.content_key.digest


@pytest.mark.parametrize(
    "text",
    [
        f"MIOpenDriver {PLAIN}",
        f"./bin/MIOpenDriver {PLAIN}",
        f"/opt/rocm/bin/MIOpenDriver {PLAIN}",
        f"C:\\rocm\\bin\\MIOpenDriver.exe {PLAIN}",
        f"  \t./bin/MIOpenDriver   {PLAIN}\n",
        f"$ MIOPEN_FIND_ENFORCE=3 MIOPEN_FIND_MODE=1 ./bin/MIOpenDriver {PLAIN}",
        f"MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver {PLAIN}",
        f"MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver {PLAIN} -t 1",
        f"MIOpenDriver {PLAIN} # it's a comment with an open quote",
        f"# first\n\nMIOpenDriver {PLAIN}\n# last",
        "MIOpenDriver conv -n 1 -c 1 -H 3 -W 3 \\\n  -k 2 -y 2 -x 2 -F 1",
        "conv -n '1' -c \"1\" --in_h=3 --in_w=3 -k +2 -y 02 -x 2 -F 1",
        f"{PLAIN} -# 1 -! 9 -@ 9 -$ 2 -% 0 -^ 1 -_ 2",
        PLAIN.replace("conv ", "convfp32 "),
    ],
)
def test_forms_of_the_same_command(text: str) -> None:
    assert key(text) == key(PLAIN)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"expected a MIOpenDriver command such as .*, but got ''"),
        ("   # nothing", r"expected a MIOpenDriver command"),
        ("MIOpenDriver", r"expected a MIOpenDriver command"),
        ("hello world", r"base 'hello' is not one of conv, .*bnormbfp16fp32"),
        ("convfp61", r"base 'convfp61' is not one of .*; did you mean 'convfp16'"),
        ("MIOpenDriver convint8 -n 1", r"base 'convint8' is not one of conv, convfp32, convfp16"),
        ("MIOpenDriver pool -n 1", r"base 'pool' is not one of"),
        ("CBAinfer", r"base 'CBAinfer' is not one of .*; did you mean 'CBAInfer'"),
        ("conv -n 1\nconv -n 2", r"expected one MIOpenDriver command, but got 2 lines.*conv -n 2"),
        ("MIOpenDriver conv -n '1", r"\"MIOpenDriver conv -n '1\": No closing quotation"),
        ("conv -n", r"flag '-n' has no value"),
        ("conv --batchsize", r"flag '--batchsize' has no value"),
        ("conv -n1", r"'-n1' is no flag: a short flag is one character"),
        ("conv -batchsize 1", r"'-batchsize' is no flag: .* two dashes"),
        ("conv 5", r"expected a flag such as '-n' or '--batchsize', but got '5'"),
        ("conv -n 1 2", r"expected a flag .* got '2'"),
        ("conv - 1", r"expected a flag .* got '-'"),
        ("conv --batchsze 4", r"no flag '--batchsze' \(value '4'\); did you mean '--batchsize'"),
        ("conv --in-layout NHWC", r"no flag '--in-layout'.*did you mean '--in_layout'"),
        ("conv -E 4", r"base 'conv' has no flag '-E' \(value '4'\)"),
        ("conv --save 1", r"base 'conv' has no flag '--save'"),
        ("conv -n x", r"--batchsize \(-n\) is 'x', but must be an integer from 1 to 2147483647"),
        ("conv -n -c", r"--batchsize \(-n\) is '-c', but must be an integer"),
        ("conv -n 1.0", r"--batchsize \(-n\) is '1.0', but must be an integer"),
        ("conv -n 1_0", r"--batchsize \(-n\) is '1_0'"),
        ("conv -n \u0661", r"--batchsize \(-n\) is '\u0661'"),
        ("conv -n ''", r"--batchsize \(-n\) is ''"),
        ("conv -n 0", r"--batchsize \(-n\) is '0', but must be an integer from 1"),
        ("conv -H -3", r"--in_h \(-H\) is '-3'"),
        ("conv -u 0", r"--conv_stride_h \(-u\) is '0'"),
        ("conv -l 0", r"--dilation_h \(-l\) is '0'"),
        ("conv -p -1", r"--pad_h \(-p\) is '-1', but must be an integer from 0"),
        ("conv -n 2147483648", r"--batchsize \(-n\) is '2147483648'"),
        ("conv -n " + "9" * 5000, r"--batchsize \(-n\) is '9{57}\.\.\.'"),
        ("CBAInfer -A 1e99", r"--alpha \(-A\) is '1e99', but must be a number from -3\.40282e\+38"),
        ("CBAInfer -A nan", r"--alpha \(-A\) is 'nan'"),
        ("conv -F 8", r"--forw \(-F\) is '8', but must be an integer from 0 to 7"),
        ("CBAInfer -F 7", r"--fusion_mode \(-F\) is '7', but must be an integer from 0 to 6"),
        ("conv -m dw", r"--mode \(-m\) is 'dw', but must be 'conv' or 'trans'"),
        (
            "conv -z full",
            r"--pad_mode \(-z\) is 'full', but must be 'default' or 'same' or 'valid'",
        ),
        ("conv -r 1", r"--pad_val \(-r\) is '1', but must be 0: .*zeros"),
        ("conv -Z 1 -L 4", r"--tensor_vect \(-Z\) is '1', but must be 0: .*vectorised"),
        ("conv -U fp8", r"--in_cast_type \(-U\) is 'fp8', but must be '-1': .*cast"),
        ("conv -_ 1", r"--spatial_dim \(-_\) is '1', but must be an integer from 2 to 3"),
        ("conv -I CHWN", r"--in_layout \(-I\) is 'CHWN', but must be 'NCHW' or 'NHWC'"),
        ("conv -I NDHWC", r"--in_layout \(-I\) is 'NDHWC': with 2 spatial dimensions"),
        ("conv -_ 3 -f NHWC", r"--fil_layout \(-f\) is 'NHWC': with 3 .*NCDHW or NDHWC"),
        ("conv -c 4 -k 6 -g 4", r"--group_count \(-g\) is 4: .*4 input channels and 6 output"),
        (
            "conv -H 2",
            r"--in_h \(-H\) is 2: .*the filter reaches over 3, so the output extent is 0",
        ),
        ("conv -y 33", r"--in_h \(-H\) is 32 by default: .*over 33"),
        ("conv -m trans -u 2 -Y 2", r"--trans_output_pad_h \(-Y\) is 2: .*below the stride, 2"),
        ("conv -m trans -H 1 -y 1 -p 1", r"--pad_h \(-p\) is 1: .*so the output extent is 0"),
        (
            "conv -H 2147483647 -W 2147483647 -c 2147483647 -n 2147483647",
            r"tensor 'x' \[2147483647, .*\] has more than 2\*\*63 bytes",
        ),
        ("x" * 20_001, r"at most 20000 characters, but this text has 20001"),
    ],
)
def test_refusals_name_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(GraphError, match=message) as caught:
        graph_from_driver_command(text)
    assert caught.value.rule.startswith("driver.")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("text", [None, 3, [], b"conv -n 1"])
def test_what_is_no_text_is_refused(text: object) -> None:
    with pytest.raises(GraphError, match=f"must be a str, but got {type(text).__name__}"):
        graph_from_driver_command(text)  # type: ignore[arg-type]


def read_or_refused(text: str) -> None:
    """Check that a text gives graphs or one error of ours, soon."""
    started = time.process_time()
    try:
        graphs = graph_from_driver_command(text)
    except GraphError:
        graphs = None
    assert time.process_time() - started < 1
    if graphs is not None:
        assert 1 <= len(graphs) <= 3
        for graph in graphs:
            assert graph.output_uids
            assert min(min(t.dims or (0,)) for t in graph.tensors.values()) >= 1


WORDS = st.one_of(
    st.sampled_from([word for line in REPORTED for word in line.split()]),
    st.sampled_from(
        [f"-{letter}" for letter in "ABCDFGHIJLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"]
    ),
    st.integers(-(2**70), 2**70).map(str),
    st.integers(0, 9).map(str),
    st.floats().map(str),
    st.text(max_size=6),
)


@given(st.text(max_size=80))
@example("\x00")
@example("conv -n \ud800")
@example("MIOpenDriver conv -n 1\x85-c 3")
@settings(max_examples=500, deadline=None)
def test_any_text(text: str) -> None:
    read_or_refused(text)


@given(st.sampled_from(["conv", "convfp16", "CBAInfer", "bnorm"]), st.lists(WORDS, max_size=12))
@settings(max_examples=700, deadline=None)
def test_any_words_behind_a_base(base: str, words: list[str]) -> None:
    read_or_refused(" ".join([base, *words]))


@given(
    st.sampled_from(REPORTED),
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from("drs"), WORDS), min_size=1, max_size=4),
)
@settings(max_examples=700, deadline=None)
def test_any_change_of_a_reported_command(line: str, edits: list[tuple[int, str, str]]) -> None:
    words = line.split("#", maxsplit=1)[0].split()
    for place, edit, word in edits:
        at = place % (len(words) or 1)
        words[at : at + (edit != "s")] = [] if edit == "d" else [word]
    read_or_refused(" ".join(words))


@pytest.mark.parametrize(
    "text",
    [
        "conv -n " + "9" * 19_000,
        "CBAInfer -A " + "9" * 19_000 + "x",
        "CBAInfer -A " + "9." * 9_000,
        "conv --" + "batchsize" * 2_000 + " 1",
        "conv " + "-n 1 " * 3_900,
        "conv" * 4_900,
        "MIOpen(" * 2_800,
        " #" * 9_900,
        '"' * 19_999,
        "'\\" * 9_999,
    ],
)
def test_long_texts_take_no_time(text: str) -> None:
    read_or_refused(text)


EXTREMES = st.sampled_from([1, 2, 3, 7, 2**16, 2**31 - 1])


@given(
    st.fixed_dictionaries(
        dict.fromkeys("nckHWyxuvlj", EXTREMES)
        | dict.fromkeys("pq", st.sampled_from([0, 1, 2**31 - 1]))
    ),
    st.sampled_from(["conv", "trans"]),
)
@settings(max_examples=500, deadline=None)
def test_extreme_numbers(flags: dict[str, int], mode: str) -> None:
    words = " ".join(f"-{letter} {value}" for letter, value in flags.items())
    read_or_refused(f"conv {words} -m {mode} -b 1")
