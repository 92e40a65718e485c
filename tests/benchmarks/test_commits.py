"""The suite of commits, tiny."""

import argparse
import os

import numpy as np
import pytest

from benchmarks.harness import Bench
from benchmarks.suites import commits

N = 100


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setattr(commits, "CHUNK", 64)
    monkeypatch.setattr(os, "sync", lambda: None)
    return Bench("commits", np, 2)


def test_both_kinds_of_commits_are_verified(bench, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(os, "fsync", asked.append)
    commits.run(bench, argparse.Namespace(bytes=[4 * N * N], folder=tmp_path))
    for record, how in zip(bench.records, ("durable", "not durable"), strict=True):
        assert record["case"].endswith(f" GiB, {how}")
        assert record["seconds"]["repeats"] == 2
    assert len(asked) > 3 * 4  # of the four chunks of two durable commits and their warm-up


def test_a_wrong_checkpoint_is_not_recorded(bench, monkeypatch, tmp_path):
    def save(_savers, rows, columns, write):
        for start in range(0, N, columns):
            write(start, rows[:, start : start + columns] + 1)

    monkeypatch.setattr(commits.Savers, "save", save)
    with pytest.raises(AssertionError, match="checkpoint is wrong"):
        commits.run(bench, argparse.Namespace(bytes=[4 * N * N], folder=tmp_path))
    assert bench.records == []
