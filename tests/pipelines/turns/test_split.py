"""Turns of thousands of small networks, answered by every engine, against a search over arcs by brute force.

A trial has several networks side by side in one graph. The long campaign:
``pytest -m slow -s tests/pipelines/turns/test_split.py``
"""

import numpy as np
from campaigns import campaign, play
from turn_networks import by_brute_force, networks, rows_of_turns

from gpuops import (
    batched_shortest_distances,
    close_hierarchy,
    distance_block,
    floyd_warshall,
    hierarchy_order,
    hierarchy_structure,
    search_graph,
)
from gpuops.csr import tails as tails_of
from gpuops.numbers import infinity
from pipelines.turns.costs import TurnCosts
from pipelines.turns.split import split_junctions


def split_graph(indptr, heads, weights, through, rows):
    """CSR and open vertices of the graph with turns."""
    turns = TurnCosts.free(indptr, heads, np.unique(rows.vias))
    turns.add_rows(indptr, heads, rows)
    split = split_junctions(indptr, heads, turns)
    order = np.lexsort((split.heads, split.tails))
    roads = split.roads[order]
    lengths = np.where(roads >= 0, weights[roads], split.costs[order]).astype(np.int32)
    size = len(split.junctions.codes)
    starts = np.concatenate([[0], np.cumsum(np.bincount(split.tails, minlength=size))])
    open_ = np.concatenate([through, np.ones(size - len(through), bool)])
    open_[split.junctions.of(np.arange(len(through), size))] = False
    return starts, split.heads[order].astype(np.int32), lengths, open_


def by_floyd_warshall(indptr, heads, weights, through, n):
    """Closed vertices come last, as only the first `pivots` may lie inside of paths."""
    order = np.argsort(~through, kind="stable")
    place = np.argsort(order)
    matrix = np.full((len(order),) * 2, infinity(np.int32), np.int32)
    tails = tails_of(indptr, len(heads), np.int64)
    np.minimum.at(matrix, (place[tails], place[heads]), weights)
    return floyd_warshall(matrix, pivots=int(through.sum()))[np.ix_(place[:n], place[:n])]


def trial(rng):
    bounds, indptr, heads, weights, through = networks(rng)
    rows = rows_of_turns(rng, indptr, heads, through)
    n, expected = len(through), by_brute_force(bounds, indptr, heads, weights, through, rows)
    graph = split_graph(indptr, heads, weights, through, rows)
    arcs, open_ = graph[:3], graph[3]
    sources = rng.permutation(n)[: n // 4]
    searched = batched_shortest_distances(search_graph(*arcs, through=open_), sources)[:, :n]
    structure, _ = hierarchy_structure(*arcs[:2], hierarchy_order(*arcs[:2], open_), open_)
    blocks = distance_block(close_hierarchy(structure, *arcs), np.arange(n), np.arange(n))
    closed = by_floyd_warshall(*graph, n)
    for found, rows_found in (searched, sources), (blocks, slice(None)), (closed, slice(None)):
        np.testing.assert_array_equal(np.where(found >= infinity(np.int32), -1, found), expected[rows_found])
    return "equal" if (rows.costs > 0).any() or rows.only.any() else "equal, without turns"


@campaign(few=60, many=4000)
def test_every_engine_finds_the_distances_of_a_search_over_arcs(seeds):
    play(seeds, trial)
