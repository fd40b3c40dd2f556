"""What can go wrong below the engines: the libraries are not there, or one of them said no."""

from __future__ import annotations

from hipdnn_registry import ExecutionError


class NativeError(ExecutionError):
    """Base of all errors of the native layer; one of the registry's own errors."""


class NativeUnavailableError(NativeError):
    """hip-python, libamdhip64, libMIOpen or a device is missing; the text says which and why."""


class MissingSymbolError(NativeError):
    """The loaded libMIOpen does not export an optional call."""


class ClosedError(NativeError):
    """An owned object (handle, descriptor, buffer, ...) was used after it had been closed."""


class HipError(NativeError):
    """A HIP call failed.

    Attributes:
        call: Name of the HIP function.
        code: ``hipError_t`` as a number.
        name: HIP's name of it, such as ``hipErrorOutOfMemory``.
    """

    def __init__(self, call: str, code: int, name: str, text: str) -> None:
        super().__init__(f"{call}: {name} ({code}): {text}")
        self.call = call
        self.code = code
        self.name = name


class MiopenError(NativeError):
    """A MIOpen call returned a status other than success.

    Attributes:
        call: Name of the MIOpen function.
        status: ``miopenStatus_t`` as a number.
        name: MIOpen's name of it, such as ``miopenStatusBadParm``.
    """

    def __init__(self, call: str, status: int, name: str, text: str) -> None:
        explanation = "" if text in {"", name} else f": {text}"
        super().__init__(f"{call}: {name} ({status}){explanation}; MIOPEN_LOG_LEVEL=5 tells more")
        self.call = call
        self.status = status
        self.name = name
