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


def test_a_chunk_needs_earlier_chunks_only(structure):
    order, done = SweepOrder.of(structure), set()
    for node, row, size in zip(order.chunk_node, order.chunk_row, order.chunk_size, strict=True):
        assert 1 <= size <= CHUNK
        chunk = set(range(row, row + size))
        assert chunk <= set(rows_of(structure, node))
        assert done.issuperset(front_of(structure, node))
        assert done.isdisjoint(chunk)
        done |= chunk
    assert done == set(range(structure.bricks.upper))
