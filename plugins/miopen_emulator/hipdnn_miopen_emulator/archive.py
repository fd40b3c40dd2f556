"""Fetches pinned Debian packages with apt's own tools: no root rights, no change to the host.

apt runs with a private state folder, so the host's package lists are neither used nor touched. The
archive's address is the one the host's apt already uses; release files are checked against the
host's keyring, and each package against the checksum in `packages.toml`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import EmulatorError, EmulatorUnavailableError
from .pins import PINS, Package
from .steps import Steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .steps import Step

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

ARCHIVE_VARIABLE = "MIOPEN_EMULATOR_ARCHIVE"
ANY_VERSION_VARIABLE = "MIOPEN_EMULATOR_ANY_VERSION"


def fetch(packages: Sequence[Package], cache: Path, steps: Steps | None = None) -> list[Path]:
    """Return the .deb files of `packages`, downloading those that `cache` lacks.

    Raises:
        EmulatorUnavailableError: No apt, no keyring, or the archive can't be reached.
        EmulatorError: The archive no longer has a pinned version, or a checksum differs.
    """
    cache.mkdir(parents=True, exist_ok=True)
    missing = [package for package in packages if not _is_intact(cache, package)]
    if missing:
        _download(missing, cache, steps or Steps())
    return [_path(cache, package) for package in packages]


def current_versions(packages: Sequence[Package]) -> list[Package]:
    """Return the same packages as the archive has them now, with their checksums."""
    with tempfile.TemporaryDirectory() as folder:
        apt = _Apt(Path(folder), {package.suite for package in packages})
        return [record.package for record in apt.newest(packages)]


def any_version_accepted() -> bool:
    """Whether the caller asked to take whatever version the archive has."""
    return os.environ.get(ANY_VERSION_VARIABLE) == "1"


def _path(cache: Path, package: Package) -> Path:
    return cache / f"{package.name}_{package.version.replace(':', '%3a')}.deb"


def _is_intact(cache: Path, package: Package) -> bool:
    path = _path(cache, package)
    if not path.exists():
        return False
    return any_version_accepted() or _sha256(path) == package.sha256


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(packages: list[Package], cache: Path, steps: Steps) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with steps.step("read the archive's indexes") as step:
            apt = _Apt(Path(folder), {package.suite for package in packages})
            step.size = size_of([apt.folder / "state/lists"])
        with steps.step(f"download {len(packages)} packages") as step:
            files = apt.download(_chosen(apt, packages), step)
        for package in packages:
            found = files[package.name]
            if not any_version_accepted() and _sha256(found) != package.sha256:
                raise EmulatorError(
                    f"package {package.name} {package.version}: SHA-256 is {_sha256(found)}, "
                    f"{PINS.name} expects {package.sha256}"
                )
            # a rename within the cache, so that nobody sees half a file
            partial = cache / f"{found.name}.{os.getpid()}"
            shutil.copyfile(found, partial)
            partial.rename(_path(cache, package))


def _chosen(apt: _Apt, packages: list[Package]) -> list[_Record]:
    """The records of the pinned versions; of the newest where that is accepted."""
    available = apt.available(packages)
    chosen, gone = [], []
    for package in packages:
        same = [r for r in available[package.name] if r.package.version == package.version]
        chosen += same[:1]
        gone += [] if same else [package]
    if gone and not (any_version_accepted() and all(available.values())):
        raise EmulatorError(
            f"pinned in {PINS.name}, but no longer in the archive:"
            + "".join(
                f"\n  {package.name}: expected {package.version}, found "
                + (", ".join(r.package.version for r in available[package.name]) or "none")
                for package in gone
            )
            + f"\nSet {ARCHIVE_VARIABLE} to a snapshot of the archive that still has them, set "
            f"{ANY_VERSION_VARIABLE}=1 to run with what the archive has, or look at what changed "
            f"and take over the output of `hipdnn emulator pins` into {PINS}."
        )
    return chosen + (apt.newest(gone) if gone else [])


def size_of(paths: Iterable[Path]) -> int:
    """Return the bytes of files, and of folders with all that is in them, links not followed."""
    total = 0
    for path in paths:
        try:
            if path.is_dir() and not path.is_symlink():
                total += size_of(path.iterdir())
            else:
                total += path.lstat().st_size
        except FileNotFoundError:  # apt renames files while we look
            continue
    return total


@dataclass(frozen=True, slots=True)
class _Record:
    """A package as the archive's index describes it; `size` is that of the .deb in bytes."""

    package: Package
    size: int


class _Apt:
    """apt-get and apt-cache over a private state folder, updated once."""

    def __init__(self, folder: Path, suites: set[str]) -> None:
        for tool in ("apt-get", "apt-cache", "dpkg-deb"):
            if shutil.which(tool) is None:
                raise EmulatorUnavailableError(
                    f"{tool} is not installed, and libMIOpen and its compiler come as Debian "
                    "packages: what is needed is a Debian machine, or another with apt, dpkg and "
                    "the package debian-archive-keyring"
                )
        if not KEYRING.exists():
            raise EmulatorUnavailableError(
                f"{KEYRING} is missing: without it Debian's packages can't be verified; "
                "the package debian-archive-keyring has it"
            )
        self.folder = folder
        self.environment = os.environ | {
            "APT_CONFIG": str(self._write_configuration(suites)),
            "LC_ALL": "C.UTF-8",
        }
        updated = self._run("apt-get", "-o", "APT::Update::Error-Mode=any", "update", check=False)
        if updated.returncode:
            reason = re.findall(r"^E: (.*)$", updated.stderr, re.MULTILINE) or [
                updated.stderr.strip()
            ]
            raise EmulatorUnavailableError(f"the package archive can't be reached: {reason[0]}")

    def _write_configuration(self, suites: set[str]) -> Path:
        for name in ("state/lists/partial", "cache/archives/partial", "log", "none"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "state/status").touch()
        archive = _archive_of_the_host()
        (self.folder / "sources.list").write_text(
            "".join(
                f"deb [signed-by={KEYRING} arch=amd64] {archive} {suite} main\n"
                for suite in sorted(suites)
            )
        )
        settings = {
            "Dir::State": "state",
            "Dir::State::lists": "state/lists",
            "Dir::State::status": "state/status",
            "Dir::Cache": "cache",
            "Dir::Log": "log",
            "Dir::Etc::sourcelist": "sources.list",
            "Dir::Etc::sourceparts": "none",
            "Dir::Etc::preferences": "none/preferences",
            "Dir::Etc::preferencesparts": "none",
        }
        lines = [f'{key} "{self.folder / value}";' for key, value in settings.items()]
        lines += [
            'APT::Architecture "amd64";',
            'APT::Architectures { "amd64"; };',
            'APT::Sandbox::User "";',
            'Acquire::Languages "none";',
            # a frozen mirror is older than its own Valid-Until; signatures are checked all the same
            'Acquire::Check-Valid-Until "false";',
            'Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";',
            'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";',
        ]
        path = self.folder / "apt.conf"
        path.write_text("\n".join(lines) + "\n")
        return path

    def _run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise EmulatorError(f"{' '.join(command)} failed: {done.stderr.strip()}")
        return done

    def available(self, packages: Sequence[Package]) -> dict[str, list[_Record]]:
        """What the archive has of each package in any of the suites, newest first."""
        suites = {package.name: package.suite for package in packages}
        found: dict[str, list[_Record]] = {name: [] for name in suites}
        for record in self._records(suites, list(suites)):
            found[record.package.name].append(record)
        return found

    def newest(self, packages: Sequence[Package]) -> list[_Record]:
        """What each package's suite has now."""
        suites = {package.name: package.suite for package in packages}
        return self._records(suites, [f"{name}/{suite}" for name, suite in suites.items()])

    def _records(self, suites: dict[str, str], names: list[str]) -> list[_Record]:
        # apt-cache reports a name that it doesn't know, and fails only if it knows none of them
        shown = self._run("apt-cache", "show", *names, check=False).stdout.split("\n\n")
        fields = [
            dict(re.findall(r"^(Package|Version|Size|SHA256): (\S+)$", record, re.MULTILINE))
            for record in shown
            if record.strip()
        ]
        return [
            _Record(
                Package(f["Package"], suites[f["Package"]], f["Version"], f["SHA256"]),
                int(f["Size"]),
            )
            for f in fields
        ]

    def download(self, records: list[_Record], step: Step) -> dict[str, Path]:
        """Download packages into the private folder; apt checks them against the signed index."""
        step.total = sum(record.size for record in records)
        target = self.folder / "debs"
        target.mkdir()
        names = [f"{record.package.name}={record.package.version}" for record in records]
        with (self.folder / "errors").open("w+") as errors:
            process = subprocess.Popen(
                ["apt-get", "download", "-q", *names],  # noqa: S607  # the host's own apt
                env=self.environment,
                cwd=target,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
            while True:
                step.size = size_of([target])
                try:
                    process.wait(timeout=0.1)
                    break
                except subprocess.TimeoutExpired:
                    continue
            if process.returncode:
                errors.seek(0)
                raise EmulatorError(f"apt-get download failed: {errors.read().strip()}")
        step.size = size_of([target])
        return {path.name.partition("_")[0]: path for path in target.glob("*.deb")}


def _archive_of_the_host() -> str:
    """The address of the main archive, from the host's apt configuration."""
    if override := os.environ.get(ARCHIVE_VARIABLE):
        return override
    sources = Path("/etc/apt")
    text = "\n".join(
        path.read_text(errors="replace")
        for path in [sources / "sources.list", *sorted((sources / "sources.list.d").glob("*"))]
        if path.is_file()
    )
    deb822 = re.findall(r"^URIs:\s*(\S+)", text, re.MULTILINE)
    one_line = re.findall(r"^deb\s+(?:\[[^\]]*\]\s+)?(\S+)", text, re.MULTILINE)
    for address in deb822 + one_line:
        if "debian" in address and "security" not in address:
            return str(address)
    raise EmulatorUnavailableError(
        f"no Debian archive in the host's apt configuration; {ARCHIVE_VARIABLE} can name one"
    )
