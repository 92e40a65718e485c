"""Compile kernels before they are needed."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from gpuops._cuda import Program, declared, prepare


def all_programs() -> list[Program]:
    """Return the GPU programs of all operations, after importing all modules: each declares its own programs."""
    import gpuops

    for module in pkgutil.walk_packages(gpuops.__path__, "gpuops."):
        import_module(module.name)
    return declared()


def compile_kernels() -> int:
    """Compile the GPU programs of all operations for every kind of GPU on this machine, on all cores at once.

    CuPy keeps the binaries on disk, where later processes find them.

    Returns
    -------
    int
        The number of programs.
    """
    import cupy

    programs, kinds, prepared = all_programs(), set(), set()
    for number in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(number) as device:
            if device.compute_capability not in kinds:
                kinds.add(device.compute_capability)
                prepare(fitting := [program for program in programs if program.runs_on(number)])
                prepared.update(fitting)
    return len(prepared)
