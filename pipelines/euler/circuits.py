"""The call `euler_circuits`: options, plan, the task on the worker (see `pipelines.euler`)."""

from __future__ import annotations

import os
import time
from typing import Any, Literal

import numpy as np
from distributed import Client

from gpuops import NotEulerianError, euler_circuit, verify_circuit
from gpuops.arrays import library_of
from pipelines.euler.plan import METHODS, EulerPlan, make_euler_plan
from pipelines.stores import Graph, open_graph
from pipelines.stores.circuits import SCHEMA, Circuits, open_circuits, write_circuits
from pipelines.stores.place import refuse_existing, refuse_inputs
from pipelines.workers.attempts import Attempt, run_attempts
from pipelines.workers.device_arrays import array_library, synchronize, to_host
from pipelines.workers.progress import Progress, duration

StageTimes = list[tuple[str, int, float]]  # name, what it counted, seconds


def euler_circuits(
    client: Client,
    graph: Graph | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    start: int | None = None,
    path: bool = False,
    directed: bool = True,
    method: Literal["stages", "hierholzer", "auto"] = "stages",
    verify: bool = False,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Circuits:
    """Walk along every arc of `graph` once, in a circuit for each component or a path, and write that to `out`.

    Parameters
    ----------
    client : distributed.Client
        Of any cluster. One device does it all: the GPU of the first worker that has one, else the first worker's CPU.
    graph : Graph or path of a graph store
        Weights do not matter, and closed vertices are passed like any other.
    out : path of the new circuits store
    start : int, optional
        The vertex where the circuit of its component begins, or the path.
    path : bool
        Two vertices may be unbalanced: the walk of their component leads from the one to the other.
    directed : bool
        False: every edge stands twice, as in an undirected graph store, and is walked along once, either way.
    method : {"stages", "hierholzer", "auto"}
        The stages give the same walk on any device. Hierholzer's algorithm, on one core of the CPU, gives another one.
        "auto" takes what is faster: the stages on a GPU, Hierholzer's algorithm on a CPU.
    verify : bool
        Prove the walk right, in O(m).
    overwrite : bool
        Replace a store that stands at `out`.
    progress : bool, optional
        Show stages and times on standard error; by default where that is a terminal.

    Returns
    -------
    Circuits
        The finished store, opened.

    Raises
    ------
    gpuops.NotEulerianError
        There is no such walk; the message names vertices by their labels, and what there is instead.
    gpuops.VerificationError
        The walk is not right.
    pipelines.workers.capacity.DoesNotFitError
        Memory or disk is too small; nothing is written.
    pipelines.stores.StoreError
        A store is missing, foreign or damaged, `out` exists, or the disk is full.
    ValueError
        An argument is out of range.
    """
    graph = graph if isinstance(graph, Graph) else open_graph(graph)
    if method not in METHODS:
        raise ValueError(f"method is {method!r}; choose {', '.join(METHODS[:-1])} or {METHODS[-1]}")
    if start is not None and not 0 <= start < graph.n:
        raise ValueError(f"start is {start}; the vertices of {graph.path} are 0 to {graph.n - 1}")
    refuse_existing(out, SCHEMA, overwrite)
    refuse_inputs(out, [graph.path])
    plan = make_euler_plan(client, graph, out, method=method, directed=directed)
    walk = {"start": None if start is None else int(start), "path": path, "directed": directed, "method": plan.method}
    with Progress(1, "stages", progress) as shown:
        shown.note(plan.describe(graph))
        for note in _notes(graph, directed):
            shown.note(note)
        shown.stage("walking")

        def begin(members: list[str], before: Walking | None) -> Walking:
            return Walking(client, members, graph, os.path.abspath(out), plan, walk, verify, overwrite)

        try:
            done = run_attempts(client, [plan.worker.address], begin, shown, resumes=False)
        except NotEulerianError as error:
            raise error.named(graph.label, graph.path) from None
        for line in _told(done.stages):
            shown.note(line)
    return open_circuits(out)


def _notes(graph: Graph, directed: bool) -> list[str]:
    notes = []
    closed = int((~graph.through()).sum())
    if closed:
        notes.append(
            f"{closed:,} vertices are closed to through traffic; a walk along all arcs passes them all the same"
        )
    if directed and not graph.directed:
        notes.append("the graph is undirected: each edge is walked along both ways; --undirected walks along it once")
    return notes


class Walking(Attempt):
    """The one task, for `attempts.run_attempts`: done again from the beginning if its worker is lost."""

    stages: StageTimes

    def __init__(self, client: Client, members: list[str], *job: Any):
        super().__init__(client, members, "euler", "circuits")
        self.job = job

    def run(self) -> None:
        (self.stages,) = self.results([self.submit(_walk, 0, *self.job, stateless=True)])

    def done(self) -> int:
        return 0

    def where(self) -> str:
        return "the beginning"


def _walk(graph: Graph, out: str, plan: EulerPlan, walk: dict[str, Any], verify: bool, overwrite: bool) -> StageTimes:
    """Read the graph, walk, write the store (a task)."""
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
    # A loop first, so that stages are not timed while they are compiled.
    loop = np.zeros(1 if walk["directed"] else 2, indices.dtype)
    euler_circuit(xp.asarray([0, len(loop)]), xp.asarray(loop), **{**walk, "start": None})
    begin = time.perf_counter()
    found = euler_circuit(indptr, indices, **walk, watch=watch)
    watch(
        "renumber", len(found.arcs)
    )  # a path is cut out of a circuit; edges were walked along as arcs of another graph
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
    """Where the walk begins that is not closed, if there is one."""
    if len(found.arcs) == 0:
        return None
    xp = library_of(indices)
    starts, last = (found.arcs[xp.asarray(places)] for places in (found.offsets[:-1], found.offsets[1:] - 1))
    begins = xp.searchsorted(indptr, starts, side="right") - 1
    opened = begins[begins != indices[last]]
    return int(opened[0]) if len(opened) else None


def _told(stages: StageTimes) -> list[str]:
    """The stages as lines for people, the walk itself by numbers."""
    texts = {
        "read": "Read {count:,} arc{s}",
        "orient": "Edges directed: {count:,}",
        "pair": "Predecessors computed",
        "label": "Partitioned: {count:,} circuit{s}",
        "span": "Circuits linked by {count:,} swap{s}",
        "join": "Swapped: {count:,} circuit{s} left",
        "walk": "Walk put in order",
        "hierholzer": "Hierholzer's algorithm: {count:,} circuit{s}",
        "verify": "Verified: every arc once",
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
