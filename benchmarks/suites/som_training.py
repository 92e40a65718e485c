"""The suite `som-training`: self-organizing maps from store to store, on one worker or more, resident and streamed.

The time of an epoch is computed from the difference between a long run and a short run, which excludes the start,
reading and the end.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Bench
from clusters import start
from pipelines import train_som
from pipelines.som.shard import AHEAD, Shard, usual_piece_rows
from pipelines.stores.codebook import open_codebook
from pipelines.stores.samples import Samples, new_samples, open_samples
from pipelines.workers.ahead import in_turn

CONVENTION = (
    "samples x units x dimensions per second of one epoch: best matching units, sums, smoothing and the commit; wall "
    "seconds; samples in a Zarr store in the page cache"
)
SHORT, LONG = 1, 6  # epochs of the short run and of the long run
DRAWN = 500_000  # samples that are drawn at a time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--samples", type=int, help="default 5,000,000; on a CPU 20,000")
    parser.add_argument("--dimensions", type=int, default=60)
    parser.add_argument("--side", type=int, help="of the map, in units; default 200; on a CPU 30")
    parser.add_argument("--workers", type=int, nargs="+", help="numbers of workers; default 1 and all GPUs")
    parser.add_argument("--resident", action="store_true", help="only with the samples in the memory of the workers")
    parser.add_argument("--store", type=Path, help="a samples store to use, which is made if it is not there")
    parser.add_argument("--only-store", action="store_true", help="make the store of --store, and end")


def run(bench: Bench, args: argparse.Namespace) -> None:
    n = args.samples or (5_000_000 if bench.gpu else 20_000)
    side = args.side or (200 if bench.gpu else 30)
    case = f"{n} x {args.dimensions}, {side} x {side} units"
    work = n * args.dimensions * side**2
    with tempfile.TemporaryDirectory() as folder:
        store = args.store or Path(folder) / "samples.zarr"
        samples = open_samples(store) if store.exists() else write(store, n, args.dimensions)
        if args.only_store:
            return
        assert (samples.n, samples.d) == (n, args.dimensions), f"{store} has other samples than asked for"
        reading = [time_reading(samples, bench.gpu) for _ in range(bench.repeats)]
        bench.record(
            f"reading {case}",
            reading,
            work=(samples.n * samples.row_bytes, "bytes"),
            verified="as the pipeline reads",
        )
        known: np.ndarray | None = None
        resident = None
        alone: float | None = None
        for workers in args.workers or (sorted({1, bench.xp.cuda.runtime.getDeviceCount()}) if bench.gpu else (1,)):
            with start(device="gpu" if bench.gpu else "cpu", workers=workers, processes=workers > 1 or None) as client:
                for kept in (True,) if args.resident else (True, False):
                    seconds, whole, units = time_epochs(client, samples, Path(folder), side, kept, bench.repeats)
                    known = units if known is None else known
                    assert (known == units).all(), "another way of training ends with another codebook"
                    epoch = sorted(seconds)[len(seconds) // 2]
                    facts: dict[str, Any] = {}
                    if kept:
                        resident, alone = epoch, epoch if workers == 1 else alone
                        facts["speedup"] = alone / epoch if alone else None
                    else:
                        limit = max(resident or 0, sorted(reading)[len(reading) // 2])
                        facts["fraction_of_the_slower_of_kernels_and_storage"] = limit / epoch
                    bench.record(
                        f"epoch {case}, {'resident' if kept else 'streamed'}, workers {workers}",
                        seconds,
                        work=(work, "sample-unit-dimensions"),
                        verified="the codebooks of all ways are equal to the last bit",
                        whole_seconds={"epochs": LONG, "median": sorted(whole)[len(whole) // 2]},
                        **facts,
                    )


def write(path: Path, n: int, d: int) -> Samples:
    """Write random samples from 0 to 1. Threads draw the next samples while a block of samples is written."""

    def drawn(first: int) -> np.ndarray:
        return np.random.default_rng([1, first]).random((min(DRAWN, n - first), d), dtype="float32")

    with new_samples(path, columns=list(map(str, range(d)))) as writer:
        for values in in_turn(drawn, range(0, n, DRAWN), AHEAD):
            writer.append(values)
    return open_samples(path)


def time_reading(samples: Samples, gpu: bool) -> float:
    begin = time.perf_counter()
    for _ in Shard(samples, 0, samples.n, usual_piece_rows(samples.row_bytes, gpu), False, np).pieces():
        pass
    return time.perf_counter() - begin


def time_epochs(
    client: Any, samples: Samples, folder: Path, side: int, resident: bool, repeats: int
) -> tuple[list[float], list[float], np.ndarray]:
    """Return the seconds of an epoch, the seconds of the long run, and the codebook of the long run."""

    def train(epochs: int) -> float:
        begin = time.perf_counter()
        train_som(
            client,
            samples,
            folder / "map.zarr",
            side,
            side,
            epochs=epochs,
            sigma=side / 4,
            sigma_end=side / 4,
            initial="random",
            resident=resident,
            overwrite=True,
            progress=False,
        )
        return time.perf_counter() - begin

    train(SHORT)
    pairs = [(train(SHORT), train(LONG)) for _ in range(repeats)]
    units = open_codebook(folder / "map.zarr").units()
    return [(long - short) / (LONG - SHORT) for short, long in pairs], [long for _, long in pairs], units
