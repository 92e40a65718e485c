"""The suite of imports, tiny."""

import argparse

import numpy as np
import pytest

from benchmarks.harness import Bench
from benchmarks.suites import imports

ARCS = 3000


def test_each_format_is_verified(monkeypatch):
    """The memory of one format is measured, as that takes a process."""
    peaks, measure = [], imports.peak_memory

    def once(*paths):
        if not peaks:
            peaks.append(measure(*paths))
        return peaks[0]

    monkeypatch.setattr(imports, "peak_memory", once)
    bench = Bench("imports", np, 1)
    imports.run(bench, argparse.Namespace(arcs=ARCS, only=None))
    assert len(bench.records) == len(imports.SOURCES)
    for record in bench.records:
        assert ARCS * 0.9 < record["sizes"]["arcs"] <= ARCS  # a small road network lacks more, at its edge
        assert record["peak_bytes"] > 1 << 24


@pytest.mark.parametrize("wrong", ["a weight", "an arc", "the names"])
def test_a_wrong_store_is_not_recorded(monkeypatch, wrong):
    bench, right = Bench("imports", np, 1), imports.text

    def damaged(source):
        tails, heads, weights = (np.array(ends) for ends in source.arcs)
        if wrong == "an arc":
            heads[7] = (heads[7] + 1) % source.n
        if wrong == "a weight":
            weights[7] += 1
        return right(source._replace(arcs=(tails, heads, weights)))

    monkeypatch.setattr(imports, "text", damaged)
    if wrong == "the names":
        monkeypatch.setattr(imports.Graph, "labels", lambda graph: np.arange(graph.n).astype(str))
    with pytest.raises(AssertionError):
        imports.run(bench, argparse.Namespace(arcs=ARCS, only=["gr"]))
    assert bench.records == []
