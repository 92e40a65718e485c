"""The suite `som`: best matching units and whole epochs of a self-organizing map, compared with published methods.

The workload of the article is 10,000 samples of 12 dimensions and 200 x 200 units. The article's two kernels, and its
serial loop on one core, search the units of all samples (node_by_node.py). The peer is a matrix product and an argmin,
which holds all scores and does not guarantee the right unit.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.harness import Bench
from benchmarks.kernels.diagnosis import diagnose
from benchmarks.kernels.node_by_node import PROGRAM, VARIANTS, Search, one_by_one
from gpuops import Grid, best_matching_units, fixed_point, from_fixed_point, smooth, unit_sums

CONVENTION = (
    "samples x units x dimensions (x epochs) per second; wall seconds with launches, device synchronized, samples and "
    "codebook resident; training counts its last pass, which labels the samples, too"
)
ARTICLE = (10_000, 40_000, 12)
LARGE = [(200_000, 40_000, d) for d in (12, 34, 60, 128)] + [(1_000_000, 400, 15), (300_000, 10_000, 784)]
PARTS = ("searches", "published", "training")
CHECKED = 100  # samples whose units are checked in float64
SEED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=PARTS, action="append", help="default: all; published: other methods")


def run(bench: Bench, args: argparse.Namespace) -> None:
    (n, m, d), parts = ARTICLE, args.only or PARTS
    if "searches" in parts:
        for metric in ("euclidean", "taxicab", "cosine"):
            time_search(bench, "article", n, m, d, metric)
        for shape in LARGE if bench.gpu else [(2_000, m, d) for _, m, d in LARGE[:4]]:
            time_search(bench, "rate", *shape, "euclidean")
    if "published" in parts:
        time_product(bench, n, m, d)
        time_article(bench, n, m, d)
    if "training" in parts:
        for samples, dimensions, side in [(480_000, 34, 30), (5_000_000, 60, 200)] if bench.gpu else [(20_000, 34, 30)]:
            time_training(bench, samples, dimensions, side)


def time_search(bench: Bench, title: str, n: int, m: int, d: int, metric: str) -> None:
    samples, codebook = _random(bench, n, d, 0), _random(bench, m, d, 1)
    units, _ = best_matching_units(samples, codebook, metric)
    _check(bench, samples[:CHECKED], codebook, units[:CHECKED], metric)
    seconds = [bench.seconds(lambda: best_matching_units(samples, codebook, metric)) for _ in range(bench.repeats)]
    _record(bench, f"{title}, {metric}, {n} x {d}, {m} units", seconds, n * m * d)


def time_product(bench: Bench, n: int, m: int, d: int) -> None:
    samples, codebook, xp = _random(bench, n, d, 0), _random(bench, m, d, 1), bench.xp

    def nearest() -> Any:
        scores = samples @ (-2 * codebook.T)
        scores += (codebook * codebook).sum(axis=1)
        return xp.argmin(scores, axis=1)

    right = float((nearest() == best_matching_units(samples, codebook)[0]).mean())
    seconds = [bench.seconds(nearest) for _ in range(bench.repeats)]
    _record(
        bench, f"matrix product and argmin, {n} x {d}, {m} units", seconds, n * m * d, f"{right:.4%} of the units equal"
    )


def time_article(bench: Bench, n: int, m: int, d: int) -> None:
    """Time the article's kernels and serial loop on all samples, in float64. `published` quotes the article."""
    samples, codebook = (_random(bench, *shape, seed).astype("float64") for shape, seed in (((n, d), 0), ((m, d), 1)))
    expected = best_matching_units(samples, codebook)[0]
    verified = f"{n} units equal best_matching_units"
    host = [x.get() if bench.gpu else x for x in (samples, codebook, expected)]

    def serial() -> None:
        assert bool((one_by_one(host[0], host[1]) == host[2]).all()), "the serial loop is wrong"

    one_by_one(host[0][:1], host[1])  # compiles
    seconds = [bench.seconds(serial) for _ in range(min(bench.repeats, 3))]
    _record(bench, f"serial loop, one core, {n} x {d}, {m} units", seconds, n * m * d, verified)
    if not bench.gpu:
        return
    search = Search(bench.xp, samples, codebook)
    for variant in VARIANTS:
        found = bench.xp.asarray(search.run(variant))
        assert bool((found == expected).all()), f"{variant.title} is wrong"
        seconds = [bench.seconds(lambda variant=variant: search.run(variant)) for _ in range(bench.repeats)]  # type: ignore[misc]
        facts = diagnose(PROGRAM, variant.entry, search.threads)
        facts["milliseconds_per_launch"] = 1000 * sorted(seconds)[len(seconds) // 2] / n
        published = {"published": "a factor of about 1.5 over one core"} if "optimized" in variant.title else {}
        title = f"article, {variant.title}, {n} x {d}, {m} units"
        _record(bench, title, seconds, n * m * d, verified, **facts, **published)
        print(
            f"    {facts['milliseconds_per_launch']:.4f} ms {facts['occupancy']:.0%} threads({facts['threads']}) "
            f"reg({facts['registers']}) smem({facts['shared_bytes']})"
        )


def time_training(bench: Bench, n: int, d: int, side: int, epochs: int = 10) -> None:
    """Time batch training on one device, with the first samples as the codebook, then the units of all samples.

    The last search checks the values, as the pipeline does when it stores units.
    """
    samples, grid, scale = _random(bench, n, d, 0), Grid(side, side), fixed_point(n, 1.0)
    codebook = samples[: side * side].copy()

    def train() -> Any:
        weights = codebook
        for sigma in np.geomspace(side / 2, 0.5, epochs):
            units, _ = best_matching_units(samples, weights, validate=False)
            found = unit_sums(samples, units, side * side, scale=scale, validate=False)
            sums, counts = from_fixed_point(*found, scale)
            weights = smooth(sums, counts, weights, grid, sigma)
        return weights, best_matching_units(samples, weights)[0]

    weights, units = train()
    _check(bench, samples[:CHECKED], weights, units[:CHECKED], "euclidean")
    seconds = [bench.seconds(train) for _ in range(3)]
    _record(
        bench, f"training, {n} x {d}, {side} x {side} units, {epochs} epochs", seconds, n * side**2 * d * (epochs + 1)
    )


def _random(bench: Bench, n: int, d: int, seed: int) -> Any:
    rng = bench.xp.random.default_rng(SEED + seed)
    return rng.random((n, d), dtype="float32")


def _check(bench: Bench, samples: Any, codebook: Any, units: Any, metric: str) -> None:
    """Assert that the units have the least distances in float64, with sums in the order of the dimensions."""
    xp = bench.xp
    x, w = samples.astype("float64"), codebook.astype("float64")
    totals = [xp.zeros((len(x), len(w))) for _ in range(3)]
    for k in range(x.shape[1]):
        a, b = x[:, k, None], w[None, :, k]
        difference = a - b
        terms = (
            (a * b, a * a + 0 * b, b * b + 0 * a)
            if metric == "cosine"
            else (difference**2 if metric == "euclidean" else abs(difference),)
        )
        for total, term in zip(totals, terms, strict=False):
            total += term
    distances = totals[0]
    if metric == "cosine":
        distances = xp.maximum(1 - totals[0] / (xp.sqrt(totals[1]) * xp.sqrt(totals[2])), 0)
    assert bool((distances.argmin(axis=1) == units).all()), f"best matching units ({metric}) are wrong"


def _record(
    bench: Bench, case: str, seconds: list[float], work: int, verified: str | None = None, **facts: Any
) -> None:
    bench.record(
        case,
        seconds,
        verified=verified or f"{CHECKED} samples equal float64",
        work=(work, "sample-unit-dimensions"),
        **facts,
    )
