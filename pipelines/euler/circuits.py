"""The function `euler_circuits`: its options, its plan, and its task on the worker (see `pipelines.euler`)."""

from __future__ import annotations

import os
import time
from typing import Any, Literal

import numpy as np
from distributed import Client

from gpuops import NotEulerianError, euler_circuit, verify_circuit
from gpuops.arrays import library_of
from gpuops.options import one_of
from pipelines.euler.plan import METHODS, EulerPlan, make_euler_plan
from pipelines.stores.circuits import SCHEMA, Circuits, open_circuits, write_circuits
from pipelines.stores.graph import Graph, open_graph
from pipelines.stores.place import refuse_existing, refuse_inputs
from pipelines.stores.schema import counted
from pipelines.stores.vertex_names import VertexName
from pipelines.workers.attempts import Attempt, Run
from pipelines.workers.clients import takes_client
from pipelines.workers.device_arrays import array_library, synchronize, to_host
from pipelines.workers.plans import state_plan, states_plan
from pipelines.workers.progress import Progress, duration

StageTimes = list[tuple[str, int, float]]  # name of the stage, its count (such as arcs or circuits), seconds


@takes_client
@states_plan
def euler_circuits(
    client: Client,
    graph: Graph | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    start: VertexName | None = None,
    path: bool = False,
    directed: bool = True,
    method: Literal["stages", "hierholzer", "auto"] = "stages",
    verify: bool = False,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Circuits:
    """Walk along every arc of `graph` once, by one circuit or path per component, and write the walks to `out`.

    Parameters
    ----------
    client : distributed.Client
        A client of any cluster. One device finds all circuits: the GPU of the first worker that has one, else the CPU
        of the first worker.
    graph : Graph or path of a graph store
        Weights are not used, and the walk passes through closed vertices like any other vertex.
    out : path of the new circuits store
    start : str or int, optional
        The vertex where the circuit of its component, or the path, begins: by label, or by position if the graph has no
        labels; by position as "#17" or ``tilepath.positions(17)``.
    path : bool
        Allow two unbalanced vertices: the walk of their component leads from one to the other.
    directed : bool
        True: walk along every arc. False: every edge is stored as two arcs, as in an undirected graph store; walk along
        it once, in either direction.
    method : {"stages", "hierholzer", "auto"}
        "stages" gives the same walk on any device. "hierholzer" is Hierholzer's algorithm on one core of the CPU, which
        gives another walk. "auto" takes the faster method: stages on a GPU, Hierholzer's algorithm on a CPU.
    verify : bool
        Prove that the walk is correct, in O(m).
    overwrite : bool
        Replace a circuits store that exists at `out`.
    progress : bool, optional
        Show stages and times on standard error; by default only if standard error is a terminal.

    Returns
    -------
    Circuits
        The finished store, opened.

    Raises
    ------
    gpuops.NotEulerianError
        There is no such walk; the message names the vertices at fault by their labels, and the walk that exists
        instead, if there is one.
    gpuops.VerificationError
        The walk is not correct.
    tilepath.DoesNotFitError
        Memory or disk is too small; no store is written.
    StoreError
        A store is missing, foreign or damaged, `out` exists, or the disk is full.
    ValueError
        An argument is out of range.

    Examples
    --------
    >>> walks = tilepath.euler_circuits(client, ring, "walks.zarr")
    >>> walks.arcs(0).tolist()
    [0, 1, 2]
    """
    graph = open_graph(graph)
    one_of("method", method, METHODS)
    first = None if start is None else graph.vertex(start, "start")
    refuse_existing(out, SCHEMA, overwrite)
    refuse_inputs(out, [graph.path])
    plan = make_euler_plan(client, graph, out, method=method, directed=directed)
    state_plan(plan.stated)
    walk = {"start": first, "path": path, "directed": directed, "method": plan.method}
    with Progress(1, "stages", progress) as bar:
        bar.note(plan.stated.text)
        for note in _notes(graph, directed):
            bar.note(note)
        bar.stage("walking")
        run = Run(client, [plan.worker.address], os.path.abspath(out), bar, resumes=False)
        try:
            done = run.attempts(Walking, graph, run.out, plan, walk, verify, overwrite)
        except NotEulerianError as error:
            raise error.named(graph.label, graph.path) from None
        for line in _told(done.stages):
            bar.note(line)
    return open_circuits(out)


def _notes(graph: Graph, directed: bool) -> list[str]:
    notes = []
    closed = int((~graph.through()).sum())
    if closed:
        notes.append(
            f"closed to through traffic: {counted(closed, 'vertex', 'vertices')}; a walk along all arcs passes through "
            "closed vertices, too"
        )
    if directed and not graph.directed:
        notes.append(
            "the graph is undirected: each edge is walked in both directions; pass directed=False (--undirected) to "
            "walk it once"
        )
    return notes


class Walking(Attempt):
    """The only task of a run, which starts again from the beginning if its worker is lost."""

    kind = "euler"
    stages: StageTimes

    def __init__(self, run: Run, members: list[str], before: Walking | None, *job: Any):
        super().__init__(run, members, before)
        self.job = job

    def run(self) -> None:
        (self.stages,) = self.results([self.submit(_walk, 0, *self.job, stateless=True)])


def _walk(graph: Graph, out: str, plan: EulerPlan, walk: dict[str, Any], verify: bool, overwrite: bool) -> StageTimes:
    """Read the graph, find the walk and write the store (a task); return the times of the stages."""
    xp = array_library() if plan.worker.gpu else np
    stages: StageTimes = []
    begin = time.perf_counter()

    def watch(stage: str, count: int) -> None:
        nonlocal begin
        synchronize(indices)
        now = time.perf_counter()
        stages.append((stage, count, now - begin))
        begin = now

    indptr, indices = xp.asarray(graph.indptr()), xp.asarray(graph.indices())
    watch("read", graph.m)
    # Walk along a loop first, so that the times of the stages do not include their compilation.
    loop = np.zeros(1 if walk["directed"] else 2, indices.dtype)
    euler_circuit(xp.asarray([0, len(loop)]), xp.asarray(loop), **{**walk, "start": None})
    begin = time.perf_counter()
    found = euler_circuit(indptr, indices, **walk, watch=watch)
    # This stage cuts a path out of a circuit, and numbers the edges of an undirected walk as arcs of `graph`.
    watch("renumber", len(found.arcs))
    if verify:
        verify_circuit(indptr, indices, *found, path=walk["path"], directed=walk["directed"])
        watch("verify", len(found.arcs))
    write_circuits(
        out,
        graph,
        to_host(found.arcs),
        found.offsets,
        path_from=_open_walk(indptr, indices, found),
        directed=walk["directed"],
        method=plan.method,
        overwrite=overwrite,
    )
    watch("write", len(found.arcs))
    return stages


def _open_walk(indptr: Any, indices: Any, found: Any) -> int | None:
    """Return the first vertex of the open walk, or None if all walks are closed."""
    if len(found.arcs) == 0:
        return None
    xp = library_of(indices)
    starts, last = (found.arcs[xp.asarray(places)] for places in (found.offsets[:-1], found.offsets[1:] - 1))
    begins = xp.searchsorted(indptr, starts, side="right") - 1
    opened = begins[begins != indices[last]]
    return int(opened[0]) if len(opened) else None


def _told(stages: StageTimes) -> list[str]:
    """Return the stages as lines for display; the stages of the walk itself are numbered."""
    texts = {
        "read": "Read {count:,} arc{s}",
        "orient": "Edges directed: {count:,}",
        "pair": "Predecessors computed",
        "label": "Partitioned: {count:,} circuit{s}",
        "span": "Circuits linked by {count:,} swap{s}",
        "join": "Swapped: {count:,} circuit{s} left",
        "walk": "Walk put in order",
        "hierholzer": "Hierholzer's algorithm: {count:,} circuit{s}",
        "verify": "Proved: every arc once",
        "write": "Written",
    }
    lines, number = [], 0
    for stage, count, seconds in stages:
        if stage == "renumber":
            continue
        numbered = stage not in ("read", "verify", "write")
        number += numbered
        text = texts[stage].format(count=count, s="" if count == 1 else "s")
        lines.append(f"{f'{number}. ' if numbered else ''}{text} in {_seconds(seconds)}")
    walked = sum(seconds for stage, _, seconds in stages if stage not in ("read", "verify", "write"))
    return [*lines, f"Walked in {_seconds(walked)} in all"]


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds < 1 else duration(seconds)
