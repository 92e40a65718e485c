"""Write the arcs of a stream, which may come in any order and be larger than memory, as a graph store.

`pipelines.formats.arc_spool` sorts the arcs into rows. Lines, classes and other weights are computed after the rows
are written, when the order of the stored arcs is known.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpuops.memory import available_memory
from pipelines.files.coordinate_systems import FROM_WEB_MERCATOR, is_web_mercator, refuse_mislabelled, to_degrees
from pipelines.formats.arc_spool import Spool
from pipelines.formats.arc_stream import ArcStream
from pipelines.formats.errors import FormatError
from pipelines.stores.errors import disk_errors
from pipelines.stores.graph import DEGREES, SCHEMA, Graph, open_graph
from pipelines.stores.graph_writer import new_graph
from pipelines.stores.lines import Lines
from pipelines.stores.place import refuse_existing
from pipelines.stores.vertex_names import integers_of

LABELS_AT_A_TIME = 1 << 20  # labels that are converted to integers at a time


def default_memory() -> int:
    """Return the default bytes for sorting: a quarter of the free memory, at most 1 GiB."""
    return min(1 << 30, available_memory() // 4)


def write_sorted(
    path: str | os.PathLike[str],
    arcs: ArcStream,
    *,
    simplify: bool = False,
    sorted_rows: bool = True,
    overwrite: bool = False,
    memory: int | None = None,
) -> Graph:
    """Write the arcs of a stream as a graph store, and return the opened store.

    Parameters
    ----------
    path : path of the new store
    arcs : the arcs, in any order
    simplify : keep only the lightest of parallel arcs, and drop loops
    sorted_rows : False: keep the arcs of each vertex in the order of the stream, not sorted by head
    overwrite : replace an existing graph store at `path`
    memory : bytes to sort in, in addition to the memory for vertices; default `default_memory`. The arcs of one vertex
        are sorted even if they do not fit.

    Raises
    ------
    FormatError
        There are no vertices, the vertices do not fit in the free memory, or there are far more vertices than arcs and
        their number was not given; or a weight is not exact in the dtype of all weights.
    ValueError
        `simplify` with ``sorted_rows=False``: simplified rows are always sorted.
    StoreError
        `path` exists, or the disk is full.
    """
    with sorting(path, arcs, simplify, sorted_rows, overwrite, memory) as add:
        for piece in arcs.pieces:
            add(*piece)
    return open_graph(path)


@contextmanager
def sorting(
    path: str | os.PathLike[str],
    arcs: ArcStream,
    simplify: bool = False,
    sorted_rows: bool = True,
    overwrite: bool = False,
    memory: int | None = None,
) -> Iterator[Callable[[np.ndarray, np.ndarray, np.ndarray | None], None]]:
    """Yield the function that takes the pieces of a stream; the graph store is written when the block ends.

    Parameters and errors are those of `write_sorted`. The pieces of `arcs` itself are not read.
    """
    refuse_unsorted(simplify, sorted_rows)
    refuse_existing(path, SCHEMA, overwrite)
    memory = min(default_memory() if memory is None else memory, 1 << 50)
    with disk_errors(path), Spool(Path(path).parent, memory, arcs) as spool:
        yield spool.add
        n = spool.close()
        if arcs.fault:
            raise FormatError(arcs.fault)
        labels = arcs.first_labels(n)
        names = map(str, labels) if isinstance(labels, range) else labels
        coordinates = arcs.coordinates(n, names) if callable(arcs.coordinates) else arcs.coordinates
        if coordinates is not None and arcs.crs:
            _refuse_mislabelled(coordinates, arcs)
        through = arcs.through(n) if callable(arcs.through) else arcs.through
        m = spool.m if not simplify else sum(heads.size for _, _, heads, _ in spool.rows(simplify, sorted_rows))
        with new_graph(
            path, n=n, m=m, weight_dtype=spool.weight_dtype if arcs.weighted else None, directed=arcs.directed,
            input_edges=spool.m if arcs.directed else spool.m // 2, simplified=simplify, sorted_rows=sorted_rows,
            weight_unit=arcs.weight_unit, weight_name=arcs.weight_name, source=arcs.source, overwrite=overwrite,
        ) as writer:  # fmt: skip
            for rows in spool.rows(simplify, sorted_rows):
                writer.append_rows(*rows)
            lines = None if arcs.lines is None else arcs.lines(simplify, sorted_rows)
            classes = None if arcs.classes is None else arcs.classes(simplify, sorted_rows)
            coordinates, lines, crs = _true_to_length(arcs, coordinates, lines)
            writer.annotate(
                labels=labels, integer_labels=_are_integers(arcs, labels), coordinates=coordinates,
                through=through, lines=lines, classes=classes, crs=crs, attribution=arcs.attribution or "",
            )  # fmt: skip
            more = {} if arcs.more_weights is None else arcs.more_weights(simplify, sorted_rows)
            for name, (weights, unit) in more.items():
                writer.add_weights(name, weights, unit)


def _refuse_mislabelled(coordinates: np.ndarray, arcs: ArcStream) -> None:
    """Raise FormatError if the coordinates are plainly in another coordinate system than the stream names."""
    try:
        refuse_mislabelled(coordinates, arcs.crs, arcs.source)
    except ValueError as error:
        raise FormatError(str(error)) from error


def _are_integers(arcs: ArcStream, labels: list[str] | range | None) -> bool:
    """Return whether tables show the labels as integers."""
    if isinstance(labels, range):
        return True
    if labels is None or arcs.text_labels:
        return False
    starts = range(0, len(labels), LABELS_AT_A_TIME)  # converted together, they would take as much memory again
    return all(integers_of(labels[start : start + LABELS_AT_A_TIME]) is not None for start in starts)


def refuse_unsorted(simplify: bool, sorted_rows: bool) -> None:
    """Raise ValueError if rows shall be simplified but not sorted: simplifying compares neighbours of sorted rows."""
    if simplify and not sorted_rows:
        raise ValueError(
            "simplified rows are sorted by head, so they cannot be kept as given; leave out simplify (--simplify) or "
            "sorted_rows=False (--unsorted)"
        )


def _true_to_length(
    arcs: ArcStream, coordinates: np.ndarray | None, lines: Lines | None
) -> tuple[np.ndarray | None, Lines | None, str]:
    """Return coordinates, lines, and their coordinate system; from Web Mercator, they become degrees."""
    if coordinates is None or not is_web_mercator(arcs.crs):
        return coordinates, lines, arcs.crs
    arcs.remarks.append(f"{arcs.source}: {FROM_WEB_MERCATOR}")
    known = np.isfinite(coordinates).all(axis=1)
    coordinates = coordinates.astype(np.float64)
    coordinates[known] = to_degrees(coordinates[known], arcs.crs)
    lines = lines and replace(lines, points=to_degrees(lines.points, arcs.crs))
    return coordinates, lines, DEGREES
