"""Campaigns: trials drawn from seeds, each comparing an answer with another one; and what they draw.

A few trials run by default. ``pytest -m slow -s FILE`` plays the long campaign and prints its counts; TRIALS=100000
sets their number, and SEED=17 TRIALS=1 plays one trial again.
"""

import os
import traceback
from collections import Counter

import numpy as np
import pytest


def campaign(few, many):
    """Mark a test that is to be run for the seeds of `few` trials, and under `slow` for those of `many`."""
    first = int(os.environ.get("SEED", 0))
    seeds = range(first, first + int(os.environ.get("TRIALS", many)))
    slow = [pytest.mark.slow, pytest.mark.timeout(7200)]
    values = [pytest.param(range(few), id="few"), pytest.param(seeds, marks=slow, id="many")]
    return pytest.mark.parametrize("seeds", values)


def play(seeds, trial):
    """Run ``trial(rng)`` for every seed and print the counts; AssertionError with the seeds of the disagreements.

    A trial returns a word if it compared nothing, such as "refused", and raises if two answers disagree.
    """
    counts, wrong = Counter(), []
    for seed in seeds:
        try:
            counts[trial(np.random.default_rng(seed)) or "equal"] += 1
        except Exception as error:
            line = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} ({line.filename}:{line.lineno})"
            counts["disagreements"] += 1
            wrong.append(f"SEED={seed}: {text:.1000}")
    told = ", ".join(f"{count:,} {what}" for what, count in counts.most_common())
    print(f"\n{len(seeds):,} trials: {told}")
    assert not wrong, f"{told}\n" + "\n".join(wrong[:5])
    return counts


def pick(rng, choices):
    """One of a list, whatever the types in it."""
    return choices[rng.integers(len(choices))]


def random_arcs(rng, n, m):
    """(tails, heads): loops and parallel arcs among them; of a few vertices, or of all."""
    return rng.integers(0, pick(rng, [n, max(1, n // 3)]), (2, m))


def without_negative_cycle(rng, tails, heads, weights):
    """Some of the weights, 0 or more, made negative by potentials; exact for whole numbers, as loops keep theirs."""
    potentials = rng.integers(0, 30, max(tails.max(initial=0), heads.max(initial=0)) + 1)
    return weights + potentials[tails] - potentials[heads]
