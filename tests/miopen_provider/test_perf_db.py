from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipdnn_miopen_provider.perf_db import (
    BatchNormKey,
    ConvolutionKey,
    FindValue,
    parse_batchnorm_key,
    parse_convolution_key,
    parse_find_value,
    parse_record,
    user_db_folder,
)

if TYPE_CHECKING:
    from pathlib import Path

GROUPED = ConvolutionKey(
    batch=2,
    in_channels=8,
    in_dims=(16, 20),
    filter_dims=(3, 5),
    out_channels=4,
    padding=(1, 1),
    strides=(1, 1),
    dilations=(1, 1),
    groups=2,
    layout="NCHW",
    dtype="FP32",
    direction="F",
)


def test_the_two_styles_decode_to_the_same_problem() -> None:
    find_key = "8-16-20-3x5-4-16-18-2-1x1-1x1-1x1-0-NCHW-FP32-F_g2"
    perf_key = "2x8x16x20x1x3x5x1x4x2x1x1x0x1x1x0x1x1x0x0x2xNCHWxFP32xF"
    assert parse_convolution_key(find_key) == parse_convolution_key(perf_key) == GROUPED


@pytest.mark.parametrize(
    ("key", "in_dims", "layout", "groups"),
    [
        ("64-56-56-1x1-64-56-56-16-0x0-1x1-1x1-0-NCHW-FP32-F", (56, 56), "NCHW", 1),
        (
            "3-2-14-14-2x14x14-1280-1-1-1-12920-0x0x0-2x14x14-1x1x1-0-NCDHW-FP16-F",
            (2, 14, 14),
            "NCDHW",
            1,
        ),
        (
            "8-16-16-3x3-8-16-16-2-1x1-1x1-1x1-0-NHWC-NHWC-NHWC-FP16-W_g4",
            (16, 16),
            "NHWC-NHWC-NHWC",
            4,
        ),
    ],
)
def test_find_db_keys(key: str, in_dims: tuple[int, ...], layout: str, groups: int) -> None:
    decoded = parse_convolution_key(key)
    assert (decoded.in_dims, decoded.layout, decoded.groups) == (in_dims, layout, groups)


def test_batchnorm_key() -> None:
    assert parse_batchnorm_key("2x3x5x7x9x1x0x1x0xNCHWxTrnxBF16x1") == BatchNormKey(
        dims=(3, 5, 7, 9),
        saves=False,
        updates_running=True,
        uses_saved=False,
        layout="NCHW",
        direction="Trn",
        dtype="BF16",
    )


@pytest.mark.parametrize(
    "key", ["", "8-16", "2x3x5x7x9x1x0x1x0xNCHWxTrnxFP32x1", "8x8xNCHWxFP32xF"]
)
def test_other_keys_are_refused_with_their_text(key: str) -> None:
    with pytest.raises(ValueError, match="not a convolution's key"):
        parse_convolution_key(key)


_PART = st.text(
    st.characters(codec="ascii", categories=["L", "N"], include_characters=",-_<>"), min_size=1
)


@given(_PART, st.dictionaries(_PART, _PART, min_size=1))
def test_a_record_written_as_miopen_does_is_read_back(key: str, record: dict[str, str]) -> None:
    line = key + "=" + ";".join(f"{solver}:{value}" for solver, value in record.items())
    assert parse_record(line) == (key, record)


def test_a_line_that_is_no_record_is_quoted() -> None:
    with pytest.raises(ValueError, match=r"not KEY=SOLVER:VALUE;...: 'nonsense'"):
        parse_record("nonsense")


def test_find_values() -> None:
    value = parse_find_value("1.5,73728,miopenConvolutionFwdAlgoGEMM")
    assert value == FindValue(1.5, 73728, "miopenConvolutionFwdAlgoGEMM")
    with pytest.raises(ValueError, match="not a find-db value .*'16,16'"):
        parse_find_value("16,16")


def test_the_user_folder_follows_miopens_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MIOPEN_USER_DB_PATH", str(tmp_path))
    assert user_db_folder() == tmp_path
    monkeypatch.delenv("MIOPEN_USER_DB_PATH")
    assert user_db_folder().parts[-2:] == (".config", "miopen")
