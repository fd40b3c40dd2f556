"""Small kernels through the calls that MIOpen makes: hiprtc or comgr, then hip."""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

HIP_SUCCESS, HIP_INVALID_IMAGE, HIP_NOT_FOUND = 0, 200, 500
HIP_ILLEGAL_ADDRESS, HIP_LAUNCH_FAILURE = 700, 719
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
COMGR_SOURCE, COMGR_LOG, COMGR_EXECUTABLE = 1, 5, 8
COMGR_CHAIN = (1, 12, 4, 7)
"""The actions by which MIOpen turns an OpenCL source into an executable."""


class CompilationError(Exception):
    """With the program's log."""


@dataclass
class Memory:
    """Device memory of a shape and data type."""

    hip: c.CDLL
    pointer: c.c_void_p
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def read(self) -> Array:
        result = np.empty(self.shape, self.dtype)
        copied = self.hip.hipMemcpy(
            c.c_void_p(result.ctypes.data), self.pointer, c.c_size_t(result.nbytes), DEVICE_TO_HOST
        )
        assert copied == HIP_SUCCESS
        return result

    def free(self) -> int:
        return int(self.hip.hipFree(self.pointer))


class Device:
    """What a process calls below MIOpen."""

    def __init__(self) -> None:
        self.hip = c.CDLL("libamdhip64.so.7")
        self.hiprtc = c.CDLL("libhiprtc.so.7")
        self.comgr = c.CDLL("libamd_comgr.so.3")
        self.module = c.c_void_p()

    def put(self, values: Array) -> Memory:
        values = np.ascontiguousarray(values)
        pointer, size = c.c_void_p(), c.c_size_t(values.nbytes)
        assert self.hip.hipMalloc(c.byref(pointer), size) == HIP_SUCCESS
        source = c.c_void_p(values.ctypes.data)
        assert self.hip.hipMemcpy(pointer, source, size, HOST_TO_DEVICE) == HIP_SUCCESS
        return Memory(self.hip, pointer, values.shape, values.dtype)

    def compile_hip(
        self, source: str, options: Sequence[str] = (), headers: dict[str, str] | None = None
    ) -> bytes:
        """Returns a code object.

        Raises:
            CompilationError: The program doesn't compile.
        """
        rtc, program, headers = self.hiprtc, c.c_void_p(), headers or {}
        texts, names, given = _strings(headers.values()), _strings(headers), _strings(options)
        count = len(headers)
        rtc.hiprtcCreateProgram(c.byref(program), source.encode(), b"k.cpp", count, texts, names)
        status = rtc.hiprtcCompileProgram(program, len(options), given)
        size = c.c_size_t()
        if status:
            rtc.hiprtcGetProgramLogSize(program, c.byref(size))
            log = c.create_string_buffer(size.value)
            rtc.hiprtcGetProgramLog(program, log)
            raise CompilationError(log.value.decode())
        rtc.hiprtcGetCodeSize(program, c.byref(size))
        code = c.create_string_buffer(size.value)
        rtc.hiprtcGetCode(program, code)
        rtc.hiprtcDestroyProgram(c.byref(program))
        return code.raw

    def compile_opencl(self, source: str, options: Sequence[str] = ("-cl-std=CL2.0",)) -> bytes:
        """Returns a code object.

        Raises:
            CompilationError: The program doesn't compile.
        """
        comgr, info = self.comgr, c.c_uint64()
        comgr.amd_comgr_create_action_info(c.byref(info))
        comgr.amd_comgr_action_info_set_option_list(
            info, _strings(options), c.c_size_t(len(options))
        )
        data, given = c.c_uint64(), self._data_set()
        comgr.amd_comgr_create_data(COMGR_SOURCE, c.byref(data))
        comgr.amd_comgr_set_data(data, c.c_size_t(len(source.encode())), source.encode())
        comgr.amd_comgr_set_data_name(data, b"k.cl")
        comgr.amd_comgr_data_set_add(given, data)
        for action in COMGR_CHAIN:
            made = self._data_set()
            if comgr.amd_comgr_do_action(action, info, given, made):
                raise CompilationError(self._content(made, COMGR_LOG).decode())
            given = made
        return self._content(given, COMGR_EXECUTABLE)

    def _data_set(self) -> c.c_uint64:
        made = c.c_uint64()
        self.comgr.amd_comgr_create_data_set(c.byref(made))
        return made

    def _content(self, data_set: c.c_uint64, kind: int) -> bytes:
        data, size = c.c_uint64(), c.c_size_t()
        assert not self.comgr.amd_comgr_action_data_get_data(
            data_set, kind, c.c_size_t(0), c.byref(data)
        )
        self.comgr.amd_comgr_get_data(data, c.byref(size), None)
        content = c.create_string_buffer(size.value)
        self.comgr.amd_comgr_get_data(data, c.byref(size), content)
        return content.raw

    def load(self, code: bytes) -> int:
        """Loads a module, of which ``function`` takes kernels; returns the status."""
        self.module = c.c_void_p()
        return int(self.hip.hipModuleLoadData(c.byref(self.module), code))

    def function(self, name: str) -> tuple[int, c.c_void_p]:
        function = c.c_void_p()
        status = self.hip.hipModuleGetFunction(c.byref(function), self.module, name.encode())
        return int(status), function

    def launch(
        self,
        name: str,
        arguments: Sequence[Any],
        *,
        blocks: Sequence[int] = (1, 1, 1),
        block: Sequence[int] = (64, 1, 1),
        shared: int = 0,
    ) -> int:
        """Launches a kernel of the loaded module; returns the status."""
        status, function = self.function(name)
        assert status == HIP_SUCCESS, name
        values = [a.pointer if isinstance(a, Memory) else a for a in arguments]
        pointers = (c.c_void_p * len(values))(*(c.addressof(value) for value in values))
        return int(
            self.hip.hipModuleLaunchKernel(
                *(function, *blocks, *block, shared, c.c_void_p()), pointers, c.c_void_p()
            )
        )


def _strings(texts: Any) -> c.Array[c.c_char_p]:
    encoded = [text.encode() for text in texts]
    return (c.c_char_p * len(encoded))(*encoded)
