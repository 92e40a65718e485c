"""Plan a run of `euler_circuits`: choose the worker and the method, and estimate memory and disk."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial

from distributed import Client

from gpuops.memory import available_memory, size
from pipelines.stores.graph import Graph
from pipelines.stores.schema import counted
from pipelines.workers.capacity import MEMORY_SHARE, Needs, WorkerFacts, measure_workers, refuse_disk
from pipelines.workers.plans import Plan, refusing, run_plan

METHODS = ("stages", "hierholzer", "auto")

# Bytes of memory per vertex and per arc, including the graph, if arcs are numbered in 32 bits; double that in 64 bits.
# The numbers for a CPU are measured, including paths and the certificate; stages take the most memory if every arc is
# a circuit at one vertex. The numbers for a GPU count the arrays of gpuops.euler that exist at a time: 41 bytes per arc
# of a directed graph in the choice of links, 52 bytes per arc of an undirected graph in the second sort of the mates.
# The remaining bytes are for CuPy's pool: on an H100, with 4 million vertices and 34 million arcs, the pool took
# 28 bytes (directed) and 54 bytes (undirected) per arc in addition to the graph.
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
    """The worker and the method that find the circuits, and the plan that the run states."""

    worker: WorkerFacts
    method: str
    stated: Plan


_METHOD_NAMES = {"stages": "stages", "hierholzer": "Hierholzer's algorithm, on one core"}


def make_euler_plan(
    client: Client, graph: Graph, out: str | os.PathLike[str], *, method: str, directed: bool
) -> EulerPlan:
    """Choose a worker and a method, and check that memory and disk are large enough.

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
    disk = (graph.m if directed else graph.m // 2) * _arc_itemsize(graph)
    needs = Needs((memory_needed(graph, method, directed, worker.gpu),), disk=disk)
    cure = partial(_what_would_fit, graph, method, directed, worker)
    of = f"{counted(graph.n, 'vertex', 'vertices')}, {counted(graph.m, 'arc')} on {worker.device}"
    stated = run_plan(f"{of}, by {_METHOD_NAMES[method]}: {needs}", method, needs)
    with refusing(stated):
        needs.refuse_memory(f"Euler circuits of {counted(graph.m, 'arc')}", [worker], cure)
        refuse_disk(disk, out, "walk along a smaller graph")
    return EulerPlan(worker, method, stated)


def memory_needed(graph: Graph, method: str, directed: bool, gpu: bool) -> int:
    """Return the bytes of memory that finding the circuits takes at most, on the device that finds them."""
    kind = f"{method} on a GPU" if gpu else method
    return (graph.m * ARC_BYTES[kind, directed] + graph.n * VERTEX_BYTES) * _arc_itemsize(graph) // 4


def _arc_itemsize(graph: Graph) -> int:
    return 4 if graph.m < 2**31 else 8


def _what_would_fit(graph: Graph, method: str, directed: bool, worker: WorkerFacts, free: int) -> str:
    arcs = int(MEMORY_SHARE * free * graph.m) // max(1, memory_needed(graph, method, directed, worker.gpu))
    there = f"About {arcs:,} arcs would fit. One device finds all circuits"
    if not worker.gpu:
        return f"{there}: take a machine with more memory"
    on_cpu = size(memory_needed(graph, "stages", directed, False))
    return f"{there}: take a larger GPU, or the CPU with {on_cpu} of host memory (device='cpu', --device cpu)"
