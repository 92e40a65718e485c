"""Tables from origins to destinations: distances, the nearest, those within reach, or what they add up to.

Distances come from a boundary store, or from a graph by searches, some rows at a time; no more than a block of them is
ever held. A table of pairs is written as it grows, and takes its place when it is whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from gpuops import batched_shortest_distances, search_graph
from gpuops.numbers import outside_infinity
from pipelines.answers.od_points import Points
from pipelines.answers.tables import DELIMITERS, PARQUET, check_output, check_suffix, write_table
from pipelines.formats.output_file import check_free, whole_file
from pipelines.stores import Graph
from pipelines.stores.boundary import Boundary
from pipelines.workers.progress import Progress

BLOCK_BYTES = 64 << 20  # of distances held at a time
LANES = 32  # searches that share the reads of arcs


@dataclass(frozen=True)
class Reduction:
    """What the distances from an origin are reduced to.

    Attributes
    ----------
    name : "count", "sum", "min" or "decay"
    column : of the destinations, whose values are added up; None counts each as 1
    scale : of the decay: a destination at the distance d counts exp(-d / scale)
    """

    name: str
    column: str | None = None
    scale: float | None = None


def parse_reduction(text: str) -> Reduction:
    """``count``, ``min``, ``sum:COLUMN``, or ``decay:SCALE`` or ``decay:SCALE:COLUMN``.

    >>> parse_reduction("sum:jobs")
    Reduction(name='sum', column='jobs', scale=None)
    """
    name, *rest = text.split(":")
    if name in ("count", "min") and not rest:
        return Reduction(name)
    if name == "sum" and len(rest) == 1 and rest[0]:
        return Reduction(name, rest[0])
    if name == "decay" and 1 <= len(rest) <= 2:
        try:
            scale = float(rest[0])
        except ValueError:
            scale = 0.0
        if 0 < scale < np.inf:
            return Reduction(name, rest[1] if len(rest) == 2 else None, scale)
    raise ValueError(f"reduce is {text!r}; give count, min, sum:COLUMN, decay:SCALE or decay:SCALE:COLUMN")


class Distances:
    """Distances to some targets, from any vertices; unreachable is +inf, or the integer dtype's maximum."""

    def __init__(self, source: Boundary | Graph, targets: np.ndarray):
        if isinstance(source, Boundary):
            self.dtype = source.dtype
            self.rows: Callable[[np.ndarray], np.ndarray] = lambda v: source.between(v, targets)
            return
        if source.weight_min < 0:
            raise ValueError(
                f"{source.path} has negative weights; make a boundary store of it first (tilepath partition)"
            )
        graph = search_graph(*source.rows(), through=source.through(), symmetric=not source.directed)
        self.dtype = graph.dtype
        self.rows = lambda v: np.concatenate(
            [batched_shortest_distances(graph, v[i : i + LANES])[:, targets] for i in range(0, len(v), LANES)]
        )


def write_od_table(
    source: Boundary | Graph,
    origins: Points,
    destinations: Points,
    out: str | os.PathLike[str],
    *,
    within: float | None = None,
    nearest: int | None = None,
    reduce: str | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> int:
    """Write distances from each origin to each destination.

    Parameters
    ----------
    source : Boundary or Graph
        A boundary store answers from its tables; a graph is searched.
    origins, destinations : Points
        As `pipelines.answers.od_points.read_points` reads them. Destinations need the column that is added up.
    out : CSV, TSV or Parquet with the columns origin, destination, distance (null where unreachable), and how far
        places were snapped; or, reduced, with origin and the value. A ``.npy`` file instead takes the matrix, rows by
        origin.
    within : leave out pairs that are farther apart, or unreachable
    nearest : keep only so many destinations of each origin, the nearest first
    reduce : one value for each origin, by `parse_reduction`
    overwrite : replace `out` if it exists
    progress : whether to show progress; None: where standard error is a terminal

    Returns
    -------
    int
        Rows written.

    Raises
    ------
    ValueError
        An option has no such value, or does not go with another or with `out`.
    FileExistsError
        `out` exists.
    """
    reduction = None if reduce is None else parse_reduction(reduce)
    _check(out, within, nearest, reduction, overwrite)
    distances = Distances(source, destinations.vertices)
    step = max(1, min(len(origins.vertices), BLOCK_BYTES // max(1, len(destinations.vertices) * 8)))
    pairs = len(origins.vertices) * len(destinations.vertices)
    with Progress(pairs, "pairs", progress) as shown:
        shown.stage("distances")

        def blocks() -> Iterator[tuple[slice, np.ndarray]]:
            for start in range(0, len(origins.vertices), step):
                rows = slice(start, start + step)
                found = distances.rows(origins.vertices[rows])
                yield rows, found
                shown.advance(found.size)

        if reduction is not None:
            return _write_reduced(blocks(), origins, destinations, out, reduction, within, overwrite, distances.dtype)
        if str(out).endswith(".npy"):
            return _write_matrix(blocks(), (len(origins.vertices), len(destinations.vertices)), distances.dtype, out)
        return _write_pairs(blocks(), origins, destinations, out, within, nearest, distances.dtype)


def _check(
    out: str | os.PathLike[str], within: float | None, nearest: int | None, reduction: Reduction | None, overwrite: bool
) -> None:
    if within is not None and not within >= 0:
        raise ValueError(f"within is {within:g}; give a distance of 0 or more")
    if nearest is not None and nearest < 1:
        raise ValueError(f"nearest is {nearest}; give a whole number from 1")
    if reduction is not None and nearest is not None:
        raise ValueError("nearest does not go with reduce; leave one of them out")
    if not str(out).endswith(".npy"):
        return check_output(out, overwrite)
    if within is not None or nearest is not None or reduction is not None:
        raise ValueError(f"{out}: a matrix has every distance; write a table (.parquet) to choose or reduce")
    check_free(out, overwrite)


def _write_matrix(
    blocks: Iterator[tuple[slice, np.ndarray]], shape: tuple[int, int], dtype: np.dtype, out: str | os.PathLike[str]
) -> int:
    with whole_file(out) as partial:
        with open(partial, "wb") as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
            )
            for _, found in blocks:
                file.write(np.ascontiguousarray(found).data)
    return shape[0]


def _write_pairs(
    blocks: Iterator[tuple[slice, np.ndarray]],
    origins: Points,
    destinations: Points,
    out: str | os.PathLike[str],
    within: float | None,
    nearest: int | None,
    dtype: np.dtype,
) -> int:
    snaps = [(name, p) for name, p in (("origin", origins), ("destination", destinations)) if p.snapped is not None]
    names = pa.dictionary(pa.int32(), pa.large_string())
    fields = [("origin", names), ("destination", names), ("distance", pa.from_numpy_dtype(dtype))]
    schema = pa.schema([*fields, *((f"{name}_snapped", pa.float64()) for name, _ in snaps)])
    count = 0
    with whole_file(out) as partial, _table_writer(partial, check_suffix(out), schema) as write:
        for rows, found in blocks:
            chosen = _chosen(found, within, nearest)
            if chosen is None:
                i, j = np.divmod(np.arange(found.size), found.shape[1])
                values = found.ravel()
            else:
                i, j = chosen
                values = found[i, j]
            i = i + rows.start
            columns = [
                pa.DictionaryArray.from_arrays(pa.array(i.astype(np.int32)), origins.ids),
                pa.DictionaryArray.from_arrays(pa.array(j.astype(np.int32)), destinations.ids),
                pa.array(values, mask=values == outside_infinity(dtype)),
            ]
            columns += [pa.array(p.snapped[i if name == "origin" else j]) for name, p in snaps if p.snapped is not None]
            write(pa.record_batch(columns, schema=schema))
            count += len(values)
    return count


def _chosen(found: np.ndarray, within: float | None, nearest: int | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows and columns of the pairs to keep, row by row; None for all. Of equals the first column is nearer."""
    if within is None and nearest is None:
        return None
    keep = found != outside_infinity(found.dtype)
    if within is not None:
        keep &= found <= within
    if nearest is None:
        i, j = np.nonzero(keep)
        return i, j
    order = np.argsort(found, axis=1, kind="stable")[:, :nearest]
    i = np.repeat(np.arange(len(found)), order.shape[1])
    j = order.ravel()
    there = keep[i, j]
    return i[there], j[there]


def _write_reduced(
    blocks: Iterator[tuple[slice, np.ndarray]],
    origins: Points,
    destinations: Points,
    out: str | os.PathLike[str],
    reduction: Reduction,
    within: float | None,
    overwrite: bool,
    dtype: np.dtype,
) -> int:
    values = np.ones(len(destinations.vertices))
    if reduction.column is not None:
        values = destinations.columns[reduction.column]
    results = np.concatenate([_reduced(found, reduction, values, within) for _, found in blocks])
    name = reduction.name if reduction.column is None else f"{reduction.name}_{reduction.column}"
    columns: dict[str, Any] = {"origin": origins.ids, name: pa.array(results, mask=np.isinf(results))}
    if origins.snapped is not None:
        columns["origin_snapped"] = pa.array(origins.snapped)
    write_table(pa.table(columns), out, overwrite)
    return len(results)


def _reduced(found: np.ndarray, reduction: Reduction, values: np.ndarray, within: float | None) -> np.ndarray:
    """(k,) float64: one value for each row of distances; the minimum of none is +inf."""
    reached = found != outside_infinity(found.dtype)
    if within is not None:
        reached &= found <= within
    if reduction.name == "min":
        return np.where(reached, found, np.inf).min(axis=1, initial=np.inf)
    if reduction.name == "decay":
        return np.where(reached, np.exp(-found / np.float64(reduction.scale)), 0.0) @ values
    return reached @ values


@contextmanager
def _table_writer(path: Path, suffix: str, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Writes record batches one after the other."""
    if suffix in PARQUET:
        ids = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        options = {  # statistics of text, and dictionaries of distances, take longer than all else
            "compression": {field.name: "zstd" if field.name in ids else "lz4" for field in schema},
            "use_dictionary": ids,
            "write_statistics": [field.name for field in schema if field.name not in ids],
        }
        with pa.parquet.ParquetWriter(path, schema, **options) as writer:
            yield writer.write_batch
        return
    plain = pa.schema([(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in schema])
    compression = "gzip" if suffix.endswith(".gz") else None
    with pa.output_stream(path, compression=compression) as stream:
        delimited = pa.csv.WriteOptions(delimiter=DELIMITERS[suffix])
        with pa.csv.CSVWriter(stream, plain, write_options=delimited) as csv:
            yield lambda batch: csv.write_batch(batch.cast(plain))
