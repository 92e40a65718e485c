"""The memory that this process may still use, and the refusal of results that it cannot hold."""

from __future__ import annotations

import math
from pathlib import Path

_SMALL = 1 << 20  # bytes; results up to this size are made without a check of the free memory
_UNITS = tuple((1 << 10 * power, unit) for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")))


def size(count: float) -> str:
    """Return a number of bytes as text for the user.

    >>> size(5), size(45_000_000), size(3 << 30), size(10**400)
    ('5 B', '42.9 MiB', '3.0 GiB', '10^400 B')
    """
    if count >= 1 << 70:  # float64 may not hold it
        return f"10^{math.log10(count):.0f} B"
    factor, unit = next((found for found in reversed(_UNITS) if count >= found[0]), _UNITS[0])
    return f"{count / factor:.{int(factor > 1)}f} {unit}"


def refuse_beyond_memory(needed: int, what: str, cure: str, device: int | None = None) -> None:
    """Refuse a result that memory cannot hold, before it is made.

    Parameters
    ----------
    needed : int
        Bytes of the result and of all arrays that exist with it; any size.
    what, cure : str
        Beginning and end of the message: the result, as in "the spectrum of 9 masses takes", and the user's remedy.
    device : int, optional
        The number of the GPU that holds the result; None: the host holds it.

    Raises
    ------
    ValueError
        The result takes more than the free memory of the host, or more than all memory of the GPU.
    """
    if needed <= _SMALL:
        return
    if device is None:
        room = available_memory()
    else:
        import cupy

        room = int(cupy.cuda.Device(device).mem_info[1])
    if needed > room:
        raise ValueError(f"{what} {size(needed)}, and there are {size(room)} of memory; {cure}")


def available_memory() -> int:
    """Return the bytes of memory that this process may still use: free on the host, and within its control group."""
    text = Path("/proc/meminfo").read_text()
    free = int(text.split("MemAvailable:")[1].split()[0]) << 10
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            bound = Path(limit).read_text().strip()
            if bound != "max":
                free = min(free, int(bound) - int(Path(used).read_text()))
        except (OSError, ValueError):
            continue
    return max(free, 0)
