"""Finding, loading and calling libMIOpen.

Searched in this order, first hit wins:

1. the file that ``HIPDNN_MIOPEN_LIBRARY`` names. If it is set nothing else is tried: a typo must
   not end in some other library being used.
2. the ROCm installation that hip-python resolves: the ``rocm_sdk`` wheels, then ``ROCM_PATH``,
   ``ROCM_HOME`` or ``/opt/rocm``. So HIP and MIOpen come from one installation.
3. the dynamic loader: ``libMIOpen.so.1``, then ``libMIOpen.so``.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hipdnn_miopen_provider.native.enums import Status
from hipdnn_miopen_provider.native.errors import (
    MiopenError,
    MissingSymbolError,
    NativeUnavailableError,
)
from hipdnn_miopen_provider.native.prototypes import OPTIONAL, PROTOTYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARY_VARIABLE = "HIPDNN_MIOPEN_LIBRARY"
_SONAMES = ("libMIOpen.so.1", "libMIOpen.so")


@dataclass(frozen=True)
class Candidate:
    """A place to look: a file name for the loader, and what led to it."""

    path: str
    source: str


def candidates() -> Iterator[Candidate]:
    """The places to look for libMIOpen, in order."""
    if override := os.environ.get(LIBRARY_VARIABLE):
        yield Candidate(override, LIBRARY_VARIABLE)
        return
    if path := _in_rocm_sdk():
        yield Candidate(path, "rocm_sdk")
    for variable in ("ROCM_PATH", "ROCM_HOME", None):
        root = os.environ.get(variable) if variable else "/opt/rocm"
        if root:
            for name in _SONAMES:
                yield Candidate(str(Path(root) / "lib" / name), variable or "ROCm's default folder")
            break  # as hip-python: the first that is set, not the first that has the library
    for name in _SONAMES:
        yield Candidate(name, "dynamic loader")


def _in_rocm_sdk() -> str | None:
    """LibMIOpen of the rocm-sdk wheels, if they are installed."""
    try:
        rocm_sdk = importlib.import_module("rocm_sdk")
    except ImportError:
        return None
    try:
        found = rocm_sdk.find_libraries("miopen")
    except Exception:  # its own error type, for a wheel without MIOpen
        return None
    return str(found[0]) if found else None


class MiopenLibrary:
    """A loaded libMIOpen. ``load()`` gives the process's one.

    Attributes:
        path: The file that was loaded.
        source: What led to it: a variable's name, ``rocm_sdk`` or the loader.
        version: Major, minor and patch.
    """

    def __init__(self, library: ctypes.CDLL, name: str, source: str) -> None:
        self.source = source
        self._library = library
        self._functions: dict[str, Any] = {}
        self._unchecked: dict[str, Any] = {}
        missing = []
        for symbol, arguments in PROTOTYPES.items():
            try:
                function = getattr(library, symbol)
            except AttributeError:
                if symbol not in OPTIONAL:
                    missing.append(symbol)
                continue
            function.argtypes = arguments
            function.restype = ctypes.c_int
            self._functions[symbol] = function
        if missing:
            raise NativeUnavailableError(
                f"{name} is not a usable libMIOpen: it lacks {', '.join(missing)}"
            )
        self._error_string = library.miopenGetErrorString
        self.path = _path_of(self._error_string) or name
        self._error_string.argtypes = (ctypes.c_int,)
        self._error_string.restype = ctypes.c_char_p
        self.version = self._read_version()

    def _read_version(self) -> tuple[int, int, int]:
        parts = [ctypes.c_size_t() for _ in range(3)]
        self.call("miopenGetVersion", *(ctypes.byref(part) for part in parts))
        major, minor, patch = (part.value for part in parts)
        return major, minor, patch

    def exports(self, name: str) -> bool:
        """Whether the library has a call of ``PROTOTYPES``."""
        return name in self._functions

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function and checks its status. The GIL is released meanwhile.

        Raises:
            MissingSymbolError: This libMIOpen doesn't export it.
            MiopenError: It returned a status other than success.
        """
        function = self._functions.get(name)
        if function is None:
            raise self._missing(name)
        status = function(*arguments)
        if status:
            self.fail(name, status)

    def unchecked(self, name: str) -> Any:
        """The ctypes function of a call, which returns the status, without its prototype.

        Its arguments have to be what the prototype's types make of them.

        Raises:
            MissingSymbolError: This libMIOpen doesn't export it.
        """
        self.require(name)
        function = self._unchecked.get(name)
        if function is None:
            function = self._library[name]  # by item: a new object, without the prototype
            function.restype = ctypes.c_int
            self._unchecked[name] = function
        return function

    def fail(self, name: str, status: int) -> NoReturn:
        """Raises MiopenError with MIOpen's own name and text of a status."""
        raise MiopenError(name, status, *self.describe(status))

    def describe(self, status: int) -> tuple[str, str]:
        """MIOpen's name of a status and its text for it."""
        text = (self._error_string(status) or b"").decode(errors="replace")
        try:
            return f"miopenStatus{Status(status).name}", text
        except ValueError:
            return "unknown miopenStatus", text

    def _missing(self, name: str) -> MissingSymbolError:
        version = ".".join(map(str, self.version))
        return MissingSymbolError(f"libMIOpen {version} ({self.path}) does not export {name}")

    def require(self, name: str) -> None:
        """Raises MissingSymbolError unless the library has a call."""
        if not self.exports(name):
            raise self._missing(name)


_loaded: MiopenLibrary | None = None
_lock = threading.Lock()


def load() -> MiopenLibrary:
    """Returns libMIOpen, loading it at the first call. A failure is not remembered.

    Raises:
        NativeUnavailableError: No candidate could be loaded; the text has each with its reason.
    """
    global _loaded  # noqa: PLW0603  # one library a process, like the loader's own table
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load_first()
    return _loaded


def _load_first() -> MiopenLibrary:
    failures = []
    for candidate in candidates():
        try:
            library = ctypes.CDLL(candidate.path)
        except OSError as error:
            failures.append(f"{candidate.path} ({candidate.source}): {error}")
            continue
        return MiopenLibrary(library, candidate.path, candidate.source)
    raise NativeUnavailableError("libMIOpen can't be loaded; tried " + "; ".join(failures))


def _path_of(function: Any) -> str | None:
    """The file that a function was loaded from, as the loader sees it."""

    class DlInfo(ctypes.Structure):
        _fields_ = (
            ("file", ctypes.c_char_p),
            ("base", ctypes.c_void_p),
            ("symbol", ctypes.c_char_p),
            ("address", ctypes.c_void_p),
        )

    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = (ctypes.c_void_p, ctypes.POINTER(DlInfo))
    info = DlInfo()
    known = dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(info))
    return os.fsdecode(info.file) if known and info.file else None
