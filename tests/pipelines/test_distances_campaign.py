"""All pairs by every method, searches, and distances from a hierarchy, against exact fractions.

The reference is Floyd and Warshall's algorithm in Python's fractions, which passes through open vertices only. Integers
must be equal. Floats may differ by a rounding for each arc of a path. What is refused must be a range of weights that
the dtype cannot hold, or a negative cycle. The long campaign:
``pytest -m slow -s tests/pipelines/test_distances_campaign.py``
"""

import shutil
from fractions import Fraction

import numpy as np
from campaigns import campaign, pick, play, random_arcs, without_negative_cycle
from oracles import store_arcs

from gpuops import NegativeCycleError
from gpuops.numbers import distance_limit, outside_infinity
from pipelines import WeightRangeError, all_pairs_shortest_paths, build_hierarchy, single_source_shortest_paths
from pipelines.routes.distances import distances_between

WEIGHTS = {  # the kind of numbers, and their dtype in the store
    "small": (lambda rng, m: rng.integers(0, 9, m), "int16"),
    "zeros": (lambda rng, m: rng.integers(0, 2, m), "int32"),
    "signed": (lambda rng, m: rng.integers(0, 40, m), "int32"),
    "any sign": (lambda rng, m: rng.integers(-2, 50, m), "int64"),
    "near the limits": (lambda rng, m: pick(rng, [2**15, 2**31, 2**29, 2**13]) // rng.integers(1, 30, m), "int64"),
    "sixteenths": (lambda rng, m: rng.integers(0, 99, m) / 16, "float32"),
    "random": (lambda rng, m: rng.random(m), "float64"),
    "tiny": (lambda rng, m: rng.random(m) * 1e-30, "float64"),
    "of all sizes": (lambda rng, m: 10.0 ** rng.integers(-9, 9, m), "float64"),
    "signed sixteenths": (lambda rng, m: rng.integers(0, 99, m) / 16, "float64"),
}
METHODS = ("floyd-warshall", "batched", "hierarchy", "out-of-core", "auto")


def exact_distances(n, tails, heads, weights, through):
    """(n, n) of fractions, or None if there is a negative cycle."""
    matrix = np.full((n, n), np.inf, object)
    for tail, head, weight in zip(tails, heads, weights.tolist(), strict=True):
        matrix[tail, head] = min(matrix[tail, head], Fraction(weight))
    for v in range(n):
        matrix[v, v] = min(matrix[v, v], 0)
    for k in np.flatnonzero(through):
        matrix = np.minimum(matrix, matrix[:, k, None] + matrix[k])
    return None if (np.diag(matrix) < 0).any() else matrix


class Trial:
    def __init__(self, client, folder, rng):
        self.client, self.folder, self.rng = client, folder, rng
        rng, n = self.rng, int(pick(self.rng, [1, 2, 5, 9, 14, 33]))
        self.kind, self.n = pick(rng, [*WEIGHTS]), n
        self.tails, self.heads = random_arcs(rng, n, int(pick(rng, [0, n, 2 * n, 4 * n])))
        draw, stored = WEIGHTS[self.kind]
        self.weights, self.facts = draw(rng, len(self.tails)).astype(stored), {}
        self.through = np.ones(n, bool)
        if self.kind.startswith("signed"):
            self.weights = without_negative_cycle(rng, self.tails, self.heads, self.weights).astype(stored)
        elif rng.random() < 0.3:
            self.facts = {"directed": False}
            self.tails, self.heads = np.append(self.tails, self.heads), np.append(self.heads, self.tails)
            self.weights = np.tile(self.weights, 2)
        if self.kind != "any sign" and rng.random() < 0.4:
            self.through = rng.random(n) < 0.7
        whole = self.weights.dtype.kind == "i"
        self.dtype = pick(rng, [None, "float32", "float64", *["int32", "int16"] * whole])
        self.solved = np.dtype(self.dtype or ("int32" if whole else "float32"))
        self.graph = self.store("g", self.weights)
        self.case = f"{n} vertices, weights {self.kind}, {self.dtype}, {self.facts}, {(~self.through).sum()} closed"

    def store(self, name, weights, kept=slice(None)):
        arcs = self.tails[kept], self.heads[kept], weights[kept]
        return store_arcs(self.folder / name, self.n, *arcs, weights.dtype, through=self.through, **self.facts)

    def some(self, least=1):
        """Vertices, no one twice."""
        return self.rng.permutation(self.n)[: self.rng.integers(least, self.n + 1)].tolist()

    def verdict(self):
        calls = [self.all_pairs, self.searches, self.hierarchy]
        expected = exact_distances(self.n, self.tails, self.heads, self.weights, self.through)
        try:
            found, expected = pick(self.rng, calls)(expected)
        except NegativeCycleError:
            assert expected is None, f"{self.case}: there is no negative cycle"
            return "refused (a negative cycle)"
        except WeightRangeError:
            largest = np.abs(self.weights.astype(float)).max()
            assert self.solved.kind == "i", self.case
            assert largest * self.n * 4 >= distance_limit(self.solved), f"{self.case}: the weights are small"
            return "refused (a range of weights)"
        if found is None:
            return "not compared (no source reaches a negative cycle)"
        assert expected is not None, f"{self.case}: a negative cycle was not found"
        self.compare(found, expected)
        return None

    def all_pairs(self, expected):
        options = {"method": pick(self.rng, METHODS), "verify": bool(self.rng.integers(2))}
        if options["method"] in ("floyd-warshall", "out-of-core"):
            options["block"] = pick(self.rng, [None, 1, 3, 32])
        rows = self.some() if self.rng.random() < 0.3 else None
        self.case += f", all pairs {options}, {rows}"
        found = all_pairs_shortest_paths(
            self.client, self.graph, self.folder / "d", dtype=self.dtype, sources=rows, **options
        )
        return found[:], expected if rows is None or expected is None else expected[rows]

    def searches(self, expected):
        self.dtype = None if self.dtype == "int16" else self.dtype
        self.solved = np.dtype(self.dtype or ("int32" if self.weights.dtype.kind == "i" else "float32"))
        options = {"together": bool(self.rng.integers(2)), "spread": pick(self.rng, [None, "sources", "vertices"])}
        options["verify"] = bool(self.rng.integers(2))
        rows = self.some()
        self.case += f", searches {options}, {rows}"
        found = single_source_shortest_paths(
            self.client, self.graph, self.folder / "p", rows, dtype=self.dtype, **options
        )
        if expected is None:  # no source reaches the cycle
            return None, None
        return found.distances(), expected[rows].min(axis=0, keepdims=True) if options["together"] else expected[rows]

    def hierarchy(self, expected):
        thorough = bool(self.rng.integers(2))
        store = build_hierarchy(self.client, self.graph, self.folder / "h", thorough=thorough, dtype=self.dtype)
        if self.rng.random() < 0.4 and not self.facts and "sign" not in self.kind:
            kept = self.rng.random(len(self.tails)) < 0.8
            weights = self.rng.permutation(self.weights)
            other = self.store("other", weights, kept)
            store = build_hierarchy(self.client, other, self.folder / "like", like=store, dtype=self.dtype)
            expected = exact_distances(self.n, self.tails[kept], self.heads[kept], weights[kept], self.through)
        sources, targets = self.some(), self.some()
        self.case += f", hierarchy, thorough {thorough}, {store.path}"
        found = distances_between(store, sources, targets)
        return found, None if expected is None else expected[np.ix_(sources, targets)]

    def compare(self, found, expected):
        assert (found.dtype, found.shape) == (self.solved, expected.shape), self.case
        far = found == outside_infinity(self.solved)
        reached = expected != np.inf
        np.testing.assert_array_equal(far, ~reached, self.case)
        found, expected = found[reached].astype(float), expected[reached].astype(float)
        if self.solved.kind == "i":
            np.testing.assert_array_equal(found, expected, self.case)
        else:
            unit = np.finfo(self.solved).eps * (self.n + 2)
            negative = bool((self.weights < 0).any())
            slack = unit * self.n * float(np.abs(self.weights).max(initial=0)) if negative else 1e-44
            np.testing.assert_allclose(found, expected, rtol=unit, atol=slack, err_msg=self.case)


@campaign(few=4, many=2_000)
def test_distances_are_those_of_exact_fractions(client, tmp_path, seeds):
    def trial(rng):
        folder = tmp_path / "trial"
        folder.mkdir()
        try:
            return Trial(client, folder, rng).verdict()
        finally:
            shutil.rmtree(folder)

    counts = play(seeds, trial)
    assert counts["equal"] > len(seeds) / 2
