"""Whether this process can use MIOpen, and if not, exactly what is missing."""

from __future__ import annotations

from pathlib import Path

from hipdnn_miopen_provider.native import hip, library
from hipdnn_miopen_provider.native.errors import NativeError


def unavailable_reason() -> str | None:
    """What is missing, or None if MIOpen can be used.

    Checked in this order: hip-python, libamdhip64, a device, libMIOpen, and that libMIOpen uses the
    same copy of the HIP runtime as hip-python (memory of one is nothing to the other). Loads the
    libraries, creates nothing on the device. Not remembered: ask again after the cause is gone.
    """
    try:
        if hip.device_count() == 0:
            return f"no device: HIP {hip.runtime_version()} sees no AMD GPU"
        library.load()
    except NativeError as error:
        return str(error)
    runtimes = _loaded_hip_runtimes()
    if len(runtimes) > 1:
        return (
            "two copies of the HIP runtime are loaded, one by hip-python and one by "
            f"libMIOpen ({library.load().path}): {', '.join(sorted(runtimes))}. Set ROCM_PATH or "
            f"{library.LIBRARY_VARIABLE} so that both come from one installation"
        )
    return None


def _loaded_hip_runtimes() -> set[str]:
    """Files of libamdhip64 mapped into this process."""
    maps = Path("/proc/self/maps")
    if not maps.exists():  # not Linux
        return set()
    mapped = (line.split(maxsplit=5) for line in maps.read_text().splitlines())
    return {
        fields[5]
        for fields in mapped
        if len(fields) == 6 and Path(fields[5]).name.startswith("libamdhip64.so")
    }
