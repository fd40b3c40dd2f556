"""One owner per native object: released once, when asked, or at the latest when collected."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from hipdnn_miopen_provider.native.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

Raw = TypeVar("Raw")


class Owned(Generic[Raw]):
    """Owns one native object.

    ``close()`` (or leaving a ``with`` block) releases it; closing twice does nothing. An object
    that is collected without having been closed is released too, with a ResourceWarning, as a
    Python file is: a safety net, not a way to work, since device memory does not make the
    collector run. What is still open when the process ends goes with the process.
    """

    def __init__(self, raw: Raw, release: Callable[[Raw], None]) -> None:
        self._raw: Raw | None = raw
        self._release = release
        self._creator = os.getpid()
        self._unreleased = [raw]

    @property
    def raw(self) -> Raw:
        """The native object, for calls below this layer.

        Raises:
            ClosedError: It has been closed.
        """
        raw = self._raw
        if raw is None:
            raise ClosedError(f"this {type(self).__name__} has been closed")
        return raw

    @property
    def closed(self) -> bool:
        """Whether it has been released."""
        return self._raw is None

    def close(self) -> None:
        """Releases the native object. Any number of threads may call it; one does the work.

        Raises:
            NativeError: The library refused to release it.
        """
        try:
            raw = self._unreleased.pop()  # atomic: one caller gets it
        except IndexError:
            return
        self._raw = None
        self._release(raw)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # no list: what should have been owned was never made
        if not getattr(self, "_unreleased", None) or sys.is_finalizing():
            return
        if os.getpid() != self._creator:  # a forked child must not touch its parent's objects
            return
        try:
            warnings.warn(f"{type(self).__name__} was not closed", ResourceWarning, stacklevel=2)
        finally:  # where warnings are errors the object is released all the same
            self.close()
