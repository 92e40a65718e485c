"""A network with its hierarchy and all its distances, made once for the tests of tables."""

import numpy as np
import pytest
from sparse_rows import all_distances

from clusters import start
from pipelines import build_hierarchy, write_graph

N = 60


@pytest.fixture(scope="package")
def graph(tmp_path_factory):
    """A strongly connected graph of 50 vertices, and 10 that lead into it, with labels, longitudes and latitudes."""
    rng = np.random.default_rng(4)
    tails = np.concatenate([np.arange(50), rng.integers(0, 50, 100), np.arange(50, 60)])
    heads = np.concatenate([(np.arange(50) + 1) % 50, rng.integers(0, 50, 100), np.arange(10)])
    order = np.argsort(tails, kind="stable")
    indptr = np.searchsorted(tails[order], np.arange(N + 1))
    return write_graph(
        tmp_path_factory.mktemp("graph") / "g.zarr",
        indptr,
        heads[order],
        rng.integers(1, 50, len(tails)).astype("int32"),
        labels=np.array([f"v{v}" for v in range(N)]),
        coordinates=np.stack([rng.uniform(5, 15, N), rng.uniform(45, 55, N)], axis=1),
        weight_unit="s",
    )


@pytest.fixture(scope="package")
def maker():
    """A client to make hierarchies with."""
    with start(device="cpu") as client:
        yield client


@pytest.fixture(scope="package")
def store(maker, graph, tmp_path_factory):
    return build_hierarchy(maker, graph, tmp_path_factory.mktemp("store") / "s.zarr")


@pytest.fixture(scope="package", params=["hierarchy", "graph"])
def source(request, graph, store):
    return graph if request.param == "graph" else store


@pytest.fixture(scope="package")
def matrix(graph):
    """(n, n) float64; unreachable is +inf."""
    return all_distances(*graph.rows())
