"""One GPU does the last stages together, band by band, and writes each meanwhile: the bits of stage after stage."""

import math
from dataclasses import replace

import numpy as np
import pytest
from oracles import random_arcs, shifted, store_arcs

from pipelines import all_pairs_shortest_paths
from pipelines.apsp.layout import Layout
from pipelines.apsp.schedule import stages_of
from pipelines.apsp.solve import _job
from pipelines.apsp.stages import LAST, Stages
from pipelines.stores import create_distances, open_distances
from pipelines.workers.attempts import workers_of
from pipelines.workers.progress import Progress

N, BLOCK, BAND = 133, 16, 48
CASES = [
    (kind, dtype) for kind in ("plain", "closed", "negative") for dtype in ("float32", "float64", "int32", "int16")
]
CASES.remove(("negative", "int16"))  # holds signed distances below 2,048 only


class Counted(Progress):
    """Counts the relaxations that are done."""

    done = 0

    def advance(self, units):
        self.done += units


def problem(path, n, kind, dtype):
    """A graph of a kind; of a closed one a block of pivots has none."""
    tails, heads, weights = random_arcs(n, 5 * n, high=30)
    weights = weights.astype("float64") * (0.37 if dtype.startswith("f") else 1)
    if kind == "negative":
        weights = shifted(n, tails, heads, weights)
    through = np.random.default_rng(2).random(n) < (0.7 if kind == "closed" else 2)
    through[96:112] &= kind != "closed"
    return store_arcs(path, n, tails, heads, weights, "float64" if dtype.startswith("f") else "int32", through=through)


@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_the_last_stages_together_give_the_bits_of_one_after_another(client, tmp_path, kind, dtype):
    """On a CPU. Bands begin before the last stages and end within, and some rows of these are no pivots."""
    graph = problem(tmp_path / "g", N, kind, dtype)
    options = {"method": "floyd-warshall", "dtype": dtype, "block": BLOCK}
    want = all_pairs_shortest_paths(client, graph, tmp_path / "core", **options)[:]
    job = _job(graph, np.dtype(dtype))
    stages = len(stages_of(Layout(N, BLOCK, BLOCK, 1), job))
    for together in 2, 3, stages:
        out, shown = tmp_path / str(together), Counted(1, "relaxations", False)
        settings = {"dtype": dtype, "chunk": BAND, "stages": stages + 1, "options": {"block": BLOCK}}
        writer = create_distances(out, graph, **settings)
        attempt = Stages(client, workers_of(client), None, job, writer, shown, math.inf, together)
        assert attempt._steps(half=False)[-1] == (stages - together, stages)
        attempt.run()
        attempt.cancel()
        got = open_distances(out)[:]
        np.testing.assert_array_equal(got.view(f"i{got.itemsize}"), want.view(f"i{want.itemsize}"))
        assert shown.done == N * N * int(job.through.sum())


def test_which_stages_are_done_together(client, tmp_path):
    """None that are committed, none for the rows of sources, none by symmetry."""
    graph = store_arcs(tmp_path / "g", 80, *random_arcs(80, 400), "int32")
    settings = {"dtype": "int32", "chunk": BAND, "stages": 6, "options": {"block": BLOCK}}
    writer = create_distances(tmp_path / "d", graph, **settings)

    def steps(half=False, together=3, **facts):
        job, shown = _job(graph, np.dtype("int32")), Progress(1, "relaxations", False)
        found = replace(writer, **facts)
        return Stages(client, workers_of(client), None, job, found, shown, math.inf, together)._steps(half)

    one_by_one = [(k, k + 1) for k in range(5)]
    assert steps() == [*one_by_one[:2], (2, 5)]
    assert steps(together=1) == steps(half=True) == steps(sources=(3,)) == one_by_one
    assert [steps(stage=stage) for stage in (2, 3, 4, 5)] == [[(2, 5)], [(3, 5)], [(4, 5)], []]


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_on_a_gpu(gpu_client, tmp_path, monkeypatch, kind, dtype):
    n = 3001
    graph = problem(tmp_path / "g", n, kind, dtype)
    options = {"method": "floyd-warshall", "dtype": dtype}
    found = []
    for together in 1, LAST:
        monkeypatch.setattr("pipelines.apsp.stages.LAST", together)
        found.append(all_pairs_shortest_paths(gpu_client, graph, tmp_path / str(together), verify=True, **options)[:])
    np.testing.assert_array_equal(*(rows.view(f"i{rows.itemsize}") for rows in found))
