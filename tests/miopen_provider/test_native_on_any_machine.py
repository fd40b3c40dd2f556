"""Installing the provider on a machine without ROCm harms nothing."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import hipdnn_miopen_provider.native as native
assert not {"rocm", "hip"} & set(sys.modules), "importing it imported hip-python"
reason = native.unavailable_reason()
assert reason is None or any(
    word in reason for word in ("hip-python", "libamdhip64", "no device", "libMIOpen")
), reason
print("fine")
"""


def test_importing_is_harmless_and_the_reason_is_exact() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.stdout == "fine\n", done.stderr
