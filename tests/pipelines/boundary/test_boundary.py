"""The boundary method against Floyd-Warshall on any graph and any cut, and its store."""

import os
import pickle

import numpy as np
import pytest
from click.testing import CliRunner
from cut_graphs import random_cut, random_graph
from hypothesis import given
from hypothesis import strategies as st

from gpuops import NegativeCycleError
from gpuops.boundary import ClosedParts, boundary_distances
from gpuops.certificates import find_potentials
from gpuops.numbers import infinity, outside_infinity, to_outside
from pipelines import (
    StoreError,
    WeightRangeError,
    distances_between,
    open_boundary,
    paths_of_pairs,
    positions,
    predecessors,
    shortest_path,
    verify_distances,
    write_graph,
)
from pipelines.boundary.cut import cut_graph
from pipelines.boundary.cut_graph import Job, cut_arcs
from pipelines.boundary.solve import partition_graph
from pipelines.boundary.stages import closed_boundary, closed_part
from pipelines.stores.whole_chunks import ReadChunks
from tilepath.cli import tilepath


def plain_distances(graph):
    """By Floyd and Warshall, in float64."""
    indptr, indices, weights = graph.rows()
    d = np.full((graph.n, graph.n), np.inf)
    np.minimum.at(d, (np.repeat(np.arange(graph.n), np.diff(indptr)), indices), weights)
    np.fill_diagonal(d, 0)
    for k in np.flatnonzero(graph.through()):
        np.minimum(d, d[:, k, None] + d[k], out=d)
    return d


def tables_of(graph, cut, dtype):
    """What the store would hold."""
    potentials = None
    if graph.rows()[2].size and graph.rows()[2].min() < 0:
        potentials = find_potentials(*graph.rows(), graph.through())
    arcs = cut_arcs(Job(graph, np.dtype(dtype), potentials, True), cut)
    p, b = (max(1, int(sizes.max())) for sizes in (cut.sizes, cut.boundary_sizes))
    shapes = {"to_boundary": (p, b), "from_boundary": (b, p), "inner": (p, p)}
    tables = {name: np.full((cut.parts, *shape), infinity(dtype)) for name, shape in shapes.items()}
    for k in range(cut.parts):
        for name, table in closed_part(arcs, k).items():
            tables[name][k, : table.shape[0], : table.shape[1]] = table
    among = closed_boundary(arcs, (tables["inner"][k, :s, :s] for k, s in enumerate(cut.boundary_sizes)))
    place = cut.place.astype(np.int32)
    return ClosedParts(cut.part, place, cut.boundary_sizes, *(tables[name] for name in shapes), among)


def check(seed, dtype, **kind):
    graph, rng = random_graph(seed, dtype, **kind)
    parts = tables_of(graph, random_cut(graph, rng), dtype)
    sources, targets = rng.integers(0, graph.n, (2, int(rng.integers(0, 50))))
    found = to_outside(boundary_distances(parts, sources, targets))
    expected = plain_distances(graph)[np.ix_(sources, targets)]
    np.testing.assert_array_equal(np.where(found == outside_infinity(dtype), np.inf, found), expected)


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32", "float64"])
@given(seed=st.integers(0, 2**32 - 1), negative=st.booleans(), closed=st.booleans())
def test_any_graph_and_any_cut_give_the_distances_of_floyd_and_warshall(dtype, seed, negative, closed):
    check(seed, dtype, negative=negative, closed=closed)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int16", "int32", "float32", "float64"])
def test_thousands_of_graphs(dtype):
    for seed in range(2_000):
        check(seed, dtype, negative=bool(seed & 1), closed=bool(seed & 2))


@given(seed=st.integers(0, 2**32 - 1), parts=st.integers(1, 6))
def test_a_cut_knows_its_boundary(seed, parts):
    graph, _ = random_graph(seed, "int32")
    indptr, indices, _ = graph.rows()
    cut = cut_graph(indptr, indices, min(parts, graph.n))
    tails = np.repeat(np.arange(graph.n), np.diff(indptr))
    across = cut.part[tails] != cut.part[indices]
    assert set(np.flatnonzero(cut.boundary)) == {*tails[across], *indices[across]}
    assert sorted(cut.order) == list(range(graph.n))
    for k in range(cut.parts):
        vertices = cut.vertices(k)
        assert (cut.part[vertices] == k).all()
        np.testing.assert_array_equal(cut.place[vertices], np.arange(len(vertices)))
        np.testing.assert_array_equal(cut.boundary[vertices], np.arange(len(vertices)) < cut.boundary_sizes[k])


@pytest.fixture
def grid(tmp_path):
    """A 12 x 12 grid with integer weights in both directions, and labels."""
    rng = np.random.default_rng(1)
    vertices = np.arange(144).reshape(12, 12)
    pairs = [(vertices[:-1], vertices[1:]), (vertices[1:], vertices[:-1])]
    pairs += [(vertices[:, :-1], vertices[:, 1:]), (vertices[:, 1:], vertices[:, :-1])]
    tails, heads = (np.concatenate([pair[i].ravel() for pair in pairs]) for i in (0, 1))
    order = np.argsort(tails, kind="stable")
    indptr = np.searchsorted(tails[order], np.arange(145))
    labels = np.array([f"v{v}" for v in range(144)])
    weights = rng.integers(1, 90, len(tails)).astype("int32")
    return write_graph(tmp_path / "g.zarr", indptr, heads[order], weights, labels=labels)


def test_the_store_answers_by_names_and_verifies(client, grid, tmp_path):
    store = partition_graph(client, grid, tmp_path / "b.zarr", parts=5, verify=True)
    assert (store.n, store.parts, store.dtype) == (144, 5, np.dtype("int32"))
    expected = plain_distances(grid)
    every = positions(range(144))
    np.testing.assert_array_equal(distances_between(store, every, every), expected)
    np.testing.assert_array_equal(distances_between(store.path, ["v3", "#7"], ["v5"]), expected[[3, 7]][:, [5]])
    for rows, columns in ((0, 0), (0, 1), (0, 2), (2, 0)):
        found = distances_between(store, ["v3", "v5"][:rows], positions(range(columns)))
        assert (found.shape, found.dtype) == ((rows, columns), store.dtype)
    assert "that no distance is NaN" in store.verify().checked
    for wrong, message in (
        (positions([144]), "there is no vertex '#144'; give an index from 0 to 143"),
        (["x"], "there is no vertex 'x'"),
        ("v3", "the sources are not a list but 'v3'"),
        ([[3.0]], "source 1 of the list"),
    ):
        with pytest.raises(ValueError, match=message):
            distances_between(store, wrong, every)
    grid_moved = tmp_path / "moved.zarr"
    (tmp_path / "g.zarr").rename(grid_moved)
    assert distances_between(store.path, positions([3]), positions([5])) == expected[3, 5]  # no graph is needed
    assert distances_between(store.path, ["v3"], ["v5"], graph=grid_moved) == expected[3, 5]


@pytest.mark.parametrize(("chunk_bytes", "task_bytes"), [(1, 1), (1, 1 << 20), (3000, 1 << 20), (1 << 20, 1 << 20)])
def test_workers_parts_and_chunks_do_not_matter(client, two, grid, tmp_path, monkeypatch, chunk_bytes, task_bytes):
    monkeypatch.setattr("pipelines.stores.boundary.CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr("pipelines.boundary.stages.TASK_BYTES", task_bytes)
    every = positions(range(144))
    found = [
        distances_between(partition_graph(users, grid, tmp_path / name, parts=parts), every, every)
        for name, users, parts in (("a", client, 1), ("b", client, 3), ("c", two, 7), ("d", two, None))
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_an_unfinished_store_is_resumed(client, grid, tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.stores.boundary.CHUNK_BYTES", 1)
    calm = partition_graph(client, grid, tmp_path / "calm.zarr", parts=6)

    def stop(*_arguments):
        raise RuntimeError("stopped")

    with monkeypatch.context() as patched:
        patched.setattr("pipelines.boundary.stages.closed_boundary", stop)
        with pytest.raises(RuntimeError, match="stopped"):
            partition_graph(client, grid, tmp_path / "b.zarr", parts=6)
    with pytest.raises(
        StoreError, match="unfinished; repeat `tilepath partition .*b.zarr` with its options and --resume"
    ):
        open_boundary(tmp_path / "b.zarr")
    for path in (tmp_path / "b.zarr", calm.path):  # what is complete, too, must be what is asked for
        for options, message in (
            ({"parts": 5}, "was begun with parts 6, not 5; repeat its options, or begin again with overwrite"),
            ({}, "was begun with parts 6, not without; repeat"),
            ({"parts": 6, "dtype": "float64"}, "was begun with dtype int32, not float64"),
        ):
            with pytest.raises(StoreError, match=message):
                partition_graph(client, grid, path, resume=True, **options)
    with monkeypatch.context() as patched:
        patched.setattr("pipelines.boundary.stages.closed_part", stop)  # all parts are done
        again = partition_graph(client, grid, tmp_path / "b.zarr", parts=6, resume=True)
    for name in ("part", "place", "to_boundary", "from_boundary", "inner", "among"):
        for chunk in (tmp_path / "calm.zarr" / name).rglob("[0-9]*"):
            if chunk.is_file():
                assert chunk.read_bytes() == (tmp_path / "b.zarr" / chunk.relative_to(calm.path)).read_bytes()
    assert partition_graph(client, grid, tmp_path / "b.zarr", parts=6, resume=True).path == again.path


def test_a_wrong_distance_is_found(client, grid, tmp_path):
    store = partition_graph(client, grid, tmp_path / "b.zarr", parts=4)
    tables = store.tables()
    tables.among[:] += 1
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(store), "tables", lambda self, sources: tables)
        with pytest.raises(Exception, match="wrong|no path|too long|shorter|arc"):
            verify_distances(store, grid)


def test_graphs_that_have_no_answer_are_refused(client, tmp_path):
    cycle = write_graph(tmp_path / "c", [0, 1, 2], [1, 0], np.array([1, -2], "int32"))
    with pytest.raises(NegativeCycleError):
        partition_graph(client, cycle, tmp_path / "b")
    long = write_graph(tmp_path / "l", [0, 1, 2, 2], [1, 2], np.array([8000, 8000], "int16"))
    with pytest.raises(WeightRangeError, match="use --dtype int32"):
        partition_graph(client, long, tmp_path / "b", dtype="int16", parts=1)
    with pytest.raises(ValueError, match="parts is 9; with 3 vertices"):
        partition_graph(client, long, tmp_path / "b2", parts=9)
    assert not (tmp_path / "b2").exists()


def test_a_store_pickles_as_its_path_and_reads_the_parts_that_are_asked_for(client, grid, tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.stores.boundary.CHUNK_BYTES", 1)
    store = partition_graph(client, grid, tmp_path / "b.zarr", parts=4)
    part = int(store.cut().part[5])
    read, band = [], ReadChunks.band

    def note(self, row, out=None):
        read.append((os.path.basename(self._place), row))
        return band(self, row, out)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ReadChunks, "band", note)
        first = store.row(5)
        np.testing.assert_array_equal(store.row(5), first)
    whole = {(name, row) for name in ("to_boundary", "from_boundary") for row in range(4)}
    assert sorted(read) == sorted(whole | {("among", 0), ("inner", part)})
    assert len(pickle.dumps(store)) < 500
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(store)).row(5), first)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_routes_and_predecessors_follow_from_a_cut_graph(client, grid, tmp_path, dtype):
    store = partition_graph(client, grid, tmp_path / "b.zarr", parts=5, dtype=dtype)
    indptr, indices, weights = grid.rows()
    expected = plain_distances(grid)
    found = shortest_path(store.path, "v3", "#140")
    assert found.vertices[0] == 3
    assert found.vertices[-1] == 140
    assert found.length == found.distance == expected[3, 140]
    table = paths_of_pairs(store, positions([[3, 140], [9, 9], [77, 0]]))
    assert table["distance"].to_pylist() == [expected[3, 140], 0, expected[77, 0]]
    for source, row in zip((0, 88), predecessors(store, positions([0, 88])), strict=True):
        for v in np.flatnonzero(np.arange(144) != source).tolist():
            u = row[v]
            arcs = slice(indptr[u], indptr[u + 1])
            w = weights[arcs][indices[arcs] == v].min()
            assert expected[source, u] + w == expected[source, v]


def test_other_weights_on_the_same_cut(client, grid, tmp_path, monkeypatch):
    store = partition_graph(client, grid, tmp_path / "b.zarr", parts=5)
    indptr, indices, weights = grid.rows()
    tails = np.repeat(np.arange(144), np.diff(indptr))
    kept = (indices != 60) & (np.arange(len(indices)) % 7 != 0)  # roads are closed, others are slower
    starts = np.searchsorted(tails[kept], np.arange(145))
    jammed = write_graph(tmp_path / "j.zarr", starts, indices[kept], weights[kept] * 3)
    monkeypatch.setattr("pipelines.boundary.solve.cut_graph", None)  # it is not cut again
    again = partition_graph(client, jammed, tmp_path / "again.zarr", like=store.path, verify=True)
    np.testing.assert_array_equal(again.cut().part, store.cut().part)
    expected = plain_distances(jammed)
    found = distances_between(again, range(144), range(144))
    np.testing.assert_array_equal(np.where(found == outside_infinity("int32"), np.inf, found), expected)
    assert partition_graph(client, jammed, again.path, like=store, resume=True).path == again.path
    other = partition_graph(client, jammed, tmp_path / "other.zarr", like=again)
    with pytest.raises(StoreError, match=r"was begun with like .*b.zarr, not .*other.zarr"):
        partition_graph(client, jammed, again.path, like=other, resume=True)
    with pytest.raises(ValueError, match=r"the parts are those of .*b.zarr; leave out parts \(--parts\)"):
        partition_graph(client, jammed, tmp_path / "no", like=store, parts=3)
    small = write_graph(tmp_path / "s.zarr", [0, 1, 1], [1], np.array([1]))
    with pytest.raises(ValueError, match=r"has 144 vertices, and .*s.zarr has 2; leave out like \(--like\)"):
        partition_graph(client, small, tmp_path / "no", like=store)
    assert not (tmp_path / "no").exists()


@pytest.mark.gpu
def test_a_store_made_on_a_gpu_is_that_of_the_cpu(gpu_client, client, grid, tmp_path):
    cupy = pytest.importorskip("cupy")
    stores = [
        partition_graph(c, grid, tmp_path / n, parts=5, verify=True) for c, n in ((client, "c"), (gpu_client, "g"))
    ]
    for name in ("to_boundary", "from_boundary", "inner", "among"):
        np.testing.assert_array_equal(*(getattr(store.tables(), name) for store in stores))
    vertices, every = np.random.default_rng(0).integers(0, 144, 60), positions(range(144))
    found = distances_between(stores[0], positions(cupy.asarray(vertices)), every)
    np.testing.assert_array_equal(found.get(), distances_between(stores[0], positions(vertices), every))


def test_the_commands(grid, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def say(*arguments):
        said = CliRunner().invoke(tilepath, list(arguments))
        assert said.exit_code == 0, said.output
        return said.output

    assert "in 4 parts" in say("partition", grid.path, "b", "--parts", "4", "--device", "cpu")
    assert "in 4 parts" in say("partition", grid.path, "c", "--like", "b", "--device", "cpu")
    assert "verified 16 of 144 rows" in say("verify", "b")
    expected = plain_distances(grid)
    assert f"v3 -> v140: {expected[3, 140]:.0f} over" in say("path", "b", "v3", "v140")
    (tmp_path / "p.csv").write_text("source,target\nv3,v140\nv9,v9\n")
    assert "2 paths" in say("path", "b", "--pairs", "p.csv", "--out", "routes.csv")
    say("apsp", grid.path, "d", "--method", "boundary", "--device", "cpu")
    assert say("path", "d", "v3", "v140") == say("path", "b", "v3", "v140")
