"""The graph store (schema `graph/1`): a directed multigraph in compressed sparse rows, weighted or unweighted.

=========== ============== ================================================================================
array       dtype, shape   meaning
=========== ============== ================================================================================
indptr      int64 (n + 1)  arcs leaving u are indptr[u] : indptr[u + 1]
indices     int32/64 (m)   heads of the arcs, in a row sorted (equal heads in source order) or as given
weights     number (m)     optional: weights of the arcs, in the natural dtype of the source; absent: the graph
                           is unweighted, and each arc counts 1
labels      str (n)        optional: the names of the vertices in the source
coordinates float64 (n, 2) optional: x, y or longitude, latitude
through     bool (n)       optional: whether a path may pass through the vertex; absent: through every vertex
junctions   int64 (n)      optional: which vertices are there for turns (`pipelines.stores.junctions`)
=========== ============== ================================================================================

A map may have three more arrays, all or none, with the lines along which arcs lead (`pipelines.stores.lines`):

============ ================ =============================================================================
array        dtype, shape     meaning
============ ================ =============================================================================
arc_lines    int64 (m)        number of an arc's line, from 1; negative: against the line; 0: a straight arc
line_offsets int64 (l + 1)    the points of line k are line_offsets[k - 1] : line_offsets[k]
line_points  float64 (p, 2)   points in the coordinate system of the coordinates
============ ================ =============================================================================

The optional array `arc_classes`, int16 (m), has the class of each arc's road (`pipelines.stores.road_classes`), by its
position in the attribute `road_classes`, a list of texts; -1: not known.

A store may have several weights, each with a name (`pipelines.stores.named_weights`): the attribute `weight_name` names
those in `weights`, and the list `more_weights` describes the arrays `weights_1`, `weights_2` and so on.

The optional attribute `crs` names the coordinate system, such as "EPSG:25833". Longitudes and latitudes are always
"EPSG:4326", longitude first. The optional attribute `attribution` names the origin of the data, as its licence asks;
every picture and map of the graph shows this text. The optional attribute `integer_labels` is true if the source named
the vertices by integers: tables then have int64 names. In stores without the attribute, labels are text. The vertices
that were added for turns have labels of text in any case.

Vertices are numbered from 0 in the order of the file. An undirected edge is stored as two arcs, one in each direction;
so is an undirected loop. Parallel arcs and loops are kept. The attribute `digest` covers all data that results depend
on: n, whether the graph is directed, the arrays indptr, indices, weights and through, and whether the rows are sorted.
The digest of an unweighted graph equals the digest of the same graph with int32 weights that are all 1, since both have
the same results; the writer and `Graph.verify` hash the ones as if they were stored.

Most stores sort the arcs of a row by head. A store for Euler circuits, which number arcs by their positions in the
store, may instead keep the arcs of a row in the order of the source. Its attribute `sorted_rows` is false. All other
algorithms call `Graph.rows`, which returns sorted rows of both kinds of stores.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
import zarr

from gpuops.csr import equal_ranges
from pipelines.stores.contents import StoredArray, Verified, compare_contents, refuse_missing
from pipelines.stores.declared import Array, Attribute, Schema, real, view
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_names import generator_of, weights_named_in
from pipelines.stores.junctions import Junctions, check_junctions
from pipelines.stores.lines import Lines, check_lines
from pipelines.stores.named_weights import Weights, weights_of
from pipelines.stores.neighbours import NamedRows, ReversedGraph
from pipelines.stores.opened import OpenedStore
from pipelines.stores.road_classes import RoadClasses, check_classes
from pipelines.stores.schema import TEXT, check_array, check_path, counted, number, open_store, recorded_dtype
from pipelines.stores.units import shown_unit
from pipelines.stores.vertex_names import Positions, VertexName, VertexNameList, VertexNames, integers_of

OPTIONAL = ("coordinates", "labels", "through", "junctions")
LINES = ("arc_lines", "line_offsets", "line_points")
CLASSES = "arc_classes"
DEGREES = "EPSG:4326"  # the coordinate system of longitudes and latitudes
OPENSTREETMAP = "\u00a9 OpenStreetMap contributors"  # the attribution of data of OpenStreetMap
CHANGED = "changed "  # begins the digest of a graph that with_weights changed in memory
ONES = np.dtype("int32")  # dtype of the weights that methods return for an unweighted graph


def _derived(path: str, group: zarr.Group, found: dict[str, Any]) -> dict[str, Any]:
    """Return what follows from the optional attributes and the names of the arrays; ValueError if they are wrong."""
    attributes, arrays = group.attrs, found["arrays"]
    texts: dict[str, Any] = {name: attributes.get(name, "") for name in ("crs", "attribution")}
    for name, text in texts.items():
        if type(text) is not str:
            raise TypeError(f"{name} is {text!r}")
    if len({*arrays} & {*LINES}) not in (0, len(LINES)):
        raise ValueError("some of the arrays of lines are missing")
    names = tuple(attributes.get("road_classes", ()))
    if not all(type(name) is str for name in names):
        raise TypeError(f"classes of roads are {names!r}")
    optional = frozenset(arrays) & {*OPTIONAL, *LINES, CLASSES}
    texts["road_classes"] = names
    texts["integer_labels"] = attributes.get("integer_labels", False)
    if type(texts["integer_labels"]) is not bool:
        raise TypeError(f"whether labels are integers is {texts['integer_labels']!r}")
    choices = weights_of(attributes, found)
    for each in choices:
        if each.array != "weights":
            check_array(path, group, each.array, (found["m"],), (each.dtype,), whole=True)
    texts |= {"choices": choices, "weight_name": attributes.get("weight_name", ""), "weight_array": "weights"}
    return {"optional": optional, "weighted": "weights" in arrays, **texts}


DECLARED = Schema(
    "graph/1",
    grows=False,
    attributes=(
        *(Attribute(name, int) for name in ("n", "m", "input_edges")),
        *(Attribute(name, bool) for name in ("directed", "simplified", "sorted_rows")),
        Attribute("weight_dtype", recorded_dtype),
        *(Attribute(name, real) for name in ("weight_min", "weight_max")),
        *(Attribute(name, str) for name in ("weight_unit", "source", "digest")),
    ),
    arrays=(
        Array("indptr", ("int64",), ("n + 1",)),
        Array("indices", ("int32", "int64"), ("m",)),
        Array("weights", ("weight_dtype",), ("m",), optional=True),
        Array("coordinates", ("float64",), ("n", "2"), optional=True),
        Array("labels", (TEXT,), ("n",), optional=True),
        Array("through", ("bool",), ("n",), optional=True),
        Array("junctions", ("int64",), ("n",), optional=True),
        Array("arc_lines", ("int64",), ("m",), optional=True),
        Array("line_offsets", ("int64",), ("l + 1",), optional=True),
        Array("line_points", ("float64",), ("p", "2"), optional=True),
        Array("arc_classes", ("int16",), ("m",), optional=True),
    ),
    derive=_derived,
)
SCHEMA = DECLARED.name


@dataclass(frozen=True, repr=False)
class Graph(NamedRows, OpenedStore):
    """A graph store, opened by `open_graph`: attributes in memory, arrays read on demand. Pickles leave out the arrays.

    `print` shows the kind, the size and the first rows of the graph; a notebook shows a small graph as a picture.
    ``graph["a"]`` lists the neighbours of the vertex named a, and ``for name, neighbours in graph`` iterates over all
    vertices. Arrays hold positions of vertices; `names` turns positions into names, and `vertices` turns names into
    positions. `weighted` is False if the store has no weights; methods then return weights that are 1, of
    `weight_dtype`.
    """

    path: str
    n: int
    m: int
    input_edges: int
    directed: bool
    simplified: bool
    weight_dtype: np.dtype
    weight_min: float
    weight_max: float
    weight_unit: str
    source: str
    digest: str
    optional: frozenset[str]
    sorted_rows: bool
    weighted: bool
    crs: str  # as recorded; `pipelines.stores.coordinates.coordinate_system` also guesses
    attribution: str  # to be shown with the data, "" for none
    road_classes: tuple[str, ...]  # names of the classes of roads
    integer_labels: bool  # whether the source named the vertices by integers
    choices: tuple[Weights, ...]  # all weights of the store
    weight_name: str  # of the weights that `weights` returns, "" if they have no name
    weight_array: str

    @property
    def unit(self) -> str:
        """The unit of distances, "" if it is not known."""
        return shown_unit(self.weight_unit, self.weight_name)

    @property
    def title(self) -> str:
        """The kind, the name and the size of the graph, its unit and its coordinate system, in a few words."""
        kind = "directed" if self.directed else "undirected"
        about = [self._counts(), f"weights in {self.unit}" if self.unit else "", self.crs]
        return f"{kind} graph {os.path.basename(self.path)}: {'; '.join(each for each in about if each)}"

    def _counts(self) -> str:
        return f"{counted(self.n, 'vertex', 'vertices')}, {counted(self.m, 'arc')}"

    @property
    def original(self) -> Graph:
        """The graph before changes in memory (`with_weights`): places are moved to the same vertices after a change."""
        return self

    @cached_property
    def reverse(self) -> ReversedGraph:
        """The graph with all arcs reversed, built in memory on first access; by a GPU if the graph is large."""
        return ReversedGraph(self)

    def indptr(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the int64 offsets of rows `start` to `stop` (excluded), one entry more than there are rows."""
        stop = self.n if stop is None else stop
        return self._array("indptr").offsets(start, stop + 1)

    def rows(self, start: int = 0, stop: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the arcs leaving vertices `start` to `stop` (excluded) as CSR: indptr (from 0), indices, weights.

        Arcs are sorted by head within a row, even if the store keeps another order; arcs with equal heads keep the
        order of the store.
        """
        indptr = self.indptr(start, stop)
        arcs = int(indptr[0]), int(indptr[-1])
        indptr -= indptr[0]
        indices, weights = self.indices(*arcs), self.weights(*arcs)
        if not self.sorted_rows:
            from pipelines.stores.row_order import sort_rows  # imports Numba, which sorted stores do not need

            sort_rows(indptr, indices, weights.view(f"u{weights.itemsize}"))
        return indptr, indices, weights

    def stored_positions(self) -> np.ndarray:
        """Return the position in the store of each arc of ``rows()``, (m,) int64."""
        if self.sorted_rows:
            return np.arange(self.m)
        return np.lexsort((self.indices(), np.repeat(np.arange(self.n), np.diff(self.indptr()))))

    def ranges(self, count: int, start: int = 0, stop: int | None = None) -> list[tuple[int, int]]:
        """Cut the vertices `start` to `stop` (excluded) into `count` ranges with nearly equal numbers of arcs."""
        indptr = self.indptr(start, stop)
        return [(start + a, start + b) for a, b in equal_ranges(indptr - indptr[0], count)]

    def rows_in(self, library: Any, dtype: Any, start: int, stop: int) -> tuple[Any, Any, Any]:
        """Return the arcs leaving vertices `start` to `stop` (excluded) as CSR, in new arrays of NumPy or CuPy.

        `library` is the module numpy or cupy; `dtype` is the dtype of the weights returned.
        """
        indptr, indices, weights = self.rows(start, stop)
        return tuple(map(library.asarray, (indptr, indices, weights.astype(dtype, copy=False))))

    def indices(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the heads of the arcs `start` to `stop` (excluded) in the order of the store, int32 or int64."""
        return self._array("indices")[start : self.m if stop is None else stop]

    def weights(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the weights of the arcs `start` to `stop` (excluded) in the order of the store.

        Of an unweighted graph they are ones, and nothing is read.
        """
        if not self.weighted:
            return np.ones(len(range(self.m)[start:stop]), self.weight_dtype)
        return self._array(self.weight_array)[start : self.m if stop is None else stop]

    def weighted_by(self, name: str) -> Graph:
        """Return the graph with other weights of its store, by their name, such as "length".

        Raises
        ------
        StoreError
            The store has no such weights; the message lists the weights it has.
        """
        for each in self.choices:
            if each.name == name:
                return self._with(each)
        names = ", ".join(each.name for each in self.choices if each.name)
        known = f"its weights are {names}; choose one" if names else "its weights have no names; import it with names"
        raise StoreError(f"{self.path}: has no weights called {name!r}; {known} (weight, --weight)")

    def _with(self, weights: Weights) -> Graph:
        """Return the graph with other weights of its store."""
        return replace(
            self, weight_name=weights.name, weight_array=weights.array, weight_dtype=weights.dtype,
            weight_min=weights.low, weight_max=weights.high, weight_unit=weights.unit, digest=weights.digest,
            weighted=True,
        )  # fmt: skip

    def labels(self) -> np.ndarray | None:
        """Return the names of the vertices in the source, str (n), or None if there are no names."""
        return self._optional("labels")

    def typed(self, labels: np.ndarray) -> np.ndarray:
        """Return labels as tables have them: int64 if the source named the vertices by integers, else as they are.

        Labels of vertices that were added for turns are text, and so are all labels beside them.
        """
        values = integers_of(labels) if self.integer_labels else None
        return labels if values is None else values

    def coordinates(self) -> np.ndarray | None:
        """Return the coordinates of the vertices, float64 (n, 2), or None if there are no coordinates."""
        return self._optional("coordinates")

    def lines(self) -> Lines | None:
        """Return the lines along which arcs lead, or None if all arcs are straight."""
        if "arc_lines" not in self.optional:
            return None
        of_arcs, offsets, points = (self._array(name)[:] for name in LINES)
        try:
            check_lines(of_arcs, offsets, len(points))
        except ValueError as error:
            raise StoreError(f"{self.path}: {error}; import the graph again") from None
        return Lines(of_arcs, offsets, points)

    def classes(self) -> RoadClasses | None:
        """Return the classes of the roads along which arcs lead, or None if they are not known."""
        of_arcs = self._optional(CLASSES)
        if of_arcs is None:
            return None
        try:
            check_classes(of_arcs, self.road_classes)
        except ValueError as error:
            raise StoreError(f"{self.path}: {error}; import the graph again") from None
        return RoadClasses(of_arcs, self.road_classes)

    def through(self) -> np.ndarray:
        """Return which vertices a path may pass through, bool (n): all vertices if the store does not say."""
        mask = self._optional("through")
        return np.ones(self.n, dtype=bool) if mask is None else mask

    def refuse_turns(self, operation: str) -> None:
        """Raise ValueError if the graph has turns, with which `operation` is not defined."""
        if "junctions" in self.optional:
            raise ValueError(
                f"{self.path}: has turns, with which {operation} not defined; name the graph without turns"
            )

    def junctions(self) -> Junctions | None:
        """Return which vertices are there for turns at junctions, or None if the graph has no turns."""
        codes = self._optional("junctions")
        if codes is None:
            return None
        try:
            check_junctions(codes)
        except ValueError as error:
            raise StoreError(f"{self.path}: {error}; make the turns again") from None
        return Junctions(codes)

    @property
    def road_vertices(self) -> int:
        """The number of vertices without those that were added for turns, which have the last positions."""
        junctions = self.junctions()
        return self.n if junctions is None else junctions.n

    def find(self, names: Sequence[str] | pa.Array) -> np.ndarray:
        """Return the vertices that names mean, int64; `vertex` says what a name means.

        An entry is negative if its name means no vertex, or more than one.
        """
        return self.naming.find(names)

    def vertex(self, name: VertexName, what: str = "vertex") -> int:
        """Return the position of the vertex that `name` means: text, an int or `tilepath.positions`.

        An int means the label with the same digits, or a position if the graph has no labels.

        Raises
        ------
        StoreError
            There is no such vertex, or several vertices have the label.
        ValueError
            `name` is neither text, an int nor one position; the message calls it by the word `what`.
        """
        return self.naming.vertex(name, what)

    def vertices(self, names: VertexNameList, what: str = "vertex") -> np.ndarray:
        """Return the positions of the vertices in a list of names, int64 (k).

        `names` is a list, a range, a NumPy or Arrow array, or a pandas Series or Index, of text or ints; or
        `tilepath.positions`. The errors are the same as for `vertex`.
        """
        return self.naming.vertices(names, what)

    @cached_property
    def naming(self) -> VertexNames:
        """The names of the vertices, kept in memory after the first use."""
        return VertexNames(self.n, self.labels, self.path)

    def label(self, vertex: int) -> str:
        """Return the label of a vertex, or its position as text if there are no labels; `names` reads many at once."""
        return self.names([vertex])[0]

    def names(self, vertices: Sequence[int] | np.ndarray | Positions) -> list[str]:
        """Return the labels of vertices, or their positions as text. Only chunks that hold these labels are read."""
        places = np.atleast_1d(np.asarray(getattr(vertices, "indices", vertices), dtype=np.int64))
        found = self._array("labels")[places] if "labels" in self.optional and places.size else places
        return [str(name) for name in found]

    def with_weights(self, weights: Any = None, *, closed: Any = None, one_way: bool = False) -> Graph:
        """Return the graph with other weights, or without some arcs, in memory; the store is not changed.

        Parameters
        ----------
        weights : array, Graph, path, name or mapping, optional
            The name of other weights of the store; an array (m,) with the weight of each arc of `rows`; the frame of
            arcs of `tilepath.graph_to_gdfs` with a changed column `weight`, or one of its columns, a row for each edge
            of an undirected graph, aligned by the index, which is called `arc`; a graph with the same vertices, whose
            arcs and weights are taken; or a mapping from (tail, head), two names of vertices, to the new weight of all
            arcs from tail to head (of an undirected graph, in both directions), with a warning if there are several. A
            Series with the name of other weights of the store has their unit; arrays, mappings and other Series keep
            the unit of this graph.
        closed : list of pairs, data frame, geometries, or positions, optional
            Roads whose arcs are left out: pairs of names of vertices, or `tilepath.positions` of an array (k, 2); or
            rows of a table of arcs, as `tilepath.graph_to_gdfs` and OSMnx have them; or a polygon, line or point, or a
            list or a GeoDataFrame of them: the roads that a polygon crosses or touches, the roads that a line meets
            elsewhere than at their ends, and the road nearest to a point; or places as for `tilepath.od`, such as (lon,
            lat), a list of these, or a frame with columns lon and lat: the road nearest to each; or single arcs, as
            `tilepath.positions` of an array (k,) with their numbers in `rows`. Coordinates are checked as those of
            places (see `tilepath.od`). A place, a geometry, or a row of a table that has geometries or the index of
            `tilepath.graph_to_gdfs` closes only arcs along its own line, up to a 500th of its length; a pair of names
            closes all roads between the two, with a warning if several roads with different lines lead the same way.
        one_way : bool
            Close a road that is named by its ends only from the first to the second end, not in both directions; only
            for a directed graph.

        Returns
        -------
        Graph
            Arcs have other numbers than in this graph, since closed arcs are not there. Places are moved to the same
            vertices as in this graph, so that a place behind closed roads is unreachable.
            The named weights of its arcs are those of the store.

        Raises
        ------
        ValueError
            An arc does not exist, or weights are not one number for each arc.
        """
        from pipelines.stores.changed import changed_graph  # imports Numba, which stores do not need

        return changed_graph(self, weights, closed=closed, one_way=one_way)

    def describe(self) -> str:
        """Return a one-line description of the store, for display."""
        kind = "directed" if self.directed else "undirected"
        unit = f" {self.unit}" if self.unit else ""
        junctions = self.junctions()
        closed = int((~self.through()).sum()) - (junctions.count if junctions else 0)
        weights = f"weights {self.weight_dtype} from {number(self.weight_min)} to {number(self.weight_max)}{unit}"
        called = bool(self.weight_unit) and not unit
        weights += f", called {self.weight_name}, no unit" * called
        parts = [
            f"{self.path}: {kind} graph, {self._counts()}",
            weights if self.weighted else f"unweighted (each arc counts 1{unit})",
        ]
        if others := [each.name for each in self.choices if each.array != self.weight_array]:
            own = f"weights called {self.weight_name}, " if self.weight_name and not called else ""
            parts.append(f"{own}also with {', '.join(others)}")
        if closed:
            parts.append(f"{counted(closed, 'vertex', 'vertices')} closed to through traffic")
        if junctions:
            added = counted(self.n - junctions.n, "vertex", "vertices")
            parts.append(f"turns at {counted(junctions.count, 'junction')}, for which {added} were added")
        if not self.sorted_rows:
            parts.append("rows as given")
        extras = sorted(self.optional - {"through", "junctions", *LINES, CLASSES})
        extras += ["lines"] if "arc_lines" in self.optional else []
        extras += ["classes of roads"] if CLASSES in self.optional else []
        if extras:
            parts.append(f"with {' and '.join(extras)}" + (f" in {self.crs}" if self.crs else ""))
        if self.source:
            parts.append(f"from {self.source}")
        if self.attribution:
            parts.append(self.attribution)
        return "; ".join(parts)

    def verify(self) -> Verified:
        """Reread the whole store and compare it with its record; raises StoreError at the first difference."""
        names = ("indptr", "indices", *(each.array for each in self.choices), *sorted(self.optional))
        arrays = {name: self._array(name) for name in names}
        chunks = {name: array.places() for name, array in arrays.items()}
        refuse_missing(self.path, chunks)
        for graph in [self, *(self._with(each) for each in self.choices if each.array != self.weight_array)]:
            graph._verify_digest()
        for name in self.optional - {"through"}:
            arrays[name][:]
        return compare_contents(self.path, open_store(self.path, SCHEMA), chunks, "the digest of the graph")

    def _verify_digest(self) -> None:
        """Reread the arrays that the digest covers; raises StoreError if they do not match it."""
        digest = Digest(self.n, self.directed, self.sorted_rows)
        digest.add("indptr", self.indptr())
        low, high = np.inf, -np.inf
        for name in ("indices", "weights"):
            array = self._array("indices" if name == "indices" or not self.weighted else self.weight_array)
            for start, stop in array.ranges():
                piece = self.indices(start, stop) if name == "indices" else self.weights(start, stop)
                if name == "weights":
                    low, high = min(low, float(piece.min())), max(high, float(piece.max()))
                digest.add(name, piece)
        if "through" in self.optional:
            digest.add("through", self.through())
        if digest.value() != self.digest:
            raise StoreError(f"{self.path}: contents do not match the recorded digest; import the graph again")
        if self.m and (low, high) != (self.weight_min, self.weight_max):
            raise StoreError(
                f"{self.path}: weights range from {low} to {high}, but {self.weight_min} to {self.weight_max} was "
                "recorded; import the graph again"
            )

    def _array(self, name: str) -> StoredArray:
        ranges = {
            "indptr": (0, self.m),
            "indices": (0, self.n - 1),
            **{each.array: (each.low, each.high) for each in self.choices},
        }
        return self.stored(name, within=ranges.get(name))

    def _optional(self, name: str) -> np.ndarray | None:
        return self._array(name)[:] if name in self.optional else None


def open_graph(store: Graph | str | os.PathLike[str], weight: str | None = None) -> Graph:
    """Open a graph store and check its schema, shapes and dtypes, or return an opened one.

    A name such as ``rmat:28`` opens a graph that is generated and not stored (`tilepath.synthetic_graph`).

    Parameters
    ----------
    store : the graph, or its path
    weight : which of its weights to use, if the store has several; the path ``roads.zarr#length`` means the same

    Raises
    ------
    StoreError
        The store cannot be opened, or has no such weights; the message names the store, the fault and the cure.

    Examples
    --------
    >>> tilepath.open_graph("roads.zarr").n
    4
    """
    if isinstance(store, Graph):
        return store if weight is None else store.weighted_by(weight)
    check_path(store)
    if generate := generator_of(store):
        return cast(Graph, generate(os.fspath(store)))
    path, name = weights_named_in(store)
    graph = view(Graph, DECLARED.open(path))
    name = name if weight is None else weight
    return graph.weighted_by(name) if name else graph


class Digest:
    """The blake2b digest of a graph; each array is added in pieces of any size."""

    def __init__(self, n: int, directed: bool, sorted_rows: bool):
        self._head = f"{SCHEMA} n={n} directed={directed}" + ("" if sorted_rows else " rows=as given")
        self._parts: dict[str, Any] = {}

    def add(self, name: str, values: np.ndarray) -> None:
        part = self._parts.setdefault(name, hashlib.blake2b(digest_size=16))
        part.update(np.ascontiguousarray(values).view(np.uint8).data)

    def with_weights(self, part: Any) -> Digest:
        """Return the digest with other weights, whose bytes are hashed in `part`."""
        found = Digest(0, True, True)
        found._head, found._parts = self._head, self._parts | {"weights": part}
        return found

    def value(self) -> str:
        parts = {name: part.hexdigest() for name, part in self._parts.items()}
        for name in ("indices", "weights"):  # `Graph.verify` adds no pieces of a graph without arcs
            parts.setdefault(name, hashlib.blake2b(digest_size=16).hexdigest())
        text = self._head + "".join(f" {name}={parts[name]}" for name in sorted(parts))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
