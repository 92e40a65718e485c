"""The memory that this process may still use."""

from __future__ import annotations

from pathlib import Path


def available_memory() -> int:
    """Bytes of memory this process may still use: what the system, or its control group, has left."""
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
