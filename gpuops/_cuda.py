"""CUDA C++ kernels: from a file to a launch. The only place that compiles.

A `Program` is declared beside the operation that launches it, and declaring costs nothing: it is compiled at first
use on a device, and CuPy keeps the binary on disk. `declared` lists the programs, so that tests compile all that
operations run, without a GPU.

Programs are compiled by threads, side by side where several are asked for (`Program.prepare`): the compiler works
without Python's lock.
"""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

GPUOPS = Path(__file__).parent

Arguments = tuple[Any, ...] | dict[str, Any]

_declared: list[Program] = []


def declared(folder: Path = GPUOPS) -> list[Program]:
    """The programs of the modules imported so far whose files lie in `folder`; not their variants."""
    return [program for program in _declared if program.folder == folder]


@dataclass(frozen=True, eq=False)
class Program:
    """One file of kernels, compiled with one set of macros.

    Attributes
    ----------
    file : str
        Its path in `folder`.
    entries : tuple of str
        The `__global__` functions that may be launched.
    macros : tuple of str
        As in "NAME=value".
    threads : int
        Of a block, also the macro THREADS; 0 where entries differ, and each launch says how many.
    blocks : int
        That run on a multiprocessor at a time, also the macro BLOCKS; 0 where the file leaves it to the compiler.
    folder : Path
    listed : bool
        Is it one of those that `declared` returns?
    """

    file: str
    entries: tuple[str, ...]
    macros: tuple[str, ...] = ()
    threads: int = 0
    blocks: int = 0
    folder: Path = GPUOPS
    listed: bool = True

    def __post_init__(self) -> None:
        if self.listed:
            _declared.append(self)

    def variant(self, *, threads: int | None = None, **macros: Any) -> Program:
        """The same file with other numbers of threads or values of macros, for tests; it is not listed."""
        values = dict(macro.split("=") for macro in self.macros)
        if unknown := macros.keys() - values:
            raise KeyError(f"{self.file} is declared without {', '.join(sorted(unknown))}")
        text = tuple(f"{name}={value}" for name, value in (values | macros).items())
        return replace(self, macros=text, threads=threads or self.threads, listed=False)

    @property
    def options(self) -> tuple[str, ...]:
        shape = {"THREADS": self.threads, "BLOCKS": self.blocks}
        macros = (*self.macros, *(f"{name}={count}" for name, count in shape.items() if count))
        return ("--std=c++17", *(f"-D{macro}" for macro in macros))

    def source(self) -> str:
        return _inline(self.folder / self.file, set())

    def function(self, entry: str) -> Any:
        """The `__global__` function `entry` on the current device, a `cupy.RawKernel`."""
        import cupy

        return _function(self, entry, cupy.cuda.Device().id)

    def prepare(self) -> Future[Any]:
        """Begin to compile for the current device, if nobody has; a launch waits for the end of it."""
        import cupy

        return _begun(self, cupy.cuda.Device().id)

    def launch(
        self,
        entry: str,
        blocks: int | tuple[int, ...],
        arguments: Arguments,
        *,
        threads: int | tuple[int, ...] | None = None,
    ) -> None:
        """Launch `entry` on the current device; blocks of `threads`, by default the program's.

        Arguments are arrays and NumPy scalars in the order of the kernel's parameters; where there are many, a
        dictionary, whose keys are the names of the parameters in that order.
        """
        threads = self.threads if threads is None else threads
        self.function(entry)(_shape(blocks), _shape(threads), _values(arguments))

    def launch_cooperative(self, entry: str, arguments: Arguments, *, most: int | None = None) -> None:
        """Launch `entry`, whose blocks wait for each other, on the whole of the current device, or in `most` blocks.

        All of them have to be there at once: the program's `blocks` on every multiprocessor. A cooperative launch
        fails where they do not fit, instead of waiting forever.
        """
        import cupy

        grid, block, kernel = _cooperative(self, entry, most, cupy.cuda.Device().id)
        kernel(grid, block, _values(arguments), enable_cooperative_groups=True)


@functools.cache
def multiprocessors(device: int) -> int:
    """How many there are on the device of that number."""
    import cupy

    return int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])


class Told:
    """Words in the memory of the host, to which kernels store; they are given `address`.

    To read the words waits for the current stream and needs no copy. This object has to live until then.
    """

    def __init__(self, words: int):
        import cupy

        self._memory = cupy.cuda.alloc_pinned_memory(8 * words)
        self._words = words
        self.address = np.uint64(self._memory.ptr)

    def read(self) -> list[int]:
        import cupy

        cupy.cuda.get_current_stream().synchronize()
        return np.frombuffer(self._memory, np.uint64, self._words).tolist()


def _values(arguments: Arguments) -> tuple[Any, ...]:
    return tuple(arguments.values()) if isinstance(arguments, dict) else arguments


def _shape(size: int | tuple[int, ...]) -> tuple[int, ...]:
    return size if isinstance(size, tuple) else (size,)


@functools.cache
def _cooperative(program: Program, entry: str, most: int | None, device: int) -> tuple[Any, ...]:
    fit = program.blocks * multiprocessors(device)
    grid = (fit if most is None else min(fit, most),)
    return grid, (program.threads,), _function(program, entry, device).kernel


@functools.cache
def _function(program: Program, entry: str, device: int) -> Any:
    if entry not in program.entries:
        raise KeyError(f"{program.file} is declared without the entry {entry}; add it, so that tests compile it")
    return _module(program, device).get_function(entry)


_modules: dict[tuple[Program, int], Future[Any]] = {}
_lock = threading.Lock()


def prepare(programs: Iterable[Program]) -> None:
    """Compile programs for the current device, side by side; raises what the compiler says of the first that fails."""
    for compiling in [program.prepare() for program in programs]:
        compiling.result()


def _module(program: Program, device: int) -> Any:
    try:
        return _begun(program, device).result()
    except Exception:
        with _lock:
            _modules.pop((program, device), None)  # it may have been the disk
        raise


def _begun(program: Program, device: int) -> Future[Any]:
    with _lock:
        if (program, device) not in _modules:
            _modules[program, device] = _compiling_threads().submit(_compile, program, device)
        return _modules[program, device]


@functools.cache
def _compiling_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="nvrtc")


def _compile(program: Program, device: int) -> Any:
    import cupy

    with cupy.cuda.Device(device):
        module = cupy.RawModule(code=program.source(), options=program.options)
        module.get_function(program.entries[0])  # CuPy compiles when a function is asked for
    return module


def _inline(path: Path, seen: set[Path]) -> str:
    """The text of `path` with its headers in place of their `#include "..."` lines, each once.

    CuPy looks for a compiled kernel under the text of its source, in which an included file would not show: an
    edited header would change nothing. `#line` keeps compiler messages at the place where the text was written.
    """
    lines = [f'#line 1 "{path.name}"']
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        include = re.fullmatch(r'#include "(.+)"', line)
        if include:
            header = (path.parent / include[1]).resolve()
            if header not in seen:
                seen.add(header)
                lines.append(_inline(header, seen))
            lines.append(f'#line {number + 1} "{path.name}"')
        elif line != "#pragma once":  # a warning outside of a header
            lines.append(line)
        else:
            lines.append("")
    return "\n".join(lines) + "\n"
