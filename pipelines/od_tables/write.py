"""Write tables and matrices of distances from origins to all or near destinations, or of values reduced from distances.

Distances come from a hierarchy store, or from searches in a graph, for a block of origins at a time. Memory holds one
block. A block becomes a piece of the file (`pipelines.files.output_file`), or some rows of the matrix store. So a run
that was killed resumes after the last block written, and the result has the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipelines.files.output_file import check_free, growing_file, is_growing
from pipelines.files.tables import check_suffix
from pipelines.od_tables.blocks import Ask, Distances, Reducing, Reduction, parse_reduction
from pipelines.od_tables.forms import ArrayForm, PairRoutes, TableForm, choices, pair_table, reduced_table
from pipelines.od_tables.points import Points
from pipelines.stores import Graph
from pipelines.stores.commit_clock import CommitClock
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.matrix import SCHEMA, create_matrix, resume_matrix
from pipelines.stores.place import refuse_both
from pipelines.stores.resuming import resumed
from pipelines.workers.interruption import boundaries, stop_if_asked
from pipelines.workers.progress import Progress

if TYPE_CHECKING:
    from distributed import Client

BLOCK_BYTES = 64 << 20  # bytes of distances in memory at a time
# A reduced table is cut into this many blocks, unless a block would have fewer or more pairs than `REDUCED_PAIRS`.
REDUCED_BLOCKS = 64
REDUCED_PAIRS = 1 << 28, 1 << 31
PATH_VERTICES = 64  # vertices assumed for a path when the bytes of paths are estimated
CHUNK_ROWS = 1024  # most rows in a chunk of a matrix store


class Written(NamedTuple):
    """Rows of a table that is complete, and the pairs of places whose distances this run computed."""

    rows: int
    pairs: int


def write_od_table(
    source: HierarchyStore | Graph,
    origins: Points,
    destinations: Points,
    out: str | os.PathLike[str],
    *,
    within: float | None = None,
    nearest: int | None = None,
    reduce: str | None = None,
    paths: bool = False,
    graph: Graph | None = None,
    client: Client | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Written | None:
    """Write the distances from each origin to each destination to a table, an array or a matrix store.

    Parameters
    ----------
    source : HierarchyStore or Graph
        A hierarchy store answers from its tables; a graph is searched.
    origins, destinations : Points
        Points as `pipelines.od_tables.points.read_points` reads them. If `reduce` adds up a column, destinations need
        this column.
    out : path of the file or store; the suffix chooses the format:

        - CSV, TSV or Parquet: a table with the columns origin, destination, distance (null if unreachable), and how far
          places were snapped (in text, in metres to a tenth); with `reduce`, a table with origin and value.
        - ``.npy`` file, or ``.zarr`` store (`pipelines.stores.matrix`): the matrix, with a row for each origin.

        Distances are in the unit of the weights. The unit is metadata ``unit`` of the column in Parquet, and an
        attribute of the array in Zarr.
    within : leave out pairs that are farther apart, or unreachable
    nearest : keep only this number of destinations of each origin, the nearest first
    reduce : write one value for each origin, as `parse_reduction` reads it
    paths : add the vertices along a shortest path of each pair and, if the graph has coordinates, the length of the
        path: in metres if coordinates are degrees (in text to a tenth), else in units of the coordinates
    graph : graph of the store `source`, if it was moved
    client : client of a cluster whose workers reduce blocks of origins, on their GPUs if they and the store can;
        needs a hierarchy store, and `reduce`. By default this process makes the table
    resume : continue an unfinished `out`; begin if `out` does not exist; leave a finished `out` unchanged
    overwrite : replace `out` if it exists
    progress : show progress; by default if standard error is a terminal

    Returns
    -------
    Written or None
        Rows of the table, and pairs that this run computed; None if `out` was finished before.

    Raises
    ------
    ValueError
        An option has a wrong value, or does not go with another option, with `out` or with `client`; or `out` was begun
        with other options.
    pipelines.workers.capacity.DoesNotFitError
        The memory of the workers is too small.
    FileExistsError
        `out` exists.
    pipelines.stores.StoreError
        The matrix store exists, or was begun with other inputs or options.
    """
    reduction = None if reduce is None else parse_reduction(reduce)
    suffix = _check(out, within, nearest, reduction, paths)
    if client is not None:
        refuse_workers(source, reduce)
    opened = source if isinstance(source, Graph) else graph or source.graph()
    points = (origins, destinations)
    about: dict[str, Any] = {
        "source": [source.digest, opened.digest],
        "origins": origins.digest(),
        "destinations": destinations.digest(),
        "options": {"within": within, "nearest": nearest, "reduce": reduce, "paths": paths},
    }
    if suffix == ".zarr":
        rows_of = Distances(source, destinations.vertices)
        return _write_matrix(rows_of, source, opened, points, out, about, resume, overwrite, progress)
    refuse_both(resume, overwrite)
    if resume and os.path.exists(out) and not is_growing(out):
        return None
    check_free(out, overwrite or resume)
    table = plan_table(source, opened, points, suffix, within=within, nearest=nearest, reduction=reduction, paths=paths)
    form, step, (count, width) = table.form, table.step, (len(p.vertices) for p in points)
    about |= {"blocks": step}  # other versions of tilepath may use blocks of another size
    with growing_file(out, about, resume=resume, overwrite=overwrite) as file:
        starts = range(len(file.ends) * step, count, step)

        def write(start: int, found: np.ndarray) -> None:
            file.commit(form.append(file, slice(start, start + len(found)), found))

        if client is None or not isinstance(source, HierarchyStore) or table.reducing is None:
            compute_blocks(table.ask, points, starts, step, write, progress)
        else:
            from pipelines.od_tables.on_workers import Landing, reduce_on_workers

            with _progress(points, starts, step, progress) as shown:
                landing = Landing(count, step, starts, write)
                reduce_on_workers(client, source, table.reducing, origins.vertices, landing, shown)
        form.finish(file)
        return Written(sum(file.rows), _left(count, starts, step) * width)


class PlannedTable(NamedTuple):
    """The plan of a table: `ask` computes blocks of `step` origins, and `form` turns each block into rows.

    `reducing` is the work of a reduced table, for workers; None for other tables.
    """

    form: ArrayForm | TableForm
    ask: Ask
    step: int
    reducing: Reducing | None


def plan_table(
    source: HierarchyStore | Graph,
    graph: Graph,
    points: tuple[Points, Points],
    suffix: str,
    *,
    within: float | None,
    nearest: int | None,
    reduction: Reduction | None,
    paths: bool,
) -> PlannedTable:
    """Plan a table of origins and destinations; parameters are those of `write_od_table`, and the suffix of a file."""
    origins, destinations = points
    rows_of = Distances(source, np.arange(graph.n) if paths else destinations.vertices)
    count, width = (len(p.vertices) for p in points)
    step = _step(count, max(graph.n, PATH_VERTICES * width) if paths else width, count)
    if suffix == ".npy":
        return PlannedTable(ArrayForm((count, width), rows_of.dtype), rows_of.rows, step, None)
    if reduction is None:
        routes = PairRoutes(graph, rows_of.dtype, origins.on_the_globe, suffix) if paths else None
        chosen = partial(choices, within=within, nearest=nearest)
        form = pair_table(points, suffix, rows_of.dtype, graph.weight_unit, chosen, routes)
        return PlannedTable(form, rows_of.rows, step, None)
    reducing = Reducing(destinations.vertices, _values(destinations, reduction), reduction, within, step)
    # A search takes so long that a block of `step` origins is large enough; tables need larger blocks.
    if isinstance(source, HierarchyStore):
        least, most = (pairs // max(1, width) for pairs in REDUCED_PAIRS)
        step = max(step, min(count, most, max(least, -(-count // REDUCED_BLOCKS))))
    form = reduced_table(origins, suffix, graph.weight_unit, reduction)
    return PlannedTable(form, reducing.of(rows_of), step, reducing)


def refuse_workers(source: HierarchyStore | Graph, reduce: str | None) -> None:
    """Raise ValueError unless workers can make the table: they only make reduced tables, from a hierarchy store."""
    if reduce is None:
        raise ValueError(
            "workers of a cluster only make reduced tables; give reduce (--reduce), or leave out the cluster "
            "(client, --device, --workers, --scheduler)"
        )
    if isinstance(source, Graph):
        raise ValueError(
            f"{source.path} is a graph store, but workers of a cluster need a hierarchy store; make one "
            "(tilepath hierarchy), or leave out the cluster (client, --device, --workers, --scheduler)"
        )


def _write_matrix(
    rows_of: Distances,
    source: HierarchyStore | Graph,
    graph: Graph,
    points: tuple[Points, Points],
    out: str | os.PathLike[str],
    about: dict[str, Any],
    resume: bool,
    overwrite: bool,
    progress: bool | None,
) -> Written | None:
    """Write the matrix store."""
    origins, destinations = points
    count = len(origins.vertices)
    step = _step(count, len(destinations.vertices), CHUNK_ROWS)
    options = {"dtype": str(rows_of.dtype), "chunk": step, **about}
    again = partial(resume_matrix, source=graph, options=options)
    writer = resumed(out, SCHEMA, [source.path, graph.path], again, resume=resume, overwrite=overwrite)
    if writer is None:
        names = [np.array(p.ids.to_pylist(), np.dtypes.StringDType()) for p in points]
        writer = create_matrix(out, graph, names, dtype=rows_of.dtype, chunk=step, options=options, overwrite=overwrite)
    elif writer.finished:
        return None
    done = writer.rows_done()
    starts = [start for start in range(0, count, step) if not done[start]]

    clock = CommitClock()

    def write(start: int, found: np.ndarray) -> None:
        writer.write(start, found)
        done[start : start + len(found)] = True
        if clock.due() or done.all():
            with clock.committing():
                writer.record(done)

    try:
        compute_blocks(rows_of.rows, points, starts, step, write, progress)
    finally:
        if not (done.all() or clock.failed):
            writer.record(done)
    return Written(count, _left(count, starts, step) * len(destinations.vertices))


@contextmanager
def _progress(
    points: tuple[Points, Points], starts: Sequence[int], step: int, progress: bool | None
) -> Iterator[Progress]:
    """Return a context that shows progress in pairs; pairs of blocks that are not in `starts` count as done."""
    count, width = (len(p.vertices) for p in points)
    with Progress(count * width, "pairs", progress) as shown:
        shown.start((count - _left(count, starts, step)) * width)
        shown.stage("distances")
        yield shown


def compute_blocks(
    ask: Ask,
    points: tuple[Points, Points],
    starts: Sequence[int],
    step: int,
    write: Callable[[int, np.ndarray], None],
    progress: bool | None,
) -> None:
    """Compute the blocks one after the other, in this process, and write each block."""
    origins, destinations = (p.vertices for p in points)
    with _progress(points, starts, step, progress) as shown, boundaries():
        for start in starts:
            block = origins[start : start + step]
            write(start, ask(block))
            shown.advance(len(block) * len(destinations))
            stop_if_asked()


def _values(destinations: Points, reduction: Reduction) -> np.ndarray:
    """Return the value of each destination."""
    if reduction.column is None:
        return np.ones(len(destinations.vertices))
    return destinations.columns[reduction.column]


def _left(count: int, starts: Sequence[int], step: int) -> int:
    """Return the number of origins, of `count` in all, in the blocks that begin at `starts`."""
    return sum(min(step, count - start) for start in starts)


def _step(count: int, width: int, most: int) -> int:
    """Return the number of origins in a block."""
    return max(1, min(count, most, BLOCK_BYTES // (8 * max(1, width))))


def _check(
    out: str | os.PathLike[str],
    within: float | None,
    nearest: int | None,
    reduction: Reduction | None,
    paths: bool,
) -> str:
    """Return the suffix of `out`; raise ValueError if an option has a wrong value, or options do not go together."""
    refuse_options(within, nearest, reduction, paths)
    suffix = os.path.splitext(os.fspath(out).rstrip(os.sep))[1].lower()
    if suffix not in (".npy", ".zarr"):
        return check_suffix(out)
    if within is not None or nearest is not None or reduction is not None or paths:
        raise ValueError(
            f"{out}: a matrix has all distances and no other values; write a table (.parquet) for within"
            " (--within), nearest (--nearest), reduce (--reduce) and paths (--paths)"
        )
    return suffix


def refuse_options(within: float | None, nearest: int | None, reduction: Reduction | None, paths: bool) -> None:
    """Raise ValueError if an option of a table has a wrong value, or options do not go together."""
    if within is not None and not within >= 0:
        raise ValueError(f"within is {within:g}; give a distance of 0 or more")
    if nearest is not None and nearest < 1:
        raise ValueError(f"nearest is {nearest}; give a whole number from 1")
    for name, given in ("nearest", nearest is not None), ("paths", paths):
        if reduction is not None and given:
            raise ValueError(f"{name} (--{name}) does not go with reduce (--reduce); leave one of them out")
