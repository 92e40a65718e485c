"""The suite `imports`: files of text to graph stores, wall and processor seconds.

Each graph has some `--arcs` arcs; symmetric files hold half as many lines. The store made of a file must have the
digest of one that is made of the same arrays.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array

from benchmarks.harness import Bench
from pipelines.formats.graphs import import_graph
from pipelines.generators import csr
from pipelines.generators.grids import Road

CONVENTION = (
    "wall seconds from a file in the page cache to a store, without a flush to the disk, and processor seconds of all "
    "threads; bytes of the file"
)
SEED = 1
DEGREE = 15  # of the random graphs
ROAD_DEGREE = 2.4
LINES = 1 << 20  # written at a time

Arcs = tuple[np.ndarray, np.ndarray, np.ndarray]  # tails, heads, weights


class Source(NamedTuple):
    """A file to be written, and the same graph as a matrix."""

    suffix: str
    lines: Iterator[str]
    same: Any
    directed: bool = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=["cpu"], default="cpu", help=argparse.SUPPRESS)
    parser.add_argument("--arcs", type=int, default=15_000_000, help="of each graph (default 15,000,000)")
    parser.add_argument("--only", nargs="+", metavar="CASE", help="the first word or words of cases")


def run(bench: Bench, args: argparse.Namespace) -> None:
    for case, make in CASES.items():
        if not args.only or case.startswith(tuple(args.only)):
            with tempfile.TemporaryDirectory() as folder:
                measure(bench, case, Path(folder), make(args.arcs))


def measure(bench: Bench, case: str, folder: Path, source: Source) -> None:
    file, store = folder / f"graph{source.suffix}", folder / "graph.zarr"
    with file.open("w") as text:
        text.writelines(source.lines)
    expected = import_graph(source.same, folder / "same.zarr", directed=source.directed)
    found = import_graph(file, store)  # warm, too
    assert found.digest == expected.digest, f"{case}: the store is wrong"
    seconds, processor = [], []
    for _ in range(bench.repeats):
        begin, used = time.perf_counter(), time.process_time()
        import_graph(file, store, overwrite=True)
        seconds.append(time.perf_counter() - begin)
        processor.append(time.process_time() - used)
    size, arcs = file.stat().st_size, expected.m
    bench.record(
        case,
        seconds,
        bytes_moved=size,
        verified="equals the store made of the same arrays",
        processor_seconds=statistics.median(processor),
        arcs_per_second=arcs / statistics.median(seconds),
        sizes={"bytes": size, "n": expected.n, "arcs": arcs},
    )


# --- Files ------------------------------------------------------------------------------------------------------------


def edge_list(arcs: int) -> Source:
    drawn = random_arcs(arcs)
    return Source(".txt", text(drawn, "{} {} {}\n"), matrix(drawn))


def dimacs(arcs: int) -> Source:
    return Source(".gr", dimacs_text(random_arcs(arcs)), matrix(random_arcs(arcs)))


def road(arcs: int) -> Source:
    indptr, heads, weights = csr(Road(math.isqrt(int(arcs / ROAD_DEGREE)), seed=SEED))
    tails = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    found = tails, heads, weights.astype(np.int32)
    return Source(".gr", dimacs_text(found), matrix(found))


def integers(arcs: int) -> Source:
    drawn = random_arcs(arcs)
    return Source(".mtx", market_text("integer general", drawn, "{} {} {}\n"), matrix(drawn))


def reals(arcs: int) -> Source:
    tails, heads, _ = random_arcs(arcs // 2)
    drawn = np.maximum(tails, heads), np.minimum(tails, heads), np.random.default_rng(SEED).random(len(tails))
    return Source(".mtx", market_text("real symmetric", drawn, "{} {} {!r}\n"), matrix(drawn), directed=False)


def pattern(arcs: int) -> Source:
    tails, heads, weights = random_arcs(arcs // 2)
    drawn = np.maximum(tails, heads), np.minimum(tails, heads), np.ones_like(weights)
    return Source(".mtx", market_text("pattern symmetric", drawn, "{} {}\n"), matrix(drawn), directed=False)


def random_arcs(arcs: int) -> Arcs:
    """Tails, heads and weights; no loops, for the two triangles of a symmetric matrix share them."""
    rng, n = np.random.default_rng(SEED), max(2, arcs // DEGREE)
    tails = rng.integers(0, n, arcs)
    heads = (tails + rng.integers(1, n, arcs)) % n
    return tails, heads, rng.integers(1, 10_000, arcs, dtype=np.int32)


def matrix(arcs: Arcs) -> Any:
    tails, heads, weights = arcs
    n = int(max(tails.max(), heads.max())) + 1
    return coo_array((weights, (tails, heads)), shape=(n, n))


def dimacs_text(arcs: Arcs) -> Iterator[str]:
    yield f"p sp {matrix(arcs).shape[0]} {len(arcs[0])}\n"
    yield from text(arcs, "a {} {} {}\n", base=1)


def market_text(kind: str, arcs: Arcs, line: str) -> Iterator[str]:
    n = matrix(arcs).shape[0]
    yield f"%%MatrixMarket matrix coordinate {kind}\n{n} {n} {len(arcs[0])}\n"
    yield from text(arcs, line, base=1)


def text(arcs: Arcs, line: str, base: int = 0) -> Iterator[str]:
    tails, heads, weights = arcs
    for first in range(0, len(tails), LINES):
        part = slice(first, first + LINES)
        columns = (tails[part] + base).tolist(), (heads[part] + base).tolist(), weights[part].tolist()
        yield "".join(map(line.format, *columns))


CASES: dict[str, Callable[[int], Source]] = {
    "edge list, integers": edge_list,
    ".gr": dimacs,
    ".gr, a road network": road,
    "Matrix Market, integer, general": integers,
    "Matrix Market, real, symmetric": reals,
    "Matrix Market, pattern, symmetric": pattern,
}
