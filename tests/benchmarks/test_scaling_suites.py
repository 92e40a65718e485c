"""The suites of several workers, tiny and in one process."""

import argparse
import json

import numpy as np
import pytest

from benchmarks.harness import Bench
from benchmarks.scaling_constants import time_constants
from benchmarks.suites import scaling, som_training, sources
from clusters import start


@pytest.fixture
def bench(tmp_path, monkeypatch):
    def in_this_process(**options):
        return start(**{**options, "processes": False})

    for suite in scaling, sources, som_training:
        monkeypatch.setattr(suite, "start", in_this_process)
    bench = Bench("scaling", np, 1)
    bench.keep(tmp_path / "results.json", "for a test")
    return bench


def kept(tmp_path):
    return json.loads((tmp_path / "results.json").read_text())["records"]


def test_a_record_is_in_the_file_at_once(tmp_path, bench):
    for count in 1, 2:
        bench.record(f"case {count}", [0.5], work=(count, "relaxations"), verified="not")
        assert [record["case"] for record in kept(tmp_path)] == ["case 1", "case 2"][:count]
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_undirected_graphs_are_compared_with_directed_ones_of_their_dtype(tmp_path, bench):
    given = {"sizes": [200], "workers": [1, 2], "kept": 64, "whole": 0, "undirected": True, "no_constants": True}
    with pytest.raises(SystemExit, match="give --dtype int32"):
        scaling.run(bench, argparse.Namespace(**given, dtype="float32", coordination=[None]))
    scaling.run(bench, argparse.Namespace(**given, dtype="int32", coordination=["scheduler", "signals"]))
    directed, half, two, _, by_scheduler, whole = kept(tmp_path)
    assert directed["speedup"] == 1
    assert half["share_of_directed"] == half["seconds"]["median"] / directed["seconds"]["median"]
    assert two["exchange"].startswith("go straight")
    assert whole["case"] == "all pairs, n = 200, int32, undirected, workers 2, by signals"
    assert by_scheduler["case"] == "all pairs, n = 200, int32, undirected, workers 2, by scheduler"
    assert whole["sha256"] == half["sha256"] != directed["sha256"] == two["sha256"]
    assert {record["rows_written"] for record in kept(tmp_path)} == {64}


@pytest.mark.slow
def test_the_constants_of_the_model_are_measured(tmp_path, bench):
    with start(device="cpu", workers=2, processes=False) as client:
        text = time_constants(bench, client)
    for name in "HOP = ", "GAP = ", "SIGNAL = ", "CLOSE = ", "PULL = ", "DASK":
        assert name in text
    cases = [record["case"] for record in kept(tmp_path)]
    assert cases[:4] == [
        "hop: a task that waits for one on another worker",
        "gap: a task that waits for one on the same worker",
        "signal: a counter that another worker waits for",
        "closing a block of 512",
    ]
    assert "pull of 16 MiB" in cases


@pytest.mark.slow
def test_many_sources_on_one_worker_and_two(tmp_path, bench):
    given = {"scale": 8, "sources": [40], "workers": [2, 1], "store": tmp_path / "g.zarr", "only_store": True}
    sources.run(bench, argparse.Namespace(**given))
    assert (tmp_path / "g.zarr").is_dir()
    sources.run(bench, argparse.Namespace(**{**given, "only_store": False}))
    two, one = kept(tmp_path)
    assert one["speedup"] == one["whole_speedup"] == 1
    assert two["speedup"] == one["seconds"]["median"] / two["seconds"]["median"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.zarr", "results.json"]


def test_epochs_of_one_worker_and_two(tmp_path, bench):
    store = {"samples": 300, "dimensions": 3, "side": 4, "store": tmp_path / "s.zarr"}
    given = {**store, "workers": [1, 2], "resident": True, "only_store": False}
    som_training.run(bench, argparse.Namespace(**given))
    reading, one, two = kept(tmp_path)
    assert reading["case"].startswith("reading")
    assert (one["speedup"], "workers 2" in two["case"]) == (1, True)
    som_training.run(bench, argparse.Namespace(**given))
    assert len(kept(tmp_path)) == 6
