"""Graphs that other libraries hold in memory: SciPy sparse matrices and NetworkX graphs.

Neither library is imported: whoever passes such an object has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pipelines.arc_sort import ArcStream, FormatError
from pipelines.formats.parquet import check_rows, weight_dtype


@contextmanager
def read_sparse(source: Any, directed: bool = True) -> Iterator[ArcStream]:
    """A square SciPy sparse matrix or array: every stored entry (i, j) = v, zeros included, is an arc i -> j.

    With ``directed=False`` every stored entry is an undirected edge; give one triangle then.
    """
    what = f"the {type(source).__name__}"
    if len(source.shape) != 2 or source.shape[0] != source.shape[1]:
        raise FormatError(f"{what} is {' x '.join(map(str, source.shape))}; the matrix of a graph is square")
    matrix = source.tocoo()
    dtype = weight_dtype(what, matrix.dtype)
    tails, heads = (ends.astype(np.int64, copy=False) for ends in (matrix.row, matrix.col))
    check_rows(f"{what}, entry", 0, tails, heads, matrix.data, 0)
    yield ArcStream(
        [(tails, heads, matrix.data.astype(dtype, copy=False))],
        n=source.shape[0],
        directed=directed,
        weight_dtype=dtype,
    )


@contextmanager
def read_networkx(source: Any, weight: str | None = None) -> Iterator[ArcStream]:
    """A NetworkX graph: nodes in its order, their names as labels unless they are 0, 1, 2, ...

    `weight` names the edge attribute; by default it is "weight" if some edge has that, else every weight is 1.
    """
    nodes = list(source.nodes)
    indices = {node: index for index, node in enumerate(nodes)}
    edges = list(source.edges(data=weight or "weight"))
    tails = np.array([indices[u] for u, _, _ in edges], dtype=np.int64)
    heads = np.array([indices[v] for _, v, _ in edges], dtype=np.int64)
    values = [value for _, _, value in edges]
    if weight is None and all(value is None for value in values):
        weights = np.ones(len(edges), dtype=np.int32)
    else:
        weights = _weights(edges, values, weight or "weight")
    yield ArcStream(
        [(tails, heads, weights)],
        n=len(nodes),
        directed=source.is_directed(),
        labels=None if all(type(v) is int and v == i for i, v in enumerate(nodes)) else map(str, nodes),
    )


def _weights(edges: list[Any], values: list[Any], name: str) -> np.ndarray:
    for u, v, value in edges:
        if not isinstance(value, int | float | np.number | np.bool_) or not np.isfinite(value):
            raise FormatError(
                f"the edge {u!r} - {v!r} has {name!r} = {value!r}; give every edge a finite number, "
                "or name another attribute (weight=)"
            )
    weights = np.array(values)
    if weights.dtype.kind in "biu":  # Python's integers have no dtype: as small as they are, like integers in text
        fits = weights.size == 0 or -(2**31) <= weights.min() <= weights.max() < 2**31
        return weights.astype(np.int32 if fits else np.int64)
    return weights.astype(np.float64)
