"""Memory that other processes of the same host can map: of a GPU by CUDA IPC, of the host as a file without a name.

An owner makes a `DeviceMemory` or a `HostMemory` and hands out its `handle`. Another process opens the handle as a
mapping and copies from it. Neither process waits for the other: a mapping keeps the memory of a dead owner alive, with
the bytes it last held. So mappings have to be closed, above all mappings of lost owners, or the memory stays in use.
"""

from __future__ import annotations

import logging
import mmap
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np

HEADER = 256  # bytes before an array that name it, checked after each copy; a multiple of any alignment
NAME = "tilepath-panels"  # name of the host's shared memory in /proc/PID/maps
LEAST_BYTES = 2 << 20  # least bytes of shared GPU memory: the driver packs smaller ones into a block with one handle


class CannotMap(Exception):
    """Memory of another process cannot be mapped here, or memory cannot be handed out; the message says why."""


def host() -> str:
    """Return an identifier of this host, which is the same in all its containers."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class HostMemory:
    """Bytes of the host, to be shared. They have no name in any folder, so a killed process leaves no file behind.

    If they are not `reserved`, the system gives pages of zeros when they are first written.
    """

    def __init__(self, count: int, reserved: bool = True):
        try:
            file = os.memfd_create(NAME)
        except OSError as error:
            raise CannotMap(f"no shared memory: {error}") from None
        weakref.finalize(self, os.close, file)
        try:
            if reserved:  # too little memory is an error here, not a signal in the middle of a copy
                os.posix_fallocate(file, 0, count)
            else:
                os.ftruncate(file, count)
            self.bytes = np.frombuffer(mmap.mmap(file, count), np.uint8)
        except OSError as error:
            raise CannotMap(f"no {count:,} bytes of shared memory: {error}") from None
        self.handle = f"/proc/{os.getpid()}/fd/{file}".encode()


class HostMapping:
    """A mapping of another process's `HostMemory`."""

    def __init__(self, handle: bytes, count: int, writable: bool = False):
        try:
            file = os.open(handle, os.O_RDWR if writable else os.O_RDONLY)
            try:
                access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
                self.bytes: Any = np.frombuffer(mmap.mmap(file, count, access=access), np.uint8)
            finally:
                os.close(file)
        except (OSError, ValueError) as error:
            raise CannotMap(f"shared memory cannot be mapped: {error}") from None

    def pull(self, header: int, start: int, into: Any) -> bytes:
        """Fill `into` with the bytes from `start` on; returns the header at byte `header`, read after the copy."""
        into[...] = self.bytes[start : start + len(into)]
        return self.bytes[header : header + HEADER].tobytes()

    def close(self) -> None:
        self.bytes = None  # the last reference: this unmaps the memory


class DeviceMemory:
    """Bytes of the GPU, to be shared. They are not from CuPy's pool, since a handle names a whole allocation."""

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
    """A mapping of another process's `DeviceMemory`.

    Copies run on a separate stream, by a copy engine, at the same time as kernels.
    """

    def __init__(self, handle: bytes, count: int):
        import cupy

        self._runtime = runtime = cupy.cuda.runtime
        try:
            self._pointer = runtime.ipcOpenMemHandle(handle)
        except runtime.CUDARuntimeError as error:
            raise CannotMap(f"memory of another GPU cannot be mapped: {error}") from None
        self.close = weakref.finalize(self, runtime.ipcCloseMemHandle, self._pointer)
        self.close.atexit = False  # at exit the driver unmaps the memory, and may be gone before this would run
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._header = cupy.empty(HEADER, np.uint8)

    def pull(self, header: int, start: int, into: Any) -> bytes:
        """Fill `into` with the bytes from `start` on; returns the header at byte `header`, read after the copy.

        A CUDA error ends this process, as its CUDA context may be unusable.
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
