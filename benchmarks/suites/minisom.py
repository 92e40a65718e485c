"""The suite `minisom`: maps trained by MiniSom and by tilepath's estimator, in turns.

Both get the same samples (standardized), grid, passes, first codebook (the plane of the principal components) and last
sigma. MiniSom learns from one sample after another, on one core; tilepath learns from all samples at a time, on all
cores. CPU seconds count all cores; a busy machine changes them least.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from minisom import MiniSom
from sklearn.datasets import load_digits, load_iris, make_blobs

from benchmarks.harness import Bench
from tilepath import SelfOrganizingMap

CONVENTION = (
    "samples x passes per second of wall time; wall and CPU seconds of one training, without the computation of errors"
)
PASSES = 10
MINISOM = f"MiniSom {importlib.metadata.version('minisom')}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--samples", type=int, default=20_000, help="of the blobs; default: 20,000")
    parser.set_defaults(device="cpu")


def run(bench: Bench, args: argparse.Namespace) -> str:
    blobs, _ = make_blobs(args.samples, 15, centers=8, random_state=0)
    sets = {"iris": (load_iris().data, 10, 14), "digits": (load_digits().data, 15, 15), "blobs": (blobs, 20, 20)}
    for name, (samples, rows, columns) in sets.items():
        _compare(bench, name, standardized(samples), rows, columns)
    return ""


def standardized(samples: Any) -> Any:
    return (samples - samples.mean(axis=0)) / np.where(samples.std(axis=0) > 0, samples.std(axis=0), 1)


def by_minisom(samples: Any, rows: int, columns: int) -> MiniSom:
    som = MiniSom(
        *(rows, columns, samples.shape[1]),
        sigma=max(rows, columns) / 2,
        sigma_decay_function="linear_decay_to_one",
        random_seed=0,
    )
    som.pca_weights_init(samples)
    som.train(samples, PASSES, random_order=True, use_epochs=True)
    return som


def by_tilepath(samples: Any, rows: int, columns: int) -> SelfOrganizingMap:
    return SelfOrganizingMap(rows, columns, epochs=PASSES).fit(samples)


def _compare(bench: Bench, name: str, samples: Any, rows: int, columns: int) -> None:
    ways: dict[str, Callable[..., Any]] = {MINISOM: by_minisom, "tilepath": by_tilepath}
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    errors = {}
    ways["tilepath"](samples[:100], rows, columns)  # compiles
    for _ in range(bench.repeats):
        for way, train in ways.items():
            wall, cpu = time.perf_counter(), time.process_time()
            som = train(samples, rows, columns)
            times[way].append((time.perf_counter() - wall, time.process_time() - cpu))
            codebook = som.get_weights() if way == MINISOM else som.codebook_
            errors[way] = quantization_error(samples, codebook.reshape(rows * columns, -1))
    for way, each in times.items():
        walls, cpus = map(list, zip(*each, strict=True))
        bench.record(
            f"{name}, {len(samples)} x {samples.shape[1]}, {rows} x {columns} units: {way}",
            walls,
            rate_of=(len(samples) * PASSES / statistics.median(walls), "samples"),
            verified="both quantization errors are computed by the same code",
            sizes={"samples": len(samples), "dimensions": samples.shape[1], "units": rows * columns, "passes": PASSES},
            cpu_seconds={"median": statistics.median(cpus), "min": min(cpus), "max": max(cpus)},
            quantization_error=errors[way],
        )


def quantization_error(samples: Any, codebook: Any) -> float:
    pieces = np.array_split(samples, -(-len(samples) // 1000))
    nearest = [np.linalg.norm(piece[:, None] - codebook, axis=2).min(axis=1) for piece in pieces]
    return float(np.concatenate(nearest).mean())
