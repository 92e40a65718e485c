"""Write a graph store from arcs that arrive sorted by tail, in pieces of any size."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import zarr

from pipelines.stores.graph import CLASSES, DECLARED, LINES, ONES, SCHEMA, Digest, Graph, open_graph
from pipelines.stores.lines import Lines, check_lines
from pipelines.stores.place import new_store
from pipelines.stores.road_classes import RoadClasses, check_classes
from pipelines.stores.schema import CHUNK_BYTES, counted, create_array, set_attributes
from pipelines.stores.whole_chunks import Appender, write_text


@contextmanager
def new_graph(
    path: str | os.PathLike[str],
    *,
    n: int,
    m: int,
    weight_dtype: Any,
    directed: bool = True,
    input_edges: int | None = None,
    simplified: bool = False,
    sorted_rows: bool = True,
    weight_unit: str = "",
    weight_name: str = "",
    source: str = "",
    overwrite: bool = False,
) -> Iterator[GraphWriter]:
    """Write a graph store from arcs that arrive sorted by tail; it appears when the block ends without an error.

    In the block ``with new_graph(path, n=..., m=..., weight_dtype=...) as writer:``, call `writer.append` until m arcs
    are written, and `writer.annotate` to add labels, coordinates and the through mask.

    Parameters
    ----------
    path : path of the new store
    n, m : number of vertices and of arcs (an undirected edge counts as two arcs)
    weight_dtype : dtype of `weights`; None: the graph is unweighted, each arc counts 1, and the store has no weights
    directed : False promises that every edge is appended in both directions; this is not checked
    input_edges : number of edges or arcs listed in the source; default m
    simplified : whether parallel arcs and loops were removed
    sorted_rows : True promises that the arcs of each vertex are appended in the order of their heads; this is not
        checked
    weight_unit, source : text for `tilepath info`
    weight_name : name of the weights, by which users choose among several (`GraphWriter.add_weights`)
    overwrite : replace an existing graph store at `path`

    Raises
    ------
    StoreError
        The path exists, or the disk is full.
    ValueError
        An arc is out of range, a weight is NaN or infinite, the number of arcs is not m, or weights are given for an
        unweighted graph or missing for a weighted one. This is a bug in the caller, or input that a reader should have
        refused.
    """
    attrs: dict[str, Any] = {
        "n": n,
        "m": m,
        "input_edges": m if input_edges is None else input_edges,
        "directed": directed,
        "simplified": simplified,
        "sorted_rows": sorted_rows,
        "weight_dtype": str(ONES if weight_dtype is None else np.dtype(weight_dtype)),
        "weight_unit": weight_unit,
        "source": source,
        **({"weight_name": weight_name} if weight_name else {}),
    }
    with new_store(path, SCHEMA, overwrite) as group:
        writer = GraphWriter(group, attrs, weighted=weight_dtype is not None)
        yield writer
        writer._finish()


class GraphWriter:
    """Accepts the arcs of a new graph store in pieces of any size; created by `new_graph`."""

    def __init__(self, group: zarr.Group, attrs: dict[str, Any], weighted: bool):
        self.n, self.m, self.weighted = attrs["n"], attrs["m"], weighted
        self._group, self._attrs = group, attrs
        self._dtypes = {"weights": np.dtype(attrs["weight_dtype"])}
        self._dtypes["indices"] = np.dtype("int32" if self.n <= 2**31 else "int64")
        unit = {"unit": attrs["weight_unit"]} if attrs["weight_unit"] else {}
        self._arrays = {"indices": self._array("indices")}
        if weighted:
            self._arrays["weights"] = self._array("weights", attributes=unit)
        self._digest = Digest(self.n, attrs["directed"], attrs["sorted_rows"])
        self._appended = 0
        self._degrees = np.zeros(self.n, dtype=np.int64)
        self._weight_min, self._weight_max = np.inf, -np.inf
        self._last_tail = 0
        self._through: np.ndarray | None = None
        self._more: list[tuple[dict[str, Any], Any]] = []  # of each other weights, their record and their hash

    def append(self, tails: np.ndarray, indices: np.ndarray, weights: np.ndarray | None) -> None:
        """Append arcs (1-d arrays of equal length) whose tails do not decrease; weights are None if unweighted."""
        if tails.size == 0:
            return
        if (tails[1:] < tails[:-1]).any():
            raise ValueError("arcs must be appended in the order of their tails")
        self._check_vertices(tails[[0, -1]])
        first = int(tails[0])
        self.append_rows(first, np.bincount(tails - first), indices, weights)

    def append_rows(self, first: int, degrees: np.ndarray, indices: np.ndarray, weights: np.ndarray | None) -> None:
        """Append the arcs of the vertices from `first` on; `degrees` counts the arcs of each vertex.

        Weights are None if the graph is unweighted. Raises ValueError if a tail is less than the last tail appended
        before.
        """
        if (weights is not None) != self.weighted:
            raise ValueError("weights are given for an unweighted graph, or missing for a weighted one")
        if indices.size == 0:
            return
        if weights is None:
            weights = np.ones(indices.size, ONES)  # for the digest
        left = first + np.flatnonzero(degrees)
        if left[0] < self._last_tail:
            raise ValueError("arcs must be appended in the order of their tails")
        self._check_vertices(indices)
        if self._dtypes["weights"].kind == "f" and not np.isfinite(weights).all():
            raise ValueError("a weight is NaN or infinite; leave out arcs that do not exist")
        self._last_tail = int(left[-1])
        self._degrees[first : first + degrees.size] += degrees
        self._weight_min = min(self._weight_min, weights.min().item())
        self._weight_max = max(self._weight_max, weights.max().item())
        self._appended += indices.size
        if self._appended > self.m:
            raise ValueError("more arcs were appended than announced")
        with ThreadPoolExecutor(1) as other:  # digests and compression release the GIL
            appended = other.submit(self._append, "indices", indices)
            self._append("weights", weights)
            appended.result()

    def _append(self, name: str, values: np.ndarray) -> None:
        values = np.ascontiguousarray(values, self._dtypes[name])
        self._digest.add(name, values)
        if name in self._arrays:
            self._arrays[name].append(values)

    def _array(self, name: str, **options: Any) -> Appender:
        dtype = self._dtypes[name]
        chunk = max(1, min(self.m, CHUNK_BYTES // dtype.itemsize))
        return Appender(DECLARED.create(self._group, name, (self.m,), (chunk,), dtype, **options))

    def _check_vertices(self, vertices: np.ndarray) -> None:
        if vertices.min() < 0 or vertices.max() >= self.n:
            raise ValueError(f"an arc has a vertex outside 0..{self.n - 1}")

    def annotate(
        self,
        *,
        labels: Sequence[str] | np.ndarray | range | None = None,
        integer_labels: bool = False,
        coordinates: np.ndarray | None = None,
        through: np.ndarray | None = None,
        junctions: np.ndarray | None = None,
        lines: Lines | None = None,
        classes: RoadClasses | None = None,
        crs: str = "",
        attribution: str = "",
    ) -> None:
        """Add data of the vertices: labels (n), text or a range of numbers; coordinates (n, 2); through, junctions (n).

        Also add the lines and the classes of the arcs, the name of the coordinate system, and the attribution. With
        `integer_labels`, tables show the labels as int64.
        """
        self._through = through
        if labels is not None:
            self._check_shape("labels", (len(labels),), (self.n,))
            write_text(self._group, "labels", labels, self._chunk_rows(len(labels), 1), dimension_names=("n",))
            self._attrs |= {"integer_labels": True} if integer_labels else {}
        if coordinates is not None:
            self._whole("coordinates", np.asarray(coordinates, dtype=np.float64), (self.n, 2))
        if through is not None:
            self._whole("through", np.asarray(through, dtype=bool), (self.n,))
        if junctions is not None:
            self._whole("junctions", np.asarray(junctions, np.int64), (self.n,))
        if lines is not None:
            check_lines(lines.of_arcs, lines.offsets, len(lines.points))
            self._write_of_arcs(LINES[0], lines.of_arcs)
            self._write(LINES[1], lines.offsets)
            self._write(LINES[2], lines.points)
        if classes is not None:
            self._write_of_arcs(CLASSES, classes.of_arcs)
            check_classes(classes.of_arcs, classes.names)
            self._attrs["road_classes"] = list(classes.names)
        self._attrs |= {name: text for name, text in (("crs", crs), ("attribution", attribution)) if text}

    def add_weights(self, name: str, values: np.ndarray, unit: str = "") -> None:
        """Add other weights of the arcs under a name; `values` (m) are in the order of the store.

        Raises
        ------
        ValueError
            There are weights of this name, their number is not m, or a weight is NaN or infinite.
        """
        if name in ("", self._attrs.get("weight_name"), *(record["name"] for record, _ in self._more)):
            raise ValueError(f"there are two weights called {name!r}; give each another name")
        if values.shape != (self.m,) or not np.isfinite(values).all():
            raise ValueError(f"the weights {name} are not {self.m} finite numbers")
        values = np.ascontiguousarray(values)
        options: dict[str, Any] = {"attributes": {"unit": unit}} if unit else {}
        self._write(f"weights_{len(self._more) + 1}", values, create_array, dimension_names=("m",), **options)
        low, high = (values.min().item(), values.max().item()) if self.m else (0.0, 0.0)
        record = {"name": name, "unit": unit, "dtype": str(values.dtype), "min": low, "max": high}
        self._more.append((record, hashlib.blake2b(values.view(np.uint8).data, digest_size=16)))

    def _write_of_arcs(self, name: str, values: np.ndarray) -> None:
        if len(values) != self.m:
            raise ValueError(f"{name} has {len(values)} entries, but there are {self.m} arcs")
        self._write(name, values)

    def _finish(self) -> None:
        if self._appended < self.m:
            raise ValueError(f"{self._appended} arcs were appended, but {self.m} were announced")
        for array in self._arrays.values():
            array.finish()
        indptr = np.zeros(self.n + 1, np.int64)
        np.cumsum(self._degrees, out=indptr[1:])
        self._write("indptr", indptr)
        self._digest.add("indptr", indptr)
        if self._through is not None:
            self._digest.add("through", np.asarray(self._through, dtype=bool))
        more = [record | {"digest": self._digest.with_weights(part).value()} for record, part in self._more]
        self._attrs |= {"more_weights": more} if more else {}
        empty = self.m == 0
        set_attributes(
            self._group,
            {
                **self._attrs,
                "weight_min": 0.0 if empty else self._weight_min,
                "weight_max": 0.0 if empty else self._weight_max,
                "digest": self._digest.value(),
                "schema": SCHEMA,
            },
        )

    def _whole(self, name: str, values: np.ndarray, shape: tuple[int, ...]) -> None:
        self._check_shape(name, values.shape, shape)
        self._write(name, values)

    def _write(self, name: str, values: np.ndarray, create: Any = DECLARED.create, **options: Any) -> None:
        """Create an array and write it."""
        chunks = (self._chunk_rows(len(values), max(1, values[:1].size)), *values.shape[1:])
        array = Appender(create(self._group, name, values.shape, chunks, values.dtype, **options))
        array.append(values)
        array.finish()

    def _check_shape(self, name: str, found: tuple[int, ...], shape: tuple[int, ...]) -> None:
        if found != shape:
            raise ValueError(f"{name}: the shape is {found}, not {shape}, for {counted(self.n, 'vertex', 'vertices')}")

    @staticmethod
    def _chunk_rows(rows: int, width: int) -> int:
        return max(1, min(rows, CHUNK_BYTES // (8 * width)))


def stored_dtype(dtype: Any) -> np.dtype | None:
    """Return the stored dtype of weights of `dtype`; None if such weights are not stored.

    The dtype is kept, in the byte order of this machine, but bool becomes int32 and float16 becomes float32.
    """
    dtype = np.dtype(dtype)
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        return None
    return np.dtype({"bool": "int32", "float16": "float32"}.get(dtype.name, dtype.newbyteorder("=")))


def write_graph(
    path: str | os.PathLike[str],
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    labels: np.ndarray | None = None,
    coordinates: np.ndarray | None = None,
    through: np.ndarray | None = None,
    junctions: np.ndarray | None = None,
    lines: Lines | None = None,
    classes: RoadClasses | None = None,
    crs: str = "",
    attribution: str = "",
    sorted_rows: bool = True,
    directed: bool = True,
    input_edges: int | None = None,
    simplified: bool = False,
    weight_unit: str = "",
    weight_name: str = "",
    source: str = "",
    overwrite: bool = False,
) -> Graph:
    """Write a graph held in memory as CSR and return it opened.

    Parameters
    ----------
    path : path of the new store
    indptr, indices : (n + 1,), (m,) ints
        The heads of the arcs that leave vertex v are ``indices[indptr[v] : indptr[v + 1]]``.
    weights : (m,) numbers, optional
        Without weights the graph is unweighted: each arc counts 1.
    labels : (n,) text or ints, optional
        Names of the vertices.
    coordinates : (n, 2) floats, optional
        Longitudes and latitudes, or x and y.
    through : (n,) bool, optional
        Whether paths may lead through a vertex, or only begin and end there.
    junctions, lines, classes : optional
        The turns of the graph, and the lines and classes of its arcs as given.
    crs, attribution : coordinate system of the coordinates, and origin of the data, which pictures and tables name
    sorted_rows : False stores the arcs of each vertex as given, and not sorted by their heads
    directed : False promises that every edge is given as two arcs, one in each direction; this is not checked
    input_edges, simplified, source : the number of edges in the source, whether it had parallel arcs and loops that
        were removed, and its name, for `tilepath info`
    weight_unit, weight_name : unit of the weights, such as "s", and their name among several weights
    overwrite : replace an existing graph store at `path`

    Raises
    ------
    StoreError
        The path exists, or the disk is full.
    TypeError, ValueError
        The arrays do not make up a graph, or a weight is NaN or infinite.

    Examples
    --------
    >>> triangle = tilepath.write_graph("triangle.zarr", np.array([0, 1, 2, 3]), np.array([1, 2, 0]))
    >>> triangle.n, triangle.m
    (3, 3)
    """
    from gpuops import csr  # imports Numba, which the other writers do not need

    indptr, indices = np.asarray(indptr), np.asarray(indices)
    if weights is not None:
        weights = np.asarray(weights)
        kept = stored_dtype(weights.dtype)
        if kept is None:
            raise TypeError(f"weights are {weights.dtype}; convert them to integers or floats of at most 64 bits")
        weights = weights.astype(kept, copy=False)
    csr.check_csr(indptr, indices, **({} if weights is None else {"weights": weights}))
    n = len(indptr) - 1
    tails = csr.tails(indptr.astype(np.int64, copy=False), len(indices), np.int64)
    if sorted_rows:
        order = np.lexsort((indices, tails))
        indices, weights = indices[order], None if weights is None else weights[order]
        if lines is not None and len(lines.of_arcs) == len(order):  # the writer refuses other numbers of arcs
            lines = lines.taken(order)
        if classes is not None and len(classes.of_arcs) == len(order):
            classes = classes.taken(order)
    with new_graph(
        path, n=n, m=len(indices), weight_dtype=None if weights is None else weights.dtype, directed=directed,
        input_edges=input_edges, simplified=simplified, sorted_rows=sorted_rows, weight_unit=weight_unit,
        weight_name=weight_name, source=source, overwrite=overwrite,
    ) as writer:  # fmt: skip
        writer.append(tails, indices, weights)
        writer.annotate(
            labels=labels, integer_labels=np.asarray(labels).dtype.kind in "iu", coordinates=coordinates,
            through=through, junctions=junctions, lines=lines, classes=classes, crs=crs, attribution=attribution,
        )  # fmt: skip
    return open_graph(path)
