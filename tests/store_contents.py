"""Contents that a store may have in the model of random commands, and how commands show the contents of a store.

Each content has ``holds(found)``: whether `found`, as `shown` reads it from a store, is this content. SciPy computes
the distances. A walk is checked arc by arc, and the units of samples are compared in float64.
"""

import csv
import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from oracles import scipy_graph
from scipy.sparse.csgraph import NegativeCycleError, shortest_path

from gpuops.numbers import outside_infinity
from pipelines.stores.matrix import open_matrix


@dataclass(frozen=True)
class Arcs:
    """A graph of `n` vertices with sorted arcs (tail, head, weight); `first` is the label of vertex 0."""

    n: int
    arcs: tuple
    first: int = 0

    @cached_property
    def matrix(self):
        """All distances, float64 (n, n); None if there is a negative cycle."""
        if any(tail == head and weight < 0 for tail, head, weight in self.arcs):
            return None
        try:
            return shortest_path(scipy_graph(self.n, *self.columns()), method="J")
        except NegativeCycleError:
            return None

    @property
    def whole(self):
        return all(weight == int(weight) for *_, weight in self.arcs)

    @property
    def signed(self):
        return any(weight < 0 for *_, weight in self.arcs)

    def vertices(self, numbers):
        """Numbers as vertices of the graph, each once."""
        return [*dict.fromkeys(number % self.n for number in numbers)]

    def columns(self):
        """Tails, heads and weights as arrays."""
        tails, heads, weights = zip(*self.arcs, strict=True) if self.arcs else ((), (), ())
        return np.array(tails, int), np.array(heads, int), np.array(weights, float)

    def reversed(self):
        return Arcs(self.n, tuple(sorted((head, tail, weight) for tail, head, weight in self.arcs)), self.first)

    def rows(self, vertices, together=False, cutoff=None):
        """The distances from `vertices`, or from the nearest of them; None if a negative cycle must be refused."""
        if self.matrix is None or (self.signed and cutoff is not None):
            return None
        rows = self.matrix[list(vertices)]
        rows = rows.min(axis=0, keepdims=True) if together else rows
        return Distances(
            self, tuple(vertices), together, rows if cutoff is None else np.where(rows <= cutoff, rows, np.inf)
        )

    def balanced(self):
        """Whether every vertex has as many arcs in as out, and there is an arc."""
        tails, heads, _ = self.columns()
        counts = [np.bincount(ends, minlength=self.n) for ends in (tails, heads)]
        return bool(self.arcs) and np.array_equal(*counts)

    def length(self, path):
        """The sum of the least weights along a path; a KeyError if an arc is missing."""
        weights = {}
        for tail, head, weight in self.arcs:
            weights[tail, head] = min(weight, weights.get((tail, head), np.inf))
        return sum(weights[hop] for hop in itertools.pairwise(path))

    def distance(self, source, target):
        """The distance as a search from `source` finds it; NaN if the search must be refused."""
        matrix = self.reached(source).matrix
        return np.nan if matrix is None else matrix[source, target]

    def reached(self, source):
        """The graph of the arcs that `source` reaches and of all loops: a negative loop is refused wherever it is."""
        known, more = set(), {source}
        while more:
            known |= more
            more = {head for tail, head, _ in self.arcs if tail in known} - known
        return replace(self, arcs=tuple(arc for arc in self.arcs if arc[0] in known or arc[0] == arc[1]))

    def holds(self, found):
        return found == (self.n, [(tail + self.first, head + self.first, weight) for tail, head, weight in self.arcs])


@dataclass(frozen=True)
class Distances:
    """Rows of distances of a graph: from each of `sources`, or with `together` one row from the nearest of them."""

    graph: Arcs
    sources: tuple
    together: bool
    matrix: np.ndarray

    def columns(self, vertices):
        return Distances(self.graph, self.sources, self.together, self.matrix[:, list(vertices)])

    def distance(self, source, target):
        """The distance to a vertex; infinite if `source` has no row."""
        if self.together:
            return self.matrix[0, target]
        return self.matrix[self.sources.index(source), target] if source in self.sources else np.inf

    def holds(self, found):
        return found.shape == self.matrix.shape and np.array_equal(found, self.matrix)


@dataclass(frozen=True)
class Walks:
    """Euler circuits of a graph."""

    graph: Arcs

    def holds(self, found):
        """Whether rows (circuit, position, arc, source, target) walk along every arc once, and back to the start."""
        ends = [(tail + self.graph.first, head + self.graph.first) for tail, head, _ in self.graph.arcs]
        once = sorted(arc for _, _, arc, *_ in found) == list(range(len(ends)))
        real = once and all(ends[arc] == (source, target) for _, _, arc, source, target in found)
        circuits = [[*rows] for _, rows in itertools.groupby(found, lambda row: row[0])]
        closed = all(
            here[4] == following[3]
            for walk in circuits
            for here, following in zip(walk, walk[1:] + walk[:1], strict=True)
        )
        return real and closed


@dataclass(frozen=True)
class Samples:
    """Values of samples."""

    values: np.ndarray

    def holds(self, found):
        return np.array_equal(found, self.values)


@dataclass(frozen=True)
class Map:
    """Values of the units of a map, and the quantization errors of the first codebook and after each epoch."""

    values: np.ndarray
    errors: list

    def holds(self, found):
        values, errors = found
        return np.array_equal(values, self.values) and errors == self.errors


@dataclass(frozen=True)
class Units:
    """The two nearest units of each sample; of units that float64 cannot tell apart by 1e-6, any."""

    values: np.ndarray
    codebook: np.ndarray

    def holds(self, found):
        if found.shape != (len(self.values), 2) or not (found[:, 0] != found[:, 1]).all():
            return False
        if found.max() >= len(self.codebook):  # units of another map
            return False
        squares = ((self.values[:, None].astype(float) - self.codebook) ** 2).sum(axis=2)
        chosen = np.take_along_axis(squares, found, axis=1)
        return np.allclose(chosen, np.sort(squares, axis=1)[:, :2], rtol=1e-6, atol=1e-6)


def write_arcs(graph, file):
    """Write a graph to a file (.csv, .parquet, .gr or .mtx); returns the graph with the labels that it gets there."""
    arcs = [(tail, head, int(weight) if graph.whole else weight) for tail, head, weight in graph.arcs]
    suffix = Path(file).suffix
    if suffix in (".csv", ".parquet"):
        frame = pd.DataFrame(arcs, columns=["source", "target", "weight"])
        frame.to_parquet(file) if suffix == ".parquet" else frame.to_csv(file, index=False)
        return graph
    sign, (n, m) = "a " if suffix == ".gr" else "", (graph.n, len(arcs))
    number = "integer" if graph.whole else "real"
    lines = [f"p sp {n} {m}"] if sign else [f"%%MatrixMarket matrix coordinate {number} general", f"{n} {n} {m}"]
    lines += [f"{sign}{tail + 1} {head + 1} {weight}" for tail, head, weight in arcs]
    Path(file).write_text("\n".join(lines) + "\n")
    return replace(graph, first=1)


def shown(name, run, attributes):
    """The contents of a store with these attributes, as ``holds`` of its content takes them.

    The first letter of `name` is the kind of the store; `run` runs a command that must not fail.
    """
    kind, n = name[0], attributes.get("n")
    if kind in "gc":
        run("export", name, "shown.csv", "--overwrite")
        rows = list(csv.reader(Path("shown.csv").read_text().splitlines()))[1:]
        if kind == "c":
            return [tuple(map(int, row)) for row in rows]
        return n, sorted((int(tail), int(head), float(*weight or [1])) for tail, head, *weight in rows)
    if kind == "h":
        Path("all.csv").write_text("vertex\n" + "".join(f"#{v}\n" for v in range(n)))
        run("od", name, "shown.npy", "--origins", "all.csv", "--overwrite")
    elif kind != "m":
        run("export", name, "shown.npy", "--overwrite")
    found = open_matrix(name)[:] if kind == "m" else np.load("shown.npy")
    if kind == "w":
        return found, attributes["errors"]
    return np.where(found == outside_infinity(found.dtype), np.inf, found) if kind in "dphm" else found


def contents(path):
    """All bytes of a file, or of the arrays of a store."""
    if path.is_file():
        return path.read_bytes()
    return {p.relative_to(path): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file() and p.parent != path}
