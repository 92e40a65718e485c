"""The suite `commits`: what it costs to make commits durable.

A checkpoint of a matrix is written to a store and committed: made durable (`pipelines.stores.durable`), and with
`fsync` left out, as tilepath did before. Both write the same bytes in turn, and read them back.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks.harness import Bench
from pipelines.stores.distances import DistancesWriter, create_distances
from pipelines.stores.graph_writer import write_graph
from pipelines.workers.saving import Savers

CONVENTION = (
    "wall seconds from the first write of a checkpoint to the end of its commit, from one process; `os.sync` before "
    "each. Rates count the bytes of the checkpoint"
)
CHUNK = 1024  # rows and columns of a chunk, of 4 MiB


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bytes", type=int, nargs="+", default=[1 << 30, 1 << 32], help="default 1 GiB and 4 GiB")
    parser.add_argument("--folder", type=Path, help="on the disk to measure; by default the folder of temporary files")


def run(bench: Bench, args: argparse.Namespace) -> None:
    for size in args.bytes:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            measure(bench, Path(folder), math.isqrt(size // 4))


def measure(bench: Bench, folder: Path, n: int) -> None:
    graph = write_graph(folder / "graph", np.arange(n + 1), np.roll(np.arange(n), -1), np.ones(n, np.float32))
    writer = create_distances(folder / "distances", graph, dtype="float32", chunk=CHUNK, stages=1000, options={})
    band = np.random.default_rng(1).random((CHUNK, n), np.float32)
    seconds: dict[str, list[float]] = {"durable": [], "not durable": []}
    for repeat in range(bench.repeats + 1):
        for how, times in seconds.items():
            os.sync()
            with mock.patch("os.fsync", os.fsync if how == "durable" else lambda _file: None):
                taken = bench.seconds(partial(commit, writer, band))
            writer = replace(DistancesWriter.begun(writer.path), run_id=writer.run_id)
            assert np.array_equal(writer.read_rows(0, min(n, CHUNK)), band[:n]), "the checkpoint is wrong"
            if repeat:  # the first one is a warm-up
                times.append(taken)
    for how, times in seconds.items():
        bench.record(
            f"commit of {4 * n * n / 2**30:.3g} GiB, {how}",
            times,
            work=(4 * n * n, "bytes"),
            verified="the rows of a band, read back",
            sizes={"n": n, "bytes": 4 * n * n},
        )


def commit(writer: DistancesWriter, band: np.ndarray) -> None:
    """Write a checkpoint of which each band is `band`, and commit it."""
    writer.make_checkpoint()
    write = writer.writer(result=False)
    with Savers() as savers:
        for start in range(0, writer.n, CHUNK):
            rows = band[: writer.n - start]
            savers.save(rows, CHUNK, partial(write, start))
    writer.commit(writer.stage + 1)
