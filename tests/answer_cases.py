"""Graphs for answers from a hierarchy on a GPU, and the comparison with the CPU."""

import numpy as np
from road_graphs import made

from gpuops import distance_block, distance_rows


def grid(side):
    """Arcs between neighbours in a square grid."""
    vertices = np.arange(side * side).reshape(side, side)
    pairs = (vertices[:, :-1], vertices[:, 1:]), (vertices[:-1], vertices[1:])
    return np.concatenate([np.stack([x.ravel(), y.ravel()], 1) for x, y in pairs])


def hubs(n, count):
    """A ring whose first vertices are closed, and have arcs to and from every vertex."""
    ring = [(v, (v + 1) % n) for v in range(n)]
    spokes = [(hub, v) for hub in range(count) for v in range(n)]
    arcs = ring + spokes + [(v, hub) for hub, v in spokes]
    return made(n, arcs, through=np.arange(n) >= count, undirected=False)


def bits(found):
    found = found.get() if hasattr(found, "get") else found
    return np.ascontiguousarray(found).view(f"i{found.itemsize}")


def compare(hierarchy, on_gpu, origins, destinations):
    """Compare rows and a block with those of the CPU, bit for bit."""
    for found, expected in (
        (distance_block(on_gpu, origins, destinations), distance_block(hierarchy, origins, destinations)),
        (distance_rows(on_gpu, origins), distance_rows(hierarchy, origins)),
    ):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(bits(found), bits(expected))


def check(hierarchy, rng, most=40):
    """Compare answers for some origins and destinations, for one origin and for all origins."""
    n = len(hierarchy.structure.order)
    on_gpu = hierarchy.on_gpu()
    some = rng.integers(0, n, rng.integers(1, most))
    for origins in some, some[:1], np.arange(n)[::-1]:
        compare(hierarchy, on_gpu, origins, rng.integers(0, n, rng.integers(1, most)))
    return on_gpu
