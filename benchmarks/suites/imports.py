"""The suite `imports`: graphs from text files to stores.

Each graph has about `--arcs` arcs; a symmetric file has half that number of lines. The last store made from a file must
have the rows that NumPy sorts, and the names of the vertices if the format has names.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Bench
from pipelines.formats.graphs import import_graph
from pipelines.generators import csr
from pipelines.generators.grids import Road
from pipelines.stores.graph import Graph

CONVENTION = (
    "wall seconds of import_graph, from a file in the page cache to a durable store that replaces an older one; "
    "warm; sorted in up to 1 GiB. Rates count the bytes of the file. Processor seconds are those of all "
    "threads; peak memory is that of a process of its own, Python and libraries included"
)
MEMORY = 1 << 30  # bytes to sort in
ALONE = f"""
import sys
from pipelines.formats.graphs import import_graph
import_graph(*sys.argv[1:], memory={MEMORY})
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
SEED = 1
DEGREE = 15  # mean degree of the random graphs
ROAD_DEGREE = 2.6  # mean degree of pipelines.generators.Road
METRES = 1000  # length of a street of the generator's length 1
LINES = 1 << 20  # lines that are written at a time

Arcs = tuple[np.ndarray, np.ndarray, np.ndarray]  # tails, heads, weights


class Source(NamedTuple):
    """A file to write: its format and its contents."""

    title: str
    suffix: str
    header: str
    line: str  # format of the line of an arc: tail, head and weight
    arcs: Arcs
    n: int
    base: int = 1  # name of the first vertex, names are successive numbers; 0: the store has no names
    symmetric: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--arcs", type=int, default=15_000_000, help="of each graph (default 15,000,000)")
    parser.add_argument("--only", choices=[*SOURCES], nargs="+", help="default: all")


def run(bench: Bench, args: argparse.Namespace) -> None:
    for name in args.only or SOURCES:
        with tempfile.TemporaryDirectory() as folder:
            measure(bench, SOURCES[name](args.arcs), Path(folder))


def measure(bench: Bench, source: Source, folder: Path) -> None:
    file, store = folder / f"graph{source.suffix}", folder / "graph.zarr"
    with file.open("w") as opened:
        opened.writelines(text(source))
    import_graph(file, store)  # warm
    seconds, processor = [], []
    for _ in range(bench.repeats):
        begin, used = time.perf_counter(), time.process_time()
        graph = import_graph(file, store, overwrite=True, memory=MEMORY)
        seconds.append(time.perf_counter() - begin)
        processor.append(time.process_time() - used)
    check(source, graph)
    bench.record(
        source.title,
        seconds,
        work=(file.stat().st_size, "bytes"),
        verified="equals rows sorted by NumPy, and the names",
        processor_seconds=statistics.median(processor),
        peak_bytes=peak_memory(file, folder / "alone.zarr"),
        sizes={"bytes": file.stat().st_size, "n": graph.n, "lines": len(source.arcs[0]), "arcs": graph.m},
    )


def check(source: Source, graph: Graph) -> None:
    tails, heads, weights = source.arcs
    if source.symmetric:  # each line is two arcs, which follow each other
        tails, heads = (np.stack(ends, 1).ravel() for ends in ((tails, heads), (heads, tails)))
        weights = np.repeat(weights, 2)
    order = np.lexsort((heads, tails))
    rows = np.searchsorted(tails[order], np.arange(source.n + 1))
    for found, expected in zip(graph.rows(), (rows, heads[order], weights[order]), strict=True):
        assert np.array_equal(found, expected), f"{source.title}: the store is wrong"
    names = graph.labels()
    if source.base:
        assert names is not None, f"{source.title}: the names are missing"
        expected = np.arange(source.base, source.n + source.base).astype(names.dtype)
        assert np.array_equal(names, expected), f"{source.title}: the names are wrong"


def peak_memory(file: Path, store: Path) -> int:
    """Return the peak memory, in bytes, of a process that imports the file."""
    command = [sys.executable, "-c", ALONE, str(file), str(store)]
    return int(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout) * 1024


# --- Files ------------------------------------------------------------------------------------------------------------


def edge_list(arcs: int) -> Source:
    drawn, n = random_arcs(arcs)
    return Source("edge list", ".txt", "", "{} {} {}\n", drawn, n, base=0)


def dimacs(arcs: int) -> Source:
    drawn, n = random_arcs(arcs)
    return Source(".gr", ".gr", f"p sp {n} {arcs}\n", "a {} {} {}\n", drawn, n)


def road(arcs: int) -> Source:
    indptr, heads, weights = csr(Road(math.isqrt(int(arcs / ROAD_DEGREE)), seed=SEED))
    n = len(indptr) - 1
    made = np.repeat(np.arange(n), np.diff(indptr)), heads, np.rint(weights * METRES).astype(np.int32)
    return Source(".gr, a road network", ".gr", f"p sp {n} {len(heads)}\n", "a {} {} {}\n", made, n)


def integers(arcs: int) -> Source:
    drawn, n = random_arcs(arcs)
    return market("integer", "general", "{} {} {}\n", drawn, n)


def reals(arcs: int) -> Source:
    (tails, heads, _), n = random_arcs(arcs // 2)
    drawn = np.maximum(tails, heads), np.minimum(tails, heads), np.random.default_rng(SEED).random(len(tails))
    return market("real", "symmetric", "{} {} {!r}\n", drawn, n)


def pattern(arcs: int) -> Source:
    (tails, heads, weights), n = random_arcs(arcs // 2)
    drawn = np.maximum(tails, heads), np.minimum(tails, heads), np.ones_like(weights)
    return market("pattern", "symmetric", "{} {}\n", drawn, n)  # the weight is not written


def market(values: str, shape: str, line: str, arcs: Arcs, n: int) -> Source:
    header = f"%%MatrixMarket matrix coordinate {values} {shape}\n{n} {n} {len(arcs[0])}\n"
    title = f"Matrix Market, {values}, {shape}"
    return Source(title, ".mtx", header, line, arcs, n, symmetric=shape == "symmetric")


SOURCES: dict[str, Callable[[int], Source]] = {
    "edge-list": edge_list,
    "gr": dimacs,
    "road": road,
    "integer": integers,
    "real": reals,
    "pattern": pattern,
}


def random_arcs(arcs: int) -> tuple[Arcs, int]:
    """Return random arcs and the number of vertices. Loops are left out: in a symmetric file, a loop is one arc."""
    rng, n = np.random.default_rng(SEED), max(2, arcs // DEGREE)
    tails = rng.integers(0, n, arcs)
    heads = (tails + rng.integers(1, n, arcs)) % n
    tails[0], heads[0] = 0, n - 1  # an edge list has to name its last vertex
    return (tails, heads, rng.integers(1, 10_000, arcs, dtype=np.int32)), n


def text(source: Source) -> Iterator[str]:
    yield source.header
    tails, heads, weights = source.arcs
    for first in range(0, len(tails), LINES):
        part = slice(first, first + LINES)
        columns = (tails[part] + source.base).tolist(), (heads[part] + source.base).tolist(), weights[part].tolist()
        yield "".join(map(source.line.format, *columns))
