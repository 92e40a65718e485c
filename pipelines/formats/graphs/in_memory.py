"""Read graphs in memory: SciPy sparse matrices, graphs of NetworkX, OSMnx and igraph, and vectors of successors.

These libraries are not imported here; a caller that passes such an object has imported its library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from pipelines.formats.arc_stream import ArcStream
from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.columns import listed, unread_numbers
from pipelines.formats.graphs.edge_lines import EdgeLines, line_of
from pipelines.formats.graphs.osmnx import attribution_of, crs_of, units_of
from pipelines.formats.graphs.parquet import check_rows, weight_dtype
from pipelines.stores.road_classes import COLUMNS, class_in
from pipelines.stores.schema import counted


@contextmanager
def read_sparse(source: Any, directed: bool = True) -> Iterator[ArcStream]:
    """Yield the arcs of a square SciPy sparse matrix or array: each stored entry (i, j), even a zero, is an arc i -> j.

    With ``directed=False``, every stored entry is an undirected edge; the matrix should then have one triangle only.
    """
    what = f"the {type(source).__name__}"
    if len(source.shape) != 2 or source.shape[0] != source.shape[1]:
        raise FormatError(f"{what} is {' x '.join(map(str, source.shape))}; the matrix of a graph must be square")
    matrix = source.tocoo()
    dtype = weight_dtype(what, matrix.dtype)
    tails, heads = (ends.astype(np.int64, copy=False) for ends in (matrix.row, matrix.col))
    check_rows(f"{what}, entry", 0, (tails, heads), matrix.data)
    yield ArcStream(
        [(tails, heads, matrix.data.astype(dtype, copy=False))],
        n=source.shape[0],
        directed=directed,
        weight_dtype=dtype,
    )


@contextmanager
def read_networkx(source: Any, weight: str | None = None) -> Iterator[ArcStream]:
    """Yield the arcs of a NetworkX graph. Nodes keep their order; names other than 0, 1, 2, ... become labels.

    `weight` names the edge attribute that holds the weights. By default it is "weight" if some edge has this attribute;
    else the graph is unweighted, with a warning if other attributes are numbers. The node attributes x and y, which
    graphs of OSMnx have, become coordinates, the edge attribute geometry becomes lines, and highway becomes the classes
    of roads.
    """
    nodes = list(source.nodes)
    indices = {node: index for index, node in enumerate(nodes)}
    edges = list(source.edges(data=weight or "weight"))
    lines = EdgeLines()
    for _, _, shape in source.edges(data="geometry"):
        lines.add_line(None if shape is None else line_of(shape))
    for _, _, road in source.edges(data=COLUMNS[0]):
        lines.add_class(class_in(road))
    tails = np.array([indices[u] for u, _, _ in edges], dtype=np.int64)
    heads = np.array([indices[v] for _, v, _ in edges], dtype=np.int64)
    values = [value for _, _, value in edges]
    remarks, warnings = [], []
    known = {name: None for *_, found in source.edges(data=True) for name in found}
    if weight is not None and edges and weight not in known:
        attributes = listed(list(map(str, known))) if known else "none"
        raise FormatError(f"the edges have no attribute {weight!r:.80}; choose another (weight=): {attributes}")
    if weight is None and all(value is None for value in values):
        weights = None
        numbers = [str(name) for name in known if _are_numbers(value for *_, value in source.edges(data=name))]
        warnings = unread_numbers(f"the {type(source).__name__}", numbers)
        if known and not warnings:
            others = listed(list(map(str, known)))
            remarks.append(
                f"edges have no attribute 'weight', so each arc counts 1; other attributes are {others} (weight=)"
            )
    else:
        weights = _weights(edges, values, weight or "weight")
    lines.add_edges(tails, heads, weights)
    places = _positions([(found.get("x"), found.get("y")) for _, found in source.nodes(data=True)])
    yield ArcStream(
        [(tails, heads, weights)],
        n=len(nodes),
        directed=source.is_directed(),
        lines=partial(lines.stored, places, source.is_directed()) if lines and places is not None else None,
        classes=partial(lines.stored_classes, source.is_directed()),
        weighted=weights is not None,
        labels=None if all(type(v) is int and v == i for i, v in enumerate(nodes)) else map(str, nodes),
        text_labels=any(isinstance(node, str) for node in nodes),
        remarks=remarks,
        warnings=warnings,
        coordinates=places,
        crs=crs_of(source.graph, remarks) if places is not None else "",
        attribution=attribution_of(source.graph),
        units=units_of(source.graph),
        weight_unit=weight or "",
    )


@contextmanager
def read_successors(source: Any) -> Iterator[ArcStream]:
    """Yield the arcs of a vector of integers: vertex v has one arc to ``source[v]``, or no arc if that is -1.

    The graph is unweighted. If the vector is a permutation, a remark counts its cycles.
    """
    successors = np.asarray(source)
    if successors.ndim != 1 or successors.dtype.kind not in "iu":
        shape = " x ".join(map(str, successors.shape))
        raise FormatError(
            f"an array of {successors.dtype}, {shape}, is not a vector of successors; give one whole number per vertex"
            ", or a matrix of weights as scipy.sparse.csr_array(matrix)"
        )
    n = len(successors)
    wrong = np.flatnonzero((successors >= n) | (successors < -1))
    if wrong.size:
        v = int(wrong[0])
        raise FormatError(f"the successor of {v} is {successors[v]}; give a vertex, 0 to {n - 1}, or -1 for none")
    tails = np.flatnonzero(successors >= 0)
    heads = successors[tails].astype(np.int64)
    remarks = []
    if is_permutation(heads, n):
        lengths = np.diff(cycles(heads)[1])
        remarks.append(
            f"a permutation of {n:,} with {counted(len(lengths), 'cycle')}, the longest of {lengths.max():,}"
        )
    yield ArcStream([(tails, heads, None)], n=n, weighted=False, remarks=remarks)


def is_permutation(successors: np.ndarray, n: int) -> bool:
    """Return True if each of n vertices is the successor of exactly one vertex."""
    return 0 < n == len(successors) and bool((np.bincount(successors, minlength=n) == 1).all())


def cycles(successors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `order` and `offsets` of the cycles of a permutation (n).

    Cycle k is ``order[offsets[k] : offsets[k + 1]]`` and begins with its least element.
    """
    from gpuops.euler import walk_circuits  # imported here, since Numba takes a second

    predecessors = np.empty(len(successors), np.int64)
    predecessors[successors] = np.arange(len(successors))
    return walk_circuits(predecessors)


@contextmanager
def read_igraph(source: Any, weight: str | None = None) -> Iterator[ArcStream]:
    """Yield the arcs of an igraph graph. Vertices keep their order; "name" becomes labels, x and y become coordinates.

    `weight` names the edge attribute that holds the weights. By default it is "weight" if edges have this attribute;
    else the graph is unweighted, with a warning if other attributes are numbers.
    """
    known = source.es.attributes()
    if weight is not None and weight not in known:
        attributes = ", ".join(known) or "none"
        raise FormatError(f"the edges have no attribute {weight!r:.80}; choose another (weight=): {attributes}")
    ends = source.get_edgelist()
    tails, heads = np.array(ends, np.int64).reshape(-1, 2).T
    warnings = []
    if weight is None and "weight" not in known:
        weights = None
        warnings = unread_numbers("the igraph graph", [name for name in known if _are_numbers(source.es[name])])
    else:
        values = source.es[weight or "weight"]
        weights = _weights([(u, v, w) for (u, v), w in zip(ends, values, strict=True)], values, weight or "weight")
    of_vertices = source.vs.attributes()
    placed = {"x", "y"} <= set(of_vertices)
    yield ArcStream(
        [(tails, heads, weights)],
        n=source.vcount(),
        directed=source.is_directed(),
        weighted=weights is not None,
        labels=map(str, source.vs["name"]) if "name" in of_vertices else None,
        text_labels="name" in of_vertices and any(isinstance(name, str) for name in source.vs["name"]),
        warnings=warnings,
        coordinates=_positions(list(zip(source.vs["x"], source.vs["y"], strict=True))) if placed else None,
        weight_unit=weight or "",
    )


def _positions(positions: list[tuple[Any, Any]]) -> np.ndarray | None:
    """Return coordinates (n, 2), NaN for vertices without position; None if all lack one or some are not numbers."""
    placed = [place for place in positions if None not in place]
    if not placed or not all(isinstance(x, int | float | np.integer | np.floating) for place in placed for x in place):
        return None
    return np.array([(math.nan, math.nan) if None in place else place for place in positions], np.float64)


def _are_numbers(values: Iterable[Any]) -> bool:
    """Return whether an attribute of edges is a number wherever it is not missing; True and False are no numbers."""
    kinds = {type(value) for value in values if value is not None}
    numbers = int | float | np.integer | np.floating
    return bool(kinds) and all(issubclass(kind, numbers) and kind is not bool for kind in kinds)


def _weights(edges: list[Any], values: list[Any], name: str) -> np.ndarray:
    def described(edge: int) -> str:
        u, v, value = edges[edge]
        return f"the edge {u!r} - {v!r} has {name!r} = {value!r:.80}"

    return checked_weights(values, described, "give every edge a finite number, or name another attribute (weight=)")


def checked_weights(values: list[Any], described: Callable[[int], str], cure: str) -> np.ndarray:
    """Return weights as int32 or int64 if all are integers, else as float64; FormatError if one would be rounded.

    The message begins with `described` of the place of the faulty weight; `cure` is the end of the message for a weight
    that is not a finite number.
    """
    exact = all(isinstance(value, int | np.integer | np.bool_) for value in values)
    for place, value in enumerate(values):
        fault = _fault(value, exact, cure)
        if fault:
            raise FormatError(f"{described(place)}; {fault}")
    if not exact:
        return np.array(values, dtype=np.float64)
    weights = np.array(values, dtype=np.int64)
    fits = weights.size == 0 or -(2**31) <= weights.min() <= weights.max() < 2**31
    return weights.astype(np.int32) if fits else weights


def _fault(value: Any, exact: bool, cure: str) -> str:
    """Return the cure for a weight that cannot be used, else ""; `exact` is True if all weights are integers."""
    if not isinstance(value, int | float | np.integer | np.floating | np.bool_):
        return cure
    if exact:
        return "" if -(2**63) <= value < 2**63 else "integers have at most 64 bits; make it a float"
    try:
        as_float = float(value)
    except OverflowError:
        as_float = math.inf
    if not math.isfinite(as_float):
        return cure
    if isinstance(value, int | np.integer) and int(as_float) != value:
        return "with decimals among the weights, all are float64, which does not hold this integer exactly; round it"
    return ""
