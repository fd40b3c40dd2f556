"""The user databases of a folder, as far as they can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipdnn_miopen_provider.database_files import FileKind, read_file, read_folder

if TYPE_CHECKING:
    from pathlib import Path

PERF = "gfx1100_48.HIP.3_5_1_.udb.txt"
FIND = "gfx1100_48.HIP.3_5_1_.ufdb.txt"
BATCHNORM = "batchnorm_gfx90a6e.HIP.3_5_1_.udb.txt"


def test_a_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / PERF).write_text("key=ConvOclDirectFwd:16,16\n")
    (tmp_path / FIND).write_text("key=GemmFwdRest:1.5,73728,miopenConvolutionFwdAlgoGEMM\n")
    (tmp_path / BATCHNORM).write_text("key=BnFwdTrainingSpatial:Variant1-1\n")
    (tmp_path / f"{PERF}.time").write_text("1")
    found = {file.path.name: file for file in read_folder(tmp_path)}
    assert {name: file.name.kind for name, file in found.items()} == {
        PERF: FileKind.PERF,
        FIND: FileKind.FIND,
        BATCHNORM: FileKind.BATCHNORM_PERF,
    }
    assert (found[BATCHNORM].name.architecture, found[BATCHNORM].name.compute_units) == (
        "gfx90a",
        110,
    )
    assert (found[PERF].name.architecture, found[PERF].name.compute_units) == ("gfx1100", 48)
    assert found[PERF].records == {"key": {"ConvOclDirectFwd": "16,16"}}
    assert not any(file.damage for file in found.values())
    assert read_folder(tmp_path / "missing") == []


def test_what_is_damaged_is_named_and_the_rest_read(tmp_path: Path) -> None:
    path = tmp_path / PERF
    path.write_bytes(b"a=S:1\nnonsense\n\xff\xfe\nb=S:2\n")
    file = read_file(path)
    assert file.records == {"a": {"S": "1"}, "b": {"S": "2"}}
    assert [damage.line for damage in file.damage] == [2, 3]
    assert str(file.damage[0]) == f"{path}, line 2: not KEY=SOLVER:VALUE;...: 'nonsense'"
