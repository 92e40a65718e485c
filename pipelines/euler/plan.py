"""What finding Euler circuits takes: which worker, by which method, how much memory and disk."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from distributed import Client

from pipelines.stores import Graph
from pipelines.workers.capacity import (
    MEMORY_SHARE,
    WorkerFacts,
    available_memory,
    measure_workers,
    refuse_disk,
    refuse_memory,
)
from pipelines.workers.progress import size

METHODS = ("stages", "hierholzer", "auto")

# Bytes of memory per arc and per vertex, the graph included, for arcs numbered in 32 bits; in 64 bits twice as much.
# On a CPU measured, paths and certificate included: stages take most where every arc is a circuit at one vertex. On a
# GPU the arrays of gpuops.euler that exist at a time are counted: directed, 41 an arc in the choice of links;
# undirected, 52 in the second sort of the mates. The rest is for CuPy's pool: with an H100 it took 28 and 54 an arc
# beside the graph, of 4 million vertices and 34 million arcs.
VERTEX_BYTES = 36
ARC_BYTES = {
    ("stages", True): 40,
    ("hierholzer", True): 34,
    ("stages", False): 66,
    ("hierholzer", False): 66,
    ("stages on a GPU", True): 56,
    ("stages on a GPU", False): 72,
}


@dataclass(frozen=True)
class EulerPlan:
    """Where and how circuits are found; memory and disk in bytes."""

    worker: WorkerFacts
    method: str
    memory: int
    disk: int

    def describe(self, graph: Graph) -> str:
        """One line for people."""
        vertices, arcs = "vertex" if graph.n == 1 else "vertices", "arc" if graph.m == 1 else "arcs"
        return (
            f"{graph.n:,} {vertices}, {graph.m:,} {arcs} on {self.worker.device}, by {_METHOD_NAMES[self.method]}: "
            f"memory {size(self.memory)}, disk {size(self.disk)}"
        )


_METHOD_NAMES = {"stages": "stages", "hierholzer": "Hierholzer's algorithm, on one core"}


def make_euler_plan(
    client: Client, graph: Graph, out: str | os.PathLike[str], *, method: str, directed: bool
) -> EulerPlan:
    """Choose a worker and a method.

    Raises
    ------
    DoesNotFitError
        Memory or disk is too small.
    """
    facts = measure_workers(client, None)
    worker = next((fact for fact in facts if fact.gpu), facts[0])
    if method == "auto":
        method = "stages" if worker.gpu else "hierholzer"
    if method == "hierholzer" and worker.gpu:
        free = client.submit(available_memory, workers=[worker.address], pure=False).result()
        worker = replace(worker, gpu=False, device="CPU", free_memory=free)
    needed = memory_needed(graph, method, directed, worker.gpu)
    refuse_memory(
        f"Euler circuits of {graph.m:,} arcs",
        [needed],
        [worker],
        lambda free: _what_would_fit(graph, method, directed, worker, free),
    )
    count = graph.m if directed else graph.m // 2
    plan = EulerPlan(worker, method, needed, count * _arc_itemsize(graph))
    refuse_disk(plan.disk, out, "walk along a smaller graph")
    return plan


def memory_needed(graph: Graph, method: str, directed: bool, gpu: bool) -> int:
    """Bytes that finding the circuits takes at most, on the device that does it."""
    kind = f"{method} on a GPU" if gpu else method
    return (graph.m * ARC_BYTES[kind, directed] + graph.n * VERTEX_BYTES) * _arc_itemsize(graph) // 4


def _arc_itemsize(graph: Graph) -> int:
    return 4 if graph.m < 2**31 else 8


def _what_would_fit(graph: Graph, method: str, directed: bool, worker: WorkerFacts, free: int) -> str:
    arcs = int(MEMORY_SHARE * free * graph.m) // max(1, memory_needed(graph, method, directed, worker.gpu))
    there = f"About {arcs:,} arcs would fit. One device does it all"
    if not worker.gpu:
        return f"{there}: take a machine with more memory"
    on_cpu = size(memory_needed(graph, "stages", directed, False))
    return f"{there}: take a larger GPU, or the memory of the host, of which it would need {on_cpu} (--device cpu)"
