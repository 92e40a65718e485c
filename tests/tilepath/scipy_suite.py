"""A plugin of pytest: SciPy's tests of shortest paths ask tilepath.csgraph, and each call is counted.

The tests bind the functions when their module is imported, after plugins: so they are exchanged here. What passed and
the calls go to the file named by COUNTS, as JSON.
"""

import collections
import functools
import json
import os
from pathlib import Path

import scipy.sparse.csgraph

import tilepath.csgraph

FUNCTIONS = ("shortest_path", "floyd_warshall", "dijkstra", "bellman_ford", "johnson")
calls = collections.Counter(dict.fromkeys(FUNCTIONS, 0))
outcomes = collections.Counter()


def counted(function):
    @functools.wraps(function)
    def call(*arguments, **options):
        calls[function.__name__] += 1
        return function(*arguments, **options)

    return call


for name in FUNCTIONS:
    setattr(scipy.sparse.csgraph, name, counted(getattr(tilepath.csgraph, name)))


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        outcomes["xfailed" if hasattr(report, "wasxfail") else report.outcome] += 1


def pytest_sessionfinish(session):
    Path(os.environ["COUNTS"]).write_text(json.dumps({"outcomes": outcomes, "calls": calls}))
