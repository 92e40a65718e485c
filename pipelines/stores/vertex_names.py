"""Which vertex a name means: the rule by which text names a vertex, on the command line, in tables and in Python.

* Where a graph has labels, text is a label, or ``#17`` for the vertex with index 17; digits alone are not an index.
* Where it has none, text is an index as `str(int)` writes it, or ``#17``: "01", "+1" and "1_0" are not integers.
* Blanks around the text do not count, except in a label that has them itself.
* A label that begins with ``#`` takes precedence over the index of that form if it is exactly the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

UNKNOWN, SEVERAL = -1, -2

_MARKED = re.compile(r"#(0|[1-9][0-9]{0,18})")
_PLAIN = re.compile(r"#?(0|[1-9][0-9]{0,18})")


def find_vertices(names: pa.Array | Sequence[str], n: int, labels: np.ndarray | None) -> np.ndarray:
    """The vertices that names mean.

    Parameters
    ----------
    names : text (k); null means no vertex
    n, labels : number of vertices, and their labels, str (n), if they have any

    Returns
    -------
    int64 (k): `UNKNOWN` where a name means no vertex, `SEVERAL` where it is the label of more than one.
    """
    if not isinstance(names, pa.Array):
        names = pa.array(map(_encodable, names), pa.large_string())
    borne = None if labels is None else pa.array(labels.tolist(), pa.large_string())
    found = _exactly(names, n, borne)
    rest = np.flatnonzero(found == UNKNOWN)
    if rest.size:
        found[rest] = _exactly(pc.utf8_trim_whitespace(names.take(pa.array(rest))), n, borne)
    return found


def why_no_vertex(name: str | int, n: int, labels: np.ndarray | None) -> str:
    """Say why a name, or an index, does not mean a vertex, and what to do."""
    if n == 0:
        return f"there is no vertex {name!r}; the graph has no vertices"
    if labels is None or not isinstance(name, str):
        return f"there is no vertex {name!r}; give an index from 0 to {n - 1}"
    if _encodable(name) is not None:
        bearers = np.flatnonzero((labels == name) | (labels == name.strip()))
        if bearers.size:
            return f"{bearers.size} vertices are labelled {name!r}; name one by its index, such as #{bearers[0]}"
    return f"there is no vertex {name!r}; give a label, such as {str(labels[0])!r}, or an index from #0 to #{n - 1}"


def _exactly(names: pa.Array, n: int, labels: pa.Array | None) -> np.ndarray:
    """The same, with blanks taken literally."""
    coded = names.dictionary_encode()
    asked = coded.dictionary
    found = np.full(len(asked) + 1, UNKNOWN, np.int64)  # the last entry is for nulls
    if labels is not None:
        named = pc.index_in(labels, value_set=asked)  # for each vertex: which of the names it has
        vertices = np.flatnonzero(named.is_valid())
        which = named.drop_null().to_numpy()
        found[which] = vertices
        found[np.flatnonzero(np.bincount(which) > 1)] = SEVERAL
    form = _PLAIN if labels is None else _MARKED
    for i in np.flatnonzero(found[:-1] == UNKNOWN):
        match = form.fullmatch(asked[i].as_py())
        if match is not None and int(match[1]) < n:
            found[i] = int(match[1])
    return found[pc.fill_null(coded.indices, len(asked)).to_numpy()]


def _encodable(name: str) -> str | None:
    """The text, or None for bytes of a command line that are not UTF-8: no label holds those."""
    return name if name.encode(errors="ignore").decode() == name else None
