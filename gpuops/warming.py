"""Compile kernels before they are needed."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from gpuops._binaries import cache_folder as cache_folder
from gpuops._binaries import origin, package
from gpuops._cuda import Program, declared, prepare


def all_programs() -> list[Program]:
    """Return the GPU programs of all operations, after importing all modules: each declares its own programs."""
    import gpuops

    for module in pkgutil.walk_packages(gpuops.__path__, "gpuops."):
        import_module(module.name)
    return declared()


def is_cold() -> bool:
    """Return True if kernels will be compiled at their first use: none is shipped, and none was compiled here."""
    folder = cache_folder()
    return not (any(map(package, (12, 13))) or (folder.is_dir() and any(folder.glob("*.cubin"))))


def compile_kernels() -> dict[str, int]:
    """Compile the GPU programs of all operations for every kind of GPU on this machine, on all cores at once.

    Returns
    -------
    dict
        The number of programs by where their binaries came from: "shipped", "kept" from an earlier run, or "compiled".
    """
    import cupy

    programs, kinds, origins = all_programs(), set(), dict.fromkeys(("shipped", "kept", "compiled"), 0)
    for number in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(number) as device:
            if device.compute_capability not in kinds:
                kinds.add(device.compute_capability)
                fitting = [program for program in programs if program.runs_on(number)]
                for program in fitting:
                    origins[origin(program.text(), device.compute_capability)] += 1
                prepare(fitting)
    return origins
