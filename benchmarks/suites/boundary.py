"""The suite `boundary`: road networks by the boundary method, its closures and products, compared with SciPy.

The networks are Rome and networks made by pipelines.generators (`road`, with the share of missing streets in the name,
and `grid`). On a GPU, tables and distances are resident; laying out arcs on the host is not timed. `store to store`
times the whole call, METIS included, with the number of parts given. On a CPU, the following cases use the tables of
this store, unless it is left out. A case that takes longer than `--limit` is stopped, and recorded as stopped. The
million vertices of road-1000-0.95 need some GB of memory.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from functools import cached_property
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import ROOT, Bench
from clusters import start
from gpuops import floyd_warshall, minplus_product
from gpuops.boundary import ClosedParts, boundary_distances
from gpuops.numbers import infinity
from pipelines.answers.od_points import Points
from pipelines.answers.od_tables import write_od_table
from pipelines.boundary.batches import PartBatches
from pipelines.boundary.closures import boundary_matrix
from pipelines.boundary.cut import cut_graph
from pipelines.boundary.solve import partition_graph
from pipelines.boundary.stages import Job, closed_boundary, closed_part, cut_arcs
from pipelines.formats.graphs import import_graph
from pipelines.generators import Grid, Road, generate
from pipelines.stores import Graph
from pipelines.stores.boundary import Boundary, Cut, open_boundary

CONVENTION = "wall seconds, device synchronized; distances per second where a block of distances is made"
OD = 10_000
CHECKED = 3  # rows of each case that are compared with SciPy's dijkstra
NETWORKS = {  # graph, number of parts that METIS makes
    "road-340-0.95": (Road(340, missing=0.95, seed=1), 128),
    "road-340-0.7": (Road(340, missing=0.7, seed=1), 128),
    "road-1000-0.95": (Road(1000, missing=0.95, seed=1), 1024),
    "grid-250": (Grid(250, weights="integers", seed=1), 64),
}
GROUPS = ["batches", "products", "rome", *NETWORKS]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto")
    parser.add_argument("--only", choices=GROUPS, action="append", help="default: all, on a CPU without the large ones")
    parser.add_argument("--limit", type=float, default=1800, help="seconds that one case may take")
    parser.add_argument("--no-store", action="store_true", help="leave out the cases from store to store")


def run(bench: Bench, args: argparse.Namespace) -> None:
    groups = args.only or (GROUPS if bench.gpu else ["batches", "rome", "road-340-0.95"])
    if "batches" in groups:
        bench_batches(bench)
    if "products" in groups:
        bench_products(bench)
    with tempfile.TemporaryDirectory() as folder:
        if "rome" in groups:
            graph = import_graph(ROOT / "scripts" / "data" / "rome99.gr", Path(folder) / "rome.zarr")
            bench_all_pairs(bench, Case(bench, "Rome", graph, 16))
        for name in (name for name in NETWORKS if name in groups):
            description, parts = NETWORKS[name]
            graph = generate(description, Path(folder) / f"{name}.zarr", progress=False)
            if name == "grid-250":
                bench_grid(bench, graph, parts)
                continue
            case = Case(bench, name, graph, parts)
            if not args.no_store:
                bench_store(bench, case, Path(folder), args.limit)
            with bench.within(args.limit, f"{name}: tables"):
                case.check_tables()
            if case.verified is not None:
                bench_network(bench, case, args.limit)
            if not bench.gpu and case.store is not None:
                bench_tables(bench, case, Path(folder), args.limit)


# --- Closures and products ------------------------------------------------------------------------------------------


def bench_batches(bench: Bench) -> None:
    """Time calls that close many small matrices, or a few large matrices."""
    xp = bench.xp
    for count, n in ((10_000, 64), (256, 450), (128, 900)) if bench.gpu else ((1_000, 64), (16, 450)):
        rng = np.random.default_rng(n)
        d = xp.asarray(rng.random((count, n, n), dtype="float32"))
        one = floyd_warshall(d[7].copy())
        floyd_warshall(d, out=d)
        assert bool((d[7] == one).all()), "a matrix of a batch is closed otherwise than alone"
        bench.time(
            f"batch of {count} closures, n = {n}, float32",
            lambda d=d: floyd_warshall(d, out=d, nonnegative=True),
            relaxations=count * n**3,
            verified="a matrix has the bits of the same alone",
            sizes={"batch": count, "n": n},
        )


def bench_products(bench: Bench) -> None:
    """Time products of small depth, which do little more than write C, and compare with a copy and a fill."""
    xp = bench.xp
    m, n = 4096, 114_688
    c = xp.empty((m, n), xp.float32)
    half = c.nbytes // 2
    memory = c.view(xp.int8).reshape(-1)
    bench.time(
        "a copy of that size",
        lambda: xp.copyto(memory[half:], memory[:half]),
        bytes_moved=2 * half,
        verified="no result",
    )
    bench.time("a fill of that size", lambda: memory.fill(0), bytes_moved=c.nbytes, verified="no result")
    for depth in (8, 16, 32, 64):
        rng = np.random.default_rng(depth)
        a, b = (xp.asarray(rng.random(shape, dtype="float32")) for shape in ((m, depth), (depth, n)))
        minplus_product(a, b, out=c)
        assert bool((c[5] == (a[5, :, None] + b).min(axis=0)).all()), "the product is wrong"
        bench.time(
            f"minplus_product {m} x {n}, depth {depth}, float32",
            lambda a=a, b=b: minplus_product(a, b, out=c, nonnegative=True),
            bytes_moved=c.nbytes,
            verified="a row equals a broadcast product",
            sizes={"m": m, "n": n, "p": depth},
        )


# --- Networks -------------------------------------------------------------------------------------------------------


class Case:
    """A graph with a cut into parts, which METIS makes unless it is given."""

    def __init__(self, bench: Bench, name: str, graph: Graph, parts: int, cut: Cut | None = None):
        self.bench, self.name, self.graph, self.parts = bench, name, graph, parts
        self.cut = cut_graph(graph.indptr(), graph.indices(), parts) if cut is None else cut
        self.arcs = cut_arcs(Job(graph, np.dtype("float32"), None, True), self.cut)
        self.store: Boundary | None = None
        self.verified: str | None = None
        sizes = self.cut.boundary_sizes
        self.facts = {
            "sizes": {"n": graph.n, "m": graph.m, "parts": self.cut.parts, "boundary": int(sizes.sum())},
            "mean_boundary_of_a_part": float(sizes.mean()),
        }

    @property
    def relaxations(self) -> float:
        """Relaxations of all closures."""
        return float((self.cut.sizes.astype(float) ** 3).sum() + float(self.cut.boundary_sizes.sum()) ** 3)

    @cached_property
    def tables(self) -> ClosedParts:
        """The tables, on the device of the bench."""
        if self.bench.gpu:
            return self.close()
        return self._closed_on_cpu() if self.store is None else self.store.tables()

    def check_tables(self) -> None:
        """Make the tables, and compare some rows of distances with SciPy."""
        sources = _some(self.graph.n)
        self.verified = self.check(boundary_distances(self.tables, sources, np.arange(self.graph.n)), sources)

    @cached_property
    def _before(self) -> tuple[Any, Any, Any]:
        """On the device: lengths within parts, lengths between boundary vertices, and a mask of the padding.

        The mask has a row for each part, True beyond the number of its boundary vertices.
        """
        xp, sizes = self.bench.xp, self.cut.boundary_sizes
        lengths = PartBatches(self.arcs, xp).lengths(0, self.cut.parts)
        none = (np.empty((0, 0), "float32") for _ in sizes)
        between = xp.asarray(boundary_matrix(self.cut, self.arcs.between, none))
        return lengths, between, xp.asarray(np.arange(max(1, sizes.max())) >= sizes[:, None])

    def close(self) -> ClosedParts:
        """Close all tables on the device."""
        xp, sizes = self.bench.xp, self.cut.boundary_sizes
        lengths, between, beyond = self._before
        b = beyond.shape[1]
        inner = floyd_warshall(lengths, nonnegative=True, sizes=self.cut.sizes)
        to_boundary = xp.where(beyond[:, None, :], np.float32(np.inf), inner[:, :, :b])
        from_boundary = xp.where(beyond[:, :, None], np.float32(np.inf), inner[:, :b])
        to_boundary, from_boundary = map(xp.ascontiguousarray, (to_boundary, from_boundary))
        among, first = between.copy(), 0
        for part, size in enumerate(sizes.tolist()):
            square = among[first : first + size, first : first + size]
            xp.minimum(square, inner[part, :size, :size], out=square)
            first += size
        floyd_warshall(among, out=among, nonnegative=True)
        place = self.cut.place.astype(np.int32)
        return ClosedParts(self.cut.part, place, sizes, to_boundary, from_boundary, inner, among)

    def _closed_on_cpu(self) -> ClosedParts:
        p, b = (int(sizes.max()) for sizes in (self.cut.sizes, self.cut.boundary_sizes))
        shapes = {"to_boundary": (p, b), "from_boundary": (b, p), "inner": (p, p)}
        tables = {name: np.full((self.cut.parts, *shape), infinity("float32")) for name, shape in shapes.items()}
        for part in range(self.cut.parts):
            for name, table in closed_part(self.arcs, part).items():
                tables[name][part, : table.shape[0], : table.shape[1]] = table
        sizes = self.cut.boundary_sizes.tolist()
        among = closed_boundary(self.arcs, (tables["inner"][part, :s, :s] for part, s in enumerate(sizes)))
        place = self.cut.place.astype(np.int32)
        return ClosedParts(self.cut.part, place, self.cut.boundary_sizes, *(tables[name] for name in shapes), among)

    @cached_property
    def for_scipy(self) -> Any:
        from scipy.sparse import csr_array

        indptr, indices, weights = self.graph.rows()
        tails = np.repeat(np.arange(self.graph.n), np.diff(indptr))
        order = np.lexsort((weights, indices, tails))
        first = order[np.flatnonzero(np.diff(tails[order] * self.graph.n + indices[order], prepend=-1))]
        entries = weights[first].astype(float), (tails[first], indices[first])
        return csr_array(entries, shape=(self.graph.n, self.graph.n))

    def check(self, rows: Any, sources: np.ndarray) -> str:
        """Compare some rows of distances with SciPy's. The tolerance allows sums of floats in another order."""
        from scipy.sparse.csgraph import dijkstra

        found = rows if isinstance(rows, np.ndarray) else rows.get()
        np.testing.assert_allclose(found, dijkstra(self.for_scipy, indices=sources), rtol=1e-4)
        return f"{len(sources)} rows equal SciPy's dijkstra within 1e-4"


def time_amount(bench: Bench, name: str, run: Any, amount: float, unit: str, **facts: Any) -> None:
    """Time `run`, which is verified already, and record its rate: `amount` of `unit` per second."""
    seconds = [bench.seconds(run) for _ in range(bench.repeats)]
    bench.record(name, seconds, rate_of=(amount / float(np.median(seconds)), unit), **facts)


def bench_store(bench: Bench, case: Case, folder: Path, limit: float) -> None:
    """Time the whole call, METIS included. The first run is timed too, because large networks run only once."""
    name, seconds = f"{case.name}: store to store, {case.parts} parts", []
    with start(device="gpu" if bench.gpu else "cpu") as client, bench.within(limit, name):

        def write() -> None:
            partition_graph(client, case.graph, folder / "b.zarr", parts=case.parts, overwrite=True, progress=False)

        seconds += [bench.seconds(write) for _ in range(1 if case.graph.n > 500_000 else min(bench.repeats, 3))]
    if not seconds:
        return
    sources = _some(case.graph.n)
    case.store = open_boundary(folder / "b.zarr")
    verified = case.check(case.store.between(sources, np.arange(case.graph.n)), sources)
    rate = (case.graph.n / float(np.median(seconds)), "vertices")
    bench.record(name, seconds, verified=verified, rate_of=rate, **case.facts)


def bench_network(bench: Bench, case: Case, limit: float) -> None:
    """Time the closures, blocks and all distances of a network, with resident tables."""
    xp, n = bench.xp, case.graph.n
    rng = np.random.default_rng(0)
    tables = case.tables
    facts = {"verified": case.verified, **case.facts}
    if bench.gpu:
        name = f"{case.name}: closures of parts and boundary"
        with bench.within(limit, name):
            time_amount(bench, name, case.close, case.relaxations, "relaxations", **facts)
    everything = np.arange(n)
    for name, blocks in (  # each run takes other vertices
        (f"OD {OD:,} x {OD:,}", rng.integers(0, n, (bench.repeats + 1, 2, OD))),
        ("a row", [(source, everything) for source in rng.integers(0, n, (bench.repeats + 1, 1))]),
    ):
        out = xp.empty((len(blocks[0][0]), len(blocks[0][1])), xp.float32)
        following = cycle(blocks)

        def answer(following: Any = following, out: Any = out) -> None:
            boundary_distances(tables, *next(following), out=out)

        with bench.within(limit, f"{case.name}: {name}"):
            answer()
            time_amount(bench, f"{case.name}: {name}", answer, out.size, "distances", **facts)
    del out, answer
    if bench.gpu and n * n * 4 < 0.8 * xp.cuda.Device().mem_info[1]:
        with bench.within(limit, f"{case.name}: all distances into memory"):
            _all_distances(bench, case, facts)
    if not bench.gpu:
        with bench.within(limit, f"{case.name}: SciPy dijkstra"):
            _scipy_rate(bench, case, 100)


def _all_distances(bench: Bench, case: Case, facts: dict[str, Any]) -> None:
    xp, n = bench.xp, case.graph.n
    xp.get_default_memory_pool().free_all_blocks()
    everything, matrix = np.arange(n), xp.empty((n, n), xp.float32)

    def fill(out: Any = matrix) -> None:
        boundary_distances(case.tables, everything, everything, out=out)

    fill()
    sources = _some(n)
    facts = facts | {"verified": case.check(matrix[xp.asarray(sources)], sources)}
    time_amount(bench, f"{case.name}: all {n * n:.3g} distances into memory", fill, n * n, "distances", **facts)
    del matrix, fill
    xp.get_default_memory_pool().free_all_blocks()


def _scipy_rate(bench: Bench, case: Case, rows: int) -> None:
    from scipy.sparse.csgraph import dijkstra

    graph, sources = case.for_scipy, _some(case.graph.n, rows)
    begin = time.perf_counter()
    dijkstra(graph, indices=sources)
    seconds = time.perf_counter() - begin
    rate = (len(sources) * case.graph.n / seconds, "distances")
    bench.record(f"{case.name}: SciPy dijkstra, {rows} sources", [seconds], verified="peer", rate_of=rate, **case.facts)


def bench_all_pairs(bench: Bench, case: Case) -> None:
    """Time all distances of a small network in memory, tables included, and SciPy on the same network."""
    from scipy.sparse.csgraph import dijkstra

    n = case.graph.n
    everything = np.arange(n)

    def solve() -> Any:
        tables = case.close() if bench.gpu else case._closed_on_cpu()
        return boundary_distances(tables, everything, everything)

    verified = case.check(solve(), everything)
    name = f"{case.name}: all pairs in memory, closures included"
    time_amount(bench, name, solve, n * n, "distances", verified=verified, **case.facts)
    if not bench.gpu:
        seconds = [bench.seconds(lambda: dijkstra(case.for_scipy))]
        rate = (n * n / seconds[0], "distances")
        bench.record(f"{case.name}: SciPy dijkstra, all pairs", seconds, verified="peer", rate_of=rate)


def bench_grid(bench: Bench, graph: Graph, parts: int) -> None:
    """Time all pairs of a grid that is cut into equal squares or by METIS, closures included."""
    side = round(graph.n**0.5)
    cuts = {f"{k} x {k} squares": squares(side, k) for k in (6, 7, 8, 9)} | {f"METIS, {parts} parts": None}
    out = bench.xp.empty((graph.n, graph.n), np.float32)
    everything, sources = np.arange(graph.n), _some(graph.n)
    for how, cut in cuts.items():
        case = Case(bench, f"grid-{side}", graph, parts, cut)

        def solve(case: Case = case) -> None:
            boundary_distances(case.close(), everything, everything, out=out)

        solve()
        verified = case.check(out[bench.xp.asarray(sources)], sources)
        facts = {"verified": verified, **case.facts}
        time_amount(bench, f"grid-{side}, {how}: closures", case.close, case.relaxations, "relaxations", **facts)
        time_amount(bench, f"grid-{side}, {how}: all pairs", solve, graph.n**2, "distances", **facts)


def squares(side: int, k: int) -> Cut:
    """Cut a grid of side x side vertices into k x k parts, without a partitioner."""
    stripe = np.arange(side) * k // side
    part = (stripe[:, None] * k + stripe).astype(np.int32)
    boundary = np.zeros(part.shape, bool)
    for one, other in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
        across = part[one] != part[other]
        boundary[one] |= across
        boundary[other] |= across
    return Cut(part.ravel(), boundary.ravel())


def bench_tables(bench: Bench, case: Case, folder: Path, limit: float) -> None:
    """Time writing tables from origins to destinations, from the store."""
    rng = np.random.default_rng(3)
    chosen = rng.integers(0, case.graph.n, (2, OD))
    origins, destinations = (Points(pa.array(map(str, v.tolist()), pa.string()), v, None, {}) for v in chosen)
    for suffix in "parquet", "zarr":
        out = folder / f"od.{suffix}"

        def write(out: Path = out) -> int:
            return write_od_table(case.store, origins, destinations, out, overwrite=True, progress=False)

        name = f"{case.name}: OD table {OD:,} x {OD:,} to .{suffix}"
        with bench.within(limit, name):
            seconds = [bench.seconds(write) for _ in range(min(bench.repeats, 3))]
            rate = (OD * OD / float(np.median(seconds)), "pairs")
            bench.record(name, seconds, verified="no distance", rate_of=rate, **case.facts)


def _some(n: int, count: int = CHECKED) -> np.ndarray:
    return np.random.default_rng(n).choice(n, min(count, n), replace=False)
