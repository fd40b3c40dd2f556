"""Which records of the user's perf-db decide on a device, in files as MIOpen 3.5.1 writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import Device
from hipdnn_miopen_provider.records import Snapshot, records_read
from hipdnn_miopen_provider.support import operation_of
from tests.native.engines import bn_backward

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

KEY = "2x4x8x16x18x1x0x0x1xNCHWxBwdxFP32x1"
OTHER = "2x4x8x16x16x1x0x0x1xNCHWxBwdxFP32x1"
DEVICE = Device(0, "stand-in", "gfx90a:sramecc+:xnack-", 110, 1 << 30)


def test_records_are_named_as_their_file_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIOPEN_USER_DB_PATH", str(tmp_path))
    operation = operation_of(bn_backward(18), deterministic=False)
    assert records_read(operation, DEVICE, (3, 5, 1)) == []
    read = "batchnorm_gfx90a6e.HIP.3_5_1_.udb.txt"
    for number, name in enumerate(
        (
            read,
            "batchnorm_gfx90a68.HIP.3_5_1_.udb.txt",  # 104 compute units
            "batchnorm_gfx9426e.HIP.3_5_1_.udb.txt",
            "batchnorm_gfx90a6e.HIP.3_4_0_.udb.txt",
        )
    ):
        (tmp_path / name).write_text(
            "damaged\n"
            f"{OTHER}=BnBwdTrainingSpatial:Variant0-1\n"
            f"{KEY}=BnBwdTrainingSpatial:Variant1-{number}\n"
        )
    (record,) = records_read(operation, DEVICE, (3, 5, 1))
    assert str(record) == (
        f"{tmp_path / read}: key {KEY}, solver BnBwdTrainingSpatial, parameters Variant1-0"
    )


def test_damage_in_one_file_hides_no_change_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIOPEN_USER_DB_PATH", str(tmp_path))
    operation = operation_of(bn_backward(18), deterministic=False)
    damaged, file = "gfx90a6e.HIP.3_5_1_.udb.txt", "batchnorm_gfx90a6e.HIP.3_5_1_.udb.txt"
    (tmp_path / damaged).write_bytes(b"\xff\x00 no text\n")
    before = Snapshot.take(operation)
    (tmp_path / file).write_text(f"=\n{KEY}=BnBwdTrainingSpatial:Variant1-0\n")
    after = Snapshot.take(operation)
    assert after.records == {(file, KEY, "BnBwdTrainingSpatial"): "Variant1-0"}
    assert before.changes(after, rewrites=False) == "added BnBwdTrainingSpatial"


def test_a_file_that_is_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MIOPEN_USER_DB_PATH", str(tmp_path))
    path = tmp_path / "gfx90a6e.HIP.3_5_1_.udb.txt"
    path.mkdir()
    assert Snapshot.take(operation_of(bn_backward(18), deterministic=False)).records == {}
    assert caplog.messages == [f"MIOpen's user database {path}: can't be read: Is a directory"]
