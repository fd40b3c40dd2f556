"""`hipdnn perf-db`: reads MIOpen's user databases, and never writes them."""

from .app import app

__all__ = ["app"]
