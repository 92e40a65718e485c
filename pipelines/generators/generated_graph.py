"""A graph that is never stored: each worker generates the arcs of a range of vertices when it needs them.

`GeneratedGraph` reads like a graph store. It has a name like ``rmat:28``, or ``rmat:28:seed=3:weights=integers`` if
options differ from the defaults. It has the edges of `pipelines.generators.RMat`. A GPU draws the arcs of a range
itself (`gpuops.rmat`), so the arcs need only fit in the memory of the GPUs of all workers together.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np

from gpuops import csr
from gpuops.rmat import rmat_edges, rmat_rows
from pipelines.generators import edge_pieces
from pipelines.generators.random_graphs import RMat
from pipelines.generators.synthetic import HEAVIEST, both_ways
from pipelines.stores.graph import Graph

BATCH = 1 << 25  # edges that a GPU draws at a time if it does not keep them


def generated_graph(graph: RMat | str) -> GeneratedGraph:
    """Return the graph with this description or name.

    Raises
    ------
    ValueError
        The name has an unknown option, a value is out of range, or weights are shifted.
    """
    graph = _described(graph) if isinstance(graph, str) else graph
    if graph.shift:
        raise ValueError("a graph with shifted weights must be generated into a store (tilepath generate rmat)")
    if graph.scale > 30:
        raise ValueError(f"scale {graph.scale}: a graph that is generated without a store has a scale of 30 at most")
    options = [
        f"{item.name}={getattr(graph, item.name)}"
        for item in fields(graph)
        if item.name not in ("scale", "dtype") and getattr(graph, item.name) != item.default
    ]
    plain = "int32" if graph.weights == "integers" else "float32"
    options += [] if graph.dtype == plain else [f"dtype={graph.dtype}"]
    name, integers, dtype = ":".join(["rmat", str(graph.scale), *options]), graph.weights == "integers", graph.dtype
    return GeneratedGraph(
        path=name,
        n=graph.n,
        m=graph.ids * (2 if graph.symmetric else 1),
        input_edges=graph.ids,
        directed=not graph.symmetric,
        simplified=False,
        weight_dtype=np.dtype(dtype),
        weight_min=1.0 if integers else 2.0 ** -(np.finfo(dtype).nmant + 1),
        weight_max=float(HEAVIEST) if integers else 1.0,
        weight_unit="",
        source=str(graph),
        digest="generated " + hashlib.sha256(name.encode()).hexdigest(),
        optional=frozenset(),
        sorted_rows=True,
        weighted=True,
        crs="",
        attribution="",
        road_classes=(),
        integer_labels=False,
        choices=(),
        weight_name="",
        weight_array="",
        description=graph,
    )


def _described(name: str) -> RMat:
    """Return the description that a name such as ``rmat:20:seed=3`` stands for."""
    _, scale, *given = name.split(":")
    options: dict[str, Any] = {}
    for text in given:
        option, _, value = text.partition("=")
        if option not in {item.name for item in fields(RMat)} - {"scale"}:
            known = ", ".join(item.name for item in fields(RMat) if item.name != "scale")
            raise ValueError(f"{name}: there is no option {option!r}; the options are {known}")
        try:
            options[option] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            options[option] = value
        if option in ("directed", "scrambled") and not isinstance(options[option], bool):
            raise ValueError(f"{name}: {option} is True or False, not {value}")
    return RMat(int(scale), **options)


@dataclass(frozen=True, repr=False)
class GeneratedGraph(Graph):
    """An R-MAT graph that is generated whenever it is read; made by `generated_graph`. Pickled as its description."""

    description: RMat

    def __repr__(self) -> str:
        return f"<{self.title}>"  # its first rows would take all edges

    def _repr_html_(self) -> str:
        return f"<p>{self.title}</p>"

    def indptr(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        before = len(self.rows(0, start)[1]) if start else 0
        return self.rows(start, stop)[0] + before

    def ranges(self, count: int, start: int = 0, stop: int | None = None) -> list[tuple[int, int]]:
        """Return ranges with about equal numbers of vertices, and so of arcs, as vertices are in random order."""
        cuts = np.linspace(start, self.n if stop is None else stop, count + 1).astype(np.int64).tolist()
        return list(pairwise(cuts))

    def rows(self, start: int = 0, stop: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        stop = self.n if stop is None else stop
        nothing = np.empty(0, np.int64)
        parts = [(nothing, nothing, np.empty(0, self.weight_dtype))]
        for tails, heads, weights in edge_pieces(self.description):
            if not self.directed:
                (tails, heads), weights = both_ways(tails, heads), np.repeat(weights, 2)
            kept = (tails >= start) & (tails < stop)
            parts.append((tails[kept] - start, heads[kept], weights[kept]))
        tails, heads, weights = map(np.concatenate, zip(*parts, strict=True))
        order = np.lexsort((heads, tails))
        indptr = csr.row_starts(tails, stop - start)
        return indptr, heads[order].astype(np.int32), weights[order]

    def indices(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        return self.rows()[1][start:stop]

    def weights(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        return self.rows()[2][start:stop]

    def rows_in(self, library: Any, dtype: Any, start: int, stop: int) -> tuple[Any, Any, Any]:
        """As `Graph.rows_in`, but on a GPU the arcs of a row are in no particular order."""
        drawing = None if library is np else self.description.drawing()
        if drawing is None:
            return super().rows_in(library, dtype, start, stop)
        indptr, indices, weights = rmat_rows(drawing, start, stop)
        return indptr, indices, weights.astype(dtype, copy=False)

    def arcs(self, library: Any = np, start: int = 0, stop: int | None = None) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the arcs of the edges `start` to `stop` (excluded) in batches of tails, heads and weights.

        The arrays are of `library`: NumPy, or CuPy if the GPU draws them. An undirected edge has two arcs.
        """
        stop = self.input_edges if stop is None else stop
        drawing = None if library is np else self.description.drawing()
        if drawing is None:
            batches: Iterator[tuple[Any, Any, Any]] = edge_pieces(self.description, start=start, stop=stop)
        else:
            cuts = pairwise([*range(start, stop, BATCH), stop])
            batches = (rmat_edges(drawing, first, last) for first, last in cuts)
        for tails, heads, weights in batches:
            yield tails, heads, weights
            if not self.directed:
                yield heads, tails, weights
