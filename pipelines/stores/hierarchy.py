"""The hierarchy store (schema `hierarchy/1`): the closed tables of a road network, from which any distance follows.

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
entering_...                       the same for arcs from open vertices to closed vertices
beside_...                         the same for arcs between closed vertices; ends are numbers of closed vertices
potentials        number (2, n)    potentials of tails and of heads; left out if no weight is negative
================= ================ ================================================================================

`gpuops.Hierarchy` and `gpuops.HierarchyStructure` describe the arrays. Unreachable is +inf, or, as the tables are in
inside form, `gpuops.numbers.infinity` of an integer dtype. The order is committed first, then the structure, which
does not depend on the weights, then the tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from gpuops.hierarchy import (
    Cost,
    Hierarchy,
    HierarchyStructure,
    distance_block,
    distance_rows,
    one_to_all,
)
from gpuops.hierarchy.closed_arcs import ClosedArcs, Links
from gpuops.numbers import DISTANCE_DTYPES
from pipelines.stores.contents import Verified
from pipelines.stores.declared import DISTANCE, Array, Attribute, Schema
from pipelines.stores.graph import Graph
from pipelines.stores.on_demand import BATCH_BYTES, Division, OnDemand
from pipelines.stores.origin import origin_of, origin_path, recorded_origin
from pipelines.stores.place import growing_store, take_place, unfinished
from pipelines.stores.resuming import StoreWriter, refuse_other_options, resume_store
from pipelines.stores.schema import (
    StoreError,
    counted,
    damaged_attributes,
    disk_errors,
    flag,
    number,
    open_store,
    owned,
    recorded_dtype,
    remove_leftovers,
)
from pipelines.validation.bounds import WeightRangeError

SCHEMA = "hierarchy/1"
TOGETHER = 16  # fewest rows of a batch: rows of very large graphs share tables that are computed for each batch
STRUCTURE = ("order", "starts", "front_starts", "front", "roots")
LINKS = ("leaving", "entering", "beside")

DECLARED = Schema(
    SCHEMA,
    commits=("begun", "order", "structure", "tables"),
    attributes=(
        Attribute("n", "begun", int),
        Attribute("dtype", "begun", str),
        Attribute("plan", "begun", dict),
        Attribute("cost", "structure", dict),
        Attribute("bound", "tables", float),
    ),
    arrays=(
        Array("elimination", "order", ("int32",), ("n",), until="structure"),
        Array("order", "structure", ("int32",), ("n",)),
        Array("starts", "structure", ("int64",), ("nodes + 1",)),
        Array("front_starts", "structure", ("int64",), ("nodes + 1",)),
        Array("front", "structure", ("int32",), ("front",)),
        Array("roots", "structure", ("int32",), ("bricks",)),
        Array("out", "tables", DISTANCE, ("out",)),
        Array("into", "tables", DISTANCE, ("into",), optional=True),
        Array("potentials", "tables", ("int64", "float64"), ("2", "n"), optional=True),
        *(
            array
            for name in LINKS
            for array in (
                Array(f"{name}_starts", "tables", ("int64",), ("closed + 1",)),
                Array(f"{name}_ends", "tables", ("int32",), (name,)),
                Array(f"{name}_lengths", "tables", DISTANCE, (name,)),
            )
        ),
    ),
)


@dataclass(frozen=True, eq=False)
class HierarchyStore(OnDemand):
    """A finished hierarchy store, opened by `open_hierarchy`. All processes of a host map the same copy of its tables.

    Attributes
    ----------
    cost : the exact cost of the hierarchy
    seal : a hash of the contents. Tables are read from a store with this hash only
    """

    cost: Cost
    seal: str

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.path, self.seal)

    @property
    def digest(self) -> str:
        """The hash of the contents as they were opened."""
        return self.seal

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The hierarchy, mapped at the first access; raises StoreError if the store was replaced before."""
        group = open_store(self.path, SCHEMA)
        try:
            arrays = DECLARED.load(self.path, group)
        finally:  # what is replaced meanwhile looks damaged
            _refuse_replaced(self.path, self.seal)
        links = (Links(*(arrays[f"{name}_{part}"] for part in ("starts", "ends", "lengths"))) for name in LINKS)
        potentials = (arrays["potentials"][0], arrays["potentials"][1]) if "potentials" in arrays else None
        bound = DECLARED.read(self.path, group)["bound"]
        return Hierarchy(_structure(arrays), arrays["out"], arrays.get("into"), ClosedArcs(*links), potentials, bound)

    @cached_property
    def on_gpu(self) -> Hierarchy:
        """The hierarchy with its tables on the current GPU, copied there at the first access."""
        return self.hierarchy.on_gpu()

    def between(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the distances (k, l) from k sources to l targets, in outside form.

        Raises
        ------
        pipelines.validation.bounds.WeightRangeError
            A distance does not fit the dtype of the store.
        """
        return self._between(self.hierarchy, sources, targets)

    def between_on_gpu(self, sources: np.ndarray, targets: np.ndarray) -> Any:
        """Return the same distances as `between`, computed on the current GPU, as a CuPy array."""
        return self._between(self.on_gpu, sources, targets)

    def _between(self, hierarchy: Hierarchy, sources: np.ndarray, targets: np.ndarray) -> Any:
        sources, targets = np.asarray(sources, np.int64), np.asarray(targets, np.int64)
        if len(targets) == self.n and (targets == np.arange(self.n)).all():
            return self.whole_rows(sources, gpu=hierarchy is not self.hierarchy)
        return self._asked(partial(distance_block, hierarchy), sources, targets)

    def row(self, source: int) -> np.ndarray:
        """Return the distances from the vertex at the position `source` to every vertex, (n)."""
        return self._asked(partial(one_to_all, self.hierarchy), source)

    def rows(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Iterate over the given rows, int (k), in batches: yields (position in `rows`, block of rows)."""
        batch = max(TOGETHER, BATCH_BYTES // max(1, self.n * self.dtype.itemsize))
        for start in range(0, len(rows), batch):
            yield start, self.whole_rows(rows[start : start + batch])

    def whole_rows(self, sources: np.ndarray, *, gpu: bool = False) -> Any:
        """Return the distances (k, n) from k sources to all vertices; with `gpu`, computed there as a CuPy array.

        The tables of all bricks do not depend on the sources. The first call computes them; they are kept if there is
        memory for them.
        """
        hierarchy = self.on_gpu if gpu else self.hierarchy
        return self._asked(partial(distance_rows, hierarchy), np.asarray(sources, np.int64))

    def _asked(self, answer: Callable[..., Any], *vertices: Any) -> Any:
        try:
            return answer(*vertices)
        except OverflowError as error:
            fault, larger = str(error).partition(";")[0], {"int16": "int32"}.get(str(self.dtype), "float64")
            raise WeightRangeError(f"{self.path}: {fault}; make the store again with --dtype {larger}") from None

    def division(self) -> Division:
        """Return the bricks, and the vertices of the upper tree and closed vertices, which separate them."""
        structure = self.hierarchy.structure
        count = len(structure.roots)
        part = np.full(self.n, count)
        part[structure.order[: structure.open]] = structure.bricks.of_node[structure.node_of]
        between = part == count
        others = int(between.sum())
        part[between] += np.arange(others)  # each is a part of its own
        counts = f"{counted(count, 'brick')}, {counted(others, 'vertex', 'vertices')} between them"
        return Division(part, between, count + others, ("between bricks", counts))

    def describe(self) -> str:
        return (
            f"{self.path}: {self.dtype} distances of {self.graph_path}, {counted(self.n, 'vertex', 'vertices')} in "
            f"{counted(self.cost.nodes, 'node')}, {number(self.cost.into)} relaxations for a row"
        )

    def verify(self) -> Verified:
        return DECLARED.verify(self.path, open_store(self.path, SCHEMA))


@dataclass(frozen=True, eq=False)
class HierarchyWriter(StoreWriter):
    """A hierarchy store that is being written.

    Attributes
    ----------
    n, dtype : number of vertices, dtype of the distances
    options : options that a resumed run must repeat
    """

    n: int
    dtype: np.dtype
    options: dict[str, Any]

    def done(self) -> int:
        """Return the number of steps that are committed: order, structure and tables."""
        return int(DECLARED.read(self.path, self._group())["done"])

    def progress(self) -> tuple[int, int]:
        """Return the number of committed steps and the number of steps."""
        return self.done(), len(DECLARED.commits) - 1

    def order(self) -> np.ndarray:
        """Map the committed order, int32 (n)."""
        return DECLARED.load(self.path, self._group())["elimination"]

    def structure(self) -> HierarchyStructure:
        """Map the committed structure."""
        return _structure(DECLARED.load(self.path, self._group()))

    def commit_order(self, order: np.ndarray) -> None:
        """Write and commit the order, int32 (n)."""
        self._commit("order", {"elimination": order}, {})

    def commit_structure(self, structure: HierarchyStructure, cost: Cost) -> None:
        """Write and commit the structure. Its order has the vertices of each subtree next to each other."""
        self._commit("structure", {name: getattr(structure, name) for name in STRUCTURE}, {"cost": asdict(cost)})

    def complete(self, hierarchy: Hierarchy) -> None:
        """Write the tables, and record that the store is complete."""
        potentials = hierarchy.potentials
        arrays = {
            "out": hierarchy.out,
            "into": hierarchy.into,
            "potentials": None if potentials is None else np.stack(potentials),
        }
        for name in LINKS:
            links = getattr(hierarchy.closed, name)
            arrays |= {f"{name}_{part}": getattr(links, part) for part in ("starts", "ends", "lengths")}
        self._commit("tables", arrays, {"bound": float(hierarchy.bound), "complete": True})
        take_place(self.path)

    def leftovers(self) -> list[Path]:
        return [*super().leftovers(), *DECLARED.obsolete(self.path)]

    def chunks_committed(self) -> dict[str, list[str]]:
        return DECLARED.chunks(self.path, self._group())

    def verify(self) -> Verified:
        """Verify the committed arrays, as `HierarchyStore.verify` does."""
        return DECLARED.verify(self.path, self._group())

    def _commit(self, name: str, arrays: dict[str, np.ndarray | None], attributes: dict[str, Any]) -> None:
        with disk_errors(self.path):
            group = owned(self.path, SCHEMA, self.run_id)
            DECLARED.write(self.path, group, name, arrays)
            if name == DECLARED.commits[-1]:
                remove_leftovers(self.leftovers())
            DECLARED.finish(self.path, group, name, attributes)

    def _group(self) -> zarr.Group:
        return open_store(self.path, SCHEMA)


def create_hierarchy(
    path: str | os.PathLike[str],
    graph: Graph,
    *,
    dtype: np.dtype,
    options: dict[str, Any],
    overwrite: bool = False,
) -> HierarchyWriter:
    """Create a hierarchy store without an order. A resumed run must repeat the `options` (JSON)."""
    with growing_store(path, SCHEMA, overwrite) as (place, run_id, group):
        group.update_attributes(
            {"n": graph.n, "dtype": str(dtype), "graph": origin_of(path, graph), "plan": options, "done": 0}
        )
    return replace(begun_hierarchy(place), run_id=run_id)


def resume_hierarchy(path: str | os.PathLike[str], graph: Graph, options: dict[str, Any]) -> HierarchyWriter:
    """Take over an unfinished store to resume it; a finished store is returned as it is.

    Raises
    ------
    StoreError
        The store was begun from another graph or with other options.
    """

    def refuse(begun: HierarchyWriter) -> None:
        refuse_other_options(path, {"dtype": str(begun.dtype), **begun.options}, options)

    return resume_store(path, SCHEMA, graph, _read, refuse)


def begun_hierarchy(path: str | os.PathLike[str]) -> HierarchyWriter:
    """Return the writer of the store at `path`, owned by no run, to read its progress."""
    return _read(path, open_store(path, SCHEMA))


def open_hierarchy(path: str | os.PathLike[str]) -> HierarchyStore:
    """Open a finished hierarchy store and check its schema, shapes and dtypes; raises StoreError on a fault."""
    group = open_store(path, SCHEMA)
    writer, origin = _read(path, group), recorded_origin(path, group, "graph")
    if not writer.finished:
        raise unfinished(path, f"hierarchy {origin['path']}")
    found = DECLARED.read(path, group)
    with damaged_attributes(path):
        cost = Cost(**{name: int(value) for name, value in found["cost"].items()})
    facts = writer.n, writer.dtype, origin_path(path, origin), origin["digest"]
    return HierarchyStore(os.path.abspath(path), *facts, cost, str(group.attrs["seal"]))


def _reopened(path: str, seal: str) -> HierarchyStore:
    found = open_hierarchy(path)
    _refuse_replaced(path, seal)
    return found


def _refuse_replaced(path: str, seal: str) -> None:
    if open_store(path, SCHEMA).attrs.get("seal") != seal:
        raise StoreError(f"{path}: the store was replaced after it was opened; open it again")


def _structure(arrays: dict[str, np.ndarray]) -> HierarchyStructure:
    return HierarchyStructure(**{name: arrays[name] for name in STRUCTURE})


def _read(path: str | os.PathLike[str], group: zarr.Group) -> HierarchyWriter:
    found = DECLARED.read(path, group)
    finished, whole = flag(path, group, "complete"), found["done"] == len(DECLARED.commits) - 1
    with damaged_attributes(path):
        dtype = recorded_dtype(found["dtype"])
        if dtype not in DISTANCE_DTYPES:
            raise ValueError(f"{dtype} distances")
    if finished != whole:
        raise StoreError(f"{path}: the attributes `done` and `complete` contradict each other; recreate the store")
    return HierarchyWriter(os.path.abspath(path), "", finished, found["n"], dtype, found["plan"])
