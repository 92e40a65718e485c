"""The stage graph of batch training: a stage is an epoch.

In each epoch every worker sums up its samples by their best matching units (accumulate), publishes these sums in a slot
of its ring, and learns the next codebook from the sums of all workers. All workers learn the same codebook, which is
faster than to send it. The slot may be written again two epochs later: by then every other worker has published its
sums of the epoch in between, so it has read the slot. A single worker does not publish its sums.

>>> from pipelines.workers.stage_graph import drawn
>>> graph = Epochs(workers=2, length=5)
>>> graph.epoch(0)
>>> print(drawn(graph.segment()))
0  accumulate 0
0  publish 0
1  accumulate 0
1  publish 0
0  learn 0 (1:2)
1  learn 0 (0:2)
>>> graph.epoch(1); graph.epoch(2)
>>> print(drawn(graph.segment()[4:8]))
0  learn 1 (1:5)
1  learn 1 (0:5)
0  accumulate 2
0  publish 2
"""

from __future__ import annotations

import numpy as np

from pipelines.workers.stage_graph import Array, StageGraph

ACCUMULATE, PUBLISH, LEARN = "accumulate", "publish", "learn"
SLOTS = 2  # slots of a ring


class Epochs(StageGraph):
    """The tasks of the epochs, in order; `length` is the length of the array of a worker's sums, int64."""

    def __init__(self, workers: int, length: int):
        super().__init__(workers)
        self._length = length

    def epoch(self, number: int) -> None:
        """Add the tasks of epoch `number`; the first epoch is 0."""
        sums = []
        for worker in range(self.workers):
            done = self.add(worker, ACCUMULATE, number)
            if self.workers > 1:
                done = self.add(worker, PUBLISH, number)
            sums.append(Array(worker, done.done, number, number % SLOTS, (self._length,), np.dtype(np.int64).str))
        for worker in range(self.workers):
            self.add(worker, LEARN, number, reads=[*sums[worker + 1 :], *sums[:worker]])
