"""Packets of vertices and values that workers of a search send each other, in slots of their rings.

A packet is one array of 32-bit words, (w + 1, k) for k vertices whose values take w words each. The values come first,
so that they are aligned, and the vertices last. A worker has two slots for every other worker: while packets of one
stage are pulled, it writes the packets of the next stage. The driver ends a stage before it begins another, so no
worker needs a slot any more when the slot is written again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.workers.rings import Ring, Token

VERTEX_WORD = np.dtype(np.int32)


class Outbox:
    """The packets that one worker sends.

    Parameters
    ----------
    attempt : name of the attempt
    xp : NumPy or CuPy
    ranges : ranges of vertices (first, last), one for each worker
    worker : number of this worker
    dtype : dtype of the distances
    """

    def __init__(self, attempt: str, xp: Any, ranges: list[tuple[int, int]], worker: int, dtype: np.dtype):
        self.worker, self._others = worker, len(ranges) - 1
        capacity = max(last - first for first, last in ranges) * (VERTEX_WORD.itemsize + dtype.itemsize)
        self.ring = Ring(attempt, xp, 2 * self._others, capacity, shared=self._others > 0)
        self._stage = 0

    def begin(self) -> None:
        """Begin a stage; packets of the stage before it may still be pulled."""
        self._stage += 1

    def send(self, receiver: int, vertices: Any, values: Any) -> Token:
        """Publish a packet for another worker: vertices, int32 (k), and values, (k) of any dtype."""
        words = values.itemsize // VERTEX_WORD.itemsize
        slot = self._slot(receiver)
        packet = self.ring.open(slot, (words + 1, len(vertices)), VERTEX_WORD)
        packet[:words] = values.view(VERTEX_WORD).reshape(words, -1)
        packet[words] = vertices
        return self.ring.publish(slot, self._stage)

    def show(self, values: Any) -> Token:
        """Publish one array for all other workers; this worker must not send anything else in this stage."""
        slot = self._slot(0 if self.worker else 1)
        self.ring.open(slot, values.shape, values.dtype)[...] = values
        return self.ring.publish(slot, self._stage)

    def _slot(self, receiver: int) -> int:
        return self._stage % 2 * self._others + receiver - (receiver > self.worker)


def opened(packet: Any, dtype: np.dtype) -> tuple[Any, Any]:
    """Return the vertices of a packet and their values of type `dtype`, as views."""
    return packet[-1], packet[:-1].reshape(-1).view(dtype)


def ring_bytes(ranges: list[tuple[int, int]], dtype: np.dtype) -> int:
    """Return the bytes of a worker's ring and of the buffers that it pulls to."""
    workers, widest = len(ranges), max(last - first for first, last in ranges)
    if workers == 1:
        return 0
    return 2 * workers * widest * (VERTEX_WORD.itemsize + dtype.itemsize)
