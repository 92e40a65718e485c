"""Find the GPUs that a cluster may use, and the packages that are missing for using them.

The driver's management library (NVML) counts the GPUs, never CUDA: a CUDA context in the client's process would occupy
memory of the first GPU, and dask-cuda warns about it. NVML is called directly because its Python binding comes with
dask-cuda, and "GPUs, but no dask-cuda" is a case to report.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os

from gpuops.extras import install


def visible() -> list[str]:
    """Return the GPUs that CUDA would show this process, by their names in ``CUDA_VISIBLE_DEVICES``.

    As in CUDA, an entry that does not name a GPU hides all entries after it. UUIDs of GPUs and of MIG instances are
    returned without a check.
    """
    present = _driver_count()
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    if shown is None:
        return [str(i) for i in range(present)]
    names: list[str] = []
    for name in map(str.strip, shown.split(",") if present else ()):
        if not name.startswith(("GPU-", "MIG-")) and not (name.isdigit() and int(name) < present):
            break
        names.append(name)
    return names


def missing() -> str | None:
    """Return the first driver, GPU or package that GPU workers lack, with the cure; None if they can run."""
    if not visible():
        if _driver_count():
            return (
                f"CUDA_VISIBLE_DEVICES={os.environ['CUDA_VISIBLE_DEVICES']!r} hides every GPU of this machine;"
                " unset it or name one"
            )
        return (
            "no NVIDIA driver with a GPU was found (libnvidia-ml.so.1 finds none); install the driver,"
            " ask the batch system for GPUs, or use device='cpu'"
        )
    return missing_packages()


def missing_packages() -> str | None:
    """Return the first package that GPU workers lack, with the cure; None if all packages are installed."""
    try:
        importlib.import_module("dask_cuda")
    except ImportError as error:  # or dask-cuda is installed, but its CUDA bindings are not
        return f"dask_cuda cannot be imported ({error}); {_extra()}"
    if importlib.util.find_spec("cupy") is None:
        return f"cupy is not installed; {_extra()}"
    return None


def _extra() -> str:
    return f"{install('cuda13')} (or cuda12, by the driver's CUDA version)"


def missing_for_ucx() -> str | None:
    """Return the first package that ``protocol="ucx"`` lacks, with the cure; None if all packages are installed."""
    for package in ("distributed_ucxx", "rmm"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed; {install('ucx')}, or use protocol='tcp'"
    return None


def _driver_count() -> int:
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return 0
    if nvml.nvmlInit_v2() != 0:
        return 0
    try:
        count = ctypes.c_uint()
        return count.value if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 else 0
    finally:
        nvml.nvmlShutdown()
