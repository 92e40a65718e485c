"""The stage graph of a search spread by vertices: a stage is a round (see `pipelines.sssp.vertex_rounds`).

In a round every worker does one task, after all workers have done their tasks of the round before. So a slot of a ring
may be written again two rounds later. A task reads the packets that other workers published for this worker in the
round before. The sizes of the packets, and whether there is another round, are known when a round is over.

>>> from pipelines.workers.stage_graph import drawn
>>> graph = Rounds(workers=2)
>>> graph.round(SETTLE, posts=[[], []])
[Need(worker=0, done=1), Need(worker=1, done=1)]
>>> packet = graph.published(0, stage=1, slot=0, shape=(2, 7), dtype="<i4")
>>> graph.round(SETTLE, posts=[[], [packet]])
[Need(worker=0, done=2), Need(worker=1, done=2)]
>>> print(drawn(graph.segment()))
0  settle 0
1  settle 0
0  settle 1 (1:1)
1  settle 1 (0:1)
"""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.workers.stage_graph import Array, Need, StageGraph

SETTLE, SHOW, COMPLETE = "settle", "show", "complete"
TAKE, ATTACH, PREDECESSORS = "take", "attach", "predecessors"


class Rounds(StageGraph):
    """The tasks of the rounds, in order."""

    def __init__(self, workers: int):
        super().__init__(workers)
        self._number = 0  # number of rounds
        self._before: list[Need] = []  # the tasks of the last round

    def round(self, kind: str, posts: Sequence[Sequence[Array]]) -> list[Need]:
        """Add a round; `posts` are the arrays that each worker's task reads. Returns the need for each task."""
        workers = range(self.workers)
        self._before = [self.add(w, kind, self._number, needs=self._before, reads=posts[w]) for w in workers]
        self._number += 1
        return self._before

    def published(self, owner: int, stage: int, slot: int, shape: tuple[int, ...], dtype: str) -> Array:
        """Return an array that `owner` published in the last round; `stage` is its stage in the ring of `owner`."""
        return Array(owner, self._before[owner].done, stage, slot, shape, dtype)
