"""Contigs: the paths of a de Bruijn graph between its branches.

The arcs of the graph are the k-mers of the reads and their reverse complements. Its vertices are the first and the last
k - 1 letters of the k-mers. A genome is a walk in this graph. A vertex with one arc in and one arc out lies inside a
contig, since every walk goes through it in the same way. A contig ends at any other vertex (a *branch*), and at a
vertex that is its own reverse complement, where the contig would turn back on itself.

Contigs are found by stages of Euler circuits (`gpuops.euler`). Each arc is paired with the arc that follows it in a
contig; last arcs of contigs are paired with first arcs in any order. This pairing is a permutation of the arcs. Its
circuits are walked along, and cut where contigs begin. Every contig is found on both strands; the strand with the
smaller least arc is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpuops import csr, cycle_labels, degrees, walk_circuits
from pipelines.assembly.kmers import Kmers, reverse_complements, text_of


@dataclass(frozen=True)
class DeBruijnGraph:
    """The de Bruijn graph of both strands, in compressed sparse rows.

    Attributes
    ----------
    k : int
    vertices : (n,) uint64, ascending
        Words of k - 1 letters.
    indptr, indices : (n + 1,) and (m,) int64
        The arcs: the k-mers of both strands in ascending order, which is row by row and sorted by head.
    codes : (m,) uint64
        The k-mer of each arc.
    counts : (m,) int64
        The number of times that each k-mer occurs in the reads, on either strand.
    """

    k: int
    vertices: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    codes: np.ndarray
    counts: np.ndarray

    @cached_property
    def mates(self) -> np.ndarray:
        """The arc of the other strand, for every arc, (m,) int64."""
        return np.searchsorted(self.codes, reverse_complements(self.codes, self.k))

    @cached_property
    def opposites(self) -> np.ndarray:
        """The vertex of the other strand, for every vertex, (n,) int64."""
        return np.searchsorted(self.vertices, reverse_complements(self.vertices, self.k - 1))

    @cached_property
    def branches(self) -> np.ndarray:
        """Whether contigs end at a vertex, (n,) bool: a branch, or its own reverse complement."""
        count = degrees(self.indptr, self.indices)
        return (count.incoming != 1) | (count.outgoing != 1) | (self.opposites == np.arange(len(self.vertices)))


@dataclass(frozen=True)
class Contigs:
    """Contigs, each on one strand, the longest first; contigs of equal length in the order of their first arcs.

    Attributes
    ----------
    graph : DeBruijnGraph
    arcs : (a,) int64
        The arcs of all contigs in walking order.
    offsets : (c + 1,) int64
        Contig i is ``arcs[offsets[i] : offsets[i + 1]]``.
    """

    graph: DeBruijnGraph
    arcs: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def circular(self) -> np.ndarray:
        """Whether a contig is a circle without a branch, (c,) bool."""
        return (self.tails == self.heads) & ~self.graph.branches[self.tails]

    @cached_property
    def tails(self) -> np.ndarray:
        """The vertex where each contig begins, (c,) int64."""
        first = self.graph.codes[self.arcs[self.offsets[:-1]]] >> np.uint64(2)
        return np.searchsorted(self.graph.vertices, first)

    @cached_property
    def heads(self) -> np.ndarray:
        """The vertex where each contig ends, (c,) int64."""
        return self.graph.indices[self.arcs[self.offsets[1:] - 1]]

    @cached_property
    def lengths(self) -> np.ndarray:
        """Number of letters of each contig, (c,) int64: its arcs and k - 1 more, or only its arcs if it is circular."""
        return np.diff(self.offsets) + np.where(self.circular, 0, self.graph.k - 1)

    @cached_property
    def kmer_counts(self) -> np.ndarray:
        """The sum of the counts of the k-mers of each contig, (c,) int64."""
        counts = self.graph.counts[self.arcs]
        return np.add.reduceat(counts, self.offsets[:-1]) if len(self) else counts

    @cached_property
    def coverage(self) -> np.ndarray:
        """The mean count of the k-mers of each contig, (c,) float64."""
        return self.kmer_counts / np.diff(self.offsets)

    @cached_property
    def n50(self) -> int:
        """The greatest length such that contigs at least as long have half of all letters; 0 without contigs."""
        lengths = np.sort(self.lengths)[::-1]
        return int(lengths[np.searchsorted(np.cumsum(lengths), lengths.sum() / 2)]) if len(lengths) else 0

    def codes(self, i: int) -> np.ndarray:
        """Return the k-mers of contig `i` in order, (a,) uint64."""
        return self.graph.codes[self.arcs[self.offsets[i] : self.offsets[i + 1]]]

    def sequence(self, i: int) -> str:
        """Return the letters of contig `i`; of a circular contig, once around from its least k-mer."""
        codes = self.codes(i)
        if self.circular[i]:
            first = codes >> np.uint64(2 * (self.graph.k - 1))
            return "".join(text_of(first, 1))
        (begin,) = text_of(codes[:1] >> np.uint64(2), self.graph.k - 1)
        return begin + np.frombuffer(b"ACGT", np.uint8)[(codes & np.uint64(3)).astype(np.intp)].tobytes().decode()

    def links(self) -> np.ndarray:
        """Return pairs of contigs of which the second follows the first, with k - 1 letters in common.

        Returns
        -------
        (l, 4) int64
            Rows of contig a, strand of a, contig b, strand of b; strand 1 is the reverse complement. A link seen from
            both strands is one link: the smaller of both rows.
        """
        opposites = self.graph.opposites
        c = len(self)
        ends = np.concatenate([self.heads, opposites[self.tails]])  # of all contigs, then of their reverse complements
        begins = np.concatenate([self.tails, opposites[self.heads]])
        by_begin = np.argsort(begins, kind="stable")
        first, last = (np.searchsorted(begins[by_begin], ends, side=side) for side in ("left", "right"))
        a = np.repeat(np.arange(2 * c), last - first)
        b = by_begin[csr.in_ranges(first, last)]
        here, mirrored = (a % c, a // c, b % c, b // c), (b % c, 1 - b // c, a % c, 1 - a // c)
        links, mirror = np.stack(here, 1), np.stack(mirrored, 1)
        differ = links != mirror
        place = differ.argmax(1)
        rows = np.arange(len(links))
        kept = ~differ.any(1) | (links[rows, place] < mirror[rows, place])
        return links[kept]


def de_bruijn_graph(kmers: Kmers) -> DeBruijnGraph:
    """Return the graph of k-mers and their reverse complements."""
    k = kmers.k
    codes = np.concatenate([kmers.codes, reverse_complements(kmers.codes, k)])
    order = np.argsort(codes, kind="stable")
    codes, counts = codes[order], np.concatenate([kmers.counts, kmers.counts])[order]
    tails, heads = codes >> np.uint64(2), codes & np.uint64((1 << 2 * (k - 1)) - 1)
    vertices = np.unique(np.concatenate([tails, heads]))
    indptr = np.append(np.searchsorted(tails, vertices), len(codes))
    return DeBruijnGraph(k, vertices, indptr, np.searchsorted(vertices, heads), codes, counts)


def find_contigs(graph: DeBruijnGraph) -> Contigs:
    """Return all contigs of a graph, each once."""
    branch = graph.branches
    begins = np.flatnonzero(np.repeat(branch, np.diff(graph.indptr)))
    inner = np.flatnonzero(~branch[graph.indices])
    predecessors = np.empty(len(graph.codes), np.int64)
    predecessors[graph.indptr[graph.indices[inner]]] = inner
    predecessors[begins] = np.flatnonzero(branch[graph.indices])  # in any order: circuits are cut there
    labels = cycle_labels(predecessors)
    starts = np.flatnonzero(labels == np.arange(len(labels)))
    cut, first = np.unique(labels[begins], return_index=True)
    starts[np.searchsorted(starts, cut)] = begins[first]
    arcs, circuits = walk_circuits(predecessors, labels, starts)
    offsets = np.union1d(np.flatnonzero(np.isin(arcs, begins)), circuits)
    return _one_of_each_pair(Contigs(graph, arcs.astype(np.int64), offsets.astype(np.int64)))


def _one_of_each_pair(contigs: Contigs) -> Contigs:
    """Keep, of a contig and its reverse complement, the contig with the smaller least arc; put the longest first."""
    arcs, offsets = contigs.arcs, contigs.offsets
    if not len(contigs):
        return contigs
    least = np.minimum.reduceat(arcs, offsets[:-1])
    kept = np.flatnonzero(least < np.minimum.reduceat(contigs.graph.mates[arcs], offsets[:-1]))
    kept = kept[np.lexsort((arcs[offsets[kept]], -np.diff(offsets)[kept]))]
    lengths = np.diff(offsets)[kept]
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    places = np.repeat(offsets[kept] - bounds[:-1], lengths) + np.arange(bounds[-1])
    return Contigs(contigs.graph, arcs[places], bounds)


def tips(contigs: Contigs, letters: int) -> np.ndarray:
    """Return the numbers of the tips, (t,) int64, ascending.

    A tip is a contig of fewer than `letters` letters that begins at a branch, where a more frequent arc leaves too, and
    ends at a vertex without arcs out. Errors near the end of a read make such contigs. Both strands are examined.
    """
    graph, mates = contigs.graph, contigs.graph.mates
    out = np.diff(graph.indptr)
    opposites = graph.opposites
    most = np.maximum.reduceat(graph.counts, graph.indptr[:-1][out > 0]) if len(graph.codes) else graph.counts
    most_of = np.zeros(len(out), np.int64)
    most_of[out > 0] = most
    first, last = contigs.arcs[contigs.offsets[:-1]], contigs.arcs[contigs.offsets[1:] - 1]
    tip = np.zeros(len(contigs), bool)
    for tail, head, arc in (
        (contigs.tails, contigs.heads, first),
        (opposites[contigs.heads], opposites[contigs.tails], mates[last]),
    ):
        tip |= (out[head] == 0) & (out[tail] > 1) & (graph.counts[arc] < most_of[tail])
    return np.flatnonzero(tip & (contigs.lengths < letters))
