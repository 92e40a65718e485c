"""The hierarchy store (schema `hierarchy/1`): closed tables of a road network; any distance follows from the tables.

================= ================ ================================================================================
array             dtype, shape     meaning
================= ================ ================================================================================
elimination       int32 (n)        the order by METIS, until the structure is known
order             int32 (n)        the vertex at each place: subtrees lie together, closed vertices are last
starts            int64 (N + 1)    the first place of each of N nodes, then the number of open vertices
front_starts      int64 (N + 1)    where the front of each node begins in `front`, then the length of `front`
front             int32 (F)        places of the vertices in the front of each node, ascending
roots             int32 (K)        the last node of each brick
out               number (O)       for each node, the distances from its vertices to each other and to its front
into              number (I)       for each node, the distances from its front; left out if the graph is undirected
leaving_starts    int64 (C + 1)    where the arcs of each of C closed vertices to open vertices begin, then their number
leaving_ends      int32 (L)        the place of the open end of each arc
leaving_lengths   number (L)       the length of each arc
``entering_...``                   the same for arcs from open vertices to closed vertices
``beside_...``                     the same for arcs between closed vertices; ends are numbers of closed vertices
potentials        number (2, n)    potentials of tails and of heads; left out if no weight is negative
component         int32 (s)        vertices of the largest strongly connected component, sorted by place
others            int32 (r)        the other vertices, sorted by place
================= ================ ================================================================================

`gpuops.Hierarchy` and `gpuops.HierarchyStructure` describe the arrays. Unreachable is +inf, or, as the tables are in
inside form, `gpuops.numbers.infinity` of an integer dtype. `component` and `others` are k-d trees
(`pipelines.places.by_place`) of the vertices that have coordinates, to find vertices near a place; they are left out
if no vertex has coordinates. The order is committed first, then the structure, which does not depend on the weights,
and then the tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zarr

from gpuops.arrays import is_cupy, library_of
from gpuops.errors import WeightRangeError
from gpuops.hierarchy import Cost, Hierarchy, HierarchyStructure, distance_block, distance_rows, one_to_all
from gpuops.hierarchy.closed_arcs import ClosedArcs, Links
from gpuops.numbers import DISTANCE_DTYPES
from pipelines.stores.contents import StoredArray, record, refuse_replaced
from pipelines.stores.declared import Array, Attribute, Schema, dtype_of, recorded_origin, view
from pipelines.stores.errors import StoreError, disk_errors
from pipelines.stores.graph import Graph
from pipelines.stores.mapped_arrays import load_arrays, map_array, write_arrays
from pipelines.stores.opened import OpenedStore
from pipelines.stores.origin import OfGraph, recorded
from pipelines.stores.resuming import FinishedStore, StoreWriter
from pipelines.stores.schema import attribute, counted, number, open_store, remove_leftovers

BATCH_BYTES = 64 << 20  # bytes of rows computed at a time
TOGETHER = 16  # fewest rows of a batch: rows of very large graphs share tables that are computed for each batch
STRUCTURE = ("order", "starts", "front_starts", "front", "roots")
LINKS = ("leaving", "entering", "beside")


def _derived(path: str, group: zarr.Group, found: dict[str, Any]) -> dict[str, Any]:
    attribute(path, group, "seal")  # tables are read from a store with the same seal only
    if found["finished"] != ("out" in found["arrays"]):
        raise ValueError("`done` and `complete` contradict each other")
    return {}


DECLARED = Schema(
    "hierarchy/1",
    source="graph",
    commits=("order", "structure", "tables"),
    attributes=(
        Attribute("n", int),
        Attribute("dtype", dtype_of(DISTANCE_DTYPES)),
        Attribute("plan", dict, field="options"),
        Attribute("cost", lambda cost: Cost(**{name: int(value) for name, value in cost.items()}), commit="structure"),
        Attribute("bound", float, commit="tables"),
    ),
    arrays=(
        Array("elimination", ("int32",), ("n",), commit="order", until="structure"),
        Array("component", ("int32",), ("component",), commit="order", optional=True),
        Array("others", ("int32",), ("others",), commit="order", optional=True),
        Array("order", ("int32",), ("n",), commit="structure"),
        Array("starts", ("int64",), ("nodes + 1",), commit="structure"),
        Array("front_starts", ("int64",), ("nodes + 1",), commit="structure"),
        Array("front", ("int32",), ("front",), commit="structure"),
        Array("roots", ("int32",), ("bricks",), commit="structure"),
        Array("out", ("dtype",), ("out",), commit="tables"),
        Array("into", ("dtype",), ("into",), commit="tables", optional=True),
        Array("potentials", ("int64", "float64"), ("2", "n"), commit="tables", optional=True),
        *(
            array
            for name in LINKS
            for array in (
                Array(f"{name}_starts", ("int64",), ("closed + 1",), commit="tables"),
                Array(f"{name}_ends", ("int32",), (name,), commit="tables"),
                Array(f"{name}_lengths", ("dtype",), (name,), commit="tables"),
            )
        ),
    ),
    derive=_derived,
)
SCHEMA = DECLARED.name


class Division(NamedTuple):
    """The division of a graph by its hierarchy, for a picture.

    Attributes
    ----------
    part : (n,) integers
        The part of each vertex, from 0.
    separates : (n,) bool
        Whether the vertex separates parts.
    parts : int
        Number of parts.
    names : pair of str
        The name of a vertex that separates parts, and a line on the whole division.
    """

    part: np.ndarray
    separates: np.ndarray
    parts: int
    names: tuple[str, str]


@dataclass(frozen=True, eq=False)
class HierarchyStore(FinishedStore, OfGraph, OpenedStore):
    """A finished hierarchy store, opened by `open_hierarchy`. All processes of a host map the same copy of its tables.

    Rows are read by the same methods as from `tilepath.Distances`, but each call computes them. The
    methods take and return positions of vertices; `tilepath.distances_between` takes names. The store pickles as its
    path, and maps its tables when they are first used.

    Attributes
    ----------
    n : number of vertices
    dtype : dtype of the distances
    cost : the exact cost of the hierarchy
    arrays : names of the arrays of the store
    """

    path: str
    n: int
    dtype: np.dtype
    graph_path: str
    graph_digest: str
    cost: Cost
    arrays: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns: (n, n)."""
        return self.n, self.n

    @property
    def digest(self) -> str:
        """The hash of the contents as they were opened."""
        return self.seal

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The hierarchy, mapped at the first access; raises StoreError if the store was replaced before."""
        try:
            group = open_store(self.path, SCHEMA)
            arrays = load_arrays(self.path, group, self.arrays)
        finally:  # a store that was replaced meanwhile looks damaged
            refuse_replaced(self.path, self.seal)
        links = (Links(*(arrays[f"{name}_{part}"] for part in ("starts", "ends", "lengths"))) for name in LINKS)
        potentials = (arrays["potentials"][0], arrays["potentials"][1]) if "potentials" in arrays else None
        tables = arrays["out"], arrays.get("into"), ClosedArcs(*links), potentials, float(group.attrs["bound"])
        return Hierarchy(_structure(arrays), *tables)

    def by_place(self, graph: Graph) -> tuple[np.ndarray, np.ndarray] | None:
        """Map the arrays `component` and `others`; None if the store lacks them, or `graph` has other coordinates now.

        The digest of a graph leaves out its coordinates, and vertices that are sorted by former coordinates would not
        be found.
        """
        group = open_store(self.path, SCHEMA)
        origin = recorded_origin(self.path, group, "graph")
        if "component" not in self.arrays or origin.get("coordinates") != recorded(graph, "coordinates"):
            return None
        arrays = load_arrays(self.path, group, ("component", "others"))
        refuse_replaced(self.path, self.seal)
        return arrays["component"], arrays["others"]

    @cached_property
    def on_gpu(self) -> Hierarchy:
        """The hierarchy with its tables on the current GPU, copied there at the first access."""
        return self.hierarchy.on_gpu()

    def with_weights(
        self, weights: Any = None, *, closed: Any = None, one_way: bool = False, graph: Graph | None = None
    ) -> HierarchyStore:
        """Return the hierarchy of the graph with other weights, or without some arcs, in memory.

        The order and the structure of this store are used again. The tables are computed at the first answer, in a part
        of the time that it took to make the store.

        Parameters
        ----------
        weights, closed, one_way : as for `Graph.with_weights`
        graph : the graph of the store, if it was moved or opened before

        Raises
        ------
        ValueError
            As for `Graph.with_weights`, a weight is negative, or (at the first answer) the structure has no room for an
            arc.
        """
        from pipelines.stores.changed import changed_graph, changed_hierarchy

        return changed_hierarchy(self, changed_graph(graph or self.graph(), weights, closed=closed, one_way=one_way))

    def between(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the distances (k, l) from k sources to l targets, in outside form.

        Raises
        ------
        tilepath.WeightRangeError
            A distance does not fit the dtype of the store.
        """
        return self._between(self.hierarchy, sources, targets)

    def between_on_gpu(self, sources: Any, targets: Any) -> Any:
        """Return the same distances as `between`, computed on the current GPU, as a CuPy array.

        `sources` and `targets` are arrays of NumPy or CuPy.
        """
        return self._between(self.on_gpu, sources, targets)

    def _between(self, hierarchy: Hierarchy, sources: Any, targets: Any) -> Any:
        sources, targets = (v if is_cupy(v) else np.asarray(v, np.int64) for v in (sources, targets))
        if len(targets) == self.n and bool((targets == library_of(targets).arange(self.n, dtype=np.int64)).all()):
            return self.whole_rows(sources, gpu=hierarchy is not self.hierarchy)
        return self._asked(partial(distance_block, hierarchy), sources, targets)

    def row_vertices(self) -> np.ndarray:
        """Return the vertex of each row, int64 (n)."""
        return np.arange(self.n)

    def row(self, source: int) -> np.ndarray:
        """Return the distances from the vertex at the position `source` to every vertex, (n)."""
        return self._asked(partial(one_to_all, self.hierarchy), source)

    def rows(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Iterate over the given rows, int (k), in batches: yields (position in `rows`, block of rows)."""
        batch = max(TOGETHER, BATCH_BYTES // max(1, self.n * self.dtype.itemsize))
        for start in range(0, len(rows), batch):
            yield start, self.whole_rows(rows[start : start + batch])

    def whole_rows(self, sources: Any, *, gpu: bool = False) -> Any:
        """Return the distances (k, n) from k sources to all vertices; with `gpu`, computed there as a CuPy array.

        The tables of all bricks do not depend on the sources. The first call computes them; they are kept if there is
        memory for them.
        """
        hierarchy = self.on_gpu if gpu else self.hierarchy
        sources = sources if is_cupy(sources) else np.asarray(sources, np.int64)
        return self._asked(partial(distance_rows, hierarchy), sources)

    def _asked(self, answer: Callable[..., Any], *vertices: Any) -> Any:
        try:
            return answer(*vertices)
        except OverflowError as error:
            fault, larger = str(error).partition(";")[0], {"int16": "int32"}.get(str(self.dtype), "float64")
            raise WeightRangeError(
                f"{self.path}: {fault}; make the store again with dtype={larger!r} (--dtype {larger})"
            ) from None

    def division(self) -> Division:
        """Return the bricks, and the vertices of the upper tree and closed vertices, which separate them."""
        structure = self.hierarchy.structure
        count = len(structure.roots)
        part = np.full(self.n, count)
        part[structure.order[: structure.open]] = structure.bricks.of_node[structure.node_of]
        between = part == count
        others = int(between.sum())
        part[between] += np.arange(others)  # each vertex is a separate part
        counts = f"{counted(count, 'brick')}, {counted(others, 'vertex', 'vertices')} between them"
        return Division(part, between, count + others, ("between bricks", counts))

    def __repr__(self) -> str:
        own, graph = (os.path.basename(path) for path in (self.path, self.graph_path))
        return f"<hierarchy {own}: {self.dtype} distances of {graph}, {counted(self.n, 'vertex', 'vertices')}>"

    def describe(self) -> str:
        """Return a one-line description of the store, for display."""
        return (
            f"{self.path}: {self.dtype} distances of {self.graph_path}, {counted(self.n, 'vertex', 'vertices')} in "
            f"{counted(self.cost.nodes, 'node')}, {number(self.cost.into)} relaxations for a row"
        )


@dataclass(frozen=True, eq=False)
class HierarchyWriter(StoreWriter):
    """A hierarchy store that is being written.

    Attributes
    ----------
    dtype : dtype of the distances
    options : options that a resumed run must repeat
    """

    declared, command, unit = DECLARED, "hierarchy {graph[path]}", "steps"

    dtype: np.dtype
    options: dict[str, Any]

    def done(self) -> int:
        """Return the number of steps that are committed: order, structure and tables."""
        return int(self.group().attrs["done"])

    def progress(self) -> tuple[int, int]:
        return self.done(), len(DECLARED.commits)

    def begun_with(self) -> dict[str, Any]:
        return {"dtype": str(self.dtype), **self.options}

    def order(self) -> np.ndarray:
        """Map the committed order, int32 (n)."""
        return self.load()["elimination"]

    def structure(self) -> HierarchyStructure:
        """Map the committed structure."""
        return _structure(self.load())

    def load(self) -> dict[str, np.ndarray]:
        """Map the committed arrays; raises StoreError unless every byte is as it was written."""
        return load_arrays(self.path, self.group(), DECLARED.open(self.path)["arrays"])

    def commit_order(self, order: np.ndarray, by_place: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Write and commit the order, int32 (n), and the vertices by place, if any has coordinates."""
        placed = {} if by_place is None else dict(zip(("component", "others"), by_place, strict=True))
        self._commit("order", {"elimination": order, **placed}, {})

    def commit_structure(self, structure: HierarchyStructure, cost: Cost) -> None:
        """Write and commit the structure. Its order has the vertices of each subtree next to each other."""
        self._commit("structure", {name: getattr(structure, name) for name in STRUCTURE}, {"cost": asdict(cost)})

    def complete(self, hierarchy: Hierarchy) -> None:
        """Write the tables, and record that the store is complete; the driver then has it take its place."""
        potentials = hierarchy.potentials
        arrays = {"out": hierarchy.out}
        if hierarchy.into is not None:
            arrays["into"] = hierarchy.into
        if potentials is not None:
            arrays["potentials"] = np.stack(potentials)
        for name in LINKS:
            links = getattr(hierarchy.closed, name)
            arrays |= {f"{name}_{part}": getattr(links, part) for part in ("starts", "ends", "lengths")}
        self._commit("tables", arrays, {"bound": float(hierarchy.bound), "complete": True})

    def leftovers(self) -> list[Path]:
        done = DECLARED.commits[: self.done()]
        ended = (Path(self.path, each.name) for each in DECLARED.arrays if each.until in done)
        return [*super().leftovers(), *(each for each in ended if each.exists())]

    def chunks_committed(self) -> dict[str, list[str]]:
        arrays = DECLARED.open(self.path)["arrays"]
        return {name: StoredArray(self.path, name).places() for name in arrays}

    def check_values(self) -> tuple[str, ...]:
        for name in self.chunks_committed():
            values = map_array(self.path, name, StoredArray(self.path, name))
            if values.dtype.kind == "f" and np.isnan(values).any():
                raise StoreError(f"{self.path}: `{name}` holds NaN; recreate the store")
        return ("that no number is NaN",)

    def _commit(self, name: str, arrays: Mapping[str, np.ndarray], attributes: dict[str, Any]) -> None:
        """Write the arrays of a commit, and record them together with its attributes."""
        done = DECLARED.commits.index(name) + 1
        with disk_errors(self.path):
            group = self.owned()
            write_arrays(self.path, group, DECLARED.arrays, arrays)
            if done == len(DECLARED.commits):
                remove_leftovers(self.leftovers())
            added = {each: StoredArray(self.path, each).places() for each in arrays}
            # A task of a lost attempt may have made this commit meanwhile: its record is replaced, not added to.
            dropped = [*arrays, *(each.name for each in DECLARED.arrays if each.until == name)]
            record(self.path, group, attributes | {"done": done}, added, dropped=dropped)


def create_hierarchy(
    path: str | os.PathLike[str],
    graph: Graph,
    *,
    dtype: np.dtype,
    options: dict[str, Any],
    overwrite: bool = False,
) -> HierarchyWriter:
    """Create a hierarchy store without an order. A resumed run must repeat the `options` (JSON)."""
    attributes = {"n": graph.n, "dtype": str(dtype), "plan": options, "done": 0}
    return HierarchyWriter.create(path, graph, attributes, overwrite=overwrite)


def open_hierarchy(store: HierarchyStore | str | os.PathLike[str]) -> HierarchyStore:
    """Open a finished hierarchy store and check its schema, shapes and dtypes, or return an opened one.

    Raises StoreError on a fault.

    Examples
    --------
    >>> tilepath.open_hierarchy("hierarchy.zarr").n
    30
    """
    if isinstance(store, HierarchyStore):
        return store
    return view(HierarchyStore, HierarchyWriter.read_finished(store))


def _structure(arrays: dict[str, np.ndarray]) -> HierarchyStructure:
    return HierarchyStructure(**{name: arrays[name] for name in STRUCTURE})
