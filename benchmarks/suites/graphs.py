"""The suite `graphs`: edge expansion, degrees, the reverse graph, weak components and the spanning forest.

There are two graphs of one size: in `near`, each arc leads to one of the next 8 vertices, as in the graphs of the
published run; in `random`, arcs lead anywhere, which is the worst case for caches. The peers run in the same process:
SciPy on the CPU, and the functions of CuPy and cupyx.scipy on a GPU. Every result is compared with a peer's, bit for
bit, before it is timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from benchmarks.harness import Bench
from benchmarks.suites.limits import measure_copy
from gpuops import degrees, edge_expansion, reverse, spanning_forest, weak_components
from gpuops.csr import row_starts

CONVENTION = (
    "stated bytes per second: the arrays an operation is given and returns, each once; int64 indptr, int32 indices. "
    "Wall seconds, device synchronized, graph resident and taken as checked. `calls` operations follow each other in a "
    "timing, of which each has its share"
)
PUBLISHED = 10_485_760, 31_458_372  # vertices, arcs
PUBLISHED_EXPANSION = {True: 1.523, False: 16.516}  # seconds, on a GPU and on a CPU
SMALL = 1_048_576, 3_145_728
CALLS = 20  # calls in one timing, of operations that take less time than a launch
SEED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--vertices", type=int, help=f"default {PUBLISHED[0]}, without a GPU {SMALL[0]}")
    parser.add_argument("--arcs", type=int, help=f"default {PUBLISHED[1]}, without a GPU {SMALL[1]}")
    parser.add_argument("--only", choices=["near", "random"], action="append")


def run(bench: Bench, args: argparse.Namespace) -> None:
    n, m = PUBLISHED if bench.gpu else SMALL
    n, m = args.vertices or n, args.arcs or m
    if bench.gpu:
        measure_copy(bench)
    else:
        _measure_copy_on_host(bench)
    bench.limits["copy"] = bench.records[-1]["bytes_per_second"]
    for kind in args.only or ["near", "random"]:
        Case(bench, kind, n, m).run()


class Case:
    """A graph, in host memory and on the device."""

    def __init__(self, bench: Bench, kind: str, n: int, m: int):
        self.bench, self.kind, self.n, self.m = bench, kind, n, m
        self.host = _graph(kind, n, m)
        self.graph = tuple(bench.xp.asarray(x) for x in self.host)
        numbers = np.arange(1, m + 1, dtype=np.int32)  # not 0: SciPy takes 0 for no arc
        self.matrix = sp.csr_array((numbers, self.host[1], self.host[0].astype(np.int32)), shape=(n, n))

    def run(self) -> None:
        rows, arcs, vertices = 8 * (self.n + 1), 4 * self.m, 4 * self.n
        self._expansion(rows + arcs)
        self._degrees(rows + arcs + 16 * self.n)
        self._reverse(2 * rows + 2 * arcs + 8 * self.m)
        self._components(rows + arcs + vertices)
        self._forest(rows + arcs + self.m + 2 * vertices)

    def _expansion(self, bytes_moved: int) -> None:
        expected, seconds = self._timed(lambda: np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.host[0])))
        self._same(edge_expansion(*self.graph), expected)
        published = PUBLISHED_EXPANSION[self.bench.gpu] if (self.n, self.m) == PUBLISHED else None
        facts = {} if published is None else {"published_seconds": published}
        self._time("edge expansion", edge_expansion, bytes_moved, "equals NumPy's repeat", CALLS, **facts)
        self._peer("edge expansion: NumPy's repeat", seconds, bytes_moved)
        if self.bench.gpu:
            xp, (indptr, _) = self.bench.xp, self.graph
            find = lambda: xp.searchsorted(indptr[1:], xp.arange(self.m), side="right").astype(np.int32)  # noqa: E731
            self._same(find(), expected)
            self._peer("edge expansion: CuPy's searchsorted", self._repeated(find), bytes_moved)

    def _degrees(self, bytes_moved: int) -> None:
        found = degrees(*self.graph)
        self._same(found.outgoing, np.diff(self.host[0]))
        self._same(found.incoming, np.bincount(self.host[1], minlength=self.n))
        self._time("degrees", degrees, bytes_moved, "equals NumPy's diff and bincount")

    def _reverse(self, bytes_moved: int) -> None:
        transposed, seconds = self._timed(self.matrix.tocsc)
        found = reverse(*self.graph)
        for ours, theirs in (found.indptr, transposed.indptr), (found.indices, transposed.indices):
            self._same(ours, theirs)
        self._same(found.arcs, transposed.data - 1)
        del found
        self._time("reverse", reverse, bytes_moved, "equals SciPy's tocsc")
        self._peer("reverse: SciPy's tocsc", seconds, bytes_moved)
        if self.bench.gpu:
            self._cupyx_transpose(transposed, bytes_moved)

    def _cupyx_transpose(self, transposed: Any, bytes_moved: int) -> None:
        import cupyx.scipy.sparse as cusp

        xp, (indptr, indices) = self.bench.xp, self.graph
        arrays = xp.zeros(self.m, np.float32), indices, indptr.astype(np.int32)
        matrix = cusp.csr_matrix(arrays, shape=(self.n, self.n))
        self._same(matrix.tocsc().indptr, transposed.indptr)
        self._peer("reverse: cupyx's tocsc", self._repeated(matrix.tocsc), bytes_moved)

    def _components(self, bytes_moved: int) -> None:
        (count, labels), seconds = self._timed(
            lambda: connected_components(self.matrix, directed=True, connection="weak")
        )
        least = np.full(count, self.n, np.int32)
        np.minimum.at(least, labels, np.arange(self.n, dtype=np.int32))
        self.labels = least[labels]
        self._same(weak_components(*self.graph), self.labels)
        self._time("weak components", weak_components, bytes_moved, "equals SciPy's connected_components")
        self._peer("weak components: SciPy's connected_components", seconds, bytes_moved)
        if self.bench.gpu:
            self._cupyx_components(count, bytes_moved)

    def _cupyx_components(self, count: int, bytes_moved: int) -> None:
        import cupyx.scipy.sparse as cusp

        try:
            from cupyx.scipy.sparse.csgraph import connected_components as on_device

            xp, (indptr, indices) = self.bench.xp, self.graph
            arrays = xp.ones(self.m, np.float32), indices, indptr.astype(np.int32)
            matrix = cusp.csr_matrix(arrays, shape=(self.n, self.n))
            find = lambda: on_device(matrix, directed=True, connection="weak")  # noqa: E731
            found = find()[0]
        except (ImportError, RuntimeError) as error:  # cupyx needs pylibcugraph
            print(f"no components by cupyx: {error}", flush=True)
            return
        assert found == count, "cupyx finds another number of components"
        self._peer("weak components: cupyx's connected_components", self._repeated(find), bytes_moved)

    def _forest(self, bytes_moved: int) -> None:
        forest = spanning_forest(*self.graph)
        self._same(forest.components, self.labels)
        if self.bench.gpu:
            verified = "equals the CPU half, bit for bit"
            for ours, theirs in zip(forest, spanning_forest(*self.host), strict=True):
                self._same(ours, theirs)
        else:
            verified = "equals SciPy's minimum_spanning_tree where no arcs are parallel"
            self._compare_with_tree(forest.arcs)
        self._time("spanning forest", spanning_forest, bytes_moved, verified)

    def _compare_with_tree(self, chosen: np.ndarray) -> None:
        tails = np.repeat(np.arange(self.n), np.diff(self.host[0]))
        heads = self.host[1]
        pairs = np.minimum(tails, heads) * np.int64(self.n) + np.maximum(tails, heads)
        _, first = np.unique(pairs, return_index=True)
        simple = sp.coo_array((first + 1.0, (tails[first], heads[first])), shape=(self.n, self.n)).tocsr()
        tree, seconds = self._timed(lambda: minimum_spanning_tree(simple))
        self._same(np.flatnonzero(chosen), np.sort(tree.data.astype(np.int64) - 1))
        self._peer("spanning forest: SciPy's minimum_spanning_tree, without parents", seconds, 0)

    def _time(
        self, title: str, operation: Callable[..., Any], bytes_moved: int, verified: str, calls: int = 1, **facts: Any
    ) -> None:
        def call() -> None:
            for _ in range(calls):
                operation(*self.graph, check=False)

        call()
        seconds = [self.bench.seconds(call) / calls for _ in range(self.bench.repeats)]
        self._record(title, seconds, bytes_moved, verified=verified, calls=calls, **facts)

    def _peer(self, title: str, seconds: list[float], bytes_moved: int) -> None:
        self._record(title, seconds, bytes_moved, verified="equals ours", peer=True)

    def _record(self, title: str, seconds: list[float], bytes_moved: int, **facts: Any) -> None:
        self.bench.record(
            f"{title}, {self.kind}",
            seconds,
            work=(bytes_moved, "bytes"),
            limit="copy",
            sizes={"n": self.n, "arcs": self.m},
            **facts,
        )

    def _timed(self, run: Callable[[], Any]) -> tuple[Any, list[float]]:
        """Return the result of a peer on the CPU, and the seconds of its runs: `repeats` runs, three at most."""
        found = run()
        return found, [self.bench.seconds(run) for _ in range(min(self.bench.repeats, 3))]

    def _repeated(self, run: Callable[[], Any]) -> list[float]:
        return [self.bench.seconds(run) for _ in range(self.bench.repeats)]

    def _same(self, found: Any, expected: np.ndarray) -> None:
        assert bool((self.bench.xp.asarray(found) == self.bench.xp.asarray(expected)).all()), "results differ"


def _graph(kind: str, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(SEED)
    indptr = row_starts(rng.integers(0, n, m), n)
    if kind == "random":
        return indptr, rng.integers(0, n, m, np.int32)
    tails = np.repeat(np.arange(n), np.diff(indptr))
    return indptr, ((tails + rng.integers(1, 9, m)) % n).astype(np.int32)


def _measure_copy_on_host(bench: Bench) -> None:
    source = np.zeros(64 << 20, np.uint8)
    target = np.ones_like(source)
    bench.time(
        "limit: memory, copy by one thread",
        lambda: np.copyto(target, source),
        work=(2 * source.size, "bytes"),
        verified="no result",
    )
