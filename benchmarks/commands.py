"""Commands that a suite runs as users do: their seconds, and the peaks of the memory of all their processes."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

TILEPATH = [sys.executable, "-c", "from tilepath.cli import main; main()"]
SAMPLED = 0.1  # seconds between two looks at the memory


def measured(command: Sequence[Any], gpu: bool = False, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a command. Returns its seconds, the CPU seconds of all its processes, and the sampled peaks of memory."""
    on_device = _device_memory() if gpu else lambda: 0
    idle, cpu, begin, peak, device_peak = on_device(), _cpu_of_children(), time.perf_counter(), 0, 0
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(list(map(str, command)), stderr=said, stdout=said, env=env) as child,
    ):
        while True:
            try:
                code = child.wait(SAMPLED)
                break
            except subprocess.TimeoutExpired:
                peak = max(peak, _memory_of(child.pid))
                device_peak = max(device_peak, on_device() - idle)
        seconds = time.perf_counter() - begin
        if code:
            said.seek(0)
            raise RuntimeError(f"{command}: {said.read().decode()}")
    facts = {"seconds": seconds, "cpu_seconds": _cpu_of_children() - cpu, "peak_bytes": peak}
    return facts | ({"device_peak_bytes": device_peak} if gpu else {})


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _memory_of(process: int) -> int:
    """Return the bytes of memory of a process and its descendants, shared memory once."""
    total, waiting = 0, [process]
    while waiting:
        folder = Path("/proc", str(waiting.pop()))
        try:
            lines = (folder / "smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
            for task in (folder / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, StopIteration):  # the process has ended
            continue
    return total


def _device_memory() -> Callable[[], int]:
    import pynvml

    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    return lambda: int(pynvml.nvmlDeviceGetMemoryInfo(device).used)
