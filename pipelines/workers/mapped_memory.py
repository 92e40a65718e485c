"""Memory that other processes of the same host can map: of a GPU by CUDA IPC, of the host as a file without a name.

An owner makes a `DeviceMemory` or a `HostMemory` and hands out its `handle`; another process opens that as a mapping
and copies from it on its own. Nobody waits for anybody: a mapping keeps the memory of a dead owner alive, with what it
last held. So mappings have to be closed, above all those of lost owners, or their memory stays taken.
"""

from __future__ import annotations

import logging
import mmap
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np

HEADER = 256  # bytes of what says what follows, checked after each copy; what follows is aligned for any load
NAME = "tilepath-panels"  # of the memory of the host, as /proc/PID/maps shows it
LEAST_BYTES = 2 << 20  # the driver packs smaller pieces of a GPU's memory together, and a handle names the whole


class CannotMap(Exception):
    """Why memory of another process cannot be mapped here, or cannot be handed out."""


def host() -> str:
    """This host, whatever containers call it."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class HostMemory:
    """Bytes of the host. They have no name in any folder, so a killed process leaves nothing behind."""

    def __init__(self, count: int):
        try:
            file = os.memfd_create(NAME)
        except OSError as error:
            raise CannotMap(f"no shared memory: {error}") from None
        weakref.finalize(self, os.close, file)
        try:
            os.posix_fallocate(file, 0, count)  # lack of memory shows here, not as a signal in the middle of a copy
            self.bytes = np.frombuffer(mmap.mmap(file, count), np.uint8)
        except OSError as error:
            raise CannotMap(f"no {count:,} bytes of shared memory: {error}") from None
        self.handle = f"/proc/{os.getpid()}/fd/{file}".encode()


class HostMapping:
    """Another process's `HostMemory`."""

    def __init__(self, handle: bytes, count: int):
        try:
            file = os.open(handle, os.O_RDONLY)
            try:
                self.bytes: Any = np.frombuffer(mmap.mmap(file, count, prot=mmap.PROT_READ), np.uint8)
            finally:
                os.close(file)
        except (OSError, ValueError) as error:
            raise CannotMap(f"shared memory cannot be mapped: {error}") from None

    def pull(self, header: int, start: int, into: Any) -> bytes:
        """Fill `into` with the bytes from `start` on; returns the header at a byte as it is afterwards."""
        into[...] = self.bytes[start : start + len(into)]
        return self.bytes[header : header + HEADER].tobytes()

    def close(self) -> None:
        self.bytes = None  # unmaps, as nobody else refers to it


class DeviceMemory:
    """Bytes of the GPU, allocated plainly: a handle names a whole allocation, and a pool hands out parts of one."""

    def __init__(self, count: int):
        import cupy

        runtime = cupy.cuda.runtime
        count = max(count, LEAST_BYTES)
        cupy.get_default_memory_pool().free_all_blocks()
        try:
            memory = cupy.cuda.Memory(count)
            self.handle = runtime.ipcGetMemHandle(memory.ptr)
        except runtime.CUDARuntimeError as error:
            raise CannotMap(f"no {count:,} bytes of the GPU to hand out: {error}") from None
        self.bytes = cupy.ndarray((count,), np.uint8, memptr=cupy.cuda.MemoryPointer(memory, 0))


class DeviceMapping:
    """Another process's `DeviceMemory`. Copies run on a stream of their own, by a copy engine, beside any kernel."""

    def __init__(self, handle: bytes, count: int):
        import cupy

        self._runtime = runtime = cupy.cuda.runtime
        try:
            self._pointer = runtime.ipcOpenMemHandle(handle)
        except runtime.CUDARuntimeError as error:
            raise CannotMap(f"memory of another GPU cannot be mapped: {error}") from None
        self.close = weakref.finalize(self, runtime.ipcCloseMemHandle, self._pointer)
        self.close.atexit = False  # the driver does it, and may be gone by then
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._header = cupy.empty(HEADER, np.uint8)

    def pull(self, header: int, start: int, into: Any) -> bytes:
        """Fill `into` with the bytes from `start` on; returns the header at a byte as it is afterwards.

        An error of CUDA ends this process, as its context may be unusable.
        """
        copy, kind = self._runtime.memcpyAsync, self._runtime.memcpyDefault
        try:
            if len(into):
                copy(into.data.ptr, self._pointer + start, len(into), kind, self._stream.ptr)
            copy(self._header.data.ptr, self._pointer + header, HEADER, kind, self._stream.ptr)
            return self._header.get(stream=self._stream).tobytes()
        except self._runtime.CUDARuntimeError as error:
            logging.getLogger("distributed.worker").critical("a copy from another GPU failed (%s); ending", error)
            os._exit(1)
