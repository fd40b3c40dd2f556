"""`python -m hipdnn_registry` is the `hipdnn` command."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
