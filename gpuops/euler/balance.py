"""Degrees: why there is no Euler circuit, where a path begins and ends, and the arc that makes a circuit of it."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from gpuops import csr
from gpuops.arrays import library_of
from gpuops.errors import NotEulerianError

SHOWN = 3  # vertices named in a message


def degrees(indptr: Any, indices: Any) -> tuple[Any, Any]:
    """Arcs into and out of every vertex, (n) each."""
    return csr.occurrences(indices, len(indptr) - 1), library_of(indices).diff(indptr)


def refuse_unbalanced(indptr: Any, indices: Any) -> NoReturn:
    """Raise NotEulerianError for a directed graph that has no Euler circuit, naming vertices and what would do."""
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
    """A graph with an arc from the end of its Euler path to the start, which makes a circuit of it."""

    indptr: Any
    indices: Any
    arc: int

    def cut(self, found: Any) -> Any:
        """The circuits, with the virtual arc taken out of the one that begins with it."""
        xp = library_of(found.arcs)
        place = _begin_of(found, self.arc)
        arcs = xp.concatenate([found.arcs[:place], found.arcs[place + 1 :]])
        arcs -= (arcs > self.arc).astype(arcs.dtype)
        return found._replace(arcs=arcs, offsets=np.where(found.offsets > place, found.offsets - 1, found.offsets))


def closing_arc(indptr: Any, indices: Any, start: int | None) -> VirtualArc | None:
    """Close the Euler path of a directed graph; None if it has circuits.

    Raises
    ------
    NotEulerianError
        There is no Euler path, or it does not begin at `start`.
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
    """An undirected graph with an edge between the two vertices of odd degree; `arcs` are the edge's two arcs.

    The first leads from the start of the path, the other one to it.
    """

    indptr: Any
    indices: Any
    arcs: tuple[int, int]

    def cut(self, found: Any, mates: Any) -> Any:
        """The circuits, with the virtual edge taken out of the one that begins with it: a path from the start."""
        xp = library_of(found.arcs)
        outward = int(found.arcs[_begin_of(found, self.arcs)]) == self.arcs[0]
        place = _begin_of(found, self.arcs)
        stop = int(found.offsets[int(np.searchsorted(found.offsets, place, side="right"))])
        path = found.arcs[place + 1 : stop]
        if outward:  # from the start along the virtual edge: the path comes back to the start
            path = mates[path[::-1]].astype(path.dtype)
        arcs = xp.concatenate([found.arcs[:place], path, found.arcs[stop:]])
        shift = (arcs > self.arcs[0]).astype(arcs.dtype) + (arcs > self.arcs[1]).astype(arcs.dtype)
        return found._replace(
            arcs=arcs - shift, offsets=np.where(found.offsets > place, found.offsets - 1, found.offsets)
        )


def odd_edge(indptr: Any, indices: Any, start: int | None) -> VirtualEdge | None:
    """Join the two vertices of odd degree of an undirected graph by an edge; None if there are none.

    Raises
    ------
    NotEulerianError
        There are more, or neither is `start`.
    """
    odd = _on_host(library_of(indptr).flatnonzero(library_of(indptr).diff(indptr) % 2))
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
    """Raise NotEulerianError naming vertices of odd degree, and what there is instead (`path`: that was asked for)."""
    if len(odd) == 2 and not path:
        cure = "it has an Euler path: pass path (--path)"
    else:
        cure = "there is a circuit along every edge both ways: pass directed=True (no --undirected)"
    named = ", ".join(f"{{}} (degree {int(indptr[v + 1] - indptr[v])})" for v in odd[:SHOWN].tolist())
    raise NotEulerianError(
        f"{rule}; here {_count(odd, 'vertex has', 'vertices have')} an odd one: {named}{_more(odd)}; {cure}",
        odd.tolist()[:SHOWN],
    )


def _insert(indptr: Any, indices: Any, arcs: list[tuple[int, int]]) -> tuple[Any, Any]:
    """Add arcs, their tails rising, each at the end of its row."""
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
    """Where the circuit begins whose first arc is, or is one of, `arcs`."""
    firsts = _on_host(found.arcs[library_of(found.arcs).asarray(found.offsets[:-1])])
    return int(found.offsets[int(np.flatnonzero(np.isin(firsts, arcs))[0])])


def _nonzero(surplus: Any) -> tuple[np.ndarray, np.ndarray]:
    """The vertices with a surplus, and how much, on the host."""
    vertices = library_of(surplus).flatnonzero(surplus)
    return _on_host(vertices), _on_host(surplus[vertices])


def _ends_of(vertices: np.ndarray, surplus: np.ndarray) -> tuple[int, int] | None:
    """Start and end of an Euler path, if degrees allow for one."""
    if len(vertices) != 2 or sorted(surplus.tolist()) != [-1, 1]:
        return None
    first, last = vertices[np.argsort(-surplus)].tolist()
    return first, last


def _on_host(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()


def _count(vertices: np.ndarray, one: str, several: str) -> str:
    return f"{len(vertices):,} {one if len(vertices) == 1 else several}"


def _more(vertices: np.ndarray) -> str:
    return ", ..." if len(vertices) > SHOWN else ""


def _balances(vertices: np.ndarray, entering: Any, leaving: Any) -> str:
    shown = vertices[:SHOWN].tolist()
    return ", ".join(f"{{}} ({int(entering[v])} in, {int(leaving[v])} out)" for v in shown) + _more(vertices)


def _either_way(degrees: Any, most: int) -> str:
    """The offer to walk along edges either way, if no more than `most` vertices have odd degrees."""
    if int((degrees % 2).sum()) > most:
        return ""
    return (
        "; if edges may be walked along either way, store each as an arc there and one back and pass directed=False "
        "(--undirected)"
    )
