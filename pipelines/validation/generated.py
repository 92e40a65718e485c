"""Certificates of searches over generated graphs: every worker generates some of the edges again, and tests them.

1. Load: every worker reads the row from the store.
2. Pass: every worker generates and tests its own ranges of edge numbers, batch by batch
   (`gpuops.certificates.arc_batches`). A pass tests each edge once, and does not rely on how the search divided its
   graph.
3. Join: every worker learns which vertices all workers have proven. One pass proves every vertex that is farther than
   its predecessor on a shortest path. A sequence of vertices at the same distance may need one more pass per vertex.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from distributed import Client

from gpuops.certificates import Certificate, RowProof, join_certificates
from pipelines.generators.generated_graph import GeneratedGraph
from pipelines.stores.paths import Paths
from pipelines.validation.bounds import reach, row_limit
from pipelines.validation.distances import CERTIFIED_ROWS, choose_rows
from pipelines.workers.attempts import Attempt, retried
from pipelines.workers.device_arrays import array_library, to_host
from pipelines.workers.progress import Progress
from pipelines.workers.resident_state import clear_states, keep_state, state_of

STEPS = 16  # tasks per worker in a pass; progress is shown after each task


def certify_generated(paths: Paths, graph: GeneratedGraph, rows: int | Literal["all"] = CERTIFIED_ROWS) -> Certificate:
    """Prove in this process that rows of a paths store of a generated graph are correct."""
    return join_certificates([_prove(paths, graph, row) for row in choose_rows(paths.shape[0], rows).tolist()])


def certify_on_workers(
    client: Client, paths: Paths, graph: GeneratedGraph, progress: bool | None = None
) -> Certificate:
    """Prove on all workers, on GPUs if they have any, that rows of a paths store of a generated graph are correct.

    Raises
    ------
    VerificationError
        A row is wrong; the message names the vertex or the arc.
    """
    chosen = choose_rows(paths.shape[0]).tolist()
    with Progress(graph.input_edges * len(chosen), "edges", progress) as bar:

        def certified(attempt: Attempt) -> Certificate:
            bar.start(0)
            return join_certificates([_certify(attempt, paths, graph, row, bar) for row in chosen])

        return retried(client, "certify", certified)


def _certify(attempt: Attempt, paths: Paths, graph: GeneratedGraph, row: int, bar: Progress) -> Certificate:
    workers = range(len(attempt.members))
    bar.stage(f"verifying row {row + 1}: reading")
    attempt.on_all(_load, paths, graph, row)
    cuts = np.linspace(0, graph.input_edges, STEPS * len(workers) + 1).astype(np.int64).tolist()
    last, passes = -1, 0
    while True:
        passes += 1
        bar.stage(f"verifying row {row + 1}" + (f", pass {passes}" if passes > 1 else ""))
        for step in range(STEPS):
            places = [step * len(workers) + w for w in workers]
            attempt.wait([attempt.submit(_test, w, cuts[i], cuts[i + 1]) for w, i in enumerate(places)])
            attempt.drop_done()
            if passes == 1:
                bar.advance(cuts[places[-1] + 1] - cuts[places[0]])
        marks = [attempt.submit(_marks, w) for w in workers]
        lacking, *_ = attempt.on_all(_join, marks)
        if lacking == 0:
            return _certificate(graph)
        if lacking == last:
            attempt.wait([attempt.submit(_refuse_lacking, 0)])
        last = lacking


def _prove(paths: Paths, graph: GeneratedGraph, row: int) -> Certificate:
    proof = _proof(paths, graph, row, np)
    last = -1
    while (lacking := len(proof.lacking())) or last < 0:
        if lacking == last:
            proof.refuse_lacking()
        last = lacking
        for arcs in graph.arcs():
            proof.test(*arcs)
    return _certificate(graph)


def _certificate(graph: GeneratedGraph) -> Certificate:
    return Certificate(rows=1, arcs=graph.m, hops=None, relative=0.0, absolute=0.0, slack=0.0)


def _proof(paths: Paths, graph: GeneratedGraph, row: int, xp: Any) -> RowProof:
    distances = paths.distances(row)
    limit = row_limit(distances, reach(paths.cutoff, paths.dtype), paths.targets)
    predecessors = xp.asarray(paths.predecessors(row)) if paths.has_predecessors else None
    return RowProof(xp.asarray(distances), paths.row_sources(row), predecessors, limit=limit, label=graph.label)


# The tasks of the workers.


def _load(attempt: str, paths: Paths, graph: GeneratedGraph, row: int) -> None:
    clear_states()
    keep_state(attempt, (_proof(paths, graph, row, array_library()), graph))


def _test(attempt: str, start: int, stop: int) -> None:
    """Test the arcs of the edges from `start` to `stop` (excluded)."""
    proof, graph = state_of(attempt)
    for arcs in graph.arcs(array_library(), start, stop):
        proof.test(*arcs)


def _marks(attempt: str) -> np.ndarray:
    """Return which vertices this worker has proven, as bits, eight vertices per byte."""
    return np.packbits(to_host(state_of(attempt)[0].proven))


def _join(attempt: str, marks: list[np.ndarray]) -> int:
    """Mark the vertices that any worker has proven; return the number of vertices without a proof."""
    proof, _ = state_of(attempt)
    joined = np.unpackbits(np.bitwise_or.reduce(marks), count=len(proof.proven)).view(bool)
    proof.proven = array_library().asarray(joined)
    return len(proof.lacking())


def _refuse_lacking(attempt: str) -> None:
    state_of(attempt)[0].refuse_lacking()
