"""Memory of rings that processes have mapped: what tests compare before and after a run."""

import gc
import os
import time
from contextlib import suppress
from pathlib import Path

from pipelines.workers.mapped_memory import NAME


def mapped(pid="self"):
    """How much of such memory a process has mapped."""
    gc.collect()  # rings that are in cycles
    with open(f"/proc/{pid}/maps") as lines:
        return sum(NAME in line for line in lines)


def still_held():
    """What this process has of such memory, mapped or as an open file."""
    held = mapped()
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            held += NAME in os.readlink(path)
    return held


def nothing_is_mapped(client, workers=2):
    """Whether all workers have given back all memory of rings, within some seconds."""
    deadline = time.monotonic() + 60
    while list(client.run(still_held, on_error="ignore").values()) != [0] * workers:  # the dead do not answer
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
