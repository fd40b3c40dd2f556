"""What a stand-in asks the compile driver for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SOURCES = {"hip": "source.hip", "opencl": "source.cl"}


@dataclass(frozen=True)
class Request:
    """One program to compile.

    Attributes:
        folder: Where the request lies; intermediate files go there too.
        tree: The tree that the program will run in.
        language: "hip" or "opencl".
        machine: Instruction set level of the host, as in clang's -march.
        wavefront: Lanes of a wavefront on the imitated device.
        options: MIOpen's compiler options, one string each.
    """

    folder: Path
    tree: Path
    language: str
    machine: str
    wavefront: int
    options: tuple[str, ...]

    @classmethod
    def read(cls, folder: Path) -> Request:
        """Reads the folder that ``write_request`` in src/compilers/kernel_compiler.cpp filled."""
        return cls(
            folder=folder,
            tree=Path((folder / "tree").read_text()),
            language=(folder / "language").read_text(),
            machine=(folder / "machine").read_text(),
            wavefront=int((folder / "wavefront").read_text()),
            options=tuple((folder / "options").read_text().splitlines()),
        )

    @property
    def source(self) -> Path:
        """The program's text."""
        return self.folder / SOURCES[self.language]

    @property
    def include(self) -> Path:
        """Folder of the headers that came with the program."""
        return self.folder / "include"

    @property
    def code_object(self) -> Path:
        """Where the result goes."""
        return self.folder / "kernel.so"

    def portable_options(self) -> list[str]:
        """The options that mean something to a compiler for the host.

        Macros and the language standard; what selects a GPU, its passes or its warnings does not.
        """
        return [option for option in self.options if option.startswith(("-D", "-U", "-cl-std="))]
