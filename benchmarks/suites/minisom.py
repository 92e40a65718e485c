"""The suite `minisom`: maps trained by MiniSom and by tilepath's estimator, in turns.

Both get the same samples (standardized), grid, passes, first codebook (the plane of the principal components) and last
sigma. MiniSom learns from one sample after another, on one core; tilepath learns from all samples at a time, on all
cores. CPU seconds count all cores; a busy machine changes them least.

With `--flowsom`, the whole task of FlowSOM is measured instead: train a map, merge its units, and name the cluster of
each sample. FlowSOM (``pip install flowsom``) has many requirements, so it belongs into an environment of its own.
"""

from __future__ import annotations

import argparse
import importlib.metadata
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from minisom import MiniSom
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score

from benchmarks.harness import Bench, spread, taken
from tilepath import SelfOrganizingMap

CONVENTION = (
    "samples x passes per second of wall time; wall and CPU seconds of one training, without the computation of errors"
)
PASSES = 10
CLUSTERS = 8
MINISOM = f"MiniSom {importlib.metadata.version('minisom')}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--samples", type=int, default=20_000, help="of the blobs; default: 20,000")
    parser.add_argument("--flowsom", action="store_true", help="clusters of the blobs by FlowSOM and by the estimator")


def run(bench: Bench, args: argparse.Namespace) -> str:
    blobs, _ = make_blobs(args.samples, 15, centers=8, random_state=0)
    if args.flowsom:
        _compare_clusters(bench, args.samples)
        return ""
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
    def error(way: str, som: Any) -> dict[str, Any]:
        codebook = som.get_weights() if way == MINISOM else som.codebook_
        return {"quantization_error": quantization_error(samples, codebook.reshape(rows * columns, -1))}

    by_tilepath(samples[:100], rows, columns)  # compiles
    _in_turns(
        bench,
        f"{name}, {len(samples)} x {samples.shape[1]}, {rows} x {columns} units",
        {MINISOM: lambda: by_minisom(samples, rows, columns), "tilepath": lambda: by_tilepath(samples, rows, columns)},
        error,
        "both quantization errors are computed by the same code",
        {"samples": len(samples), "dimensions": samples.shape[1], "units": rows * columns, "passes": PASSES},
    )


def clusters_by_flowsom(samples: Any) -> Any:
    from flowsom.models import FlowSOMEstimator

    return FlowSOMEstimator(xdim=10, ydim=10, rlen=PASSES, n_clusters=CLUSTERS, seed=0).fit_predict(samples)


def clusters_by_tilepath(samples: Any) -> Any:
    som = by_tilepath(samples, 10, 10)
    return som.cluster(CLUSTERS, linkage="average")[som.labels_]


def _compare_clusters(bench: Bench, count: int) -> None:
    samples, classes = make_blobs(count, 15, centers=CLUSTERS, random_state=0)
    ways = {f"FlowSOM {importlib.metadata.version('flowsom')}": clusters_by_flowsom, "tilepath": clusters_by_tilepath}
    for find in ways.values():
        find(samples[:500])  # compiles
    _in_turns(
        bench,
        f"blobs, {count} x 15, 10 x 10 units, {CLUSTERS} clusters",
        {way: partial(find, samples) for way, find in ways.items()},
        lambda _, found: {"adjusted_rand_index": float(adjusted_rand_score(classes, found))},
        "the adjusted Rand index of the clusters and the blobs",
        {"samples": count, "dimensions": 15, "units": 100, "passes": PASSES, "clusters": CLUSTERS},
    )


def _in_turns(
    bench: Bench,
    case: str,
    ways: dict[str, Callable[[], Any]],
    quality: Callable[[str, Any], dict[str, Any]],
    verified: str,
    sizes: dict[str, int],
) -> None:
    """Time each way several times, and record its seconds and the quality of its last result."""
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    found = {}
    for _ in range(bench.repeats):
        for way, call in ways.items():
            found[way], wall, cpu = taken(call)
            times[way].append((wall, cpu))
    for way, each in times.items():
        walls, cpus = map(list, zip(*each, strict=True))
        bench.record(
            f"{case}: {way}",
            walls,
            work=(sizes["samples"] * PASSES, "samples"),
            verified=verified,
            sizes=sizes,
            cpu_seconds=spread(cpus),
            **quality(way, found[way]),
        )


def quantization_error(samples: Any, codebook: Any) -> float:
    pieces = np.array_split(samples, -(-len(samples) // 1000))
    nearest = [np.linalg.norm(piece[:, None] - codebook, axis=2).min(axis=1) for piece in pieces]
    return float(np.concatenate(nearest).mean())
