"""A stage graph as data: the tasks of each worker, their order, and what must be done before each task.

Every worker has one list of tasks and does them in that order. A task may *need* tasks of other workers: a need names a
worker, and says how many tasks of its list must be done. A task may *read* arrays that other workers have published in
their rings (`pipelines.workers.rings`). This module knows neither Dask nor a device nor an algorithm: a pipeline adds
tasks to a `StageGraph`, and an executor (`pipelines.workers.executors`) has the workers do them.

A graph is executed in *segments*: the tasks of some stages. The driver decides where a segment ends, and takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Need(NamedTuple):
    """The condition that `worker` has done `done` tasks of its list."""

    worker: int
    done: int


class Array(NamedTuple):
    """An array in a slot of its owner's ring, at the byte `start` of the slot.

    The owner has published the array when it has done `published` tasks of its list.
    """

    owner: int
    published: int
    stage: int
    slot: int
    shape: tuple[int, ...]
    dtype: str
    start: int = 0


class Task(NamedTuple):
    """A task of a worker.

    Attributes
    ----------
    kind : name of the task in the words of the algorithm, such as "singly dependent"
    stage : number of the stage of the algorithm
    rows : name of the rows that the task updates, if a worker has several tasks of this kind in a stage
    needs : tasks of other workers that must be done before, among them the tasks that publish the arrays in `reads`
    reads : arrays of any worker that the task is given
    """

    kind: str
    stage: int
    rows: str = ""
    needs: tuple[Need, ...] = ()
    reads: tuple[Array, ...] = ()


class Placed(NamedTuple):
    """A task, the worker that does it, and how many tasks of the worker's list are done once it is done."""

    worker: int
    done: int
    task: Task


class StageGraph:
    """Lists of tasks that grow at their ends.

    >>> graph = StageGraph(2)
    >>> published = graph.add(0, "publish", 0)
    >>> graph.add(1, "update", 0, needs=[published])
    Need(worker=1, done=1)
    >>> print(drawn(graph.segment()))
    0  publish 0
    1  update 0 (0:1)
    >>> graph.add(1, "update", 1, needs=[published, Need(1, 1)])
    Need(worker=1, done=2)
    """

    def __init__(self, workers: int):
        self.workers = workers
        self._counts = [0] * workers
        self._segment: list[Placed] = []

    def add(
        self,
        worker: int,
        kind: str,
        stage: int,
        rows: str = "",
        needs: Sequence[Need] = (),
        reads: Sequence[Array] = (),
    ) -> Need:
        """Add a task to the end of a worker's list; returns the need for other tasks that wait for this task.

        The task also needs the tasks that publish the arrays it reads. Needs of the same worker are left out, as the
        order of the list fulfils them.
        """
        published = [Need(array.owner, array.published) for array in reads]
        others = tuple(dict.fromkeys(need for need in [*published, *needs] if need.worker != worker))
        self._counts[worker] += 1
        self._segment.append(Placed(worker, self._counts[worker], Task(kind, stage, rows, others, tuple(reads))))
        return Need(worker, self._counts[worker])

    def segment(self) -> list[Placed]:
        """Return the tasks added since the last segment was taken; each comes after all tasks that it needs."""
        segment, self._segment = self._segment, []
        return segment


def drawn(segment: Sequence[Placed]) -> str:
    """Return a line of text for each task, in the order of `segment`: worker, task and needs."""

    def line(worker: int, task: Task) -> str:
        needs = " ".join(f"{need.worker}:{need.done}" for need in task.needs)
        return " ".join(filter(None, [f"{worker} ", task.kind, str(task.stage), task.rows, needs and f"({needs})"]))

    return "\n".join(line(worker, task) for worker, _, task in segment)
