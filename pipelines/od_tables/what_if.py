"""What if roads were closed: a table of the distances that change, and how critical each of some roads is.

Closing an arc (u, v) of weight w changes the distance from o to d only if the arc is on a shortest path: if
d(o, u) + w + d(v, d) = d(o, d), up to rounding. Only the distances of such pairs are computed again. For each road, the
tables of a hierarchy store are computed again in memory, on its structure.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuops.memory import refuse_beyond_memory
from gpuops.numbers import outside_infinity
from pipelines.files.layers import is_layer, read_layer
from pipelines.files.tables import column_names, is_among, number_field, pandas_array, read_columns, vertex_names
from pipelines.od_tables.blocks import DistancesTo
from pipelines.od_tables.given import Given, as_frame, given_or_everywhere, read_given, warn_of
from pipelines.od_tables.plan import along_of
from pipelines.od_tables.row_by_row import RowByRow
from pipelines.od_tables.units import Measured, measured
from pipelines.places.named_systems import systems_for
from pipelines.places.networks import NetworkLike, open_network
from pipelines.places.points import Points
from pipelines.places.row_names import numbered, text_of
from pipelines.places.single import are_rows
from pipelines.routes.pairs import read_pairs
from pipelines.stores.arcs_of_roads import arcs_of
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.named_roads import NamedRoads, ends_of
from pipelines.stores.schema import brief
from pipelines.stores.units import symbol_of
from pipelines.stores.vertex_names import positions
from pipelines.workers.interruption import boundaries, stop_if_asked
from pipelines.workers.progress import Progress

if TYPE_CHECKING:
    import pandas

ROUNDING = {"f4": 1e-5, "f8": 1e-12}  # smaller relative differences of floats are taken for rounding
PLACES = ("id", "name", "lon", "lat", "x", "y")  # columns of a table of places
BLOCK_BYTES = 24  # bytes of a pair of places in memory


def changes(
    network: NetworkLike,
    after: NetworkLike,
    origins: Any = None,
    destinations: Any = None,
    *,
    pairs: Any = None,
    also: str | Sequence[str] = (),
    unit: str | None = None,
    snap_limit: float | str | None = None,
    crs: Any = None,
    graph: Graph | str | os.PathLike[str] | None = None,
) -> pandas.DataFrame:
    """Return the distances that differ between a network and the network after a change.

    Parameters
    ----------
    network : HierarchyStore or Graph, or path of such a store
    after : HierarchyStore or Graph, or path of such a store
        The network after the change, such as ``network.with_weights(closed=[("a", "b")])``. A store of its own has the
        places at the vertices of the same names.
    origins, destinations, pairs, unit, snap_limit, crs, graph : as for `tilepath.od`
        Places are snapped by the network before the change.
    also : str or list of str, optional
        Other weights to add up along the paths before and after the change: names of weights that both networks have,
        such as "length,toll".

    Returns
    -------
    pandas.DataFrame
        A row for each pair whose distance changed: origin, destination, travel_time_before and travel_time_after (or
        distance_before and distance_after; NaN if unreachable) and change; then, for each of `also`, such as toll,
        toll_before and toll_after. Floats that differ only by rounding count as equal.

    Raises
    ------
    ValueError
        The weights of the two networks have different units.
    StoreError
        A network has no weights of a name in `also`.

    Examples
    --------
    >>> road = ("1", grid["1"][0])
    >>> closed = hierarchy.with_weights(closed=[road])
    >>> tilepath.changes(hierarchy, closed, ["1"], ["0", "29"])
      origin destination  distance_before  distance_after  change
    0      1           0             46.0           428.0   382.0
    """
    opened = open_network(network, graph, crs, snap_limit)
    given = read_given(opened, origins, destinations, pairs)
    warn_of(given)
    value = measured(opened.graph.unit, unit)
    return as_frame(change_table(given, after, value, pairs=pairs is not None, also=also), given, value.unit)


def roads_in(path: str | os.PathLike[str], graph: Graph) -> Any:
    """Read roads from a file, for `pipelines.stores.named_roads`: a table of ends or places, or a layer."""
    if is_layer(path):
        return numbered(read_layer(path, None, "")[0])
    names = column_names(path)
    both_ends = is_among("source", names) and is_among("target", names)  # places may have a column origin
    if not both_ends and any(is_among(axis, names) for axis in ("lon", "x")):
        return read_columns(path, PLACES, PLACES)
    named = read_pairs(path, graph)
    assert named.sources is not None
    return positions(np.stack([named.sources, named.targets], axis=1))


def groups_in(roads: Any, together: str) -> pa.Array:
    """Return the entries of the column `together` of a table of roads, which may be in a file, as integers or as text.

    Raises
    ------
    ValueError
        `roads` has no such column, or an entry is missing.
    """
    if isinstance(roads, str | os.PathLike):
        roads = read_layer(roads, None, "")[0] if is_layer(roads) else read_columns(roads, [together])
    columns = list(getattr(roads, "column_names", getattr(roads, "columns", ())))
    if together not in columns:
        has = f"has the columns {', '.join(map(str, columns))}" if columns else "is no table"
        raise ValueError(f"together (--together) is {together!r}, but roads {has}; name a column of a table of roads")
    values = roads[together]
    found = pandas_array(values) if hasattr(values, "iloc") else pa.table(roads)[together]
    for row in np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))[:1].tolist():
        raise ValueError(f"roads, row {row + 1}: `{together}` is missing; fill it in or leave the row out")
    if pa.types.is_integer(found.type):
        return found.cast(pa.int64())
    if pa.types.is_nested(found.type):
        raise ValueError(f"roads: `{together}` has lists; give each row one name, as `explode({together!r})` does")
    found = text_of(found)
    for row in np.flatnonzero(pc.equal(found, "").to_numpy(zero_copy_only=False))[:1].tolist():
        raise ValueError(f"roads, row {row + 1}: `{together}` is empty; fill it in or leave the row out")
    return found


def change_table(
    given: Given, after: NetworkLike, value: Measured, *, pairs: bool, also: str | Sequence[str] = ()
) -> pa.Table:
    """Return the table of `changes`; with `pairs`, origin i goes to destination i."""
    if isinstance(also, Mapping):
        raise ValueError(f"also is {brief(repr(also))}; name weights that both networks have, such as 'length,toll'")
    begins, ends = given.points
    source = open_network(after).source if isinstance(after, str | os.PathLike) else after
    changed = source if isinstance(source, Graph) else source.graph()
    _refuse_other_unit(given.graph, changed)
    along = [along_of(each, also) for each in (given.graph, changed)]
    first, last = (_in_graph(changed, given.graph, points) for points in given.points)
    both = given, Given(source, changed, (first, last))
    if pairs:
        rows = slice(0, len(begins.vertices))
        found = [RowByRow(each, walks=False).compute(rows).values for each in both]
        i = j = np.flatnonzero(_differ(*found))
        before, later = (each[i] for each in found)
    else:
        _refuse_large(given)
        found = [DistancesTo(each.source, each.points[1].vertices).rows(each.points[0].vertices) for each in both]
        i, j = np.nonzero(_differ(*found))
        before, later = (each[i, j] for each in found)
    before, later = (value.of(_as_floats(each)) for each in (before, later))
    columns = {f"{value.name}_before": before, f"{value.name}_after": later, "change": later - before}
    fields = [number_field(name, np.float64, value.unit) for name in columns]
    for network, weights, when in zip(both, along, ("before", "after"), strict=True):
        if weights:
            out, to = network.points
            rows_of = RowByRow(replace(network, points=(out.take(i), to.take(j))), walks=True)
            columns |= {f"{each.name}_{when}": sums for each, sums in zip(weights, rows_of.sums(weights), strict=True)}
            fields += [number_field(f"{each.name}_{when}", np.float64, each.unit) for each in weights]
    numbers = [pa.array(values, mask=np.isnan(values)) for values in columns.values()]
    ids = [points.ids.take(pa.array(rows)) for points, rows in ((begins, i), (ends, j))]
    names = [pa.field(name, of.type) for name, of in zip(("origin", "destination"), ids, strict=True)]
    return pa.Table.from_arrays([*ids, *numbers], schema=pa.schema([*names, *fields]))


def _refuse_other_unit(graph: Graph, changed: Graph) -> None:
    units = [each.weight_unit for each in (graph, changed)]
    if all(units) and len({symbol_of(unit) or unit for unit in units}) == 2:
        raise ValueError(
            f"after: weights are in {units[1]!r}, and those of the network before the change are in {units[0]!r}; "
            f"import both with one unit (unit, --unit, or also='NAME:{symbol_of(units[0]) or 's'}')"
        )


def _in_graph(changed: Graph, graph: Graph, points: Points) -> Points:
    """Return the same points in a changed graph: at the vertices of the same names, if it is another store."""
    if changed.path == graph.path and changed.n == graph.n:
        return points
    if changed.labels() is None and changed.n != graph.n:
        raise ValueError(
            f"after: {changed.path} has {changed.n:,} vertices without names, and {graph.path} has {graph.n:,}; name a "
            "network with the same vertices"
        )
    return points._replace(vertices=changed.vertices(graph.names(points.vertices), "vertex"))


def criticality(
    network: NetworkLike,
    roads: Any,
    origins: Any = None,
    destinations: Any = None,
    *,
    together: str | None = None,
    one_way: bool = False,
    unit: str | None = None,
    snap_limit: float | str | None = None,
    crs: Any = None,
    graph: Graph | str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> pandas.DataFrame:
    """Return, for each of some roads, how far distances grow if this road alone is closed.

    Parameters
    ----------
    network : HierarchyStore or Graph, or path of such a store
        Weights must not be negative.
    roads : as `closed` of `Graph.with_weights`, but no single arcs; or the path of a table or a layer
        A table in a file has the ends of each road in the columns `source` and `target`, or places.
    origins, destinations : optional
        As for `tilepath.od`. Without both, all pairs of vertices are compared.
    together : str, optional
        A column of `roads`, such as "name": rows with equal entries are closed together, as both carriageways of a
        bridge.
    one_way : bool
        Close the road only from its first to its second end, not in both directions; only for a directed network.
    unit, snap_limit, graph, progress : as for `tilepath.od`
    crs : as for `tilepath.od`; also of roads that are places or geometries without a coordinate system

    Returns
    -------
    pandas.DataFrame
        A row for each row of `roads`, in their order, with the columns `source` and `target`; `longer`, the number of
        pairs whose distance grows; `cut`, the number of pairs that are no longer joined; `total` and `largest`, the sum
        and the largest of the added distances. Rows of a table of arcs keep their index, such as (u, v, key) of OSMnx,
        which tells several roads between the same two ends apart. If roads are places or geometries, the first column
        `road` has the names of their rows, as `tilepath.od` names places; a geometry has a row for each road that it
        meets. A two-way road of a directed network is two rows of `tilepath.graph_to_gdfs`: unless `one_way`, both rows
        close both directions, and have the same numbers. Give one of the two rows to have each road once. With
        `together`, there is a row for each entry of this column, which the column `road` has instead of `source` and
        `target`. ``frame.attrs["unit"]`` is the unit of the added distances, if it is known. If `roads` names no road,
        a warning says so, and the table has no rows.

    Examples
    --------
    >>> table = tilepath.criticality(hierarchy, [("1", grid["1"][0])], ["1"], ["0", "29"])
    >>> table.columns.tolist()
    ['source', 'target', 'longer', 'cut', 'total', 'largest']
    """
    opened = open_network(network, graph, crs, snap_limit)
    groups = None if together is None else groups_in(roads, together)
    index = roads.index if hasattr(roads, "iloc") and are_rows(roads) else None
    roads = roads_in(roads, opened.graph) if isinstance(roads, str | os.PathLike) else roads
    given = given_or_everywhere(opened, origins, destinations, roads=roads)
    warn_of(given)
    value = measured(opened.graph.unit, unit)
    own = systems_for((roads, origins, destinations), crs)[0]
    table = criticality_table(given, roads, value, groups, one_way=one_way, crs=own, progress=progress)
    frame = as_frame(table, given, value.unit)
    if index is not None and "road" not in frame:
        frame.index = index
    return frame


def criticality_table(
    given: Given,
    roads: Any,
    value: Measured,
    groups: pa.Array | None = None,
    *,
    one_way: bool,
    crs: Any = None,
    progress: bool | None = None,
) -> pa.Table:
    """Return the table of `criticality`; `groups` has an entry for each row of `roads`, from `groups_in`."""
    if given.graph.weight_min < 0:
        raise ValueError(f"{given.graph.path} has negative weights, with which roads cannot be closed")
    _refuse_large(given)
    named = ends_of(given.graph, roads, "roads", crs)
    tails, heads, rows, names, lines = named
    if not len(tails):
        said = "roads: no road is named, so the table has no rows; look at how they were chosen"
        warnings.warn(said, stacklevel=3)  # the caller of criticality
    if groups is None:  # a road that is named from both of its ends is closed once, unless it is closed one way
        ends = np.stack([tails, heads], axis=1)
        ends = ends if one_way else np.sort(ends, axis=1)
        if lines is not None:  # parallel roads are closed one after the other
            numbers = {key: i for i, key in enumerate(dict.fromkeys(lines))}
            ends = np.column_stack([ends, [numbers[key] for key in lines]])
        _, of_road = np.unique(ends, axis=0, return_inverse=True)
    else:
        encoded = groups.dictionary_encode()
        of_road, names = encoded.indices.to_numpy()[rows], encoded.dictionary
    of_road = of_road.reshape(-1)
    found = np.zeros((of_road.max(initial=-1) + 1, 4))
    if len(found):
        closing = Closing(given, named, one_way=one_way)
        with Progress(len(found), "roads", progress) as bar, boundaries():
            bar.start(0)
            bar.stage("closing roads")
            for change in range(len(found)):
                found[change] = closing.without(np.flatnonzero(of_road == change))
                bar.advance(1)
                stop_if_asked()
    columns: dict[str, Any] = {} if names is None else {"road": names}
    if groups is None:
        found = found[of_road]
        columns |= {"source": vertex_names(given.graph, tails), "target": vertex_names(given.graph, heads)}
    longer, cut, total, largest = found.T
    columns |= {"longer": longer, "cut": cut, "total": value.of(total), "largest": value.of(largest)}
    fields = [pa.field(name, columns[name].type) for name in ("road", "source", "target") if name in columns]
    fields += [pa.field(name, pa.int64()) for name in ("longer", "cut")]
    fields += [number_field(name, np.float64, value.unit) for name in ("total", "largest")]
    return pa.Table.from_arrays([pa.array(each) for each in columns.values()], names=list(columns)).cast(
        pa.schema(fields)
    )


class Closing:
    """Closes some roads of a network at a time, and compares distances.

    Parameters
    ----------
    given : the network, and the origins and destinations whose distances are compared
    named : the roads
    """

    def __init__(self, given: Given, named: NamedRoads, *, one_way: bool):
        self._given = given
        self._rows = given.graph.rows()
        self._roads, self._arcs = arcs_of(given.graph, self._rows[:2], named, one_way=one_way)
        arcs = np.unique(self._arcs)
        self._vertices = np.unique([np.searchsorted(self._rows[0], arcs, side="right") - 1, self._rows[1][arcs]])
        origins, destinations = (each.vertices for each in given.points)
        self._before = DistancesTo(given.source, destinations).rows(origins)
        self._from_origins = _as_floats(DistancesTo(given.source, self._vertices).rows(origins))
        self._to_destinations = _as_floats(DistancesTo(given.source, destinations).rows(self._vertices))

    def without(self, roads: np.ndarray) -> tuple[int, int, float, float]:
        """Return the numbers of longer and of cut pairs, and the sum and the largest of the added distances.

        `roads` has the numbers of the roads that are closed together.
        """
        graph, arcs = self._given.graph, np.unique(self._arcs[np.isin(self._roads, roads)])
        i, j = self._affected(arcs)
        if not len(i):
            return 0, 0, 0.0, 0.0
        origins, destinations = (each.vertices for each in self._given.points)
        (rows, row), (columns, column) = (np.unique(each, return_inverse=True) for each in (i, j))
        source = self._given.source
        if isinstance(source, HierarchyStore):
            changed: HierarchyStore | Graph = source.with_weights(closed=positions(arcs), graph=graph)
        else:
            changed = source.with_weights(closed=positions(arcs))
        after = DistancesTo(changed, destinations[columns]).rows(origins[rows])[row, column]
        before = self._before[i, j]
        grown = _differ(before, after)
        cut = grown & (after == outside_infinity(after.dtype))
        growths = after[grown & ~cut].astype(np.float64) - before[grown & ~cut]
        return len(growths), int(cut.sum()), float(growths.sum()), float(growths.max(initial=0.0))

    def _affected(self, arcs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs with a shortest path along one of some arcs, up to rounding."""
        indptr, heads, weights = self._rows
        tails = np.searchsorted(indptr, arcs, side="right") - 1
        first, last = (np.searchsorted(self._vertices, each) for each in (tails, heads[arcs]))
        on = np.zeros(self._before.shape, bool)
        limit = _as_floats(self._before) * (1 + ROUNDING.get(self._before.dtype.str[1:], 0.0))
        with np.errstate(invalid="ignore"):  # NaN: a pair that is not joined, and is not affected
            for k, arc in enumerate(arcs):
                path = self._from_origins[:, first[k], None] + float(weights[arc]) + self._to_destinations[last[k]]
                on |= path <= limit
        i, j = np.nonzero(on)
        return i, j


def _differ(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return where distances differ by more than rounding."""
    if before.dtype == after.dtype and before.dtype.kind == "i":
        return before != after
    one, other = _as_floats(before), _as_floats(after)
    kinds = (each.dtype.str[1:] for each in (before, after))
    slack = max(ROUNDING.get(kind, 0.0) for kind in kinds)
    with np.errstate(invalid="ignore"):  # NaN: a pair that is not joined
        far = np.abs(one - other) > slack * np.maximum(np.abs(one), np.abs(other))
    return far | (np.isnan(one) != np.isnan(other))


def _as_floats(found: np.ndarray) -> np.ndarray:
    """Return distances as float64, NaN for unreachable."""
    return np.where(found == outside_infinity(found.dtype), np.nan, found.astype(np.float64))


def _refuse_large(given: Given) -> None:
    begins, ends = (len(each.vertices) for each in given.points)
    cure = "name fewer origins or destinations"
    refuse_beyond_memory(begins * ends * BLOCK_BYTES, f"the distances from {begins:,} origins take", cure)
