"""Binaries of kernels: shipped in a package, kept from an earlier run, or compiled now.

A binary is found by the text of its source and its options. A kernel whose text has changed can therefore never run as
an old binary.

The package of shipped binaries has a folder for each architecture. `scripts/kernels_wheel.py` builds it. A GPU runs the
binaries of its own major version up to its own minor version: one of 8.9 runs those for 8.0.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuops.errors import NoGpuError

OLDEST = "80"  # compute capability of the oldest GPUs: kernels copy by instructions that came with NVIDIA's Ampere

# As CuPy compiles its own kernels: denormal float32 values are zero, and a lambda runs where it is called.
FLAGS = ("-ftz=true", "--device-as-default-execution-space")


@dataclass(frozen=True)
class Text:
    """All that a binary depends on, but for the architecture and the compiler.

    Attributes
    ----------
    name : str
        Name of the file, for messages of the compiler.
    source : str
    options : tuple of str
    architecture : str
        The only architecture that the source is for, such as "sm_90a"; "": any.
    """

    name: str
    source: str
    options: tuple[str, ...]
    architecture: str = ""

    @property
    def key(self) -> str:
        return hashlib.sha256("\0".join((self.source, *FLAGS, *self.options)).encode()).hexdigest()


def binary(text: Text, capability: str) -> Path:
    """Return the file of a binary for a GPU of a compute capability, such as "90"; compile it if there is none.

    Raises
    ------
    NoGpuError
        The GPU is older than the kernels allow.
    """
    if lack := too_old(capability):
        raise NoGpuError(f"{lack}; use the CPU (device='cpu')")
    if (file := shipped(text, capability)) is not None:
        return file
    if not (file := kept(text, capability)).exists():
        content, _ = compiled(text, _target(text, capability))
        file.parent.mkdir(parents=True, exist_ok=True)
        whole = file.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        whole.write_bytes(content)
        whole.replace(file)  # another process may compile the same
    return file


def too_old(capability: str) -> str:
    """Return why a GPU of a compute capability cannot run the kernels; "" if it can."""
    if int(capability) >= int(OLDEST):
        return ""
    given, least = (f"{number[:-1]}.{number[-1]}" for number in (capability, OLDEST))
    return f"this GPU has compute capability {given}, and tilepath needs {least} or later"


def origin(text: Text, capability: str) -> str:
    """Return where `binary` finds the binary: "shipped", "kept", or "compiled" by that call."""
    if shipped(text, capability) is not None:
        return "shipped"
    return "kept" if kept(text, capability).exists() else "compiled"


def shipped(text: Text, capability: str) -> Path | None:
    """Return the file of a binary that an installed package ships; None if there is none."""
    if (folder := package(nvrtc_version()[0])) is None:
        return None
    major, minor = capability[:-1], int(capability[-1])
    names = [text.architecture] if text.architecture else [f"sm_{major}{lower}" for lower in range(minor, -1, -1)]
    files = (folder / name / f"{text.key}.cubin" for name in names)
    return next((file for file in files if file.exists()), None)


def kept(text: Text, capability: str) -> Path:
    """Return the file where a compiled binary is kept, whether or not it exists."""
    parts = (text.key, _target(text, capability), *map(str, nvrtc_version()))
    return cache_folder() / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}.cubin"


def cache_folder() -> Path:
    """Return the folder where CuPy and this module keep compiled kernels."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")


def package_name(cuda: int) -> str:
    """Return the name of the package of binaries for a major version of CUDA."""
    return f"tilepath_kernels_cuda{cuda}"


@functools.cache
def package(cuda: int) -> Path | None:
    """Return the folder of the installed package of binaries for a major version of CUDA; None if there is none."""
    found = importlib.util.find_spec(package_name(cuda))
    return Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None


def compiled(text: Text, target: str, *options: str) -> tuple[bytes, str]:
    """Compile for a target such as "sm_90", or to PTX for one such as "compute_90".

    Parameters
    ----------
    *options : str
        More options for the compiler, which change nothing in the binary.

    Returns
    -------
    content : bytes
    log : str
        What the compiler and its assembler say.

    Raises
    ------
    RuntimeError
        With the errors that the compiler found.
    """
    nvrtc = _nvrtc()
    arguments = [option.encode() for option in (f"-arch={target}", *FLAGS, *text.options, *options)]
    program = _checked(nvrtc.nvrtcCreateProgram(text.source.encode(), text.name.encode(), 0, [], []))
    try:
        status, *_ = nvrtc.nvrtcCompileProgram(program, len(arguments), arguments)
        # The compiler writes into the bytes; b" " * 1 would be the one b" " of this process.
        log = bytes(_checked(nvrtc.nvrtcGetProgramLogSize(program)))
        _checked(nvrtc.nvrtcGetProgramLog(program, log))
        said = log.rstrip(b"\0").decode()
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(f"{text.name} does not compile:\n{said}")
        binary = target.startswith("sm_")
        size, get = (
            (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN) if binary else (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
        )
        content = bytes(_checked(size(program)))
        _checked(get(program, content))
        return content, said
    finally:
        nvrtc.nvrtcDestroyProgram(program)


@functools.cache
def nvrtc_version() -> tuple[int, int]:
    """Return the major and the minor version of the compiler, which are those of CUDA."""
    return tuple(_checked(_nvrtc().nvrtcVersion()))


def _target(text: Text, capability: str) -> str:
    """Return what to compile for: for a GPU that is newer than the compiler, PTX, which the driver compiles."""
    if text.architecture:
        return text.architecture
    newest = max(_supported())
    return f"sm_{capability}" if int(capability) <= newest else f"compute_{newest}"


@functools.cache
def _supported() -> list[int]:
    _checked(_nvrtc().nvrtcGetNumSupportedArchs())
    return list(_checked(_nvrtc().nvrtcGetSupportedArchs()))


def _nvrtc() -> Any:
    from cuda.bindings import nvrtc

    return nvrtc


def _checked(answer: tuple[Any, ...]) -> Any:
    status, *values = answer
    if status != _nvrtc().nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"the compiler of kernels (NVRTC) failed: {status}")
    return values[0] if len(values) == 1 else values
