"""Kernels compiled before they are needed."""

from __future__ import annotations

from gpuops._cuda import declared, prepare


def compile_kernels() -> int:
    """Compile all GPU programs that operations have, for each kind of GPU there is, side by side on all cores.

    CuPy keeps them on disk, where later processes find them.

    Returns
    -------
    int
        How many programs there are.
    """
    import cupy

    import gpuops  # noqa: F401  declares them

    programs, kinds = declared(), set()
    for number in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(number) as device:
            if device.compute_capability not in kinds:
                kinds.add(device.compute_capability)
                prepare(programs)
    return len(programs)
