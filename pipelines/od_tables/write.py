"""Write tables and matrices of distances from origins to all or near destinations, or of values reduced from distances.

Distances come from a hierarchy store, or from searches in a graph, for a block of origins at a time. Memory holds one
block. A block becomes a piece of the file (`pipelines.files.output_file`), or some rows of the matrix store. So a run
that was killed resumes after the last block written, and the result has the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipelines.files.output_file import check_free, growing_file, is_complete
from pipelines.files.tables import check_suffix
from pipelines.od_tables.disk import state_disk
from pipelines.od_tables.forms import ArrayForm
from pipelines.od_tables.given import Given
from pipelines.od_tables.plan import MATRICES, PlannedTable, TableOptions, plan_table, table_options
from pipelines.places.points import Points
from pipelines.stores.commit_clock import CommitClock
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.matrix import MatrixWriter, create_matrix
from pipelines.stores.place import growing_place, refuse_both
from pipelines.workers.interruption import boundaries, stop_if_asked
from pipelines.workers.plans import states_plan
from pipelines.workers.progress import Progress

if TYPE_CHECKING:
    from distributed import Client


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
    graph: Graph | None = None,
    client: Client | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool | None = None,
    **options: Any,
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
    graph : graph of the store `source`, if it was moved
    client : client of a cluster whose workers reduce blocks of origins, on their GPUs if they and the store can;
        needs a hierarchy store, and `reduce`. By default this process makes the table
    resume : continue an unfinished `out`; begin if `out` does not exist; leave a finished `out` unchanged
    overwrite : replace `out` if it exists
    progress : show progress; by default if standard error is a terminal, or the result may take 1 GiB: then its plan
        is printed first
    options : as for `pipelines.od_tables.plan.table_options`

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
    given = Given(source, source if isinstance(source, Graph) else graph or source.graph(), (origins, destinations))
    checked = table_options(given.graph, **options)
    suffix = _suffix(out, checked)
    if client is not None:
        refuse_workers(source, checked.recorded["reduce"])
    about: dict[str, Any] = {
        "source": [source.digest, given.graph.digest],
        "origins": origins.digest(),
        "destinations": destinations.digest(),
        "options": checked.recorded,
    }
    if suffix == ".zarr":
        return _write_matrix(given, checked, out, about, resume, overwrite, progress)
    refuse_both(resume, overwrite)
    if resume and is_complete(out):
        return None
    check_free(out, overwrite or resume)
    table = plan_table(given, suffix, checked)
    form, step, count, width = table.form, table.step, len(origins.vertices), table.width
    progress = state_disk(table, suffix, given, checked, out, out, progress)
    about |= {"blocks": step}  # other versions of tilepath may use blocks of another size
    with growing_file(out, about, resume=resume, overwrite=overwrite) as file:
        starts = range(len(file.ends) * step, count, step)

        def write(start: int, found: Any) -> None:
            file.commit(form.append(file, slice(start, min(start + step, count)), found))

        if client is None or not isinstance(source, HierarchyStore) or table.reducing is None:
            compute_blocks(table, count, starts, write, progress)
        else:
            from pipelines.od_tables.on_workers import reduce_on_workers

            with _progress(count, width, starts, step, progress) as bar:
                reduce_on_workers(client, source, table.reducing, origins.vertices, starts, write, bar)
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
    given: Given,
    checked: TableOptions,
    out: str | os.PathLike[str],
    about: dict[str, Any],
    resume: bool,
    overwrite: bool,
    progress: bool | None,
) -> Written | None:
    """Write the matrix store."""
    table, graph, inputs = plan_table(given, ".zarr", checked), given.graph, [given.source.path]
    assert isinstance(table.form, ArrayForm)
    (count, width), dtype, step = table.form.shape, table.form.dtype, table.step
    options = {"dtype": str(dtype), "chunk": step, **about}
    writer = MatrixWriter.resumed(out, graph, options, inputs=inputs, resume=resume, overwrite=overwrite)
    if writer is None or not writer.finished:
        progress = state_disk(table, ".zarr", given, checked, out, growing_place(out, writer), progress)
    if writer is None:
        names = [np.array(p.texts(), np.dtypes.StringDType()) for p in given.points]
        writer = create_matrix(out, graph, names, dtype=dtype, chunk=step, options=options, overwrite=overwrite)
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
        compute_blocks(table, count, starts, write, progress)
    finally:
        if not (done.all() or clock.failed):
            writer.record(done)
    return Written(count, _left(count, starts, step) * width)


@contextmanager
def _progress(count: int, width: int, starts: Sequence[int], step: int, progress: bool | None) -> Iterator[Progress]:
    """Return a context that shows progress in pairs; pairs of blocks that are not in `starts` count as done."""
    with Progress(count * width, "pairs", progress) as bar:
        bar.start((count - _left(count, starts, step)) * width)
        bar.stage("distances")
        yield bar


def compute_blocks(
    table: PlannedTable, count: int, starts: Sequence[int], write: Callable[[int, Any], None], progress: bool | None
) -> None:
    """Compute the blocks of `count` rows one after the other, in this process, and write each block."""
    with _progress(count, table.width, starts, table.step, progress) as bar, boundaries():
        for start in starts:
            rows = slice(start, min(start + table.step, count))
            write(start, table.compute(rows))
            bar.advance((rows.stop - start) * table.width)
            stop_if_asked()


def _left(count: int, starts: Sequence[int], step: int) -> int:
    """Return the number of origins, of `count` in all, in the blocks that begin at `starts`."""
    return sum(min(step, count - start) for start in starts)


def _suffix(out: str | os.PathLike[str], options: TableOptions) -> str:
    """Return the suffix of `out`; raise ValueError if the options do not go with it."""
    suffix = os.path.splitext(os.fspath(out).rstrip(os.sep))[1].lower()
    if suffix not in MATRICES:
        return check_suffix(out)
    if not options.all_distances:
        raise ValueError(
            f"{out}: a matrix has all distances and no other values; write a table (.parquet) for within"
            " (--within), nearest (--nearest), reduce (--reduce), paths (--paths), also (--also), unit (--unit) and"
            " pairs (--pairs)"
        )
    return suffix
