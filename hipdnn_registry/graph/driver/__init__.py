"""MIOpenDriver command lines, read as operation graphs."""

from .graphs import graph_from_driver_command

__all__ = ["graph_from_driver_command"]
