"""Packets of vertices and values that workers of a search send each other, in slots of their rings.

A packet is one array of 32-bit words, (w + 1, k) for k vertices whose values take w words each: the values first, which
are then aligned, and the vertices last. A worker has a slot for every other worker, twice: while what it sent in one
stage is pulled, it writes what it sends in the next. The driver ends a stage before it begins another, so nobody needs
a slot any more when its turn comes again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.workers.panels import Panels, Token

VERTEX_WORD = np.dtype(np.int32)


class Outbox:
    """What one worker sends.

    Parameters
    ----------
    attempt : its name
    xp : NumPy or CuPy
    ranges : of vertices, one for each worker
    worker : the number of this one
    dtype : of distances
    """

    def __init__(self, attempt: str, xp: Any, ranges: list[tuple[int, int]], worker: int, dtype: np.dtype):
        self.worker, self._others = worker, len(ranges) - 1
        capacity = max(last - first for first, last in ranges) * (VERTEX_WORD.itemsize + dtype.itemsize)
        self.panels = Panels(attempt, xp, 2 * self._others, capacity, shared=self._others > 0)
        self._stage = 0

    def begin(self) -> None:
        """A stage begins: what was sent in the one before it may be on its way still."""
        self._stage += 1

    def send(self, receiver: int, vertices: Any, values: Any) -> Token:
        """Publish a packet for another worker: int32 (k), and (k) of any dtype."""
        words = values.itemsize // VERTEX_WORD.itemsize
        slot = self._slot(receiver)
        packet = self.panels.open(slot, (words + 1, len(vertices)), VERTEX_WORD)
        packet[:words] = values.view(VERTEX_WORD).reshape(words, -1)
        packet[words] = vertices
        return self.panels.publish(slot, self._stage)

    def show(self, values: Any) -> Token:
        """Publish an array for all other workers; nothing else is sent in this stage."""
        slot = self._slot(0 if self.worker else 1)
        self.panels.open(slot, values.shape, values.dtype)[...] = values
        return self.panels.publish(slot, self._stage)

    def _slot(self, receiver: int) -> int:
        return self._stage % 2 * self._others + receiver - (receiver > self.worker)


def opened(packet: Any, dtype: np.dtype) -> tuple[Any, Any]:
    """The vertices of a packet, and their values, of `dtype`: views."""
    return packet[-1], packet[:-1].reshape(-1).view(dtype)


def ring_bytes(ranges: list[tuple[int, int]], dtype: np.dtype) -> int:
    """What the ring of a worker takes, and the buffers that it pulls to."""
    workers, widest = len(ranges), max(last - first for first, last in ranges)
    if workers == 1:
        return 0
    return 2 * workers * widest * (VERTEX_WORD.itemsize + dtype.itemsize)
