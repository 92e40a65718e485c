"""Certificate of a row of shortest distances: proof in O(m), without a second solver.

The row D of distances from s is correct if and only if

1. D[s] = 0;
2. D[v] <= D[u] + w for every arc (u, v) of weight w whose tail may be left (u = s, or u may lie inside a path) and
   is reachable; in particular v is then reachable too;
3. every finite D[v] is attained: a path of tight arcs (D[u] + w = D[v]) leads from s to v.

Summed along any path from s to v, (1) and (2) say that D[v] is at most the length of the path; by (3) some path has
exactly the length D[v]. By (2) every reachable vertex has a finite distance, by (3) every vertex at a finite distance
is reachable. Weights may be negative: summed around a cycle, (2) says that the cycle is not negative.

Integers are tested exactly. Floats are tested within the rounding of path sums (`gpuops.certificates.tight_arcs`), and
the tolerance that was granted is part of the certificate.

The rules for distances follow the Graph500 specification (validation of the single-source shortest path kernel).
"""

from __future__ import annotations

import numpy as np

from gpuops.certificates.certificate import Certificate
from gpuops.certificates.distances_numba import triangles
from gpuops.certificates.tight_arcs import Arcs, tight_tree
from gpuops.errors import VerificationError


def verify_row(arcs: Arcs, row: np.ndarray, source: int) -> Certificate:
    """Prove one row of distances correct.

    Parameters
    ----------
    arcs : the graph, as `arcs_for` returns it for the dtype of the distances
    row : (n) distances from `source`, unreachable marked as in stores

    Raises
    ------
    VerificationError
        The row is wrong; the message names the arc or the vertex at fault, and the numbers.
    """
    source, row = int(source), arcs.lift(row)
    tree = tight_tree(arcs, row, source)  # conditions 1 and 3
    u, arc, checked, slack = triangles(arcs.arrays, row, arcs.unreachable, source, tree.relative, tree.absolute)
    if arc >= 0:
        v, label = arcs.indices[arc], arcs.label
        found = "unreachable" if row[v] == arcs.unreachable else row[v]
        raise VerificationError(
            f"the distance from vertex {label(source)} to vertex {label(v)} is {found}, "
            f"but the arc {label(u)} -> {label(v)} "
            f"of weight {arcs.weights[arc]} makes it at most {row[u]} + {arcs.weights[arc]}"
        )
    return Certificate(1, checked, tree.depth, tree.relative, tree.absolute, slack)
