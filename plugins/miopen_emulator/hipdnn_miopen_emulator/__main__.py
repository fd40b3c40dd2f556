"""`python -m hipdnn_miopen_emulator ...` is `hipdnn emulator ...`."""

from __future__ import annotations

import sys

from hipdnn_registry.cli import main

if __name__ == "__main__":
    sys.exit(main(["emulator", *sys.argv[1:]]))
