"""Finding the libraries, and saying exactly what is missing. Each case is a process of its own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_emulator import current_tree
from hipdnn_miopen_provider.native import library, unavailable_reason
from tests.native.environment import run_child

if TYPE_CHECKING:
    from collections.abc import Mapping

REASON = """
from hipdnn_miopen_provider.native import unavailable_reason
print(unavailable_reason())
"""


follows_rocm_path = pytest.mark.skipif(
    importlib.util.find_spec("rocm") is None,
    reason="this hip-python leaves finding libamdhip64 to the loader",
)


def reason(folder: Path, settings: Mapping[str, str], script: str = REASON) -> str:
    done = run_child(folder, script, settings)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def tree() -> Path:
    found = current_tree()
    assert found is not None
    return found


def test_here_it_is_available() -> None:
    assert unavailable_reason() is None
    miopen = library.load()
    assert miopen.version == (3, 5, 1)
    assert Path(miopen.path).parent == tree() / "lib"
    assert miopen.source == "dynamic loader"


def test_no_device(tmp_path: Path) -> None:
    text = reason(tmp_path, {"MIOPEN_EMULATOR_DEVICES": "0"})
    assert text.startswith("no device: HIP 7")


def test_no_hip_python(tmp_path: Path) -> None:
    block = "import sys\nfor name in ('rocm', 'hip'): sys.modules[name] = None\n"
    text = reason(tmp_path, {}, block + REASON)
    assert text.startswith("hip-python can't be imported (rocm.bindings.hip: ")
    assert "hip.hip: " in text
    assert "pip install hip-python" in text


@follows_rocm_path
def test_no_hip_runtime(tmp_path: Path) -> None:
    """ROCM_PATH leads hip-python to a file that is no library."""
    (tmp_path / "rocm" / "lib").mkdir(parents=True)
    (tmp_path / "rocm" / "lib" / "libamdhip64.so").write_text("not a library")
    text = reason(tmp_path, {"ROCM_PATH": str(tmp_path / "rocm")})
    assert text.startswith("libamdhip64 can't be used: ")
    assert str(tmp_path / "rocm") in text


def test_a_named_library_that_is_missing_is_not_replaced_by_another(tmp_path: Path) -> None:
    text = reason(tmp_path, {"HIPDNN_MIOPEN_LIBRARY": "/nowhere/libMIOpen.so"})
    assert text.startswith(
        "libMIOpen can't be loaded; tried /nowhere/libMIOpen.so (HIPDNN_MIOPEN_LIBRARY): "
    )
    assert "dynamic loader" not in text


def test_a_library_that_is_something_else(tmp_path: Path) -> None:
    text = reason(tmp_path, {"HIPDNN_MIOPEN_LIBRARY": "libz.so.1"})
    assert "libz.so.1 is not a usable libMIOpen: it lacks " in text
    assert "miopenCreateWithStream" in text
    assert "miopenSetTuningPolicy" not in text, "an optional call is not missed"


@follows_rocm_path
def test_two_hip_runtimes(tmp_path: Path) -> None:
    """hip-python loads a copy from ROCM_PATH, libMIOpen the one beside it."""
    folder = tmp_path / "rocm" / "lib"
    folder.mkdir(parents=True)
    copy = folder / "libamdhip64.so"
    copy.write_bytes((tree() / "lib" / "libamdhip64.so.7").read_bytes())
    settings = {
        "ROCM_PATH": str(tmp_path / "rocm"),
        "HIPDNN_MIOPEN_LIBRARY": str(tree() / "lib" / "libMIOpen.so.1"),
    }
    # loaded first, it is what libMIOpen gets: both have the same soname
    load_other = f"import ctypes; ctypes.CDLL({str(tree() / 'lib/libamdhip64.so.7')!r})\n"
    text = reason(tmp_path, settings, load_other + REASON)
    assert text.startswith("two copies of the HIP runtime are loaded")
    assert str(copy) in text


@pytest.mark.parametrize("variable", ["ROCM_PATH", "ROCM_HOME"])
def test_the_rocm_folder_comes_before_the_loader(tmp_path: Path, variable: str) -> None:
    script = "from hipdnn_miopen_provider.native import library\nprint(library.load().source)"
    root = tmp_path / "rocm"
    root.mkdir()
    (root / "lib").symlink_to(tree() / "lib")
    assert reason(tmp_path, {variable: str(root)}, script) == variable


def test_importing_loads_nothing(tmp_path: Path) -> None:
    script = """
import sys
import hipdnn_miopen_provider.native
print("rocm" in sys.modules, "hip" in sys.modules, "libMIOpen" in open("/proc/self/maps").read())
"""
    assert reason(tmp_path, {}, script) == "False False False"


def test_a_failure_is_not_remembered(tmp_path: Path) -> None:
    script = """
import os
from hipdnn_miopen_provider.native import unavailable_reason
os.environ["HIPDNN_MIOPEN_LIBRARY"] = "/nowhere"
print(unavailable_reason() is None)
del os.environ["HIPDNN_MIOPEN_LIBRARY"]
print(unavailable_reason() is None)
"""
    assert reason(tmp_path, {}, script) == "False\nTrue"


def test_children_start_inside_the_tree_and_host_commands_do_not(tmp_path: Path) -> None:
    script = """
import multiprocessing, subprocess, sys
from hipdnn_miopen_provider.native import unavailable_reason
if __name__ == "__main__":
    print(subprocess.run(["/bin/ls", "/"], capture_output=True).returncode)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(unavailable_reason))
"""
    assert reason(tmp_path, {}, script) == "0\nNone"
    assert Path(sys.executable).is_relative_to(tree())
