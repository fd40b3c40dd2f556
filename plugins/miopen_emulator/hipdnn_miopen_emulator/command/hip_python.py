"""hip-python, by which Python programs reach HIP: an extra that nothing here brings along."""

from __future__ import annotations

from importlib import metadata, util

from hipdnn_miopen_emulator.pythons import this_interpreter

_DISTRIBUTIONS = ("hip-python", "rocm-bindings-hip")  # since 7.14 the first brings the second


def hip_python_version() -> str | None:
    """Return the version that this Python has; `None` where it has none. Imports nothing of it."""
    for name in _DISTRIBUTIONS:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def install_command() -> str:
    """Return what installs it for this Python, as typed in a shell."""
    own = this_interpreter()
    python = own.prefix / "bin/python" if own.virtual else own.base
    return f"{python} -m pip install hip-python"


def provider_lacks_it() -> bool:
    """Whether hipdnn-miopen-provider is installed here, but hip-python is not."""
    return util.find_spec("hipdnn_miopen_provider") is not None and hip_python_version() is None
