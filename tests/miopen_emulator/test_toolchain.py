"""The compiler is complete: nothing of the host's takes part."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

CPP = """
#include <cmath>
#include <linux/limits.h>
#include <thread>
#include <vector>
extern "C" float twice(float x) {
  std::vector<_Float16> values(2, static_cast<_Float16>(x));
  std::thread([&] { values[0] = std::sqrt(static_cast<float>(values[0])); }).join();
  return values[0] + values[1];
}
int main() { return static_cast<int>(twice(4.0f)); }
"""


@pytest.fixture
def toolchain(tree: Path) -> Path:
    return (tree / "toolchain").resolve()


def compiled(toolchain: Path, folder: Path, *arguments: str) -> str:
    """Runs a compiler where it finds nothing by chance, and returns what it said on stderr."""
    done = subprocess.run(
        [toolchain / "bin" / arguments[0], *arguments[1:]],
        cwd=folder,
        env={"PATH": str(folder), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_cpp_is_compiled_and_linked_against_its_own_files(toolchain: Path, tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(CPP)
    said = compiled(toolchain, tmp_path, "clang++-19", "-v", "-O1", "a.cpp")
    listed = said.partition("#include <...> search starts here:\n")[2].partition("End of")[0]
    searched = [line.strip() for line in listed.splitlines()]
    (linker,) = [line for line in said.splitlines() if "crtbegin" in line]
    linked = [word for word in shlex.split(linker) if word.startswith(("/", "-L"))]
    assert len(searched) > 3
    assert len(linked) > 8
    for path in (*searched, *(word.removeprefix("-L") for word in linked)):
        if path == "/lib64/ld-linux-x86-64.so.2":
            continue  # the name that a program carries, not a file that is read
        assert path.startswith((str(toolchain), str(tmp_path))), path
    assert subprocess.run([tmp_path / "a.out"], check=False).returncode == 6


def test_opencl_is_compiled(toolchain: Path, tmp_path: Path) -> None:
    (tmp_path / "a.cl").write_text(
        "kernel void add(global float *y) { y[get_global_id(0)] += sqrt(2.0f); }"
    )
    opencl = ("-x", "cl", "-target", "x86_64-linux-gnu", "-Xclang", "-finclude-default-header")
    compiled(toolchain, tmp_path, "clang-19", "-Werror", *opencl, "-S", "-emit-llvm", "a.cl")
    assert "define" in (tmp_path / "a.ll").read_text()
    assert "spir_kernel" in (tmp_path / "a.ll").read_text()


def test_no_link_leads_out_of_it(toolchain: Path) -> None:
    links = [
        Path(folder, name)
        for folder, folders, files in os.walk(toolchain)
        for name in folders + files
        if Path(folder, name).is_symlink()
    ]
    assert len(links) > 20
    assert [link for link in links if not link.resolve().is_relative_to(toolchain)] == []
