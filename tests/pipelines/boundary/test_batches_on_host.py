"""Parts closed in batches, the kernels on the host (host_shim/)."""

import numpy as np
import pytest
from cut_graphs import random_cut, random_graph

from gpuops.certificates import find_potentials
from pipelines import partition_graph
from pipelines.boundary.batches import PartBatches
from pipelines.boundary.cut_graph import Job, cut_arcs
from pipelines.boundary.stages import closed_boundary, closed_part
from pipelines.generators import Grid, generate


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32", "float64"])
@pytest.mark.parametrize("kind", [{}, {"closed": True}, {"negative": True, "closed": True}], ids=str)
def test_parts_closed_in_batches_are_those_closed_one_by_one(host_shim, dtype, kind, monkeypatch):
    monkeypatch.setattr("pipelines.boundary.batches.BATCH_BYTES", 3 * 20**2 * 4)  # some parts at a time
    for seed in range(12):
        graph, rng = random_graph(seed, dtype, **kind)
        potentials = find_potentials(*graph.rows(), graph.through()) if "negative" in kind else None
        arcs = cut_arcs(Job(graph, np.dtype(dtype), potentials, True), random_cut(graph, rng))
        batches = PartBatches(arcs, host_shim)
        for part in range(arcs.cut.parts):
            one, other = closed_part(arcs, part), closed_part(arcs, part, batches.inner(part))
            for name in one:
                np.testing.assert_array_equal(one[name], other[name])
        sizes = arcs.cut.boundary_sizes
        among = [closed_part(arcs, part)["inner"][:b, :b] for part, b in enumerate(sizes)]
        np.testing.assert_array_equal(closed_boundary(arcs, among), closed_boundary(arcs, among, host_shim))


@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_tables_that_go_to_a_gpu_give_the_distances_of_the_cpu(host_shim, client, tmp_path, monkeypatch, dtype):
    monkeypatch.setattr("pipelines.stores.boundary.CHUNK_BYTES", 1)
    monkeypatch.setattr("pipelines.stores.boundary.EDGE", 7)  # several chunks of each table
    graph = generate(Grid(12, weights="integers", seed=1), tmp_path / "g.zarr", progress=False)
    store = partition_graph(client, graph, tmp_path / "b.zarr", parts=5, dtype=dtype)
    sources, targets = np.arange(40, 60), np.arange(144)
    found = store.between_on_gpu(sources, targets).get()
    assert not store._held[1].any()  # distances within parts are not on the host
    np.testing.assert_array_equal(found, store.between(sources, targets))
