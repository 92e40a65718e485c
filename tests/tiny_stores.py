"""A tiny store of every schema, finished and unfinished, with several chunks in every array that can have them."""

import numpy as np
import pytest
from path_rows import write_rows

from gpuops import close_hierarchy, hierarchy_structure
from gpuops.som.grid import Grid
from pipelines.stores.circuits import write_circuits
from pipelines.stores.codebook import create_codebook, open_codebook
from pipelines.stores.distances import create_distances
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.hierarchy import create_hierarchy
from pipelines.stores.lines import Lines
from pipelines.stores.mapping import create_mapping
from pipelines.stores.matrix import create_matrix
from pipelines.stores.paths import create_paths
from pipelines.stores.samples import new_samples, open_samples

RING = (np.arange(5)[None] - np.arange(5)[:, None]) % 5  # distances around a ring of five vertices


def write_tiny_stores(folder):
    """Fill a folder with stores; those whose names begin with "part" are unfinished."""
    graph = write_graph(
        folder / "graph",
        np.arange(6),
        np.array([1, 2, 3, 4, 0]),
        np.ones(5, "int32"),
        labels=np.array(["a", "b", "č", "d d", "e"], dtype=object),
        coordinates=np.arange(10.0).reshape(5, 2),
        through=np.ones(5, bool),
        weight_unit="m",
        source="ring",
    )
    write_graph(folder / "unweighted", np.arange(6), np.array([1, 2, 3, 4, 0]))
    lines = Lines(np.array([1, 0, -1, 2, 0]), np.array([0, 3, 5]), np.arange(10.0).reshape(5, 2))
    places = np.arange(10.0).reshape(5, 2)
    write_graph(
        folder / "lines", np.arange(6), np.array([1, 2, 3, 4, 0]), coordinates=places, lines=lines, crs="EPSG:3857"
    )
    codes = np.array([0, 1, 2, 1, -2])  # an arrival at vertex 1, and a departure
    write_graph(folder / "turns", np.arange(6), np.array([3, 4, 0, 4, 2]), through=np.arange(5) != 1, junctions=codes)
    _distances(folder / "distances", graph, stages=1)
    _distances(folder / "rows", graph, stages=1, sources=[4, 1])
    _distances(folder / "part-distances", graph, stages=3, sources=[4, 1])
    _searched(folder / "part-searched", graph)
    _paths(folder / "paths", graph, [True, True, True])
    _paths(folder / "one", graph, [True], sources=[0])  # the fill value of the array `sources`
    _paths(folder / "part-paths", graph, [True, False, True])
    _paths(folder / "nearest", graph, [True], together=True, cutoff=3.0, targets=[0, 2])
    for name in "hierarchy", "part-hierarchy":
        _hierarchy(folder / name, graph)
    for name, done in ("matrix", [True] * 3), ("part-matrix", [True, True, False]):
        _matrix(folder / name, graph, np.array(done))
    arcs, offsets = np.arange(5), np.array([0, 5])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.stores.circuits.CHUNK_BYTES", 16)
        write_circuits(folder / "circuits", graph, arcs, offsets, path_from=None, directed=True, method="stages")
    with new_samples(
        folder / "samples", columns=["x", "y"], scaling="zscore", weighted=True, labelled=True, chunk_rows=2
    ) as writer:
        writer.append(
            np.array([[1, 2], [3, 5], [4, 1], [0, 0.5]], "float32"),
            np.array([1, 2, 1, 0.5]),
            ["setosa", None, "virginica", "setosa"],
        )
    samples = open_samples(folder / "samples")
    codebook = _codebook(folder / "codebook", samples, done=3)
    _codebook(folder / "part-codebook", samples, done=1)
    _mapping(folder / "mapping", samples, codebook, [True] * 4)
    _mapping(folder / "part-mapping", samples, codebook, [False, False, True, True])


def _distances(path, graph, *, stages, sources=None):
    run = create_distances(path, graph, dtype="float32", chunk=2, stages=stages, options={"block": 2}, sources=sources)
    finished = stages == 1
    rows = RING[sources] if finished and sources else RING
    (run.make_result if finished else run.make_checkpoint)()
    for start in range(0, len(rows), 2):
        run.write_rows(start, rows[start : start + 2].astype("float32"), result=finished)
    run.commit(1)


def _searched(path, graph):
    options = {"method": "batched", "block": None}
    run = create_distances(path, graph, dtype="float32", chunk=2, stages=1, options=options)
    run.make_result()
    run.write_rows(2, RING[2:4].astype("float32"))
    run.record(np.array([False, False, True, True, False]))


def _paths(path, graph, done, sources=(4, 1, 3), **options):
    run = create_paths(path, graph, dtype="int32", sources=sources, chunk=1, **options)
    for row in np.flatnonzero(done):
        distances = RING[list(run.row_sources(row))].min(axis=0)
        write_rows(run, row, distances[None].astype("int32"), np.where(distances, np.roll(np.arange(5), 1), -1)[None])
    run.record(np.array(done))


def _hierarchy(path, graph):
    run = create_hierarchy(path, graph, dtype=np.dtype("float32"), options={})
    order = np.arange(5, dtype=np.int32)[::-1].copy()
    run.commit_order(order, (order[1:], order[:1]))
    through = np.array([True, True, True, True, False])
    indptr, indices, weights = graph.rows()
    structure, cost = hierarchy_structure(indptr, indices, order, through)
    run.commit_structure(structure, cost)
    if "part" not in path.name:
        run.complete(close_hierarchy(structure, indptr, indices, weights.astype("float32")))


def _matrix(path, graph, done):
    names = np.array(["x", "y", "z"], object), np.array(["ö", "p"], object)
    facts = {"dtype": np.dtype("float32"), "chunk": 1, "options": {"dtype": "float32", "chunk": 1}}
    run = create_matrix(path, graph, names, **facts)
    for row in np.flatnonzero(done):
        run.write(row, np.array([[row, 2]], "float32"))
    run.record(done)


def _codebook(path, samples, done):
    facts = {"metric": "euclidean", "sigmas": [2.0, 1.5, 1.0], "options": {"metric": "euclidean", "epochs": 3}}
    run = create_codebook(path, samples, Grid(2, 3, hexagonal=True), **facts)
    for epoch in range(done + 1):
        run.write(epoch, np.arange(12).reshape(1, 6, 2) / 7 + epoch)
        run.commit(epoch, [1 / (e + 1) for e in range(epoch)])
    if done < 3:
        return None
    run.finish(3, [1 / (e + 1) for e in range(4)], 0.25, np.array([1, 0, 1, 0, 1, 1]))
    return open_codebook(path)


def _mapping(path, samples, codebook, done):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.stores.mapping.CHUNK_BYTES", 16)  # chunks of two rows
        run = create_mapping(path, samples, codebook)
    units = np.array([[0, 1], [2, 3], [4, 0], [5, 1]], np.int32)
    distances = np.array([[0.5, 1.0], [0.0, 0.25], [2.0, 2.0], [1.5, 7.0]], "float32")
    for start in range(0, 4, 2):
        if done[start]:
            run.write(start, units[start : start + 2], distances[start : start + 2], samples.weights(start, start + 2))
    run.record(np.array(done))


@pytest.fixture(scope="session")
def tiny_stores(tmp_path_factory):
    """The folder of the stores; copy what is to be changed."""
    folder = tmp_path_factory.mktemp("tiny")
    write_tiny_stores(folder)
    return folder
