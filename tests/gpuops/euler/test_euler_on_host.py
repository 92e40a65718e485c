"""The kernels of euler.cu on a machine without a GPU: same text, fibers for threads (host_shim/)."""

import numpy as np
import pytest

from gpuops.euler import euler_cuda, euler_numba


@pytest.fixture(autouse=True)
def cupy(host_shim, monkeypatch):
    monkeypatch.setattr(euler_cuda, "_THREADS", 32)
    return host_shim


def balanced_graph(rng, n, walks):
    """Closed walks at random, whose arcs lie in rows in any order: indptr, indices."""
    tails, heads = [np.empty(0, int)], [np.empty(0, int)]
    for _ in range(walks):
        walk = rng.integers(0, n, rng.integers(1, 9))
        tails.append(walk)
        heads.append(np.roll(walk, -1))
    tails, heads = np.concatenate(tails), np.concatenate(heads)
    order = np.lexsort((rng.random(len(tails)), tails))
    return np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))]), heads[order].astype(np.int32)


def star(leaves):
    """Arcs from a hub to leaves and back: as many circuits as leaves."""
    indptr = np.concatenate([[0, leaves], leaves + np.arange(1, leaves + 1)])
    return indptr, np.concatenate([np.arange(1, leaves + 1), np.zeros(leaves)]).astype(np.int32)


def chain(n):
    """Arcs between neighbours, both ways."""
    tails = np.concatenate([np.arange(n - 1), np.arange(1, n)])
    heads = np.concatenate([np.arange(1, n), np.arange(n - 1)])
    order = np.argsort(tails, kind="stable")
    return np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))]), heads[order].astype(np.int32)


CASES = {f"random {seed}": balanced_graph(np.random.default_rng(seed), 30 + seed, 4 * seed) for seed in range(0, 40, 5)}
CASES |= {"star": star(150), "chain": chain(120), "one loop": (np.array([0, 1]), np.zeros(1, np.int32))}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("arc", ["int32", "int64"])
@pytest.mark.parametrize("case", CASES)
def test_stages_are_those_of_the_cpu(cupy, case, arc, seed):
    cupy.start(seed)
    indptr, indices = CASES[case]
    predecessors = euler_numba.pair(indptr, indices).astype(arc)
    labels = euler_numba.label(predecessors)
    on_device = [cupy.asarray(x) for x in (indptr, predecessors)]
    paired = euler_cuda.pair(on_device[0], cupy.asarray(indices))
    np.testing.assert_array_equal(paired.get(), predecessors)
    found = euler_cuda.label(on_device[1])
    np.testing.assert_array_equal(found.get(), labels)

    forest = euler_numba.span(indptr, labels, None)
    links, starts, trees = euler_cuda.span(on_device[0], found, None)
    np.testing.assert_array_equal(links.get(), forest[0])
    np.testing.assert_array_equal(starts.get(), forest[1])
    np.testing.assert_array_equal(trees.get()[labels], forest[2][labels])

    joined = euler_cuda.join(on_device[1], links)
    np.testing.assert_array_equal(joined.get(), euler_numba.join(predecessors, forest[0]))
    components = euler_cuda.relabel(trees, found)
    np.testing.assert_array_equal(components.get(), forest[2][labels])

    arcs, offsets = euler_cuda.walk(on_device[1], found, cupy.asarray(np.unique(labels)))
    expected = euler_numba.walk(predecessors, labels, np.unique(labels))
    np.testing.assert_array_equal(arcs.get(), expected[0])
    np.testing.assert_array_equal(offsets, expected[1])
