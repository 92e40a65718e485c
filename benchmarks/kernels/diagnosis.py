"""The resources of a multiprocessor that a kernel uses, from the driver: registers, shared memory, occupancy."""

from __future__ import annotations

from typing import Any

from gpuops._cuda import Program


def diagnose(program: Program, entry: str, threads: int, spare: int = 0) -> dict[str, Any]:
    """Return the resources that a kernel uses on the current device if launched in blocks of `threads`.

    Each block has `spare` bytes of shared memory more than the kernel declares.
    """
    import cupy

    function = program.function(entry)
    attributes = function.attributes
    blocks = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(function.kernel.ptr, threads, spare)
    most = cupy.cuda.Device().attributes["MaxThreadsPerMultiProcessor"]
    return {
        "threads": threads,
        "registers": int(attributes["num_regs"]),
        "shared_bytes": int(attributes["shared_size_bytes"]),
        "blocks_per_multiprocessor": int(blocks),
        "occupancy": blocks * threads / most,
    }
