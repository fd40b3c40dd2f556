"""The `hipdnn` command, and what commands that other packages contribute to it are made of.

`contributed` says how to contribute one. A command asks for a graph by `GraphArgument`, for JSON by
`JsonOption`, ends its help by `epilog`, and hands `publish` (about no graph) or `publish_each` (for
each graph of a GRAPH argument) a function that makes a `Report`: the same facts as a JSON document
and as a view for people. Views are made of rich's renderables; `table`, `facts`, `note` and
`size_text` make them look like the core's.
"""

from .app import GraphArgument, JsonOption, epilog
from .entry import main
from .output import Report, publish, publish_each
from .tables import facts, note, table
from .text import size_text

__all__ = [
    "GraphArgument",
    "JsonOption",
    "Report",
    "epilog",
    "facts",
    "main",
    "note",
    "publish",
    "publish_each",
    "size_text",
    "table",
]
