"""Import graphs from files and from other libraries into graph stores.

Each reader is a context manager that yields an `ArcStream`: arcs in pieces of bounded size, in the order of the source,
and the known properties of the graph. `arc_sort.write_sorted` writes this stream to a store, so a file may be larger
than memory. Parallel arcs and loops are kept, names become labels, and weights may be negative.
"""

from __future__ import annotations

import inspect
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np

from pipelines.files.coordinate_systems import recorded_name
from pipelines.files.layers import READ, is_geoparquet
from pipelines.formats.arc_sort import write_sorted
from pipelines.formats.arc_stream import ArcStream
from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.adjacency import looks_like_adjacency, read_adjacency
from pipelines.formats.graphs.data_frames import is_data_frame, read_data_frame
from pipelines.formats.graphs.dimacs import read_dimacs
from pipelines.formats.graphs.edge_list import read_edge_list
from pipelines.formats.graphs.graphml import read_graphml
from pipelines.formats.graphs.in_memory import read_igraph, read_networkx, read_sparse, read_successors
from pipelines.formats.graphs.joined import poorly_joined
from pipelines.formats.graphs.layers import has_geometries, read_layers
from pipelines.formats.graphs.matrix_market import read_matrix_market
from pipelines.formats.graphs.osm import SUFFIXES, read_osm
from pipelines.formats.graphs.parquet import read_parquet
from pipelines.formats.graphs.positions import frame_positions, is_table_of_nodes, read_positions, table_positions
from pipelines.formats.graphs.python_objects import read_neighbours, read_pairs
from pipelines.formats.graphs.tntp import read_tntp
from pipelines.formats.graphs.weight_units import contradiction, is_speed, unit_named
from pipelines.formats.graphs.with_turns import unobeyed_restrictions, write_with_turns
from pipelines.stores.graph import SCHEMA, Graph
from pipelines.stores.place import refuse_existing, refuse_inputs
from pipelines.stores.schema import counted
from pipelines.stores.units import meant_by, no_unit, symbol_of
from pipelines.turns.angles import AngleCostsLike
from pipelines.turns.table import TurnsLike

__all__ = ["FORMATS", "FormatError", "import_graph"]

FORMATS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "gr": (read_dimacs, (".gr",)),
    "mtx": (read_matrix_market, (".mtx",)),
    "tntp": (read_tntp, (".tntp",)),
    "edges": (read_edge_list, (".txt", ".csv", ".tsv", ".el", ".edges", ".edgelist")),
    "parquet": (read_parquet, (".parquet", ".pq")),
    "adjacency": (read_adjacency, (".adj",)),
    "graphml": (read_graphml, (".graphml",)),
    "layers": (read_layers, READ),
    "osm": (read_osm, SUFFIXES),
}

TABLES = read_edge_list, read_parquet, read_data_frame


def import_graph(
    source: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    weight: str | int | None = None,
    also: str | Sequence[str] = (),
    columns: Sequence[str | int] | None = None,
    layer: str | None = None,
    oneway: str | None = None,
    crs: str | None = None,
    attribution: str | None = None,
    profile: str | os.PathLike[str] | None = None,
    delimiter: str | None = None,
    comment: str | None = None,
    base: int | None = None,
    vertices: int | None = None,
    labels: bool | None = None,
    header: bool | None = None,
    directed: bool | None = None,
    unit: str | None = None,
    coordinates: str | os.PathLike[str] | Mapping[str, Sequence[float]] | np.ndarray | None = None,
    turns: TurnsLike | bool | None = None,
    angles: AngleCostsLike | None = None,
    simplify: bool = False,
    sorted_rows: bool = True,
    overwrite: bool = False,
    memory: int | None = None,
    report: Callable[[str], None] | None = None,
) -> Graph:
    """Import a graph from a file or an object into a graph store.

    Parameters
    ----------
    source : path or object
        Path of a DIMACS `.gr`, Matrix Market, TNTP, edge list, GraphML, Parquet or adjacency file (text may be
        gzip'd), or of a file with a layer of lines (GeoPackage, GeoJSON, GeoParquet, `.fgb`, `.shp`), or of
        OpenStreetMap (`.osm.pbf`, `.osm`); or a GeoDataFrame of lines, a SciPy sparse matrix, or a graph of NetworkX,
        OSMnx or igraph, or a data frame of edges, or a vector of integers, for a graph of one arc from each v to
        ``source[v]``; or a list or iterator of lines ``"a -> b, c"``, or of ``(tail, head)`` or
        ``(tail, head, weight)``; or a dict of neighbours, ``{"a": ["b", "c"]}`` or ``{"a": {"b": 1.5}}``
    path : path of the new store
    format : str, optional
        "gr", "mtx", "tntp", "edges", "parquet", "adjacency", "graphml", "layers" or "osm"; default by the suffix. A
        `.txt` file whose first line has an arrow is "adjacency"
    weight : column (edge list, Parquet, data frame, and TNTP, with the default ``free_flow_time``) or edge attribute
        (GraphML, NetworkX, igraph); of OpenStreetMap "time" (default) or "length"
    also : further columns or attributes with weights, as a list or as text such as "length,toll", which the store keeps
        under their names: `open_graph` and commands choose among them by `weight`. A unit of time or length may follow,
        as in "length:m"; default: the name of the column. The source is read once for each. The store of a network of
        OpenStreetMap always has both its weights
    columns : tail, head and optionally weight (edge list, Parquet, data frame, layer)
    layer : str, optional
        Name of the layer of a file; by default the only layer of lines
    oneway : str, optional
        Column of the directions of lines or of rows of a data frame; by default, the column `oneway` if there is one
    crs : coordinate system of the coordinates, such as "EPSG:25833", if the source does not record it; geographic
        coordinates are longitude and latitude, in this order. Coordinates of Web Mercator (EPSG:3857), whose metres are
        not true, become longitudes and latitudes
    attribution : text that every picture and map of the graph shows, as the licence of the data asks; graphs of OSMnx
        have "© OpenStreetMap contributors" by default, and "" leaves it out
    profile : who uses the roads of OpenStreetMap: "car" (default), "bike", "foot", or the path of a changed copy of
        such a profile (`.toml`)
    delimiter : str, optional
        Character between the fields of an edge list; "" for runs of blanks; default: "," in `.csv`, tab in `.tsv`, else
        blanks
    comment : str, optional
        Lines of an edge list that begin with one of these characters are skipped; default "#%"
    header : bool, optional
        True if the first line of an edge list names the columns; default: True if `columns` or `weight` are names, or
        if the first line looks like names
    base : number of the first vertex (edge list, Parquet, pairs, dict); default 0. Without `base` and `vertices`, some
        edge must have vertex 0. Formats that count from 1 need no `base`.
    vertices : number of vertices if vertices are numbers (edge list, Parquet, pairs, dict); default: implied by the
        largest number
    labels : True if vertices are names (edge list, Parquet, pairs, dict). By default, names are: vertices that
        are not integers; all vertices of adjacency text; and, in a data frame, ids that are far larger than their
        count, such as OpenStreetMap's. With a base other than 0, the numbers in the source become labels. False: store
        no labels.
    directed : False: each edge is stored in both directions (edge list, Parquet, SciPy, lines, pairs, dict)
    unit : unit of the weights; default: the name of their column. A unit of time (ms, s, min, h, d) or length (m, km,
        ft, mi) can be converted in tables and limits; any other text, such as "euros", is only shown. Weights that the
        import computes itself, such as the lengths of lines, are converted to another unit of length
    coordinates : float (n, 2), or label -> (x, y), or the path of a DIMACS `.co` file, of TNTP's `_node.tntp`, or of a
        table of nodes (CSV, TSV, Parquet) with columns node (or osmid, id, name, label) and x and y (or lon and lat),
        such as GeoPandas writes; or such a data frame of pandas, whose index may have the nodes; with a table or a
        frame, the vertices of a Parquet source or data frame are names by default
    turns, angles : turns that are forbidden or cost something, as for `write_turns`; ``turns=True`` takes the turn
        restrictions of OpenStreetMap
    simplify : keep only the lightest of parallel arcs, and drop loops
    sorted_rows : False: keep the arcs of each vertex in the order of the source, not sorted by head
    overwrite : replace an existing graph store at `path`
    memory : bytes to sort in; default a quarter of the free memory, at most 1 GiB
    report : called with remarks for the user: whether a header was read, which columns were used, and oddities. What
        makes the graph doubtful, such as roads that are not joined, is a warning (`warnings.warn`)

    Returns
    -------
    Graph
        The opened store. Integer weights in text become int32 if all fit, else int64; decimals become float64; typed
        sources keep their dtype. Without weights the graph is unweighted: each arc counts 1.

    Raises
    ------
    FormatError
        The source cannot be read; the message names the source, the faulty line, row or entry, and the cure.
    ValueError
        Both `simplify` and ``sorted_rows=False`` are given: simplified rows are always sorted.
    StoreError
        `path` exists, or the disk is full.

    Examples
    --------
    >>> roads = [("Rome", "Pisa", 350), ("Pisa", "Genoa", 165)]
    >>> imported = tilepath.import_graph(roads, "two roads.zarr", directed=False)
    >>> imported["Pisa"]
    ['Rome', 'Genoa']
    """
    source = list(source) if isinstance(source, Iterator) else source
    also = [name.strip() for name in also.split(",")] if isinstance(also, str) else also
    _refuse_misspelt(unit)
    reader, name = _reader(source, format, tabular=not (columns is None and delimiter is None))
    options: dict[str, Any] = {
        "weight": weight,
        "columns": columns,
        "layer": layer,
        "oneway": oneway,
        "profile": profile,
        "delimiter": delimiter,
        "comment": comment,
        "base": base,
        "vertices": vertices,
        "labels": labels,
        "header": header,
        "directed": directed,
    }
    if base is None and vertices is None and _in_a_layer(source, format, reader):
        reader = read_layers
    options["crs"] = crs if reader is read_layers else None
    if labels is None and reader in (read_parquet, read_data_frame) and is_table_of_nodes(coordinates):
        options["labels"] = True
    options = {option: value for option, value in options.items() if value is not None}
    known = inspect.signature(reader).parameters
    for option in options.keys() - known.keys() - {"labels"}:
        raise FormatError(f"{name}: {option}={options[option]!r} has no meaning for {reader.__name__}; leave it out")
    if labels and "labels" not in known:
        raise FormatError(f"{name}: this format has no option for labels; leave it out")
    with (
        _errors(name),
        reader(source, **{name: value for name, value in (options | {"unit": unit}).items() if name in known}) as arcs,
    ):
        arcs.source = name
        from_column = reader in TABLES or arcs.weight_unit in (weight, *(columns or ())[2:])
        _name_weights(arcs, weight, unit, also, from_column)
        if also:
            again = partial(import_graph, source, format=format, memory=memory, **options)
            arcs.more_weights = partial(_more_weights, again, also, columns)
        if crs is not None and reader is not read_layers:  # which converts coordinates by itself
            arcs.crs = recorded_name(crs)
        if attribution is not None:
            arcs.attribution = attribution
        if coordinates is not None:
            arcs.coordinates = partial(_positions, coordinates, arcs.remarks)
        if labels is False:
            arcs.labels = None
        _tell(arcs, report)
        refuse_existing(path, SCHEMA, overwrite)
        refuse_inputs(path, [source, coordinates])
        turns = None if turns is False else turns
        arcs.remarks += unobeyed_restrictions(arcs, turns)
        if turns is not None or angles is not None:
            graph = write_with_turns(path, arcs, turns, angles, simplify, sorted_rows, overwrite, memory)
            _tell(arcs, report)
            return graph
        graph = write_sorted(path, arcs, simplify=simplify, sorted_rows=sorted_rows, overwrite=overwrite, memory=memory)
        arcs.warnings += _doubts(arcs, graph) if reader in TABLES else []
        _tell(arcs, report)
        return graph


def _refuse_misspelt(unit: str | None) -> None:
    """Raise FormatError if a unit is probably a misspelt unit of time or length; weights may have other units."""
    if unit is not None and symbol_of(unit) is None and meant_by(unit):
        raise FormatError(f"unit (--unit) is {no_unit(unit)}")


def _name_weights(
    arcs: ArcStream, weight: str | int | None, unit: str | None, also: Sequence[str], from_column: bool
) -> None:
    """Give the weights of a stream their name and unit; add warnings of doubtful ones.

    Readers give the name of a column as the unit of its weights; `from_column` says that this unit is such a name. The
    name may contradict the unit, or say that the weights are speeds.
    """
    arcs.weight_name = arcs.weight_name or (str(weight) if weight is not None else arcs.weight_unit)
    own = unit_named(arcs.weight_unit) if from_column else arcs.weight_unit
    arcs.weight_unit = arcs.units.get(arcs.weight_name, own) if unit is None else unit
    units = [(arcs.weight_name, unit or ""), *map(_with_unit, also)]
    arcs.warnings += [f"{arcs.source}: {said}" for said in starmap(contradiction, units) if said]
    if unit and symbol_of(unit) is None:
        arcs.remarks.append(f"{arcs.source}: {unit!r:.40} is no unit of time or length, so it is shown, not converted")
    if is_speed(arcs.weight_name):
        arcs.warnings.append(
            f"{arcs.source}: the weights {arcs.weight_name!r:.40} are speeds by name, but a path adds up weights; "
            "choose a column of times or lengths (weight, --weight)"
        )


def _doubts(arcs: ArcStream, graph: Graph) -> list[str]:
    """Return a warning if a graph of a table is a network of roads, which has places, and is poorly joined."""
    if arcs.coordinates is None:
        return []
    return [warning for warning in [poorly_joined(arcs.source, graph.indptr(), graph.indices())] if warning]


def _more_weights(
    again: Callable[..., Graph],
    also: Sequence[str],
    columns: Sequence[str | int] | None,
    simplify: bool,
    sorted_rows: bool,
) -> dict[str, tuple[np.ndarray, str]]:
    """Import the source `again` for each name in `also`; return the weights and their units."""
    if simplify:
        raise FormatError(
            "with simplify (--simplify), other arcs would be the lightest for other weights; leave simplify or also "
            "(--also) out"
        )
    ends, found = None if columns is None else columns[:2], {}
    with tempfile.TemporaryDirectory(prefix="tilepath-") as folder:
        for i, (name, unit) in enumerate(map(_with_unit, also)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the first import warns of the same
                graph = again(
                    os.path.join(folder, str(i)), weight=name, columns=ends, unit=unit or None, sorted_rows=sorted_rows
                )
            found[name] = graph.weights(), graph.weight_unit
    return found


def _with_unit(also: str) -> tuple[str, str]:
    """Return the name and the unit in the name of a further weight, such as "length:m"; "" for no unit.

    >>> _with_unit("length:m"), _with_unit("toll"), _with_unit("oneway:bicycle")
    (('length', 'm'), ('toll', ''), ('oneway:bicycle', ''))
    """
    name, _, unit = also.rpartition(":")
    return (name, unit) if name and symbol_of(unit) else (also, "")


def _tell(arcs: ArcStream, report: Callable[[str], None] | None) -> None:
    while arcs.remarks:
        remark = arcs.remarks.pop(0)
        if report is not None:
            report(remark)
    while arcs.warnings:
        warnings.warn(arcs.warnings.pop(0), stacklevel=3)


@contextmanager
def _errors(source: str) -> Iterator[None]:
    """Turn the errors of names that are not valid Unicode, and of too little memory, into a FormatError."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise FormatError(
            f"{source}: the text {error.object[:80]!r} is not valid Unicode (a lone surrogate); give it another name"
        ) from error
    except MemoryError as error:
        raise FormatError(
            f"{source}: not enough memory ({error}); sort in less (memory, --memory), or use a machine with more"
        ) from error


def _reader(source: Any, format: str | None, tabular: bool) -> tuple[Callable[..., Any], str]:
    """Return the reader for a source, and a name of the source; with `tabular`, a `.txt` file has columns."""
    if not isinstance(source, str | os.PathLike):
        if hasattr(source, "tocoo"):
            return read_sparse, type(source).__name__
        if hasattr(source, "is_directed") and hasattr(source, "nodes"):
            return read_networkx, type(source).__name__
        if hasattr(source, "get_edgelist") and hasattr(source, "vs"):
            return read_igraph, type(source).__name__
        if is_data_frame(source):
            return read_data_frame, type(source).__name__
        if isinstance(source, np.ndarray):
            return read_successors, "a vector of successors"
        if isinstance(source, Mapping):
            return read_neighbours, "a dict of neighbours"
        if isinstance(source, list | tuple):
            lines = len(source) > 0 and isinstance(source[0], str)
            return (read_adjacency, "a list of lines") if lines else (read_pairs, "a list of arcs")
        raise FormatError(
            f"an object of type {type(source).__name__} is not a graph; give a path, a SciPy sparse matrix, a graph "
            "of NetworkX or igraph, a data frame, a vector of successors (a NumPy array), a list of lines or of pairs, "
            "or a dict of neighbours"
        )
    name = os.fspath(source)
    plain = name[: -len(".bz2")] if name.lower().endswith(".osm.bz2") else name.removesuffix(".gz")
    suffix = os.path.splitext(plain)[1].lower()
    if format is None:
        format = next((key for key, (_, suffixes) in FORMATS.items() if suffix in suffixes), None)
        if suffix == ".txt" and not tabular and looks_like_adjacency(name):
            format = "adjacency"
    if format not in FORMATS:
        raise FormatError(
            f"{name}: unknown format {format or suffix!r}; choose one (format, --format {'|'.join(FORMATS)})"
        )
    return FORMATS[format][0], name


def _in_a_layer(source: Any, format: str | None, reader: Callable[..., Any]) -> bool:
    """Return whether a data frame or a Parquet file, whose format is not named, has geometries."""
    if reader is read_parquet and format is None:
        return is_geoparquet(source)
    return reader is read_data_frame and has_geometries(source)


def _positions(coordinates: Any, remarks: list[str], n: int, labels: Iterable[str] | None) -> np.ndarray:
    """Return the option `coordinates` of `import_graph` as float64 (n, 2); add nodes without a match to `remarks`."""
    source = "coordinates"
    if hasattr(coordinates, "iloc"):
        coordinates = frame_positions(coordinates)
    elif is_table_of_nodes(coordinates):
        source, coordinates = os.fspath(coordinates), table_positions(coordinates)
    if isinstance(coordinates, str | os.PathLike):
        return read_positions(coordinates, n)
    if isinstance(coordinates, Mapping):
        names = list(map(str, range(n)) if labels is None else labels)
        coordinates = {str(name): place for name, place in coordinates.items()}
        if n and coordinates and coordinates.keys().isdisjoint(names):
            raise FormatError(
                f"{source}: none of its nodes, such as {next(iter(coordinates))!r}, is a vertex of the graph, "
                f"such as {names[0]!r}; use the file of the same graph"
            )
        if apart := len(coordinates.keys() - set(names)):
            remarks.append(f"{source}: left out {apart:,} of {counted(len(coordinates), 'node')}, without an edge")
        if bare := len(set(names) - coordinates.keys()):
            remarks.append(f"{source}: no position of {bare:,} of {counted(n, 'vertex', 'vertices')}")
        return np.array([coordinates.get(name, (np.nan, np.nan)) for name in names], dtype=np.float64)
    found = np.asarray(coordinates, dtype=np.float64)
    if found.shape != (n, 2):
        raise FormatError(f"coordinates have the shape {found.shape}; give ({n}, 2), x and y of each vertex")
    return found
