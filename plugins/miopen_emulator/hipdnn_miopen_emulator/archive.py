"""Fetches pinned Debian packages with apt's own tools: no root rights, no change to the host.

apt runs with a private state folder, so the host's package lists are neither used nor touched. The
archive's address is the one the host's apt already uses; release files are checked against the
host's keyring, and each package against the checksum in ``packages.toml``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
PINS = Path(__file__).with_name("packages.toml")

ARCHIVE_VARIABLE = "MIOPEN_EMULATOR_ARCHIVE"
ANY_VERSION_VARIABLE = "MIOPEN_EMULATOR_ANY_VERSION"


class EmulatorUnavailableError(Exception):
    """This machine can't fetch or build the trees: a reason to skip."""


class EmulatorError(Exception):
    """Something is wrong that a person has to look at: never a reason to skip."""


@dataclass(frozen=True)
class Package:
    """One pinned package. The checksum is that of the .deb file."""

    name: str
    suite: str
    version: str
    sha256: str


@dataclass(frozen=True)
class Pins:
    """What one tree is made of.

    Attributes:
        packages: The packages to unpack.
        sonames: Names under which its libMIOpen asks for the stand-ins.
        preload: A stand-in that every process of the tree preloads, or "".
    """

    packages: tuple[Package, ...]
    sonames: dict[str, str]
    preload: str


def read_pins() -> dict[str, Pins]:
    """Reads ``packages.toml``: MIOpen version -> what its tree is made of."""
    table = tomllib.loads(PINS.read_text())

    def packages(section: dict[str, dict[str, str]]) -> tuple[Package, ...]:
        return tuple(Package(name, **pin) for name, pin in sorted(section.items()))

    return {
        version: Pins(
            packages(table["common"] | tree["packages"]), tree["sonames"], tree.get("preload", "")
        )
        for version, tree in table["tree"].items()
    }


def fetch(packages: tuple[Package, ...], cache: Path) -> list[Path]:
    """Returns the .deb files of ``packages``, downloading those that ``cache`` lacks.

    Raises:
        EmulatorUnavailableError: No apt, no keyring, or the archive can't be reached.
        EmulatorError: The archive no longer has a pinned version, or a checksum differs.
    """
    cache.mkdir(parents=True, exist_ok=True)
    missing = [package for package in packages if not _is_intact(cache, package)]
    if missing:
        _download(missing, cache)
    return [_path(cache, package) for package in packages]


def current_versions(packages: tuple[Package, ...]) -> list[Package]:
    """Returns the same packages as the archive has them now, with their checksums."""
    with tempfile.TemporaryDirectory() as folder:
        return _Apt(Path(folder)).newest(list(packages))


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


def _download(packages: list[Package], cache: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        apt = _Apt(Path(folder))
        available = apt.versions(packages)
        gone = [package for package in packages if package.version not in available[package.name]]
        if gone and not (any_version_accepted() and all(available.values())):
            raise EmulatorError(
                f"pinned in {PINS.name}, but no longer in the archive:"
                + "".join(
                    f"\n  {package.name}: expected {package.version}, "
                    f"found {', '.join(available[package.name]) or 'none'}"
                    for package in gone
                )
                + "\nLook at what changed and take over the output of `python -m "
                f"hipdnn_miopen_emulator pins`, or set {ANY_VERSION_VARIABLE}=1 to run with what "
                "the archive has."
            )
        versions = {package.name: package.version for package in packages}
        versions |= {newest.name: newest.version for newest in (apt.newest(gone) if gone else [])}
        files = apt.download(versions)
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


class _Apt:
    """apt-get and apt-cache over a private state folder, updated once."""

    def __init__(self, folder: Path) -> None:
        for tool in ("apt-get", "apt-cache", "dpkg-deb"):
            if shutil.which(tool) is None:
                raise EmulatorUnavailableError(f"{tool} is not installed: not a Debian machine")
        if not KEYRING.exists():
            raise EmulatorUnavailableError(f"{KEYRING} is missing: not a Debian machine")
        self.folder = folder
        self.environment = os.environ | {
            "APT_CONFIG": str(self._write_configuration()),
            "LC_ALL": "C.UTF-8",
        }
        updated = self._run("apt-get", "-o", "APT::Update::Error-Mode=any", "update", check=False)
        if updated.returncode:
            reason = re.findall(r"^E: (.*)$", updated.stderr, re.MULTILINE) or [
                updated.stderr.strip()
            ]
            raise EmulatorUnavailableError(f"the package archive can't be reached: {reason[0]}")

    def _write_configuration(self) -> Path:
        for name in ("state/lists/partial", "cache/archives/partial", "log", "none"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "state/status").touch()
        archive = _archive_of_the_host()
        (self.folder / "sources.list").write_text(
            "".join(
                f"deb [signed-by={KEYRING} arch=amd64] {archive} {suite} main\n"
                for suite in ("sid", "experimental")
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

    def versions(self, packages: list[Package]) -> dict[str, list[str]]:
        """Versions that the archive has of each package, newest first."""
        found: dict[str, list[str]] = {package.name: [] for package in packages}
        for line in self._run("apt-cache", "madison", *found).stdout.splitlines():
            name, version, source = (part.strip() for part in line.split("|"))
            if source.endswith("Packages"):
                found[name].append(version)
        return found

    def newest(self, packages: list[Package]) -> list[Package]:
        """What each package's suite has now, with the checksums that the package index gives."""
        names = [f"{package.name}/{package.suite}" for package in packages]
        records = self._run("apt-cache", "show", *names).stdout.split("\n\n")
        fields = [
            dict(re.findall(r"^(Package|Version|SHA256): (\S+)$", record, re.MULTILINE))
            for record in records
            if record.strip()
        ]
        suites = {package.name: package.suite for package in packages}
        return [
            Package(f["Package"], suites[f["Package"]], f["Version"], f["SHA256"]) for f in fields
        ]

    def download(self, versions: dict[str, str]) -> dict[str, Path]:
        """Downloads packages into the private folder; apt checks them against the signed index."""
        self._run("apt-get", "download", *(f"{name}={v}" for name, v in versions.items()))
        return {path.name.partition("_")[0]: path for path in self.folder.glob("*.deb")}


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
