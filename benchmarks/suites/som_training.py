"""The suite `som-training`: self-organizing maps from store to store, by one worker and by all, resident and streamed.

An epoch is timed as the difference between a long run and a short one, which leaves out start, reading and the end.
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
from pipelines.som.plan import PIECE_BYTES
from pipelines.som.shard import Shard
from pipelines.stores.codebook import open_codebook
from pipelines.stores.samples import Samples, new_samples, open_samples

CONVENTION = (
    "samples x units x dimensions per second of one epoch: best matching units, sums, smoothing and the commit; wall "
    "seconds; samples in a Zarr store in the page cache"
)
SHORT, LONG = 1, 6  # epochs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto")
    parser.add_argument("--samples", type=int, help="default 5,000,000; on a CPU 20,000")
    parser.add_argument("--dimensions", type=int, default=60)
    parser.add_argument("--side", type=int, help="of the map, in units; default 200; on a CPU 30")


def run(bench: Bench, args: argparse.Namespace) -> None:
    n = args.samples or (5_000_000 if bench.gpu else 20_000)
    side = args.side or (200 if bench.gpu else 30)
    case = f"{n} x {args.dimensions}, {side} x {side} units"
    work = n * args.dimensions * side**2
    with tempfile.TemporaryDirectory() as folder:
        samples = write(Path(folder) / "samples.zarr", n, args.dimensions)
        reading = [time_reading(samples) for _ in range(bench.repeats)]
        bench.record(
            f"reading {case}",
            reading,
            bytes_moved=samples.n * samples.row_bytes,
            verified="as the pipeline reads",
        )
        known: np.ndarray | None = None
        resident = None
        for workers in sorted({1, bench.xp.cuda.runtime.getDeviceCount()}) if bench.gpu else (1,):
            with start(device="gpu" if bench.gpu else "cpu", workers=workers) as client:
                for kept in True, False:
                    seconds, whole, units = time_epochs(client, samples, Path(folder), side, kept, bench.repeats)
                    known = units if known is None else known
                    assert (known == units).all(), "another way of training ends with another codebook"
                    epoch = sorted(seconds)[len(seconds) // 2]
                    facts: dict[str, Any] = {}
                    if kept:
                        resident = epoch
                    else:
                        limit = max(resident or 0, sorted(reading)[len(reading) // 2])
                        facts["fraction_of_the_slower_of_kernels_and_storage"] = limit / epoch
                    bench.record(
                        f"epoch {case}, {'resident' if kept else 'streamed'}, workers {workers}",
                        seconds,
                        rate_of=(work / epoch, "sample-unit-dimensions"),
                        verified="the codebooks of all ways are equal to the last bit",
                        whole_seconds={"epochs": LONG, "median": sorted(whole)[len(whole) // 2]},
                        **facts,
                    )


def write(path: Path, n: int, d: int) -> Samples:
    rng = np.random.default_rng(1)
    with new_samples(path, columns=list(map(str, range(d)))) as writer:
        for first in range(0, n, 100_000):
            writer.append(rng.random((min(100_000, n - first), d), dtype="float32"))
    return open_samples(path)


def time_reading(samples: Samples) -> float:
    begin = time.perf_counter()
    for _ in Shard(samples, 0, samples.n, max(1, PIECE_BYTES // samples.row_bytes), False, np).pieces():
        pass
    return time.perf_counter() - begin


def time_epochs(
    client: Any, samples: Samples, folder: Path, side: int, resident: bool, repeats: int
) -> tuple[list[float], list[float], np.ndarray]:
    """Seconds of an epoch and of the long run, and its codebook."""

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
