"""The suite `sequences`: look-and-say, cyclic spectra and permutations, compared with published variants and itertools.

Look-and-say begins with 1113122113 and is timed for the published steps, 40 to 52. Cyclic spectra are computed for
random amino acids. The published variants do not sort on the device, so our variant is timed with and without sorting.
Every result is compared before its case is timed.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Bench
from benchmarks.kernels import sequences as published
from gpuops import (
    cyclic_spectrum,
    cyclic_spectrum_counts,
    look_and_say,
    look_and_say_lengths,
    peptide_masses,
    permutation_rank,
    permutations,
)

CONVENTION = (
    "elements of the result per second; wall seconds from the seed, the masses or the first rank to the result on the "
    "device, with launches and allocation, synchronized"
)
SEED_DIGITS = "1113122113"
STEPS = (40, 42, 44, 46, 48, 50, 52)
MASSES = (100, 200, 500, 1000, 2000, 5000, 10_000)
BRUTE = 2000  # most masses for the O(n^3) method on one core
GRID = 5000  # most masses for the O(n^3) method on a GPU
AMINO_ACIDS = "GASPVTCILNDKQEMHFRYW"
SEED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=["look-and-say", "spectra", "permutations"], action="append")
    parser.add_argument("--steps", type=int, nargs="+", help=f"default {' '.join(map(str, STEPS))}")
    parser.add_argument("--masses", type=int, nargs="+", metavar="N", help=f"default {' '.join(map(str, MASSES))}")
    parser.add_argument("--elements", type=int, default=10, metavar="N", help="all permutations of N; default 10")


def run(bench: Bench, args: argparse.Namespace) -> None:
    only = args.only or ["look-and-say", "spectra", "permutations"]
    for steps in (args.steps or STEPS) if "look-and-say" in only else ():
        _look_and_say(bench, steps)
    for n in (args.masses or MASSES) if "spectra" in only else ():
        _spectra(bench, n)
    if "permutations" in only:
        _permutations(bench, args.elements)


def _look_and_say(bench: Bench, steps: int) -> None:
    xp, host = bench.xp, np.array(list(SEED_DIGITS), np.uint8)
    seed, words, signed = xp.asarray(host), host.astype(np.int32), host.astype(np.int8)
    expected = published.say_one_by_one(host, steps)
    lengths = look_and_say_lengths(SEED_DIGITS, steps)
    assert lengths[-1] == len(expected), "the counted length is wrong"
    ways: dict[str, Callable[[], Any]] = {
        "look-and-say": lambda: look_and_say(seed, steps),
        "serial loop, one core": lambda: published.say_one_by_one(host, steps),
    }
    if bench.gpu:
        ways["published, filter on the host"] = lambda: published.say_with_host_filter(xp, signed, steps)
        ways["published, scans"] = lambda: published.say_by_scans(xp, words, steps, max(lengths))
    for way, call in ways.items():
        _time(bench, "look-and-say", way, {"steps": steps}, call, expected)
    count = lambda: np.array(look_and_say_lengths(SEED_DIGITS, steps))  # noqa: E731
    _time(bench, "look-and-say", "lengths alone", {"steps": steps}, count, np.array(lengths))


def _spectra(bench: Bench, n: int) -> None:
    xp, rng = bench.xp, np.random.default_rng(SEED)
    host = peptide_masses("".join(rng.choice(list(AMINO_ACIDS), n)))
    masses, small, on_host = xp.asarray(host), xp.asarray(host.astype(np.int32)), host.astype(np.int32)
    plain = published.spectrum_memo(on_host)
    ordered = np.sort(plain)
    size = {"n": n}
    ways: list[tuple[str, Callable[[], Any], Any]] = [
        ("cyclic_spectrum", lambda: cyclic_spectrum(masses), ordered),
        ("cyclic_spectrum, not sorted", lambda: cyclic_spectrum(masses, ordered=False), plain),
        ("cyclic_spectrum_counts", lambda: cyclic_spectrum_counts(masses), np.bincount(plain)),
        ("published, memo, one core", lambda: published.spectrum_memo(on_host), plain),
    ]
    if n <= BRUTE:
        ways.append(("published, brute force, one core", lambda: published.spectrum_brute(on_host), plain))
    if bench.gpu and n <= GRID:
        ways.append(("published, grid", lambda: published.spectrum_by_grid(xp, small), plain))
    if bench.gpu:
        ways.append(("published, streamed", lambda: published.spectrum_by_stream(xp, small), plain))
        ways.append(("cupy.sort of the sums", lambda: xp.sort(cyclic_spectrum(masses, ordered=False)), ordered))
    for way, call, expected in ways:
        _time(bench, "cyclic spectrum", way, size, call, expected)


def _permutations(bench: Bench, n: int) -> None:
    values, total = bench.xp.asarray(np.arange(n, dtype=np.uint8)), math.factorial(n)
    by_itertools = lambda: np.fromiter(  # noqa: E731
        itertools.chain.from_iterable(itertools.permutations(range(n))), np.uint8, total * n
    ).reshape(total, n)
    expected = by_itertools()
    _time(bench, "permutations", "permutations", {"n": n}, lambda: permutations(values), expected)
    _time(bench, "permutations", "itertools into an array", {"n": n}, by_itertools, expected)
    repeated = bench.xp.asarray(np.repeat(np.arange(4, dtype=np.uint8), (n + 3) // 4))
    rows = permutations(repeated)
    last = rows[-1] if bench.xp is np else rows[-1].get()
    assert permutation_rank(last) == len(rows) - 1
    call = lambda: permutations(repeated)  # noqa: E731
    _time(bench, "permutations", "of elements that repeat", {"n": len(repeated)}, call, permutations(np.sort(last)))


def _time(bench: Bench, what: str, way: str, sizes: dict[str, int], run: Callable[[], Any], expected: Any) -> None:
    case = f"{what}, {', '.join(f'{name} = {value:,}' for name, value in sizes.items())}: {way}"
    found = run()
    assert found.shape == expected.shape, f"{case}: {found.shape} and not {expected.shape}"
    assert bool((bench.xp.asarray(found) == bench.xp.asarray(expected)).all()), f"{case} is wrong"
    elements = int(found.size)
    del found
    seconds = [bench.seconds(run)]
    while len(seconds) < (bench.repeats if seconds[0] < 2 else 1):
        seconds.append(bench.seconds(run))
    bench.record(case, seconds, work=(elements, "elements"), verified="equals another way", way=way, sizes=sizes)
