"""Arrays that go straight from worker to worker of one host, each named by a token.

Every worker of an attempt has a *ring* of slots that the other workers can map (`pipelines.workers.mapped_memory`). The
owner writes an array into a slot and publishes it. A worker with a token of the array, or of a part of it, pulls the
bytes to its own memory.

This module does not make workers wait for each other; its callers do. They begin a pull after the array is published,
and write a slot again after all workers have pulled the array. To coordinate, they use signals
(`pipelines.workers.signals`), or tokens that travel through Dask, about 400 bytes each. A slot begins with a header
that names the array in the slot. The header is cleared while the slot is written, and checked after each pull, so a
slot that is reused too early is an error, not a wrong result.

Where one worker cannot map another worker's memory, the array itself travels through Dask; `Ring.meet` finds out.
"""

from __future__ import annotations

import math
import threading
import uuid
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.stores.row_files import page_aligned
from pipelines.workers.device_arrays import mark, synchronize
from pipelines.workers.mapped_memory import (
    HEADER,
    CannotMap,
    DeviceMapping,
    DeviceMemory,
    HostMapping,
    HostMemory,
    host,
)
from pipelines.workers.resident_state import StateLost
from pipelines.workers.signals import Signals, SignalsAddress

OPENED = -1  # the stage in the header of a slot that was never written


class SlotReused(RuntimeError):
    """A slot holds another array than its token says: it was written again before all workers had pulled the array."""


@dataclass(frozen=True)
class RingAddress:
    """The address of a ring. `ring` is a unique name: it identifies host, process and attempt.

    `signals` is the address of the counter of the ring's worker.
    """

    attempt: str
    ring: str
    host: str
    gpu: bool
    count: int  # bytes of the ring; 0 if it is not shared
    stride: int  # bytes of a slot
    handle: bytes | None
    reason: str | None  # why there is no handle
    signals: SignalsAddress


@dataclass(frozen=True)
class Token:
    """An array in a slot; it begins `start` bytes after the header."""

    address: RingAddress
    stage: int
    slot: int
    shape: tuple[int, ...]
    dtype: str
    start: int = 0

    @property
    def size(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def header(self) -> bytes:
        """Return the header at the beginning of the slot."""
        return f"{self.address.attempt} {self.address.ring} {self.stage}".encode().ljust(HEADER, b"\0")


def deal_slots(owners: Sequence[int], workers: int, reach: int) -> tuple[list[int], list[int]]:
    """Return a slot for every stage, in the ring of the stage's owner, and the number of slots in each ring.

    A slot is written again at least `reach` stages later.

    >>> deal_slots([0, 1, 0, 1, 0, 1], 2, 3)
    ([0, 0, 1, 1, 0, 0], [2, 2])
    """
    sizes = [
        max((list(owners[k : k + reach]).count(worker) for k in range(len(owners))), default=0)
        for worker in range(workers)
    ]
    written, slots = [0] * workers, []
    for owner in owners:
        slots.append(written[owner] % sizes[owner])
        written[owner] += 1
    return slots, sizes


_here: weakref.WeakValueDictionary[str, Ring] = weakref.WeakValueDictionary()  # the rings of this process


class Ring:
    """The ring of one worker in one attempt, its counter, and its mappings of other workers' rings (made in a task).

    Parameters
    ----------
    attempt : name of the attempt
    xp : NumPy or CuPy, the library of the arrays
    slots : number of slots in the ring
    capacity : bytes of the largest array
    shared : whether other workers read the arrays
    gathers : whether all workers have the same slots and each writes a part of every slot. Then the part of another
        worker is pulled to its place in this ring; otherwise arrays are pulled to a buffer.
    """

    def __init__(self, attempt: str, xp: Any, slots: int, capacity: int, shared: bool = True, gathers: bool = False):
        self.xp, self._stride = xp, HEADER + -(-capacity // HEADER) * HEADER
        self._shared, self.gathers = shared, gathers
        self._lock = threading.Lock()  # pulls run in the thread of tasks, `close` in the thread of the worker
        self._mappings: dict[str, Any] = {}
        self._buffers: list[Any] = [None, None]  # the second buffer holds the array that was pulled last
        self._readers: Any = None  # event after the work that reads the first buffer
        self._pulled: Token | None = None  # the token of the array that was pulled last
        self.over = False  # whether `close` was called, as the attempt has ended
        gpu, count = xp is not np, slots * self._stride
        self._stream: Any = xp.cuda.Stream(non_blocking=True) if gpu else None
        handle, reason = None, None
        self._memory: Any = None
        if shared and count:
            try:
                self._memory = (DeviceMemory if gpu else HostMemory)(count)
                handle = self._memory.handle
            except CannotMap as error:
                reason = str(error)
        empty: Any = xp.empty if gpu else page_aligned
        self._bytes = empty((count,), np.uint8) if self._memory is None else self._memory.bytes
        to_map, name = count if shared else 0, uuid.uuid4().hex
        self.slots, self.signals = slots, Signals()
        signals = self.signals.address
        self.address = RingAddress(attempt, name, host(), gpu, to_map, self._stride, handle, reason, signals)
        self._holds = [Token(self.address, OPENED, slot, (), "uint8") for slot in range(slots)]
        for token in self._holds:
            self._label(token)
        _here[self.address.ring] = self

    def meet(self, addresses: Sequence[RingAddress]) -> list[str | None]:
        """Map the rings of `addresses`; returns for each ring why its arrays cannot be pulled, or None if they can."""
        return [self._meet(address) for address in addresses]

    def _meet(self, address: RingAddress) -> str | None:
        if address.ring in _here or not address.count:
            return None
        if address.reason:
            return address.reason
        if address.host != self.address.host:
            return "workers on several hosts"
        if address.gpu != self.address.gpu:
            return "workers of different kinds"
        try:
            mapping = (DeviceMapping if address.gpu else HostMapping)(address.handle or b"", address.count)
        except CannotMap as error:
            return str(error)
        self._mappings[address.ring] = mapping
        if not self.gathers and (self._buffers[0] is None or len(self._buffers[0]) < address.stride - HEADER):
            self._buffers = [self.xp.empty(address.stride - HEADER, np.uint8) for _ in self._buffers]
        synchronize(self._bytes)  # earlier work may still use the memory that the pool gave to the buffers
        first = Token(address, OPENED, 0, (0,), "uint8")
        # The handle may name other memory here, for example of a process in this container; then the header differs.
        if mapping.pull(0, HEADER, self._bytes[:0]) != first.header():
            self._mappings.pop(address.ring).close()
            return "what was mapped is not the memory of the other worker"
        return None

    def open(self, slot: int, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return the array of a slot, to be written; the array that the slot held can no longer be taken."""
        token = Token(self.address, OPENED, slot, shape, np.dtype(dtype).str)
        if HEADER + token.size > self._stride:
            raise ValueError(f"an array of {token.size:,} bytes; a slot holds {self._stride - HEADER:,}")
        self._holds[slot] = token
        self._bytes[slot * self._stride :][:HEADER] = 0
        return _array(self._held(token), token)

    def publish(self, slot: int, stage: int, written: Any = None) -> Token:
        """Return the token of the array written to an opened slot; if `shared`, wait until the device has written it.

        `written` is the mark of the work that writes the array; by default all work that the device was given.
        """
        opened = self._holds[slot]
        token = Token(self.address, stage, slot, opened.shape, opened.dtype)
        self._holds[slot] = token
        if self._shared:
            if written is None:
                synchronize(self._bytes)
            else:
                written.synchronize()
            self._label(token)
        return token

    def take(self, token: Token) -> Any:
        """Return the array of a token, which must not be written.

        An array of another process is pulled, to a buffer: it stays valid for work that is given to the device before
        the next array is taken. An array of this process is returned in place.

        A ring that gathers copies arrays of any other ring into its own slot of the same number, where they stay. The
        device must have no unfinished work on that part of the slot.

        Raises
        ------
        SlotReused
            The slot holds another array by now.
        StateLost
            This attempt is over.
        """
        owner = _here.get(token.address.ring)
        if self.gathers and owner is not self:
            memory = self._place(token.slot, token.start, token.size)
            if owner is not None:
                memory[...] = owner._held(token)
            else:
                with self._lock:
                    self._pull(token, memory)
            return _array(memory, token)
        if owner is not None:
            return _array(owner._held(token), token)
        with self._lock:
            if self._pulled != token:
                self._pulled = None
                if self._readers is not None:
                    self._readers.synchronize()
                self._readers = mark(self._bytes)
                self._buffers.reverse()  # pull to one buffer while the device still works on the other
                self._pull(token, self._buffers[1][: token.size])
                self._pulled = token
            return _array(self._buffers[1][: token.size], token)

    def arrived(self, sent: Any, slot: int = 0, start: int = 0) -> Any:
        """Return the array that a task was sent: as a token to `take`, or as the array itself, through Dask.

        A ring that gathers puts an array from Dask at the byte `start` of its slot.
        """
        if isinstance(sent, Token):
            return self.take(sent)
        if not self.gathers:
            return self.xp.asarray(sent)
        memory = self._place(slot, start, sent.nbytes)
        if self.xp is np:
            memory[...] = sent
        else:
            memory.set(sent)
        return memory

    def close(self) -> None:
        """Unmap the rings of other workers; this worker's ring lives as long as this object."""
        self.over = True
        with self._lock:
            for mapping in self._mappings.values():
                mapping.close()
            self._mappings.clear()

    def _held(self, token: Token) -> Any:
        """Return the bytes of an array in this ring; raises SlotReused."""
        if self._holds[token.slot].stage != token.stage:
            raise _reused(token, self._holds[token.slot].header())
        return self._place(token.slot, token.start, token.size)

    def _place(self, slot: int, start: int, size: int) -> Any:
        first = slot * self._stride + HEADER + start
        return self._bytes[first : first + size]

    def _pull(self, token: Token, into: Any) -> None:
        """Copy the bytes of an array from the ring of another process."""
        if token.address.ring not in self._mappings:
            raise StateLost(f"attempt {token.address.attempt} is over")
        slot = token.slot * token.address.stride
        found = self._mappings[token.address.ring].pull(slot, slot + HEADER + token.start, into)
        if found != token.header():
            raise _reused(token, found)

    def _label(self, token: Token) -> None:
        """Write the header of a slot, on a separate stream: other work of the device is not waited for."""
        start = token.slot * self._stride
        slot, values = self._bytes[start : start + HEADER], np.frombuffer(token.header(), np.uint8)
        if self._stream is None:
            slot[:] = values
        else:
            slot.set(values, stream=self._stream)
            self._stream.synchronize()


def _array(memory: Any, token: Token) -> Any:
    return memory.view(token.dtype).reshape(token.shape)


def _reused(token: Token, found: bytes) -> SlotReused:
    holds = found.rstrip(b"\0").decode(errors="replace") or "something half written"
    return SlotReused(
        f"internal error: a slot that was to hold stage {token.stage} of {token.address.attempt} holds {holds!r}; "
        "it was written again too early"
    )
