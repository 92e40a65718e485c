"""Read graphs from plain Python objects: a dict of neighbours, or a list of pairs or triples of tail, head and weight.

    {"a": ["b", "c"], "d": []}
    {"a": {"b": 1.5, "c": 2}}
    [("a", "b"), ("a", "c")]
    [(0, 1, 1.5), (0, 2, 2.0)]

Vertices are named as in edge lists: by whole numbers, which are counted from `base`, or by text, which becomes labels
in order of first appearance. Among names, a whole number means its text. Lists of lines `a -> b, c` are read as
adjacency text.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

import numpy as np

from pipelines.formats.arc_stream import ArcStream, Piece
from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.in_memory import checked_weights
from pipelines.formats.graphs.vertices import LARGEST, Names, check_numbering, edge_stream

PIECE = 1 << 18  # arcs in a piece

Entry = tuple[Any, Any, Any, Any]  # the place, for messages; tail; head or `_NONE`; weight or `_NONE`
_NONE = object()  # no head, of a vertex without neighbours; no weight


@contextmanager
def read_pairs(
    source: Sequence[Any],
    base: int | None = None,
    vertices: int | None = None,
    labels: bool | None = None,
    directed: bool = True,
) -> Iterator[ArcStream]:
    """Yield the arcs of a list of (tail, head) or (tail, head, weight).

    Parameters
    ----------
    base, vertices, labels, directed : as for `pipelines.formats.graphs.edge_list.read_edge_list`
    """

    def entries() -> Iterator[Entry]:
        form = "(tail, head)" if not source or len(source[0]) == 2 else "(tail, head, weight)"
        width = len(form.split(","))
        for place, entry in enumerate(source):
            if not isinstance(entry, tuple | list) or len(entry) != width:
                given = "" if place == 0 else ", as the first entry is"
                raise FormatError(f"{where(place)}: {entry!r:.80} is not {form}{given}; correct the entry")
            yield place, entry[0], entry[1], entry[2] if width == 3 else _NONE

    def where(place: Any) -> str:
        return f"the list, entry {place} (from 0)"

    if source and not isinstance(source[0], tuple | list):
        raise FormatError(
            f"{where(0)}: {source[0]!r:.80} is neither a line of text nor (tail, head) nor (tail, head, weight); "
            "correct it, or give a vector of successors as a NumPy array"
        )
    yield _stream("the list", entries(), where, base, vertices, labels, directed=directed)


@contextmanager
def read_neighbours(
    source: Mapping[Any, Any],
    base: int | None = None,
    vertices: int | None = None,
    labels: bool | None = None,
    directed: bool = True,
) -> Iterator[ArcStream]:
    """Yield the arcs of a dict of neighbours: from each vertex a list of heads, or a dict from heads to weights.

    The options are those of `read_pairs`. The heads in a set are taken in the order of their texts.
    """

    def entries() -> Iterator[Entry]:
        weighted = None
        for tail, heads in source.items():
            if isinstance(heads, str | bytes) or not isinstance(heads, Iterable):
                raise FormatError(f"{where(tail)} are {heads!r:.80}; give a list, such as [{heads!r:.80}]")
            if isinstance(heads, set | frozenset):
                heads = sorted(heads, key=str)
            found = iter(heads.items() if isinstance(heads, Mapping) else ((head, _NONE) for head in heads))
            first = next(found, None)
            if first is None:
                yield tail, tail, _NONE, _NONE
                continue
            if weighted is not None and weighted != isinstance(heads, Mapping):
                has, others = ("no weights", "have weights") if weighted else ("weights", "have none")
                raise FormatError(f"{where(tail)} have {has}, but those before {others}; give weights to all or none")
            weighted = isinstance(heads, Mapping)
            for head, weight in chain([first], found):
                yield tail, tail, head, weight

    def where(tail: Any) -> str:
        return f"the neighbours of {tail!r:.80}"

    if base is None and not labels and 0 in source:
        base = 0  # vertex 0 is there, even if no arc leads from or to it
    yield _stream("the dict", entries(), where, base, vertices, labels, directed=directed)


def _stream(
    what: str,
    entries: Iterator[Entry],
    where: Callable[[Any], str],
    base: int | None,
    n: int | None,
    labels: bool | None,
    directed: bool,
) -> ArcStream:
    ahead: list[Entry] = []  # up to the first arc, which says whether arcs have weights
    for entry in entries:
        ahead.append(entry)
        if entry[2] is not _NONE:
            break
    if not ahead and n is None:
        raise FormatError(f"{what} is empty; if the graph has no arcs, pass the number of its vertices (vertices=)")
    if labels is None:
        labels = bool(ahead) and any(isinstance(end, str) for end in ahead[0][1:3])
    check_numbering(what, base, n, labels)
    vertices = _Vertices(Names() if labels else None, base or 0, n, where)

    def pieces() -> Iterator[Piece]:
        left = chain(ahead, entries)
        while part := list(islice(left, PIECE)):
            ends = [
                (vertices.index(place, tail), -1 if head is _NONE else vertices.index(place, head))
                for place, tail, head, _ in part
            ]
            tails, heads = np.array(ends, np.int64).T
            stream.known = max(stream.known, int(tails.max()) + 1)
            arcs = heads >= 0
            weights = _weights([part[i] for i in np.flatnonzero(arcs).tolist()], where) if weighted else None
            stream.text_labels = vertices.by_text
            yield tails[arcs], heads[arcs], weights

    weighted = bool(ahead) and ahead[-1][3] is not _NONE
    stream = edge_stream(pieces(), vertices.names, source=what, base=base, n=n, directed=directed, weighted=weighted)
    return stream


class _Vertices:
    """The numbers of vertices: of `names`, or of whole numbers from `base` to `base` + n - 1 (None: and up)."""

    def __init__(self, names: Names | None, base: int, n: int | None, where: Callable[[Any], str]):
        self.names, self._base, self._n, self._where = names, base, n, where
        self.by_text = False  # whether a vertex was named by text

    def index(self, place: Any, name: Any) -> int:
        """Return the index of a vertex; `place` is for messages."""
        if isinstance(name, str):
            if self.names is None:
                fault = f"{name!r:.80} is text among whole numbers; pass labels=True if vertices have names"
                raise FormatError(f"{self._where(place)}: {fault}")
            self.by_text = True
            return self.names.index(name)
        try:
            number = operator.index(name)
        except TypeError:
            number = None
        if number is None or isinstance(name, bool):
            fault = f"a vertex is {name!r:.80}; name vertices by text or whole numbers"
            raise FormatError(f"{self._where(place)}: {fault}")
        if self.names is not None:
            return self.names.index(str(number))
        high = LARGEST if self._n is None else self._base + self._n
        if not self._base <= number < high:
            bounds = f"{self._base} and up (base=)" if self._n is None else f"{self._base} to {high - 1} (vertices=)"
            raise FormatError(f"{self._where(place)}: there is no vertex {number}; vertices are {bounds}")
        return number - self._base


def _weights(arcs: list[Entry], where: Callable[[Any], str]) -> np.ndarray:

    def described(arc: int) -> str:
        place, tail, head, weight = arcs[arc]
        return f"{where(place)}: the arc {tail!r:.80} -> {head!r:.80} has the weight {weight!r:.80}"

    return checked_weights([weight for *_, weight in arcs], described, "give every arc a finite number")
