"""Which GPUs a cluster may use, and what is missing for using them.

The count is asked of the driver's management library (NVML), never of CUDA: a CUDA context in the client's
process would occupy memory of the first GPU, and dask-cuda warns of it. NVML is called directly, because its
Python binding comes with dask-cuda, and "GPUs, but no dask-cuda" is a case to report.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os

EXTRA = "pip install 'tilepath[cuda13]' (or tilepath[cuda12], by the driver's CUDA version)"


def visible() -> list[str]:
    """GPUs that CUDA would show this process, as ``CUDA_VISIBLE_DEVICES`` names them.

    As in CUDA, an entry that does not name a GPU hides all that follow it. UUIDs of GPUs and of their MIG instances
    are taken unchanged.
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
    """The first thing missing to run GPU workers, with its cure; None if all is there."""
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
    """The first package missing to run GPU workers, with its cure; None if all are there."""
    try:
        importlib.import_module("dask_cuda")
    except ImportError as error:  # also: dask-cuda is there, its bindings to CUDA are not
        return f"dask_cuda cannot be imported ({error}); {EXTRA}"
    if importlib.util.find_spec("cupy") is None:
        return f"cupy is not installed; {EXTRA}"
    return None


def missing_for_ucx() -> str | None:
    """The first package missing for ``protocol="ucx"``, with its cure; None if all are there."""
    for package in ("distributed_ucxx", "rmm"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed; pip install 'tilepath[ucx]', or use protocol='tcp'"
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
