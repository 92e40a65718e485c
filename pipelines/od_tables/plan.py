"""Plan a table: check its options, and choose how blocks of origins are computed and become rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from gpuops.options import whole
from pipelines.od_tables.blocks import DistancesTo, Reducing, Reduction, parse_reduction, reductions_in
from pipelines.od_tables.forms import ArrayForm, Found, PairRoutes, TableForm, choices, pair_table, reduced_table
from pipelines.od_tables.given import Given
from pipelines.od_tables.near import Near
from pipelines.od_tables.row_by_row import PAIRS, RowByRow
from pipelines.od_tables.units import Measured, measured
from pipelines.places.points import Points
from pipelines.routes.along import Along, Also, named, read_along
from pipelines.routes.paths import Walker
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.units import limits_in

MATRICES = (".npy", ".zarr")
CHUNK_ROWS = 1024  # most rows in a chunk of a matrix store
BLOCK_BYTES = 64 << 20  # bytes of distances in memory at a time
# A reduced table is cut into this many blocks, unless a block would have fewer or more pairs than `REDUCED_PAIRS`.
REDUCED_BLOCKS = 64
REDUCED_PAIRS = 1 << 28, 1 << 31
PATH_VERTICES = 64  # vertices assumed for a path when the bytes of paths are estimated
OWN_COLUMNS = ("origin", "destination", "distance", "travel_time", "path", "origin_snapped", "destination_snapped")


@dataclass(frozen=True, eq=False)
class TableOptions:
    """The options of a table, checked; distances are in the unit of the network.

    Attributes
    ----------
    value : name and unit of the distances in the table
    within, nearest, paths, pairs : as for `table_options`
    reductions : columns with one value for each origin; none for a table of pairs
    along : the weights whose sums along paths the table has
    recorded : the options as given (JSON), which a resumed run must repeat
    """

    value: Measured
    within: float | None
    nearest: int | None
    reductions: list[Reduction]
    paths: bool
    along: list[Along]
    pairs: bool
    recorded: dict[str, Any]

    @property
    def walks(self) -> bool:
        """Whether the table needs paths."""
        return self.paths or bool(self.along)

    @property
    def all_distances(self) -> bool:
        """Whether the table has all distances unchanged, like a matrix."""
        few = self.within is not None or self.nearest is not None or bool(self.reductions)
        return not (few or self.walks or self.pairs or self.value.per != 1)


def table_options(
    graph: Graph,
    *,
    within: float | str | Sequence[float | str] | None = None,
    nearest: int | None = None,
    reduce: str | Sequence[str] | None = None,
    decay: str | None = None,
    paths: bool = False,
    also: Also = None,
    unit: str | None = None,
    pairs: bool = False,
) -> TableOptions:
    """Return the checked options; raise ValueError if an option is wrong, or options do not go together.

    Parameters
    ----------
    within, nearest, reduce, decay, also, unit : as for `pipelines.od`
    paths : add the vertices along a shortest path of each pair and, if the graph has coordinates, its length
    pairs : whether origin i goes to destination i only, with one row for each such pair
    """
    value = measured(graph.unit, unit)
    limits = _limits_of(within, value, several=reduce is not None)
    if nearest is not None:
        whole("nearest", nearest, 1)
    if decay is not None and reduce is None:
        raise ValueError("decay (--decay) needs reduce (--reduce): count, sum:COLUMN or mean:COLUMN")
    reductions = _reductions(reduce, decay, limits, value)
    titles = [each.title for each in reductions]
    for title in titles:
        if titles.count(title) > 1:
            raise ValueError(f"reduce names the column {title} twice; leave one out, or write a table for each")
    others = named(also)
    for name, given in ("nearest", nearest is not None), ("paths", paths), ("also", bool(others)), ("pairs", pairs):
        if reductions and given:
            raise ValueError(f"{name} (--{name}) does not go with reduce (--reduce); leave one of them out")
    for name, given in ("within", bool(limits)), ("nearest", nearest is not None):
        if pairs and given:
            raise ValueError(f"{name} (--{name}) does not go with pairs (--pairs); filter the rows of the result")
    reductions = [
        replace(each, scale=value.in_network(each.scale), within=value.in_network(each.within)) for each in reductions
    ]
    along = along_of(graph, others)
    recorded: dict[str, Any] = {
        "within": limits if len(limits) > 1 else next(iter(limits), None),
        "nearest": nearest,
        "reduce": reduce if reduce is None or isinstance(reduce, str) else list(reduce),
        "paths": paths,
    }
    if along or pairs or value.per != 1 or decay is not None:  # options that earlier versions did not have
        hashes = {each.name: hashlib.blake2b(each.weights.data, digest_size=16).hexdigest() for each in along}
        recorded |= {"decay": decay, "unit": unit, "pairs": pairs, "also": hashes}
    within = value.in_network(max(limits, default=None))
    return TableOptions(value, within, nearest, reductions, paths, along, pairs, recorded)


def along_of(graph: Graph, also: Also) -> list[Along]:
    """Return the weights that the option `also` names; raise ValueError if a table has such a column of its own."""
    others = named(also)
    for name in others:
        if name in OWN_COLUMNS:
            raise ValueError(f"also: the table has a column `{name}` of its own; choose another name")
    return read_along(graph, others)


def _reductions(
    reduce: str | Sequence[str] | None, decay: str | None, limits: Sequence[float], value: Measured
) -> list[Reduction]:
    """Return a reduction for each limit. A minimum has the largest limit only: with others it is equal or missing."""
    ending, found = "_{:g}" if len(limits) > 1 else "", []
    each_limit: Sequence[float | None] = limits or [None]
    for text, limit in product(reductions_in(reduce), each_limit):
        each = replace(parse_reduction(text, decay, limit, value), within=limit)
        if each.name != "min":
            found.append(replace(each, ending=ending.format(limit)))
        elif limit == max(limits, default=None):
            found.append(each)
    return found


def _limits_of(within: float | str | Sequence[float | str] | None, value: Measured, *, several: bool) -> list[float]:
    """Return the limits of the option `within`, in the unit of the table; only a reduced table has `several`."""
    if within is None:
        return []
    found = limits_in(within, value.unit, "within")
    if len(found) > 1 and not several:
        raise ValueError(f"within is {within}; give one limit, or several with reduce (--reduce)")
    return list(dict.fromkeys(found))


class PlannedTable(NamedTuple):
    """How a table is made: `compute` computes a block of `step` rows at a time, and `form` turns the block into rows.

    `width` is the number of pairs of places for each row. `reducing` is the work of a reduced table, to be sent to
    workers, or None for other tables.
    """

    form: ArrayForm | TableForm
    compute: Callable[[slice], Any]
    step: int
    width: int
    reducing: Reducing | None = None


def plan_table(given: Given, suffix: str, options: TableOptions) -> PlannedTable:
    """Plan a table of origins and destinations in a file or a store with this suffix."""
    if options.pairs:
        table = _row_by_row(given, suffix, options)
    elif (near := _near(given, options)) is not None:
        table = _by_reach(near, suffix, options)
    else:
        table = _in_blocks(given, suffix, options)
    attribution = given.graph.attribution
    if attribution and isinstance(table.form, TableForm):
        schema = table.form.schema.with_metadata({"attribution": attribution})
        return table._replace(form=replace(table.form, schema=schema))
    return table


def _row_by_row(given: Given, suffix: str, options: TableOptions) -> PlannedTable:
    rows = RowByRow(given, walks=options.walks)
    routes = None
    if options.walks:
        routes = PairRoutes(rows.walker, suffix, paths=options.paths, along=options.along)
    form = pair_table(given.points, suffix, rows.dtype, options.value, lambda block: None, routes)
    return PlannedTable(form, rows.compute, PAIRS, 1)


def _near(given: Given, options: TableOptions) -> Near | None:
    """Return searches for near destinations if they make the table faster; None otherwise."""
    source, graph, points = given.source, given.graph, given.points
    if options.walks or graph.weight_min < 0:
        return None
    dtype = np.dtype(np.int32) if graph.weight_dtype.kind in "iu" else graph.weight_dtype  # of searches
    dtype = source.dtype if isinstance(source, HierarchyStore) else dtype
    near = Near(graph, dtype, *points, options.within)
    if options.nearest is not None:
        return near if points[0].everywhere else None
    if options.within is None:
        return None
    if isinstance(source, Graph):
        return near
    return near if points[0].everywhere and near.is_faster_than_tables(reduces=bool(options.reductions)) else None


def _by_reach(near: Near, suffix: str, options: TableOptions) -> PlannedTable:
    points, width = (near.origins, near.destinations), len(near.destinations.vertices)
    count = len(near.origins.vertices)
    step = rows_in_block(count, min(width, near.graph.n), count)
    if options.reductions:
        form = reduced_table(near.origins, suffix, options.value, options.reductions)
        return PlannedTable(form, _reduced_by_reach(near, options.reductions), step, width)
    of_each = options.nearest is not None
    form = pair_table(points, suffix, near.dtype, options.value, lambda block: None, None, of_each=of_each)
    if options.nearest is None:
        return PlannedTable(form, near.pairs, step, width)
    return PlannedTable(form, _nearest_of_each(near, options.nearest), step, width)


def _reduced_by_reach(near: Near, reductions: list[Reduction]) -> Callable[[slice], np.ndarray]:
    values = [_values(near.destinations, each) for each in reductions]
    if not near.from_ends:
        return partial(near.reduced, reductions, values)
    every_row = cache(partial(near.reduced_from_ends, reductions, values))
    return lambda rows: every_row()[rows]


def _nearest_of_each(near: Near, k: int) -> Callable[[slice], Found]:
    """Return a function that cuts the nearest destinations of all vertices, found at its first call, into blocks."""
    every_row = cache(partial(near.nearest, k))

    def compute(rows: slice) -> Found:
        found = every_row()
        first, last = np.searchsorted(found.origins, [rows.start, rows.stop]).tolist()
        return Found(found.origins[first:last], found.destinations[first:last], found.values[first:last])

    return compute


def _in_blocks(given: Given, suffix: str, options: TableOptions) -> PlannedTable:
    source, graph, points = given.source, given.graph, given.points
    origins, destinations = points
    rows_of = DistancesTo(source, np.arange(graph.n) if options.walks else destinations.vertices)
    count, width = (len(p.vertices) for p in points)
    step = rows_in_block(count, max(graph.n, PATH_VERTICES * width) if options.walks else width, count)

    def compute(rows: slice) -> np.ndarray:
        return rows_of.rows(origins.vertices[rows])

    if suffix in MATRICES:
        step = min(step, CHUNK_ROWS) if suffix == ".zarr" else step
        return PlannedTable(ArrayForm((count, width), rows_of.dtype), compute, step, width)
    if not options.reductions:
        routes = None
        if options.walks:
            walker = Walker(graph, rows_of.dtype)
            routes = PairRoutes(walker, suffix, paths=options.paths, along=options.along)
        chosen = partial(choices, within=options.within, nearest=options.nearest)
        of_each = options.nearest is not None
        form = pair_table(points, suffix, rows_of.dtype, options.value, chosen, routes, of_each=of_each)
        return PlannedTable(form, compute, step, width)
    values = [_values(destinations, each) for each in options.reductions]
    reducing = Reducing(destinations.vertices, options.reductions, values, step)
    # A search takes so long that a block of `step` origins is large enough; tables need larger blocks.
    if isinstance(source, HierarchyStore):
        least, most = (pairs // max(1, width) for pairs in REDUCED_PAIRS)
        step = max(step, min(count, most, max(least, -(-count // REDUCED_BLOCKS))))
    form, reduce = reduced_table(origins, suffix, options.value, options.reductions), reducing.of(rows_of)
    return PlannedTable(form, lambda rows: reduce(origins.vertices[rows]), step, width, reducing)


def _values(destinations: Points, reduction: Reduction) -> np.ndarray:
    """Return the value of each destination."""
    if reduction.column is None:
        return np.ones(len(destinations.vertices))
    return destinations.columns[reduction.column]


def rows_in_block(count: int, width: int, most: int) -> int:
    """Return the number of origins in a block."""
    return max(1, min(count, most, BLOCK_BYTES // (8 * max(1, width))))
