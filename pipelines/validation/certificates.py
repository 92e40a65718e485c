"""Certificates of stores of distances and of paths: prove rows against the graph, and summarize for the user."""

from __future__ import annotations

import os
from typing import Literal

from gpuops.certificates import Certificate, join_certificates, verify_paths
from gpuops.errors import VerificationError
from pipelines.generators.generated_graph import GeneratedGraph
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import Graph
from pipelines.stores.kinds import Kind
from pipelines.stores.paths import Paths, open_paths
from pipelines.stores.schema import counted, kind_of
from pipelines.stores.solutions import open_solution
from pipelines.validation.bounds import reach, row_limit
from pipelines.validation.distances import CERTIFIED_ROWS, choose_rows, verify_distances
from pipelines.validation.generated import certify_generated

PROVABLE = ("distances/2", "hierarchy/1", "paths/1")  # schemas of stores whose rows have certificates
# What proves a result of other schemas instead.
INSTEAD = {
    "matrix/2": "a table has no certificate; if it was computed from a hierarchy, `tilepath verify HIERARCHY --rows "
    "100` proves rows of the hierarchy",
    "circuits/1": "circuits have no rows; `tilepath euler --verify` proves a walk before it is written",
}


def certify(
    store: str | os.PathLike[str],
    graph: Graph | str | os.PathLike[str] | None = None,
    rows: int | Literal["all"] = CERTIFIED_ROWS,
) -> tuple[Certificate, int]:
    """Prove that rows of a finished store of distances, held or computed, or of paths are correct.

    Parameters
    ----------
    store : path of the store
    graph : the graph or its path; None: the graph recorded in the store
    rows : number of rows, chosen at random except the first and the last, or "all"

    Returns
    -------
    The certificate, and the number of rows of the store.

    Raises
    ------
    VerificationError
        A row is wrong; the message says where. A graph that was damaged or changed also makes rows wrong.
    StoreError
        The graph is not the recorded graph, a store cannot be read, or a store of this kind has no certificate.
    """
    kind = kind_of(store)
    if reason := without_certificate(kind):
        raise StoreError(f"{store}: {reason}")
    try:
        if kind.schema == "paths/1":
            paths = open_paths(store)
            return certify_paths(paths, graph, rows), paths.shape[0]
        distances, origin = open_solution(store, graph)
        return verify_distances(distances, origin, rows), distances.shape[0]
    except VerificationError as error:
        cure = "look for damage in its graph (tilepath info GRAPH --verify), then compute the store again"
        raise VerificationError(f"{store}: {error}; {cure}") from error


def certify_paths(
    paths: Paths, graph: Graph | str | os.PathLike[str] | None = None, rows: int | Literal["all"] = CERTIFIED_ROWS
) -> Certificate:
    """Prove that rows of a paths store are correct, as `verify_distances` does for a distances store."""
    graph = graph if isinstance(graph, Graph) else paths.graph(graph)
    if isinstance(graph, GeneratedGraph):
        return certify_generated(paths, graph, rows)
    if not paths.has_predecessors:
        raise StoreError(
            f"{paths.path}: holds no predecessors, which certificates need; compute it again; pass "
            "predecessors=True (leave out --no-predecessors)"
        )
    cutoff = reach(paths.cutoff, paths.dtype)
    arcs, through = graph.rows(), graph.through()
    certificates = []
    for row in choose_rows(paths.shape[0], rows).tolist():
        distances = paths.distances(row)
        certificates.append(
            verify_paths(
                *arcs,
                distances,
                paths.predecessors(row),
                paths.row_sources(row),
                through=through,
                cutoff=row_limit(distances, cutoff, paths.targets),
                label=graph.label,
            )
        )
    return join_certificates(certificates)


def describe_certificate(found: Certificate, total: int) -> str:
    """Return a summary of a certificate, as text for the user."""
    parts = [f"{rows_proved(total, found.rows)}: {counted(found.arcs, 'arc')} tested"]
    if found.hops is not None:
        parts.append(f"the longest path has {counted(found.hops, 'arc')}")
    if found.relative or found.absolute:
        parts.append(f"within {found.relative:.3g} of a distance, plus {found.absolute:.3g}")
    return ", ".join(parts)


def without_certificate(kind: Kind) -> str:
    """Return why no row of a store of this kind can be proved, as text for the user; "" if rows can be."""
    return "" if kind.schema in PROVABLE else INSTEAD.get(kind.schema, f"a {kind.name} store has no certificate")


def rows_proved(total: int, rows: int = CERTIFIED_ROWS) -> str:
    """Return the number of proved rows and of all rows of a store, as text for the user.

    >>> rows_proved(3353), rows_proved(1)
    ('proved 16 of 3,353 rows', 'proved 1 of 1 row')
    """
    return f"proved {min(rows, total):,} of {counted(total, 'row')}"
