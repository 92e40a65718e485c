"""The suite sssp-table on a tiny graph, on the CPU."""

import argparse

import numpy as np

from benchmarks.harness import Bench
from benchmarks.suites import sssp_table
from pipelines.generators import RMat


def test_a_row_of_each_dtype():
    bench = Bench("sssp-table", np, 2)
    given = {
        "scales": [8],
        "sources": 3,
        "dtypes": ["float32", "float64"],
        "scipy_up_to": 8,
    }
    sssp_table.run(bench, argparse.Namespace(**given))
    ways = ["plain", "segment sort", sssp_table.OURS, sssp_table.HEAP, sssp_table.SCIPY]
    assert [(r["way"], r["dtype"]) for r in bench.records] == [(way, d) for d in given["dtypes"] for way in ways]
    by_segments = bench.records[1]
    tails, heads, _ = RMat(8, seed=sssp_table.SEED).arcs()
    pairs = {frozenset(pair) for pair in zip(tails.tolist(), heads.tolist(), strict=True) if pair[0] != pair[1]}
    distinct = 2 * len(pairs)
    assert by_segments["segment"] == 64
    assert by_segments["megabytes"]["distances"] == 256 * 4 / 1e6
    assert bench.records[-4]["megabytes"]["distances"] == 256 * 8 / 1e6
    for record in bench.records[:3]:
        found = record["speedup_over_heap"]
        assert 0 < found["min"] <= found["mean"] <= found["max"]
        assert found["sources"] == record["sources"] == 3
    assert by_segments["sizes"] == {"n": 256, "arcs": 32 * 256, "distinct_arcs": distinct}
    sweeps = by_segments["sweeps"]
    assert 2 < sweeps["min"] <= sweeps["mean"] <= sweeps["max"]
    assert sweeps["apart"] == 0  # on one core
