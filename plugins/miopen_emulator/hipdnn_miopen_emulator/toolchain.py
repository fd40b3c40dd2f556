"""The compiler: clang and lld with all that they need, so that the host's own plays no part.

A toolchain is a folder of unpacked Debian packages, shared by all trees. Its programs are started
by its own C library's loader, so they run on distributions older and newer than the one they were
built for; they compile and link against its own headers and libraries. `bin` has scripts that start
them: `clang-19`, `clang++-19` and `ld.lld`.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from . import archive
from .cache import LOADER, assembled, unpack
from .pins import toolchain_pins

if TYPE_CHECKING:
    from .steps import Steps

OPENBLAS = (
    "usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
    "usr/lib/x86_64-linux-gnu/libgfortran.so.5",
    "usr/lib/x86_64-linux-gnu/libquadmath.so.0",
)
"""What a tree takes over for its rocBLAS."""

_CONFIGURATION = """\
"--sysroot={root}"
"--gcc-install-dir={root}/usr/lib/gcc/x86_64-linux-gnu/12"
"--ld-path={root}/bin/ld.lld"
-resource-dir "{root}/usr/lib/llvm-19/lib/clang/19"
"""

# clang starts itself by the name it was called with, and then -cc1 has to come first
_CLANG = """\
#!/bin/sh
root="{root}"
case "$1" in
-cc1*) ;;
*) set -- --config="$root/clang.cfg" -no-canonical-prefixes "$@" ;;
esac
exec "$root/{loader}" --argv0 "$root/bin/{name}" --library-path "{libraries}" \\
  "$root/usr/lib/llvm-19/bin/clang" "$@"
"""

_LLD = """\
#!/bin/sh
root="{root}"
exec "$root/{loader}" --argv0 ld.lld --library-path "{libraries}" \\
  "$root/usr/lib/llvm-19/bin/lld" "$@"
"""


def toolchain_folder(cache: Path) -> Path:
    """Return where the toolchain is, or will be; named by a digest of all it is made of."""
    made_of = repr((toolchain_pins(), _CONFIGURATION, _CLANG, _LLD))
    return cache / "toolchains" / hashlib.sha256(made_of.encode()).hexdigest()[:12]


def build_toolchain(cache: Path, steps: Steps) -> Path:
    """Return the toolchain's folder, making it if `cache` lacks it; the cache is locked.

    Raises:
        EmulatorUnavailableError: This machine can't fetch it.
        EmulatorError: A pinned version has gone, or a checksum differs.
    """
    folder = toolchain_folder(cache)
    if not folder.exists():
        debs = archive.fetch(toolchain_pins(), cache / "packages", steps)
        with steps.step("unpack the compiler") as step, assembled(folder) as partial:
            unpack(debs, partial)
            _make_links_relative(partial)
            _write_programs(partial / "bin", folder)
            step.size = archive.size_of([partial])
    return folder


def _make_links_relative(root: Path) -> None:
    """Absolute links, and links to them in linker scripts, would lead to the host's files."""
    for folder, _, names in os.walk(root):
        for path in (Path(folder, name) for name in names):
            if path.is_symlink() and path.readlink().is_absolute():
                target = root / path.readlink().relative_to("/")
                path.unlink()
                path.symlink_to(os.path.relpath(target, folder))


def _write_programs(scripts: Path, root: Path) -> None:
    folders = ("usr/lib/llvm-19/lib", "usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")
    values = {
        "root": root,
        "loader": f"lib/x86_64-linux-gnu/{LOADER}",
        "libraries": ":".join(f"$root/{folder}" for folder in folders),
    }
    scripts.mkdir()
    (scripts.parent / "clang.cfg").write_text(_CONFIGURATION.format(**values))
    for name, text in (("clang-19", _CLANG), ("clang++-19", _CLANG), ("ld.lld", _LLD)):
        script = scripts / name
        script.write_text(text.format(name=name, **values))
        script.chmod(0o755)
