from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipdnn_miopen_provider.perf_db import (
    BatchNormKey,
    ConvolutionKey,
    DbKind,
    FindValue,
    parse_batchnorm_key,
    parse_convolution_key,
    parse_records,
    read_databases,
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


@given(st.dictionaries(_PART, st.dictionaries(_PART, _PART, min_size=1)))
def test_records_written_as_miopen_does_are_read_back(
    records: dict[str, dict[str, str]],
) -> None:
    text = "".join(
        key + "=" + ";".join(f"{solver}:{value}" for solver, value in record.items()) + "\n"
        for key, record in records.items()
    )
    assert parse_records(text) == records


def test_a_line_that_is_no_record_is_named() -> None:
    with pytest.raises(ValueError, match=r"line 2 is not KEY=SOLVER:VALUE;...: 'nonsense'"):
        parse_records("key=Solver:1,2\nnonsense\n")


def test_a_folder_is_read(tmp_path: Path) -> None:
    perf = tmp_path / "gfx1100_48.HIP.3_5_1_.udb.txt"
    perf.write_text("key=ConvOclDirectFwd:16,16\n")
    find = tmp_path / "gfx1100_48.HIP.3_5_1_.ufdb.txt"
    find.write_text("key=GemmFwdRest:1.5,73728,miopenConvolutionFwdAlgoGEMM\n")
    batchnorm = tmp_path / "batchnorm_gfx90a6e.HIP.3_5_1_.udb.txt"
    batchnorm.write_text("key=BnFwdTrainingSpatial:Variant1-1\n")
    (tmp_path / "gfx1100_48.HIP.3_5_1_.udb.txt.time").write_text("1")
    found = {database.path: database for database in read_databases(tmp_path)}
    assert set(found) == {perf, find, batchnorm}
    assert found[batchnorm].is_batchnorm
    assert found[batchnorm].device == "gfx90a6e"
    assert (found[perf].kind, found[perf].device) == (DbKind.PERF, "gfx1100_48")
    assert found[find].find_values("key") == {
        "GemmFwdRest": FindValue(1.5, 73728, "miopenConvolutionFwdAlgoGEMM")
    }
    with pytest.raises(ValueError, match="is a perf-db"):
        found[perf].find_values("key")
    assert read_databases(tmp_path / "missing") == []


def test_the_user_folder_follows_miopens_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MIOPEN_USER_DB_PATH", str(tmp_path))
    assert user_db_folder() == tmp_path
    monkeypatch.delenv("MIOPEN_USER_DB_PATH")
    assert user_db_folder().parts[-2:] == (".config", "miopen")
