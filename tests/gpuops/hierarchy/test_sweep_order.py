"""The order of sweeps, on which the kernels of answers rely."""

import numpy as np
import pytest
from answer_cases import grid
from road_graphs import hierarchy_of, made, random_graph

from gpuops.hierarchy.sweep_order import CHUNK, SweepOrder

GRAPHS = {
    "grid": lambda: made(225, grid(15)),
    "path": lambda: made(50, [(v, v + 1) for v in range(49)]),
    "wide front": lambda: made(60, np.stack(np.triu_indices(60, 1), 1)),
    "no arcs": lambda: made(9, []),
    "closed": lambda: made(4, [], through=np.zeros(4, bool)),
    "any": lambda: random_graph(np.random.default_rng(5), most=200, closed=True),
}


@pytest.fixture(params=[(name, brick) for name in GRAPHS for brick in (1, 12, 1024)], ids=str)
def structure(request):
    name, brick = request.param
    return hierarchy_of(GRAPHS[name](), "int32", brick=brick).structure


def rows_of(structure, node):
    first = structure.bricks.node_row[node]
    return range(first, first + structure.starts[node + 1] - structure.starts[node])


def front_of(structure, node):
    return structure.bricks.rows[slice(*structure.front_starts[node : node + 2])].tolist()


def test_levels_of_bricks_need_earlier_levels_only(structure):
    order, bricks = SweepOrder.of(structure), structure.bricks
    seen = []
    for brick, size in enumerate(bricks.sizes):
        done = set(range(size, size + np.diff(bricks.front_starts)[brick]))
        for level in range(*order.brick_levels[brick : brick + 2]):
            some = range(*order.level_starts[level : level + 2])
            assert len(some)
            for i in some:
                node, row = order.node[i], order.row[i]
                assert bricks.of_node[node] == brick
                assert row in rows_of(structure, node)
                assert done.issuperset(front_of(structure, node))
                seen.append((node, row))
            done |= set(order.row[some.start : some.stop].tolist())
        assert done.issuperset(range(size))
    assert len(seen) == len(set(seen)) == bricks.sizes.sum()


def test_levels_of_the_upper_tree_need_earlier_levels_only(structure):
    order, done = SweepOrder.of(structure), set()
    for first, last in zip(order.chunk_levels[:-1], order.chunk_levels[1:], strict=True):
        assert first < last
        new = []
        for chunk in range(first, last):
            node, row, size = order.chunk_node[chunk], order.chunk_row[chunk], order.chunk_size[chunk]
            assert 1 <= size <= CHUNK
            assert set(range(row, row + size)) <= set(rows_of(structure, node))
            assert done.issuperset(front_of(structure, node))
            new += range(row, row + size)
        assert len(new) == len(set(new))
        assert done.isdisjoint(new)
        done |= set(new)
    assert order.chunk_levels[-1] == len(order.chunk_node)
    assert done == set(range(structure.bricks.upper))
    above = np.flatnonzero(structure.bricks.of_node == len(structure.bricks.sizes))
    assert np.sort(order.upper[above]).tolist() == list(range(len(above)))
    assert (np.delete(order.upper, above) == -1).all()


def test_a_chunk_pulls_from_all_nodes_below(structure):
    """Each vertex of each front in the upper tree once, by its place in the front."""
    order, found = SweepOrder.of(structure), []
    for chunk, row in enumerate(order.chunk_row):
        for pull in range(*order.pull_starts[chunk : chunk + 2]):
            place = order.pull_place[pull]
            for v in range(CHUNK):
                if order.pull_mask[pull] >> v & 1:
                    assert v < order.chunk_size[chunk]
                    found.append((order.pull_node[pull], place, row + v))
                    place += 1
    above = np.flatnonzero(structure.bricks.of_node == len(structure.bricks.sizes))
    expected = [(node, *each) for node in above for each in enumerate(front_of(structure, node))]
    assert sorted(found) == expected
