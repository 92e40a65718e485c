"""The suite of imports, tiny."""

import argparse

import numpy as np

from benchmarks.harness import Bench
from benchmarks.suites import imports


def test_the_suite_verifies_each_format():
    bench = Bench("imports", np, 1)
    imports.run(bench, argparse.Namespace(arcs=3000, only=None))
    assert [record["case"] for record in bench.records] == list(imports.CASES)
    assert all(2500 < record["sizes"]["arcs"] <= 3600 for record in bench.records)


def test_some_cases_alone():
    bench = Bench("imports", np, 1)
    imports.run(bench, argparse.Namespace(arcs=300, only=["edge", "Matrix Market, real"]))
    assert [record["case"] for record in bench.records] == ["edge list, integers", "Matrix Market, real, symmetric"]
