"""Tables of distances from origins to destinations in memory, as data frames of pandas."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuops.memory import refuse_beyond_memory
from pipelines.od_tables.blocks import parse_reduction
from pipelines.od_tables.forms import TableForm
from pipelines.od_tables.points import Points, points_from
from pipelines.od_tables.snapping import Snapping
from pipelines.od_tables.write import compute_blocks, plan_table, refuse_options
from pipelines.stores import Graph, open_graph
from pipelines.stores.hierarchy import SCHEMA, HierarchyStore, open_hierarchy
from pipelines.stores.schema import kind_of

if TYPE_CHECKING:
    import pandas

PAIR_BYTES = 40  # bytes of a pair of a table in memory, and of what exists with it


def od(
    network: HierarchyStore | Graph | str | os.PathLike[str],
    origins: Any,
    destinations: Any = None,
    *,
    within: float | None = None,
    nearest: int | None = None,
    reduce: str | None = None,
    paths: bool = False,
    snap_limit: float | None = None,
    graph: Graph | str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> pandas.DataFrame:
    """Return the shortest distances from each origin to each destination as a DataFrame.

    Parameters
    ----------
    network : HierarchyStore or Graph, or path of such a store
        A hierarchy answers from its tables; a graph is searched from each origin, in this process.
    origins, destinations : data frame, (k, 2) array, list, or path
        A data frame of pandas, Polars or Arrow, or a file of `tilepath od`: with a column `origin` (`destination`) or
        `vertex` of names of vertices, or with columns `lon` and `lat`, or `x` and `y`, of places; a column `id` may
        name the points. Or an array of places: longitude and latitude if the network has degrees, else x and y. Or a
        list of names of vertices, or `tilepath.positions`. Places are snapped to the nearest vertex of the largest
        strongly connected component. By default, destinations are the origins.
    within : float, optional
        Leave out destinations farther away, or unreachable.
    nearest : int, optional
        Keep this number of destinations of each origin, the nearest first.
    reduce : str, optional
        One value for each origin: "count", "min", "sum:COLUMN", "decay:SCALE" or "decay:SCALE:COLUMN", where COLUMN
        is a column of the destinations. Destinations beyond `within` do not count.
    paths : bool
        Add the vertices along a shortest path of each pair and, if the network has coordinates, its length.
    snap_limit : float, optional
        Refuse places farther than this from every vertex, in metres or in units of the coordinates.
    graph : Graph or path, optional
        The graph of a hierarchy, if it was moved.
    progress : bool, optional
        Show progress; by default if standard error is a terminal.

    Returns
    -------
    pandas.DataFrame
        Columns origin, destination and distance (NaN if unreachable), then length and path if asked for, and
        origin_snapped and destination_snapped of places. With `reduce`: origin, one value, and origin_snapped if
        the origins are places. Points that were named by integers stay integers (names in CSV are text), and places
        without names are numbered from 1.
        ``frame.attrs["unit"]`` is the unit of distances, if it is known.

    Raises
    ------
    ValueError
        An option has a wrong value or does not go with another one, a place or a column is wrong (the message names the
        row), or memory cannot hold the table.
    pipelines.stores.StoreError
        A vertex does not exist, or a store is damaged.

    Warns
    -----
    UserWarning
        Places are far from the network, or have a nearer vertex outside its largest component.
    """
    refuse_options(within, nearest, reduction := None if reduce is None else parse_reduction(reduce), paths)
    if isinstance(network, str | os.PathLike):
        network = open_hierarchy(network) if kind_of(network).schema == SCHEMA else open_graph(network)
    if isinstance(network, Graph):
        if graph is not None:
            raise ValueError(f"{network.path} is a graph itself; leave out graph")
        opened, snapping = network, Snapping(network)
    else:
        opened = network.graph(graph)
        snapping = Snapping(opened, network.by_place(opened))
    columns = [] if reduction is None or reduction.column is None else [reduction.column]
    points = (
        points_from(origins, opened, "origin", snap_limit=snap_limit, snapping=snapping),
        points_from(
            origins if destinations is None else destinations,
            opened,
            "origin" if destinations is None else "destination",
            columns,
            snap_limit=snap_limit,
            snapping=snapping,
        ),
    )
    for warning in dict.fromkeys(each.warning for each in points if each.warning):
        warnings.warn(warning, stacklevel=2)
    table = plan_table(
        network, opened, points, ".parquet", within=within, nearest=nearest, reduction=reduction, paths=paths
    )
    form = table.form
    assert isinstance(form, TableForm)
    _refuse_large(points, nearest, reduce)
    batches: list[pa.RecordBatch] = []

    def keep(start: int, found: np.ndarray) -> None:
        rows = slice(start, start + len(found))
        batches.append(pa.RecordBatch.from_arrays(form.batch(rows, found), schema=form.schema))

    compute_blocks(table.ask, points, range(0, len(points[0].vertices), table.step), table.step, keep, progress)
    frame = pa.Table.from_batches(batches, form.schema).to_pandas()
    for what, each in zip(("origin", "destination"), points, strict=True):
        if what in frame:
            frame[what] = frame[what].astype("int64" if each.numbered else "object")
    frame.attrs = {"unit": opened.weight_unit} if opened.weight_unit else {}
    return frame


def _refuse_large(points: tuple[Points, Points], nearest: int | None, reduce: str | None) -> None:
    """Refuse a table that memory cannot hold; of `within` it is not known beforehand how many pairs it leaves."""
    count, width = (len(each.vertices) for each in points)
    kept = 1 if reduce is not None else width if nearest is None else min(width, nearest)
    cure = "write it to a file in pieces (tilepath od), keep the nearest (nearest), or reduce it (reduce)"
    refuse_beyond_memory(count * kept * PAIR_BYTES, f"a table of {count:,} origins takes", cure)
