"""What compilers make of a kernel, kept for all checkouts; what those of CUDA say of it, on a machine without a GPU."""

import functools
import hashlib
import os
import time
from pathlib import Path

import pytest

from gpuops import _binaries

MONTH = 30 * 24 * 3600  # seconds


@functools.cache
def kept(name):
    """The folder of compiled kernels that all checkouts of this user share: a fresh one compiles only what is new.

    A file is named by the digest of all that it was made from, the version of the compiler included. Files that no test
    has read for a month are removed.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tilepath-tests" / name
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        try:
            if time.time() - max(file.stat().st_atime, file.stat().st_mtime) > MONTH:
                file.unlink()
        except FileNotFoundError:  # another process has renamed or removed it
            continue
    return folder


def compile_log(program, architecture):
    """Errors and warnings, and the registers and spills of every entry."""
    pytest.importorskip("cuda.bindings.nvrtc")
    text = program.text()
    parts = (text.key, architecture, *map(str, _binaries.nvrtc_version()))
    known = kept("nvrtc") / hashlib.sha256("\0".join(parts).encode()).hexdigest()
    if known.exists():
        return known.read_text()
    _, log = _binaries.compiled(text, architecture, "--ptxas-options=-v")
    whole = known.with_suffix(f".{os.getpid()}")
    whole.write_text(log)
    whole.replace(known)  # another process may write the same
    return log
