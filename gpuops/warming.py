"""Kernels compiled before they are needed."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from gpuops._cuda import Program, declared, prepare


def all_programs() -> list[Program]:
    """The GPU programs of all operations; their modules, which else are imported when they are needed, declare them."""
    import gpuops

    for module in pkgutil.walk_packages(gpuops.__path__, "gpuops."):
        import_module(module.name)
    return declared()


def compile_kernels() -> int:
    """Compile all GPU programs that operations have, for each kind of GPU there is, side by side on all cores.

    CuPy keeps them on disk, where later processes find them.

    Returns
    -------
    int
        How many programs there are.
    """
    import cupy

    programs, kinds = all_programs(), set()
    for number in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(number) as device:
            if device.compute_capability not in kinds:
                kinds.add(device.compute_capability)
                prepare(programs)
    return len(programs)
