"""Arrays that go straight from worker to worker of one host, each known by a token.

Every worker of an attempt has a *ring* of slots that the others can map (`pipelines.workers.mapped_memory`). The owner
writes an array into a slot and publishes it; whoever holds a token of it, or of a part, pulls that to its own memory.
Nothing is waited for here. That an array is complete, and that all have what they need of a slot before it is written
again, is for the callers to see to: by signals (`pipelines.workers.signals`), or by tokens that travel through Dask,
some 300 bytes each. A slot begins with a header that says what it holds, taken off while it is written and checked
after each pull. So a slot that is reused too early is an error, not a wrong result.

Where one worker cannot map another's memory, the array itself travels through Dask; `Panels.meet` finds out.
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
from pipelines.workers.attempts import StateLost
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

OPENED = -1  # the stage in the header of a slot that was never written


class SlotReused(RuntimeError):
    """A slot holds another array than its token says: it was written again before all had pulled it."""


@dataclass(frozen=True)
class Card:
    """Where a ring lies. `ring` is unique: it stands for host, process and attempt."""

    attempt: str
    ring: str
    host: str
    gpu: bool
    count: int  # bytes,
    stride: int  # and of a slot
    handle: bytes | None
    reason: str | None  # why there is no handle


@dataclass(frozen=True)
class Token:
    """An array in a slot, at the byte `start` of what it holds."""

    card: Card
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
        """What its slot begins with."""
        return f"{self.card.attempt} {self.card.ring} {self.stage}".encode().ljust(HEADER, b"\0")


def deal_slots(owners: Sequence[int], workers: int, reach: int) -> tuple[list[int], list[int]]:
    """A slot for every stage, in the ring of its owner, and the size of each ring.

    A slot is written again `reach` stages later at the earliest.

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


_here: weakref.WeakValueDictionary[str, Panels] = weakref.WeakValueDictionary()  # the rings of this process


class Panels:
    """The ring of one worker in one attempt, and what it maps of the others' (made in a task).

    Parameters
    ----------
    attempt : its name
    xp : NumPy or CuPy, where the arrays live
    slots : of the ring
    capacity : bytes of the largest array
    shared : whether other workers are to have them
    buffered : whether arrays of others are taken; if not, they are fetched, which needs no memory
    """

    def __init__(self, attempt: str, xp: Any, slots: int, capacity: int, shared: bool = True, buffered: bool = True):
        self.xp, self._stride = xp, HEADER + -(-capacity // HEADER) * HEADER
        self._shared, self._buffered = shared, buffered
        self._lock = threading.Lock()  # pulls run in the thread of tasks, `close` in that of the worker
        self._mappings: dict[str, Any] = {}
        self._buffers: list[Any] = [None, None]  # the second is the one pulled to last
        self._readers: Any = None  # the work on the first
        self._pulled: Token | None = None
        self.over = False  # closed: the attempt has ended
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
        self.card = Card(attempt, uuid.uuid4().hex, host(), gpu, count, self._stride, handle, reason)
        self._holds = [Token(self.card, OPENED, slot, (), "uint8") for slot in range(slots)]
        for token in self._holds:
            self._label(token)
        _here[self.card.ring] = self

    def meet(self, cards: Sequence[Card]) -> list[str | None]:
        """Map the rings of `cards`: for each None, or why its arrays have to come another way."""
        return [self._meet(card) for card in cards]

    def _meet(self, card: Card) -> str | None:
        if card.ring in _here or not card.count:
            return None
        if card.reason:
            return card.reason
        if card.host != self.card.host:
            return "workers on several hosts"
        if card.gpu != self.card.gpu:
            return "workers of different kinds"
        try:
            mapping = (DeviceMapping if card.gpu else HostMapping)(card.handle or b"", card.count)
        except CannotMap as error:
            return str(error)
        self._mappings[card.ring] = mapping
        if self._buffered and (self._buffers[0] is None or len(self._buffers[0]) < card.stride - HEADER):
            self._buffers = [self.xp.empty(card.stride - HEADER, np.uint8) for _ in self._buffers]
        synchronize(self._bytes)  # with work on what a pool had the memory for that is pulled to
        first = Token(card, OPENED, 0, (0,), "uint8")
        # A process of another container, or a handle that names something else, has another header.
        if mapping.pull(0, HEADER, self._bytes[:0]) != first.header():
            self._mappings.pop(card.ring).close()
            return "what was mapped is not the memory of the other worker"
        return None

    def open(self, slot: int, shape: tuple[int, ...], dtype: Any) -> Any:
        """The array of a slot, to be written; what the slot held is not to be had any more."""
        token = Token(self.card, OPENED, slot, shape, np.dtype(dtype).str)
        if HEADER + token.size > self._stride:
            raise ValueError(f"an array of {token.size:,} bytes; a slot holds {self._stride - HEADER:,}")
        self._holds[slot] = token
        self._bytes[slot * self._stride :][:HEADER] = 0
        return _array(self._held(token), token)

    def publish(self, slot: int, stage: int, written: Any = None) -> Token:
        """The token of what was written to an opened slot; if `shared`, waits until the device has done so.

        `written` is the mark of the work that wrote it, by default all that the device was given.
        """
        opened = self._holds[slot]
        token = Token(self.card, stage, slot, opened.shape, opened.dtype)
        self._holds[slot] = token
        if self._shared:
            if written is None:
                synchronize(self._bytes)
            else:
                written.synchronize()
            self._label(token)
        return token

    def take(self, token: Token) -> Any:
        """The array of a token, not to be written: in place if its slot is in this process, else pulled.

        A pulled one is good for work that is given to the device before the next is taken.

        Raises
        ------
        SlotReused
            The slot holds something else by now.
        StateLost
            This attempt is over.
        """
        owner = _here.get(token.card.ring)
        if owner is not None:
            return _array(owner._held(token), token)
        with self._lock:
            if self._pulled != token:
                self._pulled = None
                if self._readers is not None:
                    self._readers.synchronize()
                self._readers = mark(self._bytes)
                self._buffers.reverse()  # one is pulled to while the device still works on the other
                self._pull(token, self._buffers[1][: token.size])
                self._pulled = token
            return _array(self._buffers[1][: token.size], token)

    def fetch(self, token: Token, into: Any) -> None:
        """Copy the array of a token to `into`, uint8 memory of its size that nothing is at work on.

        Raises as `take`.
        """
        owner = _here.get(token.card.ring)
        if owner is not None:
            into[...] = owner._held(token)
            return
        with self._lock:
            self._pull(token, into)

    def close(self) -> None:
        """Unmap what belongs to others; this worker's own ring lives as long as this object."""
        self.over = True
        with self._lock:
            for mapping in self._mappings.values():
                mapping.close()
            self._mappings.clear()

    def _held(self, token: Token) -> Any:
        """The bytes of an array in this ring."""
        if self._holds[token.slot].stage != token.stage:
            raise _reused(token, self._holds[token.slot].header())
        start = token.slot * self._stride + HEADER + token.start
        return self._bytes[start : start + token.size]

    def _pull(self, token: Token, into: Any) -> None:
        """Copy the bytes of an array from the ring of another process."""
        if token.card.ring not in self._mappings:
            raise StateLost(f"attempt {token.card.attempt} is over")
        slot = token.slot * token.card.stride
        found = self._mappings[token.card.ring].pull(slot, slot + HEADER + token.start, into)
        if found != token.header():
            raise _reused(token, found)

    def _label(self, token: Token) -> None:
        """Write the header of a slot, beside what the device has to do meanwhile."""
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
        f"internal error: a slot that was to hold stage {token.stage} of {token.card.attempt} holds {holds!r}; "
        "it was written again too early"
    )
