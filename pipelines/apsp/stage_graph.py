"""The stage graphs of blocked Floyd-Warshall (`pipelines.apsp` has the three kinds of blocks): in memory, out of core.

**In memory.** In stage k the owner of pivot block k closes the block (independent) and multiplies its rows (singly
dependent). These rows are the row panel, which the owner publishes in a slot of its ring. Then every worker updates its
other rows (doubly dependent). This update includes the column tiles of the textbook, as each worker reads the columns
of the pivots from its own rows.

**Look-ahead.** The owner of block k + 1 updates the rows of that block first, then closes and multiplies them. So the
next panel is ready while other workers still do stage k. The last stage of a segment has no look-ahead: if a commit
after it is reloaded, the next block would be closed twice, and closing twice may round differently from closing once. A
single worker has no look-ahead either.

**Publishing** waits until the panel is written. On a GPU it comes after the update of the worker's other rows, so that
the GPU computes meanwhile. On a CPU it comes before that update, as the panel is written already.

**A segment ends** with a task of each worker that waits for the device (finish).

**A slot is written again** when all other workers have done the update that reads the panel in the slot.

>>> from pipelines.workers.stage_graph import drawn
>>> graph = FloydWarshall(owners=[0, 1, 0], slots=[0, 0, 1], shapes=[(2, 6)] * 3, dtype="<f4", workers=2, gpu=True)
>>> graph.stage(0, last=False)
>>> graph.stage(1, last=True)
>>> print(drawn(graph.segment()))
0  independent 0
0  singly dependent 0
0  publish 0
0  doubly dependent 0
1  doubly dependent 0 next pivots (0:3)
1  independent 1
1  singly dependent 1
1  doubly dependent 0 other rows (0:3)
1  publish 1
0  doubly dependent 1 (1:5)
0  finish 1
1  doubly dependent 1
1  finish 1

**Out of core** a super-stage is all stages of a window (`gpuops.minplus.super_stage`). Every worker takes the slab
through these stages and keeps the row panels. If workers share the slab, each takes only its columns of the slab
through the stages and publishes its parts of the panels; in the last super-stage, it also stores its part of the slab.
Then every worker takes the bands of its own rows through the stages (doubly dependent), given the parts of all other
workers. No row of the window changes before all workers have read it. No slab is loaded before all bands are done,
since the rows of the slab are among them.

>>> graph = SuperStages(workers=2)
>>> graph.super_stage(0, parts=[[slice(0, 4)], [slice(4, 9)]], end=False)
>>> graph.super_stage(1, parts=[[slice(0, 4)], [slice(4, 9)]], end=True)
>>> print(drawn(graph.segment()))
0  slab 0
1  slab 0
0  publish 0
1  publish 0
0  doubly dependent 0 (1:2)
1  doubly dependent 0 (0:2)
0  slab 1 (1:3)
1  slab 1 (0:3)
0  publish 1
1  publish 1
0  store the slab 1 (1:5)
1  store the slab 1 (0:5)
0  doubly dependent 1 (1:5 1:6)
1  doubly dependent 1 (0:5 0:6)
"""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.workers.stage_graph import Array, Need, StageGraph

INDEPENDENT, SINGLY, DOUBLY = "independent", "singly dependent", "doubly dependent"
PUBLISH, FINISH = "publish", "finish"
SLAB, STORE_SLAB = "slab", "store the slab"
NEXT_PIVOTS, OTHER_ROWS = "next pivots", "other rows"  # rows of a doubly dependent task; "" stands for both


class FloydWarshall(StageGraph):
    """The tasks of the stages of Floyd-Warshall in memory, in order.

    Parameters
    ----------
    owners, slots, shapes : for each stage, the worker that owns the pivots, and the slot and shape of the row panel
    dtype : dtype of the distances
    workers : number of workers
    gpu : whether workers compute on GPUs
    """

    def __init__(
        self,
        owners: Sequence[int],
        slots: Sequence[int],
        shapes: Sequence[tuple[int, int]],
        dtype: str,
        workers: int,
        gpu: bool,
    ):
        super().__init__(workers)
        self._owners, self._slots, self._shapes, self._dtype, self._gpu = owners, slots, shapes, dtype, gpu
        self._panels: dict[int, Array] = {}  # published row panels, by stage
        self._read: dict[tuple[int, int], list[Need]] = {}  # tasks that read the panel in a slot, by owner and slot

    def panel(self, k: int) -> Array:
        """Return the row panel of stage k, once its publishing is in the graph."""
        return self._panels[k]

    def stage(self, k: int, last: bool, update: bool = True) -> None:
        """Add the tasks of stage k.

        Parameters
        ----------
        last : whether stage k is the last of its segment
        update : whether to add the doubly dependent tasks; for the last stage of a run, the tasks that write the result
            do that update
        """
        if k not in self._panels:
            self._close(k)
            self._publish(k)
        ahead = None if last or self.workers == 1 else self._owners[k + 1]
        panel, readers = self._panels[k], []
        for worker in range(self.workers) if update else ():
            rows = OTHER_ROWS if worker == ahead else ""
            if worker == ahead:
                self.add(worker, DOUBLY, k, NEXT_PIVOTS, reads=[panel])
                self._close(k + 1)
                if not self._gpu:
                    self._publish(k + 1)
            readers.append(self.add(worker, DOUBLY, k, rows, reads=[panel]))
            if worker == ahead and self._gpu:
                self._publish(k + 1)
            if last:
                self.add(worker, FINISH, k)
        self._read[panel.owner, panel.slot] = readers

    def _close(self, k: int) -> None:
        self.add(self._owners[k], INDEPENDENT, k)
        self.add(self._owners[k], SINGLY, k, needs=self._read.get((self._owners[k], self._slots[k]), ()))

    def _publish(self, k: int) -> None:
        owner, published = self.add(self._owners[k], PUBLISH, k)
        self._panels[k] = Array(owner, published, k, self._slots[k], self._shapes[k], self._dtype)


class SuperStages(StageGraph):
    """The tasks of the super-stages of a run out of core, in order."""

    def __init__(self, workers: int):
        super().__init__(workers)
        self._before: list[Need] = []  # the tasks on bands in the last super-stage

    def super_stage(self, first: int, parts: Sequence[Sequence[slice]], end: bool) -> None:
        """Add the tasks of the super-stage that begins with stage `first`.

        Parameters
        ----------
        parts : if workers share the slab, the bytes of the row panel that a worker publishes, by worker and stage
        end : whether this is the last super-stage
        """
        workers, sent = range(self.workers), []
        ready = [self.add(worker, SLAB, first, needs=self._before) for worker in workers]
        if parts:
            ready = [self.add(worker, PUBLISH, first) for worker in workers]
            for (owner, published), places in zip(ready, parts, strict=True):
                sizes = enumerate((place.start, place.stop - place.start) for place in places)
                sent.append([Array(owner, published, first + k, k, (size,), "|u1", at) for k, (at, size) in sizes])
            if end:
                ready = [self.add(worker, STORE_SLAB, first, needs=ready) for worker in workers]
        # Every worker begins with the parts of the next worker, so that not all workers read from one at a time.
        reads = [[array for arrays in [*sent[worker + 1 :], *sent[:worker]] for array in arrays] for worker in workers]
        self._before = [self.add(worker, DOUBLY, first, needs=ready, reads=reads[worker]) for worker in workers]
