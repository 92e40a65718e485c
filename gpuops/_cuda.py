"""CUDA C++ kernels: from a file to a function that can be launched. The only place that compiles.

A `Program` is declared beside the operation that launches it, and declaring costs nothing: it is compiled at first
use on a device, and CuPy keeps the binary on disk. `PROGRAMS` lists those of the operations, so that the tests compile
what these run, without a GPU.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GPUOPS = Path(__file__).parent

PROGRAMS: list[Program] = []


@dataclass(frozen=True)
class Program:
    """One file, by its path in gpuops or in another folder, compiled with one set of macros."""

    file: str
    entries: tuple[str, ...]
    macros: tuple[str, ...] = ()
    folder: Path = GPUOPS

    def __post_init__(self) -> None:
        if self.folder == GPUOPS:
            PROGRAMS.append(self)

    @property
    def options(self) -> tuple[str, ...]:
        return ("--std=c++17", *(f"-D{macro}" for macro in self.macros))

    def source(self) -> str:
        return _inline(self.folder / self.file)

    def function(self, entry: str) -> Any:
        """The `__global__` function `entry` on the current device, a `cupy.RawKernel`."""
        import cupy

        if entry not in self.entries:
            raise KeyError(f"{self.file} is declared without the entry {entry}; add it, so that tests compile it")
        return _module(self, cupy.cuda.Device().id).get_function(entry)


@functools.cache
def _module(program: Program, device: int) -> Any:
    import cupy

    return cupy.RawModule(code=program.source(), options=program.options)


def _inline(path: Path) -> str:
    """The text of `path` with its headers in place of their `#include "..."` lines.

    CuPy looks for a compiled kernel under the text of its source, in which an included file would not show: an
    edited header would change nothing. `#line` keeps compiler messages at the place where the text was written.
    """
    lines = [f'#line 1 "{path.name}"']
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        header = re.fullmatch(r'#include "(.+)"', line)
        if header:
            lines += [_inline(path.parent / header[1]), f'#line {number + 1} "{path.name}"']
        elif line != "#pragma once":  # a warning outside of a header
            lines.append(line)
        else:
            lines.append("")
    return "\n".join(lines) + "\n"
