"""CUDA C++ kernels, from a file to a launch.

Each operation declares its `Program` in its own module. A declaration is cheap: a program is loaded at its first use
on a device, and compiled if `_binaries` has no binary of it. `declared` lists the programs, so that tests can compile
all of them without a GPU.

Threads compile several programs in parallel (`prepare`): the compiler releases Python's global interpreter lock.
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

from gpuops._binaries import Text, binary

GPUOPS = Path(__file__).parent

Arguments = tuple[Any, ...] | dict[str, Any]

_declared: list[Program] = []


def declared(folder: Path = GPUOPS) -> list[Program]:
    """Return the programs of `folder` that the modules imported so far have declared, without their variants."""
    return [program for program in _declared if program.folder == folder]


@dataclass(frozen=True, eq=False)
class Program:
    """One file of kernels, compiled with one set of macros.

    Attributes
    ----------
    file : str
        Path of the file in `folder`.
    entries : tuple of str
        The `__global__` functions that may be launched.
    macros : tuple of str
        Macros in the form "NAME=value".
    threads : int
        Threads of a block, also the macro THREADS; 0: entries differ, and every launch passes its number of threads.
    blocks : int
        Blocks that run on a multiprocessor at once, also the macro BLOCKS; 0: the file leaves it to the compiler.
    shared : int
        Bytes of shared memory that a launch asks for, `extern __shared__` in the file.
    architecture : str
        The only architecture that the file is for, such as "sm_90a"; "": any.
    folder : Path
    listed : bool
        Whether `declared` returns this program.
    """

    file: str
    entries: tuple[str, ...]
    macros: tuple[str, ...] = ()
    threads: int = 0
    blocks: int = 0
    shared: int = 0
    architecture: str = ""
    folder: Path = GPUOPS
    listed: bool = True

    def __post_init__(self) -> None:
        if self.listed:
            _declared.append(self)

    def variant(self, *, threads: int | None = None, **macros: Any) -> Program:
        """Return the same program with another number of threads or other macro values, for tests; not listed."""
        if unknown := macros.keys() - self._macro_values:
            raise KeyError(f"{self.file} is declared without {', '.join(sorted(unknown))}")
        text = tuple(f"{name}={value}" for name, value in (self._macro_values | macros).items())
        return replace(self, macros=text, threads=threads or self.threads, listed=False)

    def macro(self, name: str) -> str:
        """Return the value of a macro."""
        return self._macro_values[name]

    @functools.cached_property
    def _macro_values(self) -> dict[str, str]:
        """The values of the macros."""
        return dict(macro.split("=") for macro in self.macros)

    @property
    def options(self) -> tuple[str, ...]:
        shape = {"THREADS": self.threads, "BLOCKS": self.blocks}
        macros = (*self.macros, *(f"{name}={count}" for name, count in shape.items() if count))
        return ("--std=c++17", *(f"-D{macro}" for macro in macros))

    def source(self) -> str:
        return _inline(self.folder / self.file, set())

    def text(self) -> Text:
        """Return all that the program's binary depends on."""
        return Text(Path(self.file).name, self.source(), self.options, self.architecture)

    def runs_on(self, device: int) -> bool:
        """Return whether the program runs on the GPU with the number `device`."""
        return self.architecture in ("", _architecture(device))

    def function(self, entry: str) -> Any:
        """Return the `__global__` function `entry` on the current device, a `cupy.RawKernel`."""
        import cupy

        return _function(self, entry, cupy.cuda.Device().id)

    def kernel(self, entry: str) -> Any:
        """Return `entry` as CuPy launches it on the current device: a `RawKernel` looks it up at every launch."""
        import cupy

        return _kernel(self, entry, cupy.cuda.Device().id)

    def prepare(self) -> Future[Any]:
        """Start compiling for the current device, unless that has been started; a launch waits until it is done."""
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
        """Launch `entry` on the current device in blocks of `threads` threads (default: the program's `threads`).

        Arguments are arrays and NumPy scalars in the order of the kernel's parameters. For long parameter lists, pass a
        dictionary in the same order, whose keys are the names of the parameters.
        """
        threads = self.threads if threads is None else threads
        self.kernel(entry)(_shape(blocks), _shape(threads), _values(arguments), self.shared)

    def launch_cooperative(self, entry: str, arguments: Arguments, *, most: int | None = None) -> None:
        """Launch `entry`, whose blocks wait for each other, on the whole of the current device, or in `most` blocks.

        All blocks of the launch have to run at once: the program's `blocks` on every multiprocessor. A cooperative
        launch whose blocks do not fit on the device fails, instead of waiting forever.
        """
        import cupy

        grid, block, kernel = _cooperative(self, entry, most, cupy.cuda.Device().id)
        kernel(grid, block, _values(arguments), enable_cooperative_groups=True)


_C_TYPES = {
    **{"bool": np.bool_, "float": np.float32, "double": np.float64, "int": np.int32, "unsigned": np.uint32},
    **{"long long": np.int64, "unsigned long long": np.uint64},
}


def struct(file: str, name: str, *, folder: Path = GPUOPS, **types: Any) -> np.dtype:
    """Return a struct of a file of kernels as a dtype of the same layout, so that only the file declares the struct.

    `types` are dtypes for the types that the file itself defines, such as ``Value=np.float32``.
    """
    found = re.search(rf"^struct {name} {{(.*?)^}};", (folder / file).read_text(), re.S | re.M)
    if found is None:
        raise KeyError(f"{file} declares no struct {name}")
    fields: list[Any] = []
    for statement in re.sub(r"//.*", "", found[1]).replace("*", " *").split(";")[:-1]:
        kind, members = re.findall(r"(?:const )?((?:unsigned )?long long|\w+)\s+(.+)", statement.strip())[0]
        for star, field, count in re.findall(r"(\*?)\s*(\w+)(?:\[(\d+)\])?", members):
            dtype = np.uint64 if star else (_C_TYPES | types)[kind]
            fields.append((field, dtype, (int(count),) if count else ()))
    return np.dtype(fields, align=True)


@functools.cache
def multiprocessors(device: int) -> int:
    """Return the number of multiprocessors of the GPU with the number `device`."""
    import cupy

    return int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])


@functools.cache
def shared_of_block(device: int) -> int:
    """Return the bytes of shared memory that a block may ask for on the GPU with the number `device`."""
    import cupy

    return int(cupy.cuda.Device(device).attributes["MaxSharedMemoryPerBlockOptin"])


@functools.cache
def _architecture(device: int) -> str:
    """Return the architecture of the GPU with the number `device`, the one whose programs run on no other."""
    import cupy

    return f"sm_{cupy.cuda.Device(device).compute_capability}a"


class Told:
    """Words of 8 bytes in pinned host memory, to which a kernel writes; the kernel's argument is `address`.

    `read` waits for the current stream and needs no copy from the device. Keep the object alive until then.
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
    return grid, (program.threads,), _kernel(program, entry, device)


@functools.cache
def _kernel(program: Program, entry: str, device: int) -> Any:
    return _function(program, entry, device).kernel


@functools.cache
def _function(program: Program, entry: str, device: int) -> Any:
    if entry not in program.entries:
        raise KeyError(f"{program.file} is declared without the entry {entry}; add it, so that tests compile it")
    function = _module(program, device).get_function(entry)
    if program.shared:
        function.max_dynamic_shared_size_bytes = program.shared
    return function


_modules: dict[tuple[Program, int], Future[Any]] = {}
_lock = threading.Lock()


def prepare(programs: Iterable[Program]) -> None:
    """Compile several programs in parallel for the current device; raise the compiler's error of the first failure."""
    for compiling in [program.prepare() for program in programs]:
        compiling.result()


def _module(program: Program, device: int) -> Any:
    try:
        return _begun(program, device).result()
    except Exception:
        with _lock:
            _modules.pop((program, device), None)  # the next call tries again: the fault may have been the disk's
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
        module = _raw_module(program)
        module.get_function(program.entries[0])  # CuPy loads only at this call
    return module


def _raw_module(program: Program) -> Any:
    import cupy

    return cupy.RawModule(path=str(binary(program.text(), cupy.cuda.Device().compute_capability)))


def _inline(path: Path, seen: set[Path]) -> str:
    """Return the text of `path` with each header, once, in place of its `#include "..."` line.

    A binary is found by the text of the source. If the source only named its headers, the old binary would go on being
    used after a header was edited. `#line` keeps compiler messages at the file and line
    where the text was written.
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
        elif line != "#pragma once":  # the compiler warns about it outside a header
            lines.append(line)
        else:
            lines.append("")
    return "\n".join(lines) + "\n"
