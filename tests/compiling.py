"""What the compiler of CUDA and its assembler say of a program, on a machine without a GPU."""

import hashlib
import os

import pytest


def compile_log(cache, program, architecture):
    """Errors and warnings, and the registers and spills of every entry; the options CuPy adds come with the program's.

    `cache` is pytest's: what was compiled before, from the same text by the same compiler, is not compiled again.
    """
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")

    def checked(answer):
        status, *values = answer
        assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, status
        return values[0] if len(values) == 1 else values

    source = program.source()
    options = [f"-arch={architecture}", "-ftz=true", "--ptxas-options=-v", *program.options]
    parts = (source, *options, *map(str, checked(nvrtc.nvrtcVersion())))
    known = cache.mkdir("nvrtc") / hashlib.sha256("\0".join(parts).encode()).hexdigest()
    if known.exists():
        return known.read_text()
    compiled = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
    status, *_ = nvrtc.nvrtcCompileProgram(compiled, len(options), [option.encode() for option in options])
    log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(compiled))
    checked(nvrtc.nvrtcGetProgramLog(compiled, log))
    nvrtc.nvrtcDestroyProgram(compiled)
    text = log.rstrip(b"\0").decode()
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, text
    whole = known.with_suffix(f".{os.getpid()}")
    whole.write_text(text)
    whole.replace(known)  # another process may write the same
    return text
