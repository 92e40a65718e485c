"""The suite `plans`: the memory, disk and time that runs state before they begin, and what they take.

Each run has a process of its own, which first does a small run of the same kind: it compiles, and loads libraries. The
memory of a run is the highest resident memory during the run, less the resident memory before it. The disk is the
largest size of the output on the disk, sampled while the run writes. The plan of a run is the one that its command
prints (`tilepath ... --dry-run`). Maps and Euler circuits state no time.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.harness import Bench
from clusters import start
from gpuops.memory import size
from pipelines import (
    PointCloud,
    all_pairs_shortest_paths,
    euler_circuits,
    generate,
    open_codebook,
    planned,
    single_source_shortest_paths,
    train_som,
    verify_distances,
    write_cloud,
)
from pipelines.generators import EulerGraph, Grid, RMat, Road, UniformRandom

CONVENTION = (
    "wall seconds of one call, store to store, compiled; memory: the highest resident memory of the process during the "
    "call, less that before it; disk: the largest size of the output on the disk, sampled every 20 ms"
)
SAMPLED = 0.02  # seconds between two looks at the disk
SMALL = 64  # vertices of the first run, which compiles


@dataclass(frozen=True)
class Case:
    """A run: its command with its options, the input, and a small input of the same kind."""

    run: Callable[..., Any]
    input: Any
    small: Any
    options: dict[str, Any] = field(default_factory=dict)
    arguments: tuple[Any, ...] = ()


def _all_pairs(network: Any, small: Any, method: str, **options: Any) -> Case:
    return Case(all_pairs_shortest_paths, network, small, {"method": method, **options})


def _paths(network: Any, small: Any, sources: int) -> Case:
    return Case(single_source_shortest_paths, network, small, arguments=(list(range(sources)),))


def _map(samples: int, dimensions: int, side: int, **options: Any) -> Case:
    cloud, small = (PointCloud(kind="blobs", n=count, d=dimensions, seed=1) for count in (samples, 1000))
    return Case(train_som, cloud, small, {"epochs": 5, **options}, (side, side))


def _dense(n: int) -> UniformRandom:
    return UniformRandom(n, edge_factor=8, weights="integers", seed=1)


CASES = {
    "floyd-warshall, 1,024 vertices": _all_pairs(_dense(1024), _dense(SMALL), "floyd-warshall"),
    "floyd-warshall, 2,048 vertices": _all_pairs(_dense(2048), _dense(SMALL), "floyd-warshall"),
    "floyd-warshall, 4,096 vertices": _all_pairs(_dense(4096), _dense(SMALL), "floyd-warshall"),
    "floyd-warshall, 8,192 vertices": _all_pairs(_dense(8192), _dense(SMALL), "floyd-warshall"),
    "out of core, 4,096 vertices": _all_pairs(_dense(4096), _dense(1024), "out-of-core", host_memory=48 << 20),
    "batched, R-MAT 12": _all_pairs(RMat(12, seed=1), RMat(7, seed=1), "batched"),
    "batched, R-MAT 14": _all_pairs(RMat(14, seed=1), RMat(7, seed=1), "batched"),
    "hierarchy, road of 4,096 vertices": _all_pairs(Road(64, missing=0.95, seed=1), Road(8, seed=1), "hierarchy"),
    "hierarchy, road of 14,400 vertices": _all_pairs(Road(120, missing=0.95, seed=1), Road(8, seed=1), "hierarchy"),
    "one source, R-MAT 16": _paths(RMat(16, seed=1), RMat(7, seed=1), 1),
    "one source, R-MAT 20": _paths(RMat(20, seed=1), RMat(7, seed=1), 1),
    "64 sources, R-MAT 18": _paths(RMat(18, seed=1), RMat(7, seed=1), 64),
    "one source, road of 1,000,000 vertices": _paths(Road(1000, missing=0.95, seed=1), Road(8, seed=1), 1),
    "64 sources, road of 250,000 vertices": _paths(Road(500, missing=0.95, seed=1), Road(8, seed=1), 64),
    "16 sources, grid of 1,000,000 vertices": _paths(Grid(1000, seed=1), Grid(8, seed=1), 16),
    "map, 100,000 x 12, 10 x 10 units": _map(100_000, 12, 10),
    "map, 1,000,000 x 12, 20 x 20 units": _map(1_000_000, 12, 20),
    "map, 1,000,000 x 12, 20 x 20 units, streamed": _map(1_000_000, 12, 20, resident=False),
    "map, 10,000,000 x 30, 10 x 10 units, ten epochs": _map(10_000_000, 30, 10, epochs=10),
    "map, 10,000,000 x 30, 20 x 20 units, ten epochs": _map(10_000_000, 30, 20, epochs=10),
    "Euler circuits, 100,000 vertices": Case(euler_circuits, EulerGraph(100_000, seed=1), EulerGraph(SMALL, seed=1)),
    "Euler circuits, 4,000,000 vertices": Case(euler_circuits, EulerGraph(4_000_000, seed=1), EulerGraph(64, seed=1)),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only", action="append", metavar="WORD", help="only cases whose name has this word; repeatable"
    )


def run(bench: Bench, args: argparse.Namespace) -> str:
    lines = [f"{'run':46} {'memory, stated':>14} {'taken':>10} {'disk':>10} {'taken':>10} {'seconds':>8} {'taken':>8}"]
    for name, case in CASES.items():
        if args.only and not any(word in name for word in args.only):
            continue
        with tempfile.TemporaryDirectory() as folder, _alone() as alone:
            found = alone.submit(measure, case, folder).result()
        bench.record(name, [found.pop("seconds")], **found)
        lines.append(_line(name, bench.records[-1]))
    return "\n".join(lines)


@contextmanager
def _alone() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


def measure(case: Case, folder: str) -> dict[str, Any]:
    """Run a case in this process, after its small run. Returns the fields of its record."""
    small, given, out = (os.path.join(folder, name) for name in ("small", "given", "out"))
    stored = write_cloud if isinstance(case.input, PointCloud) else _generate
    stored(case.small, small)
    stored(case.input, given)
    with start(device="cpu") as client:
        case.run(client, small, f"{small}-out", *_few(case, small), progress=False, **case.options)
        plan = planned(case.run, client, given, out, *case.arguments, progress=False, **case.options)
        Path("/proc/self/clear_refs").write_text("5")  # the highest resident memory begins anew
        before = _status("VmRSS")
        with _disk_of(folder, Path(out).name) as largest:
            began, cpu = time.perf_counter(), time.process_time()
            case.run(client, given, out, *case.arguments, progress=False, **case.options)
            seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
        memory = _status("VmHWM") - before
        verified = _verify(case, client, given, out)
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "work": (1, "runs"),
        "verified": verified,
        "method": plan.method,
        "stated": {"memory": plan.memory_bytes, "disk": plan.disk_bytes, "seconds": plan.seconds},
        "taken": {"memory": memory, "disk": largest[0], "seconds": seconds},
    }


def _generate(graph: Any, path: str) -> None:
    generate(graph, path, progress=False)


def _few(case: Case, small: str) -> tuple[Any, ...]:
    """Return the arguments of the small run: of many sources, as many as there are vertices."""
    if case.run is single_source_shortest_paths:
        return (case.arguments[0][:SMALL],)
    return case.arguments


def _verify(case: Case, client: Any, given: str, out: str) -> str:
    if case.run is all_pairs_shortest_paths:
        return f"certificates of {verify_distances(out, given, rows=4).rows} rows"
    if case.run is train_som:
        open_codebook(out).verify()
        return "the store is reread; tests prove the units"
    case.run(client, given, out, *case.arguments, overwrite=True, verify=True, progress=False, **case.options)
    return "every result of a second run, by certificates"


@contextmanager
def _disk_of(folder: str, name: str) -> Iterator[list[int]]:
    """Yield a list with the largest size on the disk, in bytes, of all in `folder` that begins with `name`."""
    largest, ended = [0], threading.Event()

    def look() -> None:
        while not ended.wait(SAMPLED):
            largest[0] = max(largest[0], _size(folder, name))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield largest
    finally:
        ended.set()
        thread.join()
        largest[0] = max(largest[0], _size(folder, name))


def _size(folder: str, name: str) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        if name not in os.path.relpath(parent, folder) and parent != folder:
            continue
        for file in files:
            with suppress(FileNotFoundError):  # a file that the run removed meanwhile
                total += os.stat(os.path.join(parent, file)).st_blocks * 512
    return total


def _status(name: str) -> int:
    """Return a line of the memory of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) << 10


def _line(name: str, record: dict[str, Any]) -> str:
    stated, taken = record["stated"], record["taken"]
    seconds = "-" if stated["seconds"] is None else f"{stated['seconds']:.2f}"
    return (
        f"{name:46} {size(stated['memory']):>14} {size(taken['memory']):>10} {size(stated['disk']):>10} "
        f"{size(taken['disk']):>10} {seconds:>8} {record['seconds']['median']:8.2f}"
    )
