"""Export stores to files of other programs: tables (CSV, TSV, Parquet), NumPy arrays (.npy), Matrix Market (.mtx).

========= ==================================================== ============================ ========================
store     columns of a table                                   .npy                         .mtx
========= ==================================================== ============================ ========================
graph     source, target, weight; a row for each arc           not available                arcs, as coordinates
distances source, target, distance; a row for each pair        the matrix, a row per source finite distances
          that a path joins
paths     as for distances, and predecessor if the store has   distances                    finite distances
          predecessors
circuits  circuit, position, arc, source, target               arcs in walking order        not available
codebook  row, column, hits and values of a unit               units, a row for each        not available
mapping   sample, unit, distance (unit2, distance2, ...)       units of each sample         not available
samples   the columns, label, weight                           values                       not available
========= ==================================================== ============================ ========================

A graph with coordinates is also exported to layers of geometries (`pipelines.exports.layers`): .gpkg, .geojson and
.geoparquet. Other formats are refused. Tables name vertices by their labels, or by their numbers if the graph has no
labels; Matrix Market numbers vertices from 1. Values of samples and maps are exported as stored; they are scaled if the
store is.
Stores are streamed: an export needs memory for a few chunks of the store, and for the arrays over vertices.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gpuops.numbers import outside_infinity
from pipelines.exports.layers import LAYERS, export_layers
from pipelines.exports.streamed_files import WRITERS, Coordinates, Matrix
from pipelines.files.layers import suffix_of
from pipelines.files.output_file import check_free, whole_file
from pipelines.files.tables import vertex_names
from pipelines.stores.circuits import Circuits
from pipelines.stores.codebook import Codebook
from pipelines.stores.distances import Distances
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import Graph
from pipelines.stores.kinds import KINDS
from pipelines.stores.mapping import Mapping
from pipelines.stores.paths import Paths
from pipelines.stores.samples import Samples
from pipelines.stores.schema import kind_of, store_schema, unknown_schema
from pipelines.stores.table_stores import Columns, TableStore

_PIECE = 1 << 20  # rows of a table, or values of a matrix, in memory at a time


def export_store(
    store: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    graph: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> int:
    """Write the contents of a store to a file of another format.

    Parameters
    ----------
    store : path
        Path of a finished store.
    out : path
        Path of the new file: .csv, .tsv, .csv.gz, .tsv.gz, .parquet, .npy or .mtx, or of a graph with coordinates
        .gpkg, .geojson or .geoparquet. The suffix chooses the format. The file is written whole or not at all.
    graph : path, optional
        Path of the graph store, if it was moved.
    overwrite : bool
        Replace `out` if it exists.

    Returns
    -------
    int
        Rows of the table, array or layer, or entries of the matrix.

    Raises
    ------
    ValueError
        The suffix of `out` is unknown, or the store cannot be exported to its format.
    FileExistsError
        `out` exists, and `overwrite` is not set.
    StoreError
        The store is unfinished, or its graph is gone.

    Examples
    --------
    >>> tilepath.export_store("distances.zarr", "distances.npy")
    4
    >>> np.load("distances.npy")[0].tolist()
    [0, 350, 515, 570]
    """
    if suffix_of(out) in LAYERS:
        return export_layers(kind_of(store).open(store), out, overwrite=overwrite)
    suffix = _suffix(out)
    schema = store_schema(store)
    if schema in KINDS and KINDS[schema].name in ("matrix", "hierarchy"):
        raise StoreError(f"{store}: a {KINDS[schema].name} store is not exported; tilepath od writes tables and .npy")
    if schema not in _EXPORTS:
        raise unknown_schema(store, schema)
    exports = _EXPORTS[schema]
    way = exports.get(WRITERS[suffix][0])
    if way is None:
        others = [other for other, (form, _) in WRITERS.items() if form in exports]
        raise ValueError(
            f"{out}: a {schema.split('/')[0]} store cannot be exported to {suffix}; choose one of {', '.join(others)}"
        )
    check_free(out, overwrite)
    with whole_file(out) as partial:
        return WRITERS[suffix][1](partial, way(KINDS[schema].open(store), graph), suffix)


def _suffix(out: str | os.PathLike[str]) -> str:
    for suffix in WRITERS:
        if Path(out).name.lower().endswith(suffix):
            return suffix
    suffixes = ", ".join((*WRITERS, *LAYERS))
    raise ValueError(f"{out}: a store is exported to one of {suffixes}; choose one of these suffixes")


# --- Contents of stores -----------------------------------------------------------------------------------------------


def _runs(count: int, width: int) -> Iterator[slice]:
    """Yield ranges of `count` rows of `width` values each, with up to `_PIECE` values or one row in a range."""
    step = max(_PIECE // max(width, 1), 1)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _arcs(store: Graph) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    for first, last in store.ranges(1 + store.m // _PIECE):
        indptr, heads, weights = store.rows(first, last)
        yield np.repeat(np.arange(first, last), np.diff(indptr)), heads, weights


def _graph_table(store: Graph, _: Any) -> Iterator[Columns]:
    names = vertex_names(store)
    for tails, heads, weights in _arcs(store):
        columns = {"source": names.take(pa.array(tails)), "target": names.take(pa.array(heads))}
        yield columns | ({"weight": weights} if store.weighted else {})


def _graph_coordinates(store: Graph, _: Any) -> Coordinates:
    return Coordinates((store.n, store.n), store.weight_dtype if store.weighted else None, _arcs(store))


def _rows_of(store: Any) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
    """Yield a few rows at a time: the number of the first row, distances, and predecessors or None."""
    for first, distances, *rest in store.blocks():
        predecessors = rest[0] if rest else None
        for rows in _runs(len(distances), store.n):
            yield first + rows.start, distances[rows], None if predecessors is None else predecessors[rows]


def _distances_table(store: Distances | Paths, graph: Any) -> Iterator[Columns]:
    """Yield the pairs that a path joins, as columns."""
    names, sources = vertex_names(store.graph(graph)), store.row_vertices()
    unreachable = outside_infinity(store.dtype)
    for first, distances, predecessors in _rows_of(store):
        rows, targets = np.nonzero(distances != unreachable)
        columns: Columns = {} if sources is None else {"source": names.take(pa.array(sources[first + rows]))}
        columns["target"] = names.take(pa.array(targets))
        columns["distance"] = distances[rows, targets]
        if predecessors is not None:
            before = predecessors[rows, targets]
            columns["predecessor"] = names.take(pa.array(before, mask=before < 0))
        yield columns


def _distances_matrix(store: Distances | Paths, _: Any) -> Matrix:
    return Matrix(store.shape, store.dtype, (distances for _, distances, _ in _rows_of(store)))


def _distances_coordinates(store: Distances | Paths, _: Any) -> Coordinates:
    def pieces() -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for first, distances, _ in _rows_of(store):
            rows, columns = np.nonzero(distances != outside_infinity(store.dtype))
            yield first + rows, columns, distances[rows, columns]

    return Coordinates(store.shape, store.dtype, pieces())


def _circuits_table(store: Circuits, graph: Any) -> Iterator[Columns]:
    opened = store.graph(graph)
    names, indptr, indices, offsets = vertex_names(opened), opened.indptr(), opened.indices(), store.offsets()
    for places in _runs(store.length, 1):
        arcs = store.arcs(places.start, places.stop)
        numbers = np.arange(places.start, places.stop)
        circuits = offsets.searchsorted(numbers, side="right") - 1
        yield {
            "circuit": circuits,
            "position": numbers - offsets[circuits],
            "arc": arcs,
            "source": names.take(pa.array(indptr.searchsorted(arcs, side="right") - 1)),
            "target": names.take(pa.array(indices[arcs])),
        }


def _circuits_matrix(store: Circuits, _: Any) -> Matrix:
    dtype = store.arcs(0, 0).dtype
    return Matrix((store.length,), dtype, (store.arcs(run.start, run.stop) for run in _runs(store.length, 1)))


def _stored_table(store: TableStore, _: Any) -> Iterator[Columns]:
    for rows in _runs(store.table_rows, len(store.table_columns(0, 0))):
        yield store.table_columns(rows.start, rows.stop)


def _codebook_matrix(store: Codebook, _: Any) -> Matrix:
    return Matrix((store.grid.units, store.d), store.dtype, iter([store.units()]))


def _mapping_matrix(store: Mapping, _: Any) -> Matrix:
    pieces = (store.units(run.start, run.stop) for run in _runs(store.n, store.top))
    return Matrix((store.n, store.top), np.dtype(np.int32), pieces)


def _samples_matrix(store: Samples, _: Any) -> Matrix:
    return Matrix((store.n, store.d), store.dtype, (store.values(r.start, r.stop) for r in _runs(store.n, store.d)))


_EXPORTS: dict[str, dict[str, Callable[[Any, Any], Any]]] = {
    "graph/1": {"table": _graph_table, "coordinates": _graph_coordinates},
    "distances/2": {"table": _distances_table, "matrix": _distances_matrix, "coordinates": _distances_coordinates},
    "paths/1": {"table": _distances_table, "matrix": _distances_matrix, "coordinates": _distances_coordinates},
    "circuits/1": {"table": _circuits_table, "matrix": _circuits_matrix},
    "codebook/1": {"table": _stored_table, "matrix": _codebook_matrix},
    "mapping/1": {"table": _stored_table, "matrix": _mapping_matrix},
    "samples/1": {"table": _stored_table, "matrix": _samples_matrix},
}
