"""`hipdnn emulator`: builds the emulator, starts commands under it, says what there is."""

from .app import app

__all__ = ["app"]
