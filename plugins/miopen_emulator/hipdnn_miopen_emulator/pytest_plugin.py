"""The pytest plugin `miopen_emulator`, for suites of programs that use MIOpen.

pytest --miopen-emulator             the whole run under the emulator, also with xdist's -n

@pytest.mark.miopen_emulator         needs the emulator: skipped outside, with a reason
def test_convolution(miopen_emulator):
...
assert all(launch.executed for launch in miopen_emulator.launches())

def test_program(miopen_emulator):   runs outside, too; the program is under the emulator
assert miopen_emulator.run(["./my_miopen_program"]).returncode == 0
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hipdnn_registry.errors import InvalidInputError

from .cache import current_tree
from .errors import EmulatorError, EmulatorUnavailableError
from .events import Launch, faults_of, launches_of, read_events
from .launcher import KERNELS_VARIABLE, LOG_VARIABLE, command_line, environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .events import Event

OPTION = "--miopen-emulator"
MARKER = "miopen_emulator"


@dataclass(frozen=True, slots=True)
class EmulatedRun:
    """A command that ran under the emulator.

    Attributes:
        returncode: Its exit code; negative where a signal ended it.
        stdout: What it printed.
        stderr: What it printed there.
        events: What the emulator logged of it, see `events`.
    """

    returncode: int
    stdout: str
    stderr: str
    events: list[Event]

    @property
    def launches(self) -> list[Launch]:
        """Its kernel launches."""
        return launches_of(self.events)

    @property
    def faults(self) -> list[Event]:
        """Its accesses outside of buffers; see `--guard`."""
        return faults_of(self.events)


@dataclass(slots=True)
class Emulation:
    """What the fixture `miopen_emulator` gives a test.

    Attributes:
        tree: The tree that the test itself runs inside, or `None`.
        folder: Where logs are kept during the test.
    """

    tree: Path | None
    folder: Path
    _runs: int = field(default=0, init=False)

    @property
    def inside(self) -> bool:
        """Whether the test itself runs under the emulator."""
        return self.tree is not None

    @property
    def log(self) -> Path:
        """The test's own log; not that of what `run` starts."""
        return self.folder / "miopen-emulator.jsonl"

    def events(self) -> list[Event]:
        """Return what the emulator logged since the test began."""
        return read_events(self.log)

    def launches(self) -> list[Launch]:
        """Return the kernels launched since the test began."""
        return launches_of(self.events())

    def faults(self) -> list[Event]:
        """Return the accesses outside of buffers found since the test began; see `--guard`."""
        return faults_of(self.events())

    def run(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout: float | None = None,
    ) -> EmulatedRun:
        """Run a command under the emulator, which is built first if needed.

        The test is skipped where this machine can't build it.

        Args:
            command: As for `hipdnn emulator run`.
            env: Its environment variables; by default those of this process.
            cwd: Its working directory; by default that of this process.
            timeout: Seconds after which it is killed.

        Raises:
            UnsuitableCommandError: There is no such command, or it can't run inside a tree.
            EmulatorError: The emulator can't be built, for a reason that a person has to look at.
            subprocess.TimeoutExpired: It took longer than `timeout`.
        """
        tree = self.tree or _built_tree()
        self._runs += 1
        log = self.folder / f"miopen-emulator-{self._runs}.jsonl"
        variables = dict(os.environ if env is None else env) | {LOG_VARIABLE: str(log)}
        done = subprocess.run(
            command_line(tree, [os.fspath(word) for word in command]),
            env=environment(tree, variables),
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        return EmulatedRun(done.returncode, done.stdout, done.stderr, read_events(log))


@pytest.fixture
def miopen_emulator(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Emulation]:
    """What ran under the emulator during the test, and a way to start more there."""
    emulation = Emulation(current_tree(), tmp_path_factory.mktemp("miopen-emulator"))
    whole = os.environ.get(LOG_VARIABLE)
    monkeypatch.setenv(LOG_VARIABLE, str(emulation.log))
    yield emulation
    if whole and emulation.log.exists():  # the run's own log keeps all lines
        with Path(whole).open("ab") as file:
            file.write(emulation.log.read_bytes())


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup(MARKER).addoption(
        OPTION, action="store_true", help="Run under the emulator of MIOpen."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers", f"{MARKER}: runs only under the emulator of MIOpen (pytest {OPTION})"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start the whole run again, inside a tree, before anything can load MIOpen."""
    if not early_config.known_args_namespace.miopen_emulator or current_tree():
        return
    capture = early_config.pluginmanager.getplugin("capturemanager")
    if capture:  # it has begun, and both a build and the new run write to the terminal
        capture.suspend_global_capture(in_=True)
    try:
        tree = _built_tree(skip=False)
        words = command_line(tree, [sys.executable, *sys.orig_argv[1:]])
        variables = environment(tree)
    except (EmulatorError, InvalidInputError) as error:
        raise pytest.UsageError(f"{OPTION}: {error}") from error
    sys.stdout.flush()
    os.chdir(early_config.invocation_params.dir)
    os.execve(words[0], words, variables)  # noqa: S606  # no shell


def pytest_report_header() -> str | None:
    """Say what MIOpen is."""
    if tree := current_tree():
        return f"MIOpen emulator: {tree}, kernels: {os.environ.get(KERNELS_VARIABLE) or 'execute'}"
    return None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs the emulator outside of it."""
    if item.get_closest_marker(MARKER) and not current_tree():
        pytest.skip(f"needs the emulator of MIOpen: run pytest {OPTION}")


def _built_tree(*, skip: bool = True) -> Path:
    from .command.building import ensure_tree

    try:
        return ensure_tree()
    except EmulatorUnavailableError as reason:
        if skip:
            pytest.skip(str(reason))
        raise
