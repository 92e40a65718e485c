"""What the compiler of CUDA and its assembler say of a program, on a machine without a GPU."""

import hashlib
import os

import pytest

from gpuops import _binaries


def compile_log(cache, program, architecture):
    """Errors and warnings, and the registers and spills of every entry.

    `cache` is pytest's: what was compiled before, from the same text by the same compiler, is not compiled again.
    """
    pytest.importorskip("cuda.bindings.nvrtc")
    text = program.text()
    parts = (text.key, architecture, *map(str, _binaries.nvrtc_version()))
    known = cache.mkdir("nvrtc") / hashlib.sha256("\0".join(parts).encode()).hexdigest()
    if known.exists():
        return known.read_text()
    _, log = _binaries.compiled(text, architecture, "--ptxas-options=-v")
    whole = known.with_suffix(f".{os.getpid()}")
    whole.write_text(log)
    whole.replace(known)  # another process may write the same
    return log
