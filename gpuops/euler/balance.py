"""Degrees: why a graph has no Euler circuit, where an Euler path begins and ends, and the arc that closes the path."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from gpuops import csr
from gpuops.arrays import library_of, on_host
from gpuops.errors import NotEulerianError

SHOWN = 3  # vertices named in a message


def degrees(indptr: Any, indices: Any) -> tuple[Any, Any]:
    """Return the numbers of arcs into and out of every vertex, (n) each."""
    return csr.occurrences(indices, len(indptr) - 1), library_of(indices).diff(indptr)


def refuse_unbalanced(indptr: Any, indices: Any) -> NoReturn:
    """Raise NotEulerianError for a directed graph that has no Euler circuit, naming vertices and a remedy."""
    entering, leaving = degrees(indptr, indices)
    vertices, surplus = _nonzero(leaving - entering)
    if _ends_of(vertices, surplus):
        cure = "; it has an Euler path: pass path (--path)"
    else:
        cure = _either_way(entering + leaving, 0)
    raise NotEulerianError(
        f"{_count(vertices, 'vertex has', 'vertices have')} unequal numbers of arcs in and out: "
        f"{_balances(vertices, entering, leaving)}{cure}",
        vertices.tolist()[:SHOWN],
    )


class VirtualArc(NamedTuple):
    """A graph with an additional arc from the end of its Euler path to the start, which makes the path a circuit."""

    indptr: Any
    indices: Any
    arc: int

    def cut(self, found: Any) -> Any:
        """Return the circuits without the virtual arc; the circuit that began with it becomes a path."""
        xp = library_of(found.arcs)
        place = _begin_of(found, self.arc)
        arcs = xp.concatenate([found.arcs[:place], found.arcs[place + 1 :]])
        arcs -= (arcs > self.arc).astype(arcs.dtype)
        return found._replace(arcs=arcs, offsets=np.where(found.offsets > place, found.offsets - 1, found.offsets))


def closing_arc(indptr: Any, indices: Any, start: int | None) -> VirtualArc | None:
    """Close the Euler path of a directed graph by an arc; None if all vertices are balanced.

    Raises
    ------
    NotEulerianError
        The graph has no Euler path, or the path does not begin at `start`.
    """
    entering, leaving = degrees(indptr, indices)
    vertices, surplus = _nonzero(leaving - entering)
    if not len(vertices):
        return None
    ends = _ends_of(vertices, surplus)
    if ends is None:
        raise NotEulerianError(
            f"an Euler path has one arc more out than in where it begins, and one more in than out where it ends; here "
            f"{_count(vertices, 'vertex is', 'vertices are')} not balanced: "
            f"{_balances(vertices, entering, leaving)}{_either_way(entering + leaving, 2)}",
            vertices.tolist()[:SHOWN],
        )
    first, last = ends
    if start is not None and start != first:
        raise NotEulerianError("the Euler path begins at vertex {}, not at {}", (first, start))
    return VirtualArc(*_insert(indptr, indices, [(last, first)]), int(indptr[last + 1]))


class VirtualEdge(NamedTuple):
    """An undirected graph with an additional edge between the two vertices of odd degree.

    `arcs` are the two arcs of the edge: the first leads from the start of the path to its end, the second back.
    """

    indptr: Any
    indices: Any
    arcs: tuple[int, int]

    def cut(self, found: Any, mates: Any) -> Any:
        """Return the circuits without the virtual edge; the circuit that began with it becomes the path."""
        xp = library_of(found.arcs)
        outward = int(found.arcs[_begin_of(found, self.arcs)]) == self.arcs[0]
        place = _begin_of(found, self.arcs)
        stop = int(found.offsets[int(np.searchsorted(found.offsets, place, side="right"))])
        path = found.arcs[place + 1 : stop]
        if outward:  # the virtual edge leads away from the start, so the rest leads back to it: reverse the rest
            path = mates[path[::-1]].astype(path.dtype)
        arcs = xp.concatenate([found.arcs[:place], path, found.arcs[stop:]])
        shift = (arcs > self.arcs[0]).astype(arcs.dtype) + (arcs > self.arcs[1]).astype(arcs.dtype)
        return found._replace(
            arcs=arcs - shift, offsets=np.where(found.offsets > place, found.offsets - 1, found.offsets)
        )


def odd_edge(indptr: Any, indices: Any, start: int | None) -> VirtualEdge | None:
    """Join the two vertices of odd degree of an undirected graph by an edge; None if all degrees are even.

    Raises
    ------
    NotEulerianError
        More than two vertices have odd degrees, or the degree of `start` is even.
    """
    odd = on_host(library_of(indptr).flatnonzero(library_of(indptr).diff(indptr) % 2))
    if not len(odd):
        return None
    if len(odd) != 2:
        refuse_odd(indptr, odd, "an Euler path of an undirected graph has two vertices of odd degree", path=True)
    first, last = odd.tolist()
    if start == last:
        first, last = last, first
    elif start is not None and start != first:
        raise NotEulerianError(
            "the Euler path leads from vertex {} to {} or back; it does not begin at {}", (first, last, start)
        )
    low, high = min(first, last), max(first, last)
    places = {low: int(indptr[low + 1]), high: int(indptr[high + 1]) + 1}
    return VirtualEdge(*_insert(indptr, indices, [(low, high), (high, low)]), (places[first], places[last]))


def refuse_odd(indptr: Any, odd: np.ndarray, rule: str, path: bool) -> NoReturn:
    """Raise NotEulerianError naming vertices of odd degree and a remedy; `path`: the caller requested a path."""
    if len(odd) == 2 and not path:
        cure = "it has an Euler path: pass path (--path)"
    else:
        cure = "there is a circuit along every edge both ways: pass directed=True (leave out --undirected)"
    named = ", ".join(f"{{}} (degree {int(indptr[v + 1] - indptr[v])})" for v in odd[:SHOWN].tolist())
    raise NotEulerianError(
        f"{rule}; here {_count(odd, 'vertex has', 'vertices have')} an odd one: {named}{_more(odd)}; {cure}",
        odd.tolist()[:SHOWN],
    )


def _insert(indptr: Any, indices: Any, arcs: list[tuple[int, int]]) -> tuple[Any, Any]:
    """Add arcs in the order of their tails, each at the end of its row."""
    xp = library_of(indices)
    places = [0, *(int(indptr[tail + 1]) for tail, _ in arcs), len(indices)]
    parts = []
    for i, (_, head) in enumerate(arcs):
        parts += [indices[places[i] : places[i + 1]], xp.full(1, head, indices.dtype)]
    grown = indptr.copy()
    for tail, _ in arcs:
        grown[tail + 1 :] += 1
    return grown, xp.concatenate([*parts, indices[places[-2] :]])


def _begin_of(found: Any, arcs: int | tuple[int, int]) -> int:
    """Return the offset of the circuit whose first arc is `arcs`, or one of `arcs`."""
    firsts = on_host(found.arcs[library_of(found.arcs).asarray(found.offsets[:-1])])
    return int(found.offsets[int(np.flatnonzero(np.isin(firsts, arcs))[0])])


def _nonzero(surplus: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices with a surplus other than 0, and their surpluses, on the host."""
    vertices = library_of(surplus).flatnonzero(surplus)
    return on_host(vertices), on_host(surplus[vertices])


def _ends_of(vertices: np.ndarray, surplus: np.ndarray) -> tuple[int, int] | None:
    """Return the start and the end of an Euler path, or None if the degrees allow no path."""
    if len(vertices) != 2 or sorted(surplus.tolist()) != [-1, 1]:
        return None
    first, last = vertices[np.argsort(-surplus)].tolist()
    return first, last


def _count(vertices: np.ndarray, one: str, several: str) -> str:
    return f"{len(vertices):,} {one if len(vertices) == 1 else several}"


def _more(vertices: np.ndarray) -> str:
    return ", ..." if len(vertices) > SHOWN else ""


def _balances(vertices: np.ndarray, entering: Any, leaving: Any) -> str:
    shown = vertices[:SHOWN].tolist()
    return ", ".join(f"{{}} ({int(entering[v])} in, {int(leaving[v])} out)" for v in shown) + _more(vertices)


def _either_way(degrees: Any, most: int) -> str:
    """Return the remedy of an undirected graph for a message, if at most `most` vertices have odd degrees; else ""."""
    if int((degrees % 2).sum()) > most:
        return ""
    return (
        "; if edges may be walked along in either direction, store each edge as two arcs, one in each direction, and "
        "pass directed=False (--undirected)"
    )
