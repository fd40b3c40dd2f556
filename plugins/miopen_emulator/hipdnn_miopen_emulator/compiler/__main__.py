"""python -m hipdnn_miopen_emulator.compiler REQUEST compiles one kernel program.

REQUEST is a folder that a stand-in filled (see ``request.py``); the code object goes to
``kernel.so`` in it, messages to standard output. A tree's ``bin/compile-kernel`` is this command.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hipdnn_miopen_emulator.compiler import hip, opencl
from hipdnn_miopen_emulator.compiler.request import Request
from hipdnn_miopen_emulator.compiler.toolchain import CompileError, Toolchain


def main(folder: str) -> int:
    """Compiles one request; returns the exit status."""
    try:
        request = Request.read(Path(folder))
        toolchain = Toolchain.prepare(request.tree, request.machine)
        languages = {"hip": hip.compile_program, "opencl": opencl.compile_program}
        toolchain.link(languages[request.language](request, toolchain), request.code_object)
    except CompileError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
