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

from pipelines.files.output_file import check_free, growing_file, is_complete
from pipelines.files.tables import check_suffix
from pipelines.od_tables.blocks import DistancesTo
from pipelines.od_tables.disk import matrix_disk, state_disk, table_disk
from pipelines.od_tables.forms import ArrayForm
from pipelines.od_tables.plan import Asked, PlannedTable, asked_of, limits_of, plan_table, rows_in_block
from pipelines.places.points import Points
from pipelines.routes.along import Also
from pipelines.stores.commit_clock import CommitClock
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.matrix import SCHEMA, MatrixWriter, create_matrix
from pipelines.stores.place import growing_place, refuse_both
from pipelines.stores.resuming import resumed
from pipelines.workers.interruption import boundaries, stop_if_asked
from pipelines.workers.plans import states_plan
from pipelines.workers.progress import Progress

if TYPE_CHECKING:
    from distributed import Client

CHUNK_ROWS = 1024  # most rows in a chunk of a matrix store


class Written(NamedTuple):
    """Rows of a table that is complete, and the pairs of places whose distances this run computed."""

    rows: int
    pairs: int


@states_plan
def write_od_table(
    source: HierarchyStore | Graph,
    origins: Points,
    destinations: Points,
    out: str | os.PathLike[str],
    *,
    within: float | str | Sequence[float | str] | None = None,
    nearest: int | None = None,
    reduce: str | Sequence[str] | None = None,
    decay: str | None = None,
    paths: bool = False,
    also: Also = None,
    unit: str | None = None,
    pairs: bool = False,
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
        Points as `pipelines.places.points.points_from` returns them. If `reduce` adds up a column, destinations need
        this column.
    out : path of the file or store; the suffix chooses the format:

        - CSV, TSV or Parquet: a table with the columns origin, destination, travel_time or distance (null if
          unreachable), and how far places were snapped (in text, in metres to a tenth); with `reduce`, a table with
          origin and value. The column is `travel_time` if the unit of the network is one of time.
        - ``.npy`` file, or ``.zarr`` store (`pipelines.stores.matrix`): the matrix, with a row for each origin.

        The unit is metadata ``unit`` of the column in Parquet, and an attribute of the array in Zarr.
    within, nearest, reduce, decay, also, unit : as for `pipelines.od`
    paths : add the vertices along a shortest path of each pair and, if the graph has coordinates, its length
    pairs : whether origin i goes to destination i only, with one row for each such pair
    graph : graph of the store `source`, if it was moved
    client : client of a cluster whose workers reduce blocks of origins, on their GPUs if they and the store can;
        needs a hierarchy store, and `reduce`. By default this process makes the table
    resume : continue an unfinished `out`; begin if `out` does not exist; leave a finished `out` unchanged
    overwrite : replace `out` if it exists
    progress : show progress; by default if standard error is a terminal, or the result may take 1 GiB: then its plan
        is printed first

    Returns
    -------
    Written or None
        Rows of the table, and pairs that this run computed; None if `out` was finished before.

    Raises
    ------
    ValueError
        An option has a wrong value, or does not go with another option, with `out` or with `client`; or `out` was begun
        with other options.
    tilepath.DoesNotFitError
        The disk is smaller than the least that the result takes, or the memory of the workers is too small.
    FileExistsError
        `out` exists.
    StoreError
        The matrix store exists, or was begun with other inputs or options.
    """
    opened = source if isinstance(source, Graph) else graph or source.graph()
    asked = asked_of(
        opened, within=within, nearest=nearest, reduce=reduce, decay=decay, paths=paths, also=also, unit=unit,
        pairs=pairs,
    )  # fmt: skip
    limits: Any = limits_of(within, asked.value, several=reduce is not None)
    limits = limits if len(limits) > 1 else next(iter(limits), None)
    reduce = reduce if reduce is None or isinstance(reduce, str) else list(reduce)
    suffix = _suffix(out, asked)
    if client is not None:
        refuse_workers(source, reduce)
    points = (origins, destinations)
    about: dict[str, Any] = {
        "source": [source.digest, opened.digest],
        "origins": origins.digest(),
        "destinations": destinations.digest(),
        "options": {"within": limits, "nearest": nearest, "reduce": reduce, "paths": paths}
        | ({"decay": decay, "unit": unit, "pairs": pairs, "also": asked.digest()} if asked.more else {}),
    }
    if suffix == ".zarr":
        rows_of = DistancesTo(source, destinations.vertices)
        return _write_matrix(rows_of, source, opened, points, out, about, asked, resume, overwrite, progress)
    refuse_both(resume, overwrite)
    if resume and is_complete(out):
        return None
    check_free(out, overwrite or resume)
    table = plan_table(source, opened, points, suffix, asked)
    form, step, count, width = table.form, table.step, len(origins.vertices), table.width
    takes = (
        matrix_disk(points, form.dtype, suffix)
        if isinstance(form, ArrayForm)
        else table_disk(points, asked, table, suffix)
    )
    progress = state_disk(takes, points, asked, source, out, out, progress)
    about |= {"blocks": step}  # other versions of tilepath may use blocks of another size
    with growing_file(out, about, resume=resume, overwrite=overwrite) as file:
        starts = range(len(file.ends) * step, count, step)

        def write(start: int, found: Any) -> None:
            file.commit(form.append(file, slice(start, min(start + step, count)), found))

        if client is None or not isinstance(source, HierarchyStore) or table.reducing is None:
            compute_blocks(table, count, starts, write, progress)
        else:
            from pipelines.od_tables.on_workers import Landing, reduce_on_workers

            with _progress(count, width, starts, step, progress) as shown:
                landing = Landing(count, step, starts, write)
                reduce_on_workers(client, source, table.reducing, origins.vertices, landing, shown)
        form.finish(file)
        return Written(sum(file.rows), _left(count, starts, step) * width)


def refuse_workers(source: HierarchyStore | Graph, reduce: str | Sequence[str] | None) -> None:
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
    rows_of: DistancesTo,
    source: HierarchyStore | Graph,
    graph: Graph,
    points: tuple[Points, Points],
    out: str | os.PathLike[str],
    about: dict[str, Any],
    asked: Asked,
    resume: bool,
    overwrite: bool,
    progress: bool | None,
) -> Written | None:
    """Write the matrix store."""
    origins, destinations = points
    count = len(origins.vertices)
    step = rows_in_block(count, len(destinations.vertices), CHUNK_ROWS)
    options = {"dtype": str(rows_of.dtype), "chunk": step, **about}
    again = partial(MatrixWriter.resume, source=graph, options=options)
    writer = resumed(out, SCHEMA, [source.path, graph.path], again, resume=resume, overwrite=overwrite)
    place = growing_place(out, None if writer is None else writer.path)
    if writer is None or not writer.finished:
        takes = matrix_disk(points, rows_of.dtype, ".zarr")
        progress = state_disk(takes, points, asked, source, out, place, progress)
    if writer is None:
        names = [np.array(p.texts(), np.dtypes.StringDType()) for p in points]
        writer = create_matrix(out, graph, names, dtype=rows_of.dtype, chunk=step, options=options, overwrite=overwrite)
    elif writer.finished:
        return None
    done = writer.rows_done()
    starts = [start for start in range(0, count, step) if not done[start]]
    form = ArrayForm((count, len(destinations.vertices)), rows_of.dtype)
    table = PlannedTable(form, lambda rows: rows_of.rows(origins.vertices[rows]), step, len(destinations.vertices))

    clock = CommitClock()

    def write(start: int, found: np.ndarray) -> None:
        writer.write(start, found)
        done[start : start + len(found)] = True
        if clock.due() or done.all():
            with clock.committing():
                writer.record(done)

    try:
        compute_blocks(table, count, starts, write, progress)
    finally:
        if not (done.all() or clock.failed):
            writer.record(done)
    return Written(count, _left(count, starts, step) * len(destinations.vertices))


@contextmanager
def _progress(count: int, width: int, starts: Sequence[int], step: int, progress: bool | None) -> Iterator[Progress]:
    """Return a context that shows progress in pairs; pairs of blocks that are not in `starts` count as done."""
    with Progress(count * width, "pairs", progress) as shown:
        shown.start((count - _left(count, starts, step)) * width)
        shown.stage("distances")
        yield shown


def compute_blocks(
    table: PlannedTable, count: int, starts: Sequence[int], write: Callable[[int, Any], None], progress: bool | None
) -> None:
    """Compute the blocks of `count` rows one after the other, in this process, and write each block."""
    with _progress(count, table.width, starts, table.step, progress) as shown, boundaries():
        for start in starts:
            rows = slice(start, min(start + table.step, count))
            write(start, table.ask(rows))
            shown.advance((rows.stop - start) * table.width)
            stop_if_asked()


def _left(count: int, starts: Sequence[int], step: int) -> int:
    """Return the number of origins, of `count` in all, in the blocks that begin at `starts`."""
    return sum(min(step, count - start) for start in starts)


def _suffix(out: str | os.PathLike[str], asked: Asked) -> str:
    """Return the suffix of `out`; raise ValueError if the options do not go with it."""
    suffix = os.path.splitext(os.fspath(out).rstrip(os.sep))[1].lower()
    if suffix not in (".npy", ".zarr"):
        return check_suffix(out)
    if not asked.all_distances:
        raise ValueError(
            f"{out}: a matrix has all distances and no other values; write a table (.parquet) for within"
            " (--within), nearest (--nearest), reduce (--reduce), paths (--paths), also (--also), unit (--unit) and"
            " pairs (--pairs)"
        )
    return suffix
