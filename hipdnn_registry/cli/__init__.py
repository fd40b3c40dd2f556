"""The `hipdnn` command."""

from .entry import main

__all__ = ["main"]
