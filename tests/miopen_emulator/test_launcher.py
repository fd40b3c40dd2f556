"""Whatever is started under the emulator is inside, and ends as it would have ended outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_emulator import UnsuitableCommandError, command_line, environment
from hipdnn_miopen_emulator.launcher import GUARD_VARIABLE, KERNELS_VARIABLE, WITHOUT_ASSEMBLY

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., subprocess.CompletedProcess[str]]

WHERE = "import sys; print(sys.executable)"
DATABASES = ("MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR")

PROGRAM = """
#include <stdio.h>
int hipGetDeviceCount(int *), miopenCreate(void **), miopenDestroy(void *);
int miopenGetVersion(unsigned long *, unsigned long *, unsigned long *);
int main(int count, char **words) {
  int devices = 0;
  unsigned long version[3];
  void *handle;
  if (hipGetDeviceCount(&devices) || miopenCreate(&handle) || miopenDestroy(handle)) return 1;
  miopenGetVersion(version, version + 1, version + 2);
  printf("%d %lu.%lu.%lu %s\\n", devices, version[0], version[1], version[2], words[count - 1]);
  return 3;
}
"""


@pytest.fixture
def run(tree: Path) -> Run:
    def start(*command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command_line(tree, [str(word) for word in command]),
            env=environment(tree),
            capture_output=True,
            text=True,
            check=False,
        )

    return start


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_python_has_the_packages_that_it_has_outside(run: Run, tree: Path) -> None:
    for name in ("python", "python3", sys.executable):
        done = run(name, "-c", f"import pytest; print(pytest.__file__); {WHERE}")
        assert done.returncode == 0, done.stderr
        package, executable = done.stdout.splitlines()
        assert Path(package).samefile(pytest.__file__)
        assert Path(executable).is_relative_to(tree / "pythons")


def test_another_python_has_its_own_packages(run: Run) -> None:
    base = getattr(sys, "_base_executable")  # noqa: B009  # not in typeshed
    ask = "import sys, importlib.util as u; print(u.find_spec('pytest_of_nobody'), sys.executable)"
    inside = run(base, "-c", ask)
    assert "pythons" in inside.stdout
    own = run("python", "-c", WHERE).stdout.strip()
    assert own not in inside.stdout


SPAWN = """\
import multiprocessing
with multiprocessing.get_context('spawn').Pool(1) as pool:
    print(pool.apply(eval, ['__import__("sys").executable']))
"""


@pytest.mark.parametrize(
    "child",
    [
        "import subprocess; subprocess.run([sys.executable, '-c', where], check=True)",
        "import subprocess; subprocess.run(['python3', '-c', where], check=True)",
        SPAWN,
    ],
)
def test_children_of_python_are_inside(child: str, run: Run, tree: Path, tmp_path: Path) -> None:
    program = script(
        tmp_path / "parent.py",
        f"import sys\nwhere = {WHERE!r}\nif __name__ == '__main__':\n"
        + "".join(f"    {line}\n" for line in child.splitlines()),
    )
    done = run("python", program)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tree / "pythons")


@pytest.mark.parametrize(
    "first",
    [
        f"#!{sys.executable}\n",
        f"#!{sys.executable} -E\n",
        "#!/usr/bin/env python3\n",
        "#!/usr/bin/env -S python3 -E\n",
        f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n",
    ],
)
def test_scripts_run_by_the_interpreter_they_name(
    first: str, run: Run, tree: Path, tmp_path: Path
) -> None:
    program = script(tmp_path / "a script", f"{first}{WHERE}; print(sys.argv[1:])\n")
    executable, arguments = run(program, "a b", "--flag").stdout.splitlines()
    assert Path(executable).is_relative_to(tree / "pythons")
    assert arguments == "['a b', '--flag']"


def test_scripts_of_the_virtual_environment_are_found_by_name(run: Run) -> None:
    done = run("pytest", "--version")
    assert done.stdout == f"pytest {pytest.__version__}\n", done.stderr


def test_a_shell_and_what_it_starts_by_name(run: Run, tree: Path) -> None:
    done = run("sh", "-c", f"cat /proc/$$/maps; python -c '{WHERE}'")
    assert f"{tree}/lib/libc.so.6" in done.stdout
    assert Path(done.stdout.splitlines()[-1]).is_relative_to(tree / "pythons")


def test_the_command_in_a_shell_is_inside(run: Run, tmp_path: Path) -> None:
    (tmp_path / "json.py").touch()  # the user's, and none of the command's business
    done = run("sh", "-c", f"cd {tmp_path} && hipdnn providers --json")
    (miopen,) = [p for p in json.loads(done.stdout)["providers"] if p["name"] == "miopen"]
    assert miopen["status"] == "loaded", done.stderr


def test_a_c_program_gets_the_real_miopen_and_a_device(
    run: Run, tree: Path, tmp_path: Path
) -> None:
    source = tmp_path / "program.c"
    source.write_text(PROGRAM)
    libraries = (f"-L{tree}/lib", "-lMIOpen", "-lamdhip64", "-Wl,--allow-shlib-undefined")
    subprocess.run(
        [tree / "toolchain/bin/clang-19", source, "-o", tmp_path / "program", *libraries],
        check=True,
    )
    done = run(tmp_path / "program", "argument")
    assert (done.returncode, done.stdout) == (3, "1 3.5.1 argument\n"), done.stderr


def test_exit_codes_and_signals_are_the_commands_own(run: Run) -> None:
    assert run("python", "-c", "raise SystemExit(7)").returncode == 7
    assert run("sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM


def test_what_can_not_run_inside_is_refused_with_the_reason(tree: Path, tmp_path: Path) -> None:
    static, narrow = tmp_path / "static", tmp_path / "narrow"
    (tmp_path / "a.c").write_text("int main(void) { return 0; }")
    clang = tree / "toolchain/bin/clang-19"
    subprocess.run([clang, "-static", tmp_path / "a.c", "-o", static], check=True)
    narrow.write_bytes(b"\x7fELF\x01" + static.read_bytes()[5:])
    narrow.chmod(0o755)
    text = script(tmp_path / "text", "echo\n")
    for command, reason in {
        "no-such-command": "command 'no-such-command' is not found",
        "./no/such/file": "'./no/such/file' is no program that may be executed",
        str(tmp_path): f"'{tmp_path}' is no program that may be executed",
        str(static): f"'{static}' is linked statically",
        str(narrow): f"'{narrow}' is no program for 64-bit x86",
        str(text): f"'{text}' is neither a program nor a script",
    }.items():
        with pytest.raises(UnsuitableCommandError) as error:
            command_line(tree, [command])
        assert str(error.value).startswith(reason)


def test_a_users_settings_stay_and_miopens_files_are_the_emulators_own(tree: Path) -> None:
    plain = environment(tree, {"PATH": "/bin"})
    assert plain["PATH"].endswith(":/bin")
    assert WITHOUT_ASSEMBLY.items() <= plain.items()
    for name in DATABASES:
        assert tree.name in plain[name]
        assert Path(plain[name]).is_dir()
    own = {"MIOPEN_USER_DB_PATH": "/mine", "MIOPEN_DEBUG_GCN_ASM_KERNELS": "1"}
    assert own.items() <= environment(tree, own).items()
    assert not WITHOUT_ASSEMBLY.keys() & environment(tree, {"MIOPEN_EMULATOR_ASM": "1"}).keys()


def test_what_kernels_are_compiled_to_never_mixes(tree: Path) -> None:
    settings: list[dict[str, str]] = [{}, {KERNELS_VARIABLE: "accept"}, {GUARD_VARIABLE: "1"}]
    folders = [environment(tree, one)["MIOPEN_CUSTOM_CACHE_DIR"] for one in settings]
    assert len(set(folders)) == 3
    assert environment(tree, {KERNELS_VARIABLE: "execute"})["MIOPEN_CUSTOM_CACHE_DIR"] == folders[0]


def test_nothing_is_exported_that_would_break_the_hosts_programs(tree: Path) -> None:
    assert "LD_LIBRARY_PATH" not in environment(tree, {})
    assert "LD_PRELOAD" not in environment(tree, {})
    assert os.environ.get("LD_LIBRARY_PATH") == environment(tree).get("LD_LIBRARY_PATH")
