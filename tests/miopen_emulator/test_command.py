"""`hipdnn emulator`: what it reports, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from hipdnn_miopen_emulator import tree_folder
from hipdnn_miopen_emulator.cache import CACHE_VARIABLE
from hipdnn_miopen_emulator.pins import tree_pins
from hipdnn_miopen_emulator.toolchain import toolchain_folder
from hipdnn_registry.cli import main


def emulator(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hipdnn_miopen_emulator", *words],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["emulator", *words, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_build_says_where_things_are(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = document(capsys, "build")
    assert (data["miopen"], data["tree"], data["steps"]) == ("3.5.1", str(tree), [])
    assert data["size"] > 300 << 20
    assert main(["emulator", "build"]) == 0
    assert str(tree) in "".join(capsys.readouterr().out.split())  # folded where it is long


def test_status_before_and_after_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    for built in (False, True):
        data = document(capsys, "status")
        assert [tree["built"] for tree in data["trees"]] == [built, False]
        assert [tree["executes"] for tree in data["trees"]] == [True, False]
        assert data["compiler"]["built"] is built
        assert data["kernels"] == {"count": int(built), "size": 10 * built}
        assert data["inside"] is None
        assert data["settings"][CACHE_VARIABLE] == str(tmp_path)
        for folder in (tree_folder(), toolchain_folder(tmp_path), tmp_path / "kernels/a"):
            folder.mkdir(parents=True, exist_ok=True)
        (tmp_path / "kernels/a/b.so").write_bytes(bytes(10))


def test_status_inside(tree: Path) -> None:
    done = emulator("run", "--accept-only", "--", "hipdnn", "emulator", "status", "--json")
    data = json.loads(done.stdout)
    assert data["inside"] == str(tree)
    assert data["settings"]["MIOPEN_EMULATOR_KERNELS"] == "accept"


def test_options_become_variables(tree: Path, tmp_path: Path) -> None:
    show = "import json, os; print(json.dumps(dict(os.environ)))"
    log = os.path.relpath(tmp_path / "log")
    options = ("--accept-only", "--guard", "--clock", "real", "--log", log)
    done = emulator("run", *options, "python", "-c", show, MIOPEN_EMULATOR_CLOCK="virtual")
    assert {
        "MIOPEN_EMULATOR_KERNELS": "accept",
        "MIOPEN_EMULATOR_GUARD": "1",
        "MIOPEN_EMULATOR_CLOCK": "real",
    }.items() <= json.loads(done.stdout).items()
    assert Path(json.loads(done.stdout)["MIOPEN_EMULATOR_LOG"]).resolve() == tmp_path / "log"
    done = emulator("run", "python", "-c", show, MIOPEN_EMULATOR_CLOCK="virtual")
    assert json.loads(done.stdout)["MIOPEN_EMULATOR_CLOCK"] == "virtual"


def test_a_check_that_fails_as_kernels_were_only_accepted_says_so(tree: Path) -> None:
    line = "MIOpenDriver conv -n 1 -c 2 -H 6 -W 6 -k 2 -y 3 -x 3 -F 1"
    command = ("--", "hipdnn", "run", line, "--engine", "MIOPEN_ENGINE", "--check")
    done = emulator("run", "--accept-only", *command)
    note, failure = done.stderr.splitlines()
    assert note == (
        "note: kernels are accepted, not executed, so their results are not computed; without "
        "--accept-only they are executed"
    )
    assert failure.startswith("error: engine MIOPEN_ENGINE differs from CPU_REFERENCE_ENGINE")
    assert done.returncode == 1
    executed = emulator("run", *command)
    assert (executed.returncode, executed.stderr) == (0, "")
    assert "PASS" in executed.stdout


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ((), "; without MIOPEN_EMULATOR_KERNELS=accept they are executed"),
        (("--miopen", "3.4.0"), ""),
    ],
)
def test_the_note_names_what_makes_kernels_run(
    options: tuple[str, ...], remedy: str, tree: Path
) -> None:
    done = emulator("run", *options, "python", "-c", "", MIOPEN_EMULATOR_KERNELS="accept")
    assert done.stderr.endswith(f"so their results are not computed{remedy}\n")


def test_the_commands_words_and_exit_code_are_its_own(tree: Path) -> None:
    words = ("--traceback", "--json", "--", "-x", "")
    code = "import sys; print(sys.argv[1:]); sys.exit(9)"
    done = emulator("run", "--", "python", "-c", code, *words)
    assert (done.returncode, done.stdout) == (9, f"{list(words)}\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("run --miopen 9.9 -- true", "no tree for MIOpen 9.9; there are 3.5.1, 3.4.0"),
        ("build --miopen 9.9", "no tree for MIOpen 9.9; there are 3.5.1, 3.4.0"),
        ("run --miopen 3.4.0 -- true", "MIOpen 3.4.0's kernels can't be run here"),
        ("run --clock sundial -- true", "'--clock': 'sundial' is not one of 'virtual', 'real'"),
        ("run --log /nowhere/x -- true", "option --log is '/nowhere/x', but must be a file"),
        ("run -- no-such-command", "command 'no-such-command' is not found"),
        ("run", "Missing argument 'COMMAND'"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(
    words: str, reason: str, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["emulator", *words.split()]) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("error: ")
    assert complaint.count("\n") == 1
    assert reason in complaint


@pytest.mark.parametrize(
    ("option", "ci", "returncode", "word"),
    [
        ((), "", 1, "error: "),
        (("--or-skip",), "", 0, "skipped: "),
        (("--or-skip",), "true", 1, "error: "),
    ],
)
def test_a_machine_that_can_not_build_fails_or_skips(
    option: tuple[str, ...], ci: str, returncode: int, word: str, tmp_path: Path
) -> None:
    settings = {CACHE_VARIABLE: str(tmp_path), "PATH": "/nowhere", "CI": ci}
    done = emulator("run", *option, "--", "python", "-c", "print('ran')", **settings)
    assert (done.returncode, done.stdout) == (returncode, "")
    assert f"{word}apt-get is not installed" in done.stderr


@pytest.fixture(scope="module")
def without_hip_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a virtual environment that lacks hip-python alone."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, symlinks=True, with_pip=False)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith(("hip-", "hip_python", "rocm")) and package.name != "hip":
            (packages / package.name).symlink_to(package)
    return folder / "bin/python"


def test_without_hip_python_it_says_what_to_install(tree: Path, without_hip_python: Path) -> None:
    remedy = f"'{without_hip_python} -m pip install hip-python' brings it\n"

    def lacking(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [without_hip_python, "-m", "hipdnn_miopen_emulator", *words],
            capture_output=True,
            text=True,
            check=True,
        )

    assert " ".join(f"hip-python not installed; {remedy}".split()) in " ".join(
        lacking("status").stdout.split()
    )
    data = json.loads(lacking("status", "--json").stdout)
    assert data["hip_python"]["version"] is None
    note = f"note: without hip-python there are no MIOpen engines; {remedy}"
    assert lacking("run", "--", "python", "-c", "").stderr == note
    for others in (["true"], [sys.executable, "-c", ""]):  # not of that Python
        assert lacking("run", "--", *others).stderr == ""


def test_status_names_the_version_of_hip_python(capsys: pytest.CaptureFixture[str]) -> None:
    data = document(capsys, "status")
    assert data["hip_python"]["version"] == metadata.version("hip-python")


def test_clean_removes_what_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    current = [toolchain_folder(tmp_path), *map(tree_folder, tree_pins())]
    kernels = [tmp_path / "kernels/a", tmp_path / "miopen" / current[1].name]
    outdated = [tmp_path / "trees/old", tmp_path / "toolchains/old", tmp_path / "miopen/old"]
    packages = [tmp_path / "packages"]

    def left() -> set[Path]:
        return {path for path in (*current, *kernels, *outdated, *packages) if path.exists()}

    for folder in (*current, *kernels, *outdated, *packages):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(bytes(1000))
    assert document(capsys, "clean", "--outdated")["size"] == 3000
    assert left() == {*current, *kernels, *packages}
    assert document(capsys, "clean", "--kernels")["size"] == 2000
    assert left() == {*current, *packages}
    assert document(capsys, "clean")["size"] == 4000
    assert left() == set()
