"""One exception tree: everything that this package raises on purpose is a `HipdnnError`.

Two families, told apart because a program reacts to them differently: `InvalidInputError` says
that what the caller handed over is wrong (exit code 2 of the command), everything else says that
the work could not be done (exit code 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "EngineDefectError",
    "ExecutionError",
    "GraphError",
    "GraphFrozenError",
    "HipdnnError",
    "InvalidInputError",
    "KnobError",
    "NoEngineError",
    "ProviderError",
    "ProviderUnavailableError",
    "UnknownEngineError",
    "UnsupportedGraphError",
    "VariantPackError",
    "WorkspaceError",
]


class HipdnnError(Exception):
    """Base of all errors that hipdnn-registry and its providers raise on purpose.

    They travel between processes as they are, whatever their constructors take.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(
    kind: type[HipdnnError], args: tuple[Any, ...], fields: dict[str, Any]
) -> HipdnnError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class InvalidInputError(HipdnnError):
    """The caller's input is wrong; the message names the thing, its value and what is allowed."""


class GraphError(InvalidInputError):
    """A graph, its JSON form or a driver command line breaks a rule.

    Attributes:
        rule: Short stable name of the rule, such as `"tensor.unknown_uid"`.
        node: Name of the node concerned, if one is.
        tensor: `"uid 3 ('w')"`-like label of the tensor concerned, if one is.
    """

    def __init__(
        self,
        message: str,
        *,
        rule: str = "graph",
        node: str | None = None,
        tensor: str | None = None,
    ) -> None:
        self.rule = rule
        self.node = node
        self.tensor = tensor
        message = _shortened(message, 1000)  # it may quote what a stranger's file holds
        node, tensor = (text and _shortened(text, 100) for text in (node, tensor))
        where = ", ".join(
            part for part in (node and f"node '{node}'", tensor and f"tensor {tensor}") if part
        )
        super().__init__(f"{where}: {message} [{rule}]" if where else f"{message} [{rule}]")


class GraphFrozenError(InvalidInputError):
    """A graph that has been validated is being changed."""


class KnobError(InvalidInputError):
    """A knob setting is malformed, unknown (strict only) or violates the knob's constraint."""


class VariantPackError(InvalidInputError):
    """A variant pack does not fit the plan: missing, extra, wrong shape, dtype, stride, overlap."""


class WorkspaceError(InvalidInputError):
    """The workspace handed to a plan is smaller than the plan needs; names both numbers."""


class UnknownEngineError(InvalidInputError):
    """No engine has the name or id that the caller asked for."""


class UnsupportedGraphError(HipdnnError):
    """The engine that the caller asked for declines the graph; the message is its reason."""


class NoEngineError(HipdnnError):
    """No engine serves the graph.

    Attributes:
        reasons: Engine name to the reason it gave, in the order the engines were asked.
        providers: Provider name to the reason why it offers no engines here.
    """

    def __init__(
        self, message: str, reasons: Mapping[str, str], providers: Mapping[str, str]
    ) -> None:
        self.reasons = dict(reasons)
        self.providers = dict(providers)
        super().__init__(message)


class ProviderError(HipdnnError):
    """A provider is broken: it failed to import, to register or breaks the provider contract."""


class ProviderUnavailableError(HipdnnError):
    """A provider is sound but cannot work on this machine: no device, no library.

    Providers raise it from their hook or their constructor; the message is the reason shown.
    """


class EngineDefectError(HipdnnError):
    """An engine raised where the contract forbids it, or answered outside the contract."""


class ExecutionError(HipdnnError):
    """An engine failed while it ran a plan."""


def _shortened(text: str, limit: int) -> str:
    """Return a text with its middle left out where it is too long to be read."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]} ... {text[-limit // 2 :]}"


def text_of(error: BaseException) -> str:
    """Return an exception's text, also where its own code fails to make one."""
    try:
        return str(error)
    except (Exception, SystemExit) as failure:
        return f"(its __str__ fails with {type(failure).__name__})"


def described(error: BaseException) -> str:
    """Return an exception's type and text."""
    return f"{type(error).__name__}: {text_of(error)}"


def near_spellings(word: str, known: Sequence[str]) -> str:
    """Return `"; did you mean 'a' or 'b'?"`, or an empty string when nothing is close."""
    import difflib

    upper = {name.upper(): name for name in known}
    close = [upper[m] for m in difflib.get_close_matches(word.upper(), upper, n=3, cutoff=0.6)]
    return f"; did you mean {' or '.join(repr(name) for name in close)}?" if close else ""
