"""Tables of distances from origins to destinations in memory, as data frames of pandas."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuops.memory import refuse_beyond_memory
from pipelines.exports.layers import placed, with_lines
from pipelines.files.layers import need_geopandas
from pipelines.od_tables.forms import TableForm
from pipelines.od_tables.given import Given, as_frame, read_given, warn_of
from pipelines.od_tables.plan import TableOptions, plan_table, table_options
from pipelines.od_tables.short_limits import short_limit
from pipelines.od_tables.write import compute_blocks
from pipelines.places.networks import NetworkLike, open_network
from pipelines.places.single import are_rows
from pipelines.routes.along import Also
from pipelines.routes.road_lengths import RoadsAlong
from pipelines.stores.graph import Graph

if TYPE_CHECKING:
    import pandas

PAIR_BYTES = 40  # bytes of a pair of a table in memory, temporary arrays included


def od(
    network: NetworkLike,
    origins: Any = None,
    destinations: Any = None,
    *,
    pairs: Any = None,
    within: float | str | Sequence[float | str] | None = None,
    nearest: int | None = None,
    reduce: str | Sequence[str] | None = None,
    decay: str | None = None,
    paths: bool | str = False,
    also: Also = None,
    unit: str | None = None,
    snap_limit: float | str | None = None,
    crs: Any = None,
    graph: Graph | str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> pandas.DataFrame:
    """Return the shortest distances from each origin to each destination as a DataFrame.

    Parameters
    ----------
    network : HierarchyStore or Graph, or path of such a store
        A hierarchy answers from its tables; a graph is searched from each origin, in this process.
    origins, destinations : data frame, GeoDataFrame, (k, 2) array, list, or path, optional
        A data frame of pandas, Polars or Arrow, or a file of `tilepath od`: with columns `lon` and `lat`, or `x` and
        `y`, of places, or with a column `origin` (`destination`) or `vertex` of names of vertices. Or a GeoDataFrame or
        GeoSeries of points. If rows have places, a column `origin` (`destination`) is ignored, and a vertex in a column
        `vertex` must be exactly at the place of its row. Or a pair of numbers, a list of pairs or an array (k, 2) of
        them: places (see `crs`). Or a list of names of vertices, or `tilepath.positions`.
        Places are snapped to the nearest vertex of the largest strongly connected component. Without destinations, the
        origins are also the destinations; without origins, every vertex is an origin. The result calls the rows of a
        table by the column `id`; else by `name`, if all names differ; else, for places, by the index of the frame.
        Places in files and arrays, which have no index, are numbered from 1.
    pairs : data frame, (k, 2) array, or path, optional
        Pairs that are answered row by row. The columns `origin` and `destination` have names of vertices, or ids of
        `origins` and `destinations` if given; if only one of the two is given, both columns have its ids. Or the
        columns `origin_lon`, `origin_lat`, `destination_lon` and
        `destination_lat` (or `_x` and `_y`) have places. The result has the rows and the index of `pairs`.
    within : float or str, or list of them, optional
        Leave out destinations farther away, or unreachable. A number in the unit of the result, or a text with another
        unit, such as "2min". With `reduce` there may be several limits in one unit, such as "5,10,15min". Distance and
        limit are compared in the dtype of the distances, which is float32 for most hierarchies. So rounding decides
        about a place whose distance is exactly the limit, unless weights are integers: ten arcs of 0.1 may have the
        distance 1.0000001. With a limit such as 1.0001, the place counts.
    nearest : int, optional
        Keep this number of destinations of each origin, the nearest first; of equally near ones, the first. An origin
        that reaches no destination, or none within `within`, has one row without a destination.
    reduce : str or list of str, optional
        One value for each origin: "count", "min", "sum:COLUMN", "mean:COLUMN", "decay:SCALE" or "decay:SCALE:COLUMN",
        where COLUMN is a column of the destinations. Destinations beyond `within` do not count. A list gives a column
        for each, such as `sum_seats`. Several limits give a column for each limit, such as `sum_seats_300`, with the
        limit in the unit of the result; "min" has one column, for the largest limit.
    decay : {"linear", "exponential"}, optional
        Let the weight of a destination at the distance d fall, in count, sum and mean: to 1 - d / within, or to
        exp(-d / within). A mean is divided by the sum of the weights.
    paths : bool or "lines"
        Add the vertices along a shortest path of each pair and, if the network has coordinates, its length along the
        lines of the roads, as `Path.length`. With "lines", the result is a GeoDataFrame of the lines of the paths; the
        geometry is missing where no path leads, or the destination is the origin.
    also : str, list or mapping, optional
        Other weights to add up along the same path: names of weights of the network, such as "length,toll"; or for each
        column a graph of the same arcs with other weights, or a column of arcs of `tilepath.graph_to_gdfs`, aligned by
        its index, or an array with a number for each arc of ``graph.rows()``, such as ``{"toll": arcs["toll"]}``.
    unit : {"ms", "s", "min", "h", "d", "m", "km", "mi", "ft"}, optional
        Give distances in this unit, and read `within` and scales without a unit in it. By default, the unit of the
        network.
    snap_limit : float or str, optional
        Refuse places farther than this from every vertex, in metres or in units of the coordinates, or as "1km". By
        default, places are refused that are farther than 50 km and than the diagonal of the network.
    crs : str or pyproj.CRS, optional
        Coordinate system, such as "EPSG:4326", of the places that do not say their own, by a GeoDataFrame or by columns
        `lon` and `lat`. By default, pairs of numbers are in the coordinates of the network; pairs that are plainly
        longitudes and latitudes, with a network in metres, are taken for these, and a warning says so.
    graph : Graph or path, optional
        The graph of a hierarchy, if it was moved.
    progress : bool, optional
        Show progress; by default if standard error is a terminal.

    Returns
    -------
    pandas.DataFrame
        Columns origin, destination and travel_time (if the unit is one of time) or distance, NaN if unreachable; then
        the columns of `also`, length and path if `paths`, and origin_snapped and destination_snapped of places. With
        `reduce`: origin, the values, and origin_snapped if the origins are places. Rows of `pairs`, and of the origins
        with `reduce`, keep their index. Names of vertices are int64 if the source of the network named vertices by
        integers or they have no labels, else text. Points that the caller named by integers have integers of the same
        type, and floats that are whole become int64, so that the table joins with the frame. Ids of other types, and
        names in CSV, become text: a date with its time, so give dates as text, to join them.
        ``frame.attrs["unit"]`` is the unit of distances, if it is known, and ``frame.attrs["attribution"]`` names the
        origin of the data, as does every frame of a network that has an attribution.

    Raises
    ------
    ValueError
        An option has a wrong value or does not go with another one, a place or a column is wrong (the message names the
        row), or memory cannot hold the table.
    StoreError
        A vertex does not exist, or a store is damaged.

    Warns
    -----
    UserWarning
        Places are far from the network, or have a nearer vertex outside its largest component; or they were taken for
        longitudes and latitudes; or rows have the same id. Or `within` has no unit, is less than a minute, and hardly
        any destination is reached. Or there are no origins or no destinations, as after a filter that fits no row.

    Notes
    -----
    If every vertex is an origin, searches that end at `within` may replace the tables of a hierarchy, if they take less
    time. Searches add up floats in another order, so that the last bits of distances may differ.

    Examples
    --------
    >>> tilepath.od(graph, ["Rome", "Pisa"], ["Milan"])
      origin destination  distance
    0   Rome       Milan       570
    1   Pisa       Milan       315
    """
    given = read_given(open_network(network, graph, crs, snap_limit), origins, destinations, pairs, reduce=reduce)
    if lines := isinstance(paths, str):
        _check_lines(paths, given.graph)
    options = table_options(
        given.graph, within=within, nearest=nearest, reduce=reduce, decay=decay, paths=bool(paths), also=also,
        unit=unit, pairs=pairs is not None,
    )  # fmt: skip
    warn_of(given)
    if hint := short_limit(given, within, unit):
        warnings.warn(hint, stacklevel=2)
    frame = as_frame(_computed(given, options, progress), given, options.value.unit)
    rows = pairs if reduce is None else origins
    if hasattr(rows, "iloc") and are_rows(rows):
        frame.index = rows.index
    return _with_lines(frame, given.graph) if lines else frame


def _check_lines(paths: str, graph: Graph) -> None:
    """Raise the errors of `paths` as a text before the table is computed."""
    if paths != "lines":
        raise ValueError(f"paths is {paths!r}; give True, False or 'lines'")
    need_geopandas("lines of paths")
    placed(graph)


def _with_lines(frame: pandas.DataFrame, graph: Graph) -> pandas.DataFrame:
    """Return a table with paths as a GeoDataFrame of their lines."""
    paths = [[] if path is None else list(path) for path in frame["path"]]
    hops = np.array([len(path) for path in paths], np.int64) - 1
    roads, vertices = RoadsAlong(graph), graph.vertices([name for path in paths for name in path], "path")
    return with_lines(frame, roads.roads, roads.arcs(hops, vertices), np.maximum(hops, 0))


def _computed(given: Given, options: TableOptions, progress: bool | None) -> pa.Table:
    """Compute the table, which must fit in memory."""
    _refuse_large(given, options)
    table, count = plan_table(given, ".parquet", options), len(given.points[0].vertices)
    form = table.form
    assert isinstance(form, TableForm)
    batches: list[pa.RecordBatch] = []

    def keep(start: int, found: Any) -> None:
        rows = slice(start, min(start + table.step, count))
        batches.append(pa.RecordBatch.from_arrays(form.batch(rows, found), schema=form.schema))

    compute_blocks(table, count, range(0, count, table.step), keep, progress)
    return pa.Table.from_batches(batches, form.schema)


def _refuse_large(given: Given, options: TableOptions) -> None:
    """Refuse a table that memory cannot hold; of `within` it is not known beforehand how many pairs it leaves."""
    count, width = (len(each.vertices) for each in given.points)
    kept = 1 if options.pairs else min(width, options.nearest or width)
    if options.reductions:
        kept = len(options.reductions)
    if options.within is not None and given.points[0].everywhere:
        return
    cure = "write it to a file in pieces (tilepath od), keep the nearest (nearest), or reduce it (reduce)"
    refuse_beyond_memory(count * kept * PAIR_BYTES, f"a table of {count:,} origins takes", cure)
