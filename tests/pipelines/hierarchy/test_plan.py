"""The memory that workers need to answer from a hierarchy."""

import numpy as np
from road_graphs import hierarchy_of, made

from gpuops import distance_rows
from gpuops.hierarchy import blocks
from gpuops.hierarchy.memory import answer_bytes, brick_bytes
from pipelines.hierarchy.plan import ANSWER_BYTES, BLOCK_BYTES, answers
from pipelines.workers.capacity import WorkerFacts


def needed(structure, hosts, memory, fits=True, rows=True):
    facts = [WorkerFacts(f"{i}", host, "CPU", False, memory, 0.0, host_memory=memory) for i, host in enumerate(hosts)]
    return np.array(answers(structure, np.dtype("int32"), 1000, fits, (0, 0), facts, rows=rows).host)


def test_the_tables_of_bricks_are_counted_where_they_are_kept(monkeypatch):
    arcs = [(v, v + step) for v in range(2450) for step in (1, 50) if step > 1 or v % 50 < 49]
    hierarchy = hierarchy_of(made(2500, arcs), "int32")
    structure = hierarchy.structure
    distance_rows(hierarchy, [0])
    bricks = brick_bytes(structure, "int32")
    assert bricks == sum(table.nbytes for table in blocks._everywhere[hierarchy]._kept.values()) > 10_000
    monkeypatch.setattr("gpuops.hierarchy.memory.TABLES", 1000)
    columns, more_kept = 2500 * (ANSWER_BYTES - BLOCK_BYTES), bricks - 4000
    for hosts, memory, more in ("a", 4 * bricks, more_kept), ("a", 4 * bricks - 1, 0), ("ab", 4 * bricks, more_kept):
        difference = needed(structure, hosts, memory) - needed(structure, hosts, memory, rows=False)
        assert (difference == columns + more).all()
    # Workers of a host share what they may keep, and the tables of the store.
    assert (needed(structure, "aa", 8 * bricks) - needed(structure, "aa", 4 * bricks) == more_kept).all()
    assert np.diff(needed(structure, "aab", 0)).tolist() == [-1000, 1000]
    more = needed(structure, "a", 8 * bricks, fits=False) - needed(structure, "a", 0, fits=False)
    assert more == 2 * more_kept  # in float64


def test_intermediate_arrays_are_counted_by_what_a_call_has():
    structure = hierarchy_of(made(2500, [(v, v + 1) for v in range(2499)]), "int32").structure
    few, many, converted = (
        answer_bytes(structure, "float64", sources, 2500, narrow)
        for sources, narrow in ((1, False), (6400, False), (6400, True))
    )
    assert few < 10 << 20
    assert 8 * 6400 * structure.bricks.upper <= many - few <= 1.1 * 8 * 6400 * structure.bricks.upper
    assert converted - many == int(1.1 * 8 * 6400 * 2500)
