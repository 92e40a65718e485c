"""Sums of dependencies on a GPU: the CUDA half of `gpuops.centrality`. A block takes a source.

Numbers of paths are the same as on a CPU up to 2^53, and then sums have the bits of a CPU. Larger numbers are added in
another order, and differ by a relative 2^-53 for each addition.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpuops import csr
from gpuops._cuda import Program, multiprocessors
from gpuops.centrality.absorbed import Absorbed
from gpuops.centrality.pairwise_sums import Arrays, PairwiseSums

GROUP = 16  # as in dependencies.cu
PROGRAM = Program(
    "centrality/dependencies.cu", ("depend", "add_vertices", "add_arcs"), ("SHORT=32",), threads=384, blocks=2
)
_NONE = 2**64 - 1
_SHARE = 4  # the rows of the sources of a launch take up to 1 / _SHARE of the memory of the GPU, and blocks the same
_BLOCK_VERTEX, _KEPT_VERTEX, _SUM_VERTEX = 60, 36, 8  # bytes of a vertex for a block, for a source, and for its sums
_WIDTH = 4.0  # width of a window of the search, in mean lengths of an arc


class Graph(NamedTuple):
    """A graph without loops and parallel arcs on a GPU, and with all arcs reversed; see dependencies.cu."""

    indptr: Any
    heads: Any
    lengths: Any
    in_indptr: Any
    tails: Any
    in_lengths: Any
    through: Any
    width: float


def placed(like: Any, indptr: np.ndarray, heads: np.ndarray, lengths: np.ndarray, through: np.ndarray | None) -> Graph:
    """Return a graph of NumPy arrays on the device of the array `like`; `lengths` may be empty."""
    import cupy

    with like.device:
        rows = cupy.asarray(indptr), cupy.asarray(heads.astype(np.int32))
        starts, tails, arcs = csr.transpose(*rows)
        of_arcs = cupy.asarray(lengths)
        width = _WIDTH * float(lengths.mean()) if len(lengths) else 1.0
        mask = None if through is None else cupy.asarray(through)
        return Graph(*rows, of_arcs, starts, tails, of_arcs[arcs] if len(lengths) else of_arcs, mask, width)


def sums(graph: Graph, sources: np.ndarray, endpoints: bool, arcs: bool) -> Arrays:
    """Return the sums over the sources as NumPy arrays; see `gpuops.centrality.Summation`.

    Raises
    ------
    Absorbed
        The length of an arc is lost in a distance.
    """
    import cupy

    n, m, k = len(graph.indptr) - 1, len(graph.heads), len(sources)
    if k == 0 or n == 0:
        return np.zeros(n), np.zeros(m if arcs else 0), np.zeros(2)
    with graph.indptr.device:
        memory = cupy.cuda.Device().mem_info[1] // _SHARE
        blocks = PROGRAM.blocks * multiprocessors(cupy.cuda.Device().id)
        blocks = max(1, min(blocks, k, memory // (_BLOCK_VERTEX * n)))
        step = GROUP
        while step < k and 2 * step * (_SUM_VERTEX + _KEPT_VERTEX * arcs) * n <= memory:
            step *= 2
        launches = _Launches(graph, blocks, min(step, k), 1.0 if endpoints else 0.0, arcs)
        tree = PairwiseSums(-(-k // step))
        for number, first in enumerate(range(0, k, step)):
            tree.add(number, launches.over(sources[first : first + step]))
        return tree.total()


class _Launches:
    """The memory of launches of up to `most` sources each."""

    def __init__(self, graph: Graph, blocks: int, most: int, added: float, arcs: bool):
        import cupy

        self.graph, self.blocks, self.added, self.arcs = graph, blocks, added, arcs
        n = len(graph.indptr) - 1
        rows = most if arcs else blocks
        self.distances = cupy.empty((rows, n), np.uint64)
        self.counts, self.shares, self.inner = cupy.empty((3, rows, n), np.float64)
        self.exponents = cupy.empty((rows, n), np.int32)
        self.lists = cupy.empty((blocks, 6, n + 1), np.int32)
        self.contributions = cupy.empty((most, n + 2), np.float64)
        self.vertices = cupy.empty((n + 2,), np.float64)
        self.sums = cupy.empty((len(graph.heads) if arcs else 0,), np.float64)
        self.tails = csr.tails(graph.indptr, len(graph.heads), np.dtype(np.int32)) if arcs else None

    def over(self, sources: np.ndarray) -> Arrays:
        """Return the sums over some sources."""
        import cupy

        graph, k, n, m = self.graph, len(sources), len(self.graph.indptr) - 1, len(self.graph.heads)
        begins = cupy.asarray(sources.astype(np.int32))
        absorbed = cupy.asarray(np.array([_NONE], np.uint64))
        weighted = np.int32(len(graph.lengths) > 0)
        mask = self.exponents if graph.through is None else graph.through  # not read without a mask
        arguments = {
            "indptr": graph.indptr,
            "heads": graph.heads,
            "lengths": graph.lengths,
            "in_indptr": graph.in_indptr,
            "tails": graph.tails,
            "in_lengths": graph.in_lengths,
            "weighted": weighted,
            "through": mask,
            "has_through": np.int32(graph.through is not None),
            "n": np.int32(n),
            "sources": begins,
            "count": np.int32(k),
            "width": np.float64(graph.width),
            "added": np.float64(self.added),
            "keeps": np.int32(self.arcs),
            "distances": self.distances,
            "counts": self.counts,
            "shares": self.shares,
            "inner": self.inner,
            "exponents": self.exponents,
            "lists": self.lists,
            "contributions": self.contributions,
            "absorbed": absorbed,
        }
        PROGRAM.launch("depend", min(self.blocks, k), arguments)
        columns = (self.contributions, np.int32(n + 2), np.int32(k), self.vertices)
        PROGRAM.launch("add_vertices", math.ceil((n + 2) / PROGRAM.threads), columns)
        if self.arcs and m:
            arguments = {
                "tails": self.tails,
                "heads": graph.heads,
                "lengths": graph.lengths,
                "weighted": weighted,
                "through": mask,
                "has_through": np.int32(graph.through is not None),
                "n": np.int32(n),
                "m": np.int64(m),
                "sources": begins,
                "count": np.int32(k),
                "distances": self.distances,
                "counts": self.counts,
                "shares": self.shares,
                "exponents": self.exponents,
                "sums": self.sums,
            }
            PROGRAM.launch("add_arcs", math.ceil(m / PROGRAM.threads), arguments)
        if (arc := int(absorbed.get()[0])) != _NONE:
            raise Absorbed(arc)
        found = self.vertices.get()
        return found[:n], self.sums.get(), found[n:]
