"""Paths of pairs from stores of paths."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from path_rows import write_rows

from gpuops.numbers import outside_infinity
from pipelines import positions
from pipelines.routes.paths import NoPathError, paths_of_pairs, predecessors
from pipelines.routes.tree_paths import tree_path, tree_paths_of_pairs
from pipelines.stores.errors import StoreError
from pipelines.stores.paths import create_paths, open_paths

LABELS = np.array([f"v{i}" for i in range(40)])


@pytest.fixture
def search(solve, tmp_path):
    """``search(n, arcs, sources)``: the stores of paths from `sources`, of all distances, and of the graph."""

    def write(n, arcs, sources, *, together=False, keep=True, spoil=None, **facts):
        distances, graph = solve(n, arcs, "int32", **facts)
        rows, trees = distances[:][sources], predecessors(distances, positions(sources), graph=graph)
        if together:
            nearest = rows.argmin(axis=0)
            rows, trees = rows.min(axis=0)[None], trees[nearest, np.arange(n)][None]
        if spoil is not None:
            spoil(rows, trees)
        options = {"together": together, "predecessors": keep}
        run = create_paths(tmp_path / "paths", graph, dtype="int32", sources=sources, chunk=2, **options)
        for start in range(0, len(rows), 2):
            write_rows(run, start, rows[start : start + 2], trees[start : start + 2])
        run.record(np.ones(len(rows), bool))
        return open_paths(tmp_path / "paths"), distances, graph

    return write


@pytest.mark.parametrize("kind", ["random", "sparse", "signed", "closed"])
def test_pairs_agree_with_those_from_distances(search, graphs, kind, tmp_path):
    n, arcs, facts = graphs[kind]
    sources = [9, 0, 31, 4, 5]
    paths, distances, graph = search(n, arcs, sources, labels=LABELS, **facts)
    rng = np.random.default_rng(1)
    pairs = positions(np.column_stack([rng.choice(sources, 60), rng.integers(0, n, 60)]))
    found = tree_paths_of_pairs(paths, pairs, out=tmp_path / "out.parquet")
    expected = paths_of_pairs(distances, pairs, graph=graph)
    for column in ("source", "target", "distance"):
        assert found[column].equals(expected[column])
    assert pa.parquet.read_table(tmp_path / "out.parquet").equals(found)
    for row in found.to_pylist():
        source, target = int(row["source"][1:]), int(row["target"][1:])
        if row["distance"] is None:
            assert (row["hops"], row["path"]) == (None, None)
            with pytest.raises(NoPathError, match=f"from vertex v{source} to vertex v{target}"):
                tree_path(paths, positions(source), positions(target), graph=graph)
            continue
        assert row["hops"] == len(row["path"]) - 1
        one = tree_path(paths, positions(source), positions(target), graph=graph)
        assert [f"v{v}" for v in one.vertices] == row["path"]
        assert one.distance == row["distance"]
    with pytest.raises(ValueError, match="pairs, row 2: .* the paths from 5 of 40 vertices only; vertex v1 is not"):
        tree_paths_of_pairs(paths, [("v9", "v1"), ("v1", "v9")])
    with pytest.raises(FileExistsError, match="--overwrite"):
        tree_paths_of_pairs(paths, pairs, out=tmp_path / "out.parquet")


def test_pairs_in_a_store_of_nearest_sources(search, graphs, tmp_path):
    n, arcs, _ = graphs["sparse"]
    sources = [9, 0, 31]
    paths, distances, _ = search(n, arcs, sources, together=True, labels=LABELS)
    (tmp_path / "targets.csv").write_text("\n".join(["target", *LABELS]))
    found = tree_paths_of_pairs(paths, tmp_path / "targets.csv")
    nearest = distances[:][sources].min(axis=0)
    assert found["target"].to_pylist() == LABELS.tolist()
    reached = nearest != outside_infinity("int32")
    assert 0 < reached.sum() < n
    for row, distance in zip(found.to_pylist(), nearest.tolist(), strict=True):
        if distance == outside_infinity("int32"):
            assert (row["source"], row["distance"], row["path"]) == (None, None, None)
        else:
            assert row["distance"] == distance
            assert row["source"] == row["path"][0]
            assert int(row["source"][1:]) in sources
    named = found.filter(pa.array(reached)).select(["source", "target"])
    assert tree_paths_of_pairs(paths, named)["path"].equals(found["path"].filter(pa.array(reached)))
    wrong = pa.table({"source": ["v9", "v0"], "target": ["v9", "v9"]})
    with pytest.raises(ValueError, match="pairs, row 2: .*nearest to vertex v9 is v9, not v0"):
        tree_paths_of_pairs(paths, wrong)
    with pytest.raises(ValueError, match="no column `source`"):
        paths_of_pairs(distances, tmp_path / "targets.csv")


def test_damage_is_named_by_label(search):
    ring = np.arange(5), (np.arange(5) + 1) % 5, np.ones(5, int)

    def spoil(rows, trees):
        trees[0, 2], trees[0, 1], trees[1, 4] = 1, 2, -1

    paths, _, graph = search(5, ring, [0, 3], spoil=spoil, labels=LABELS[:5])
    for fault, pair in (("the predecessors of vertex v2 lead nowhere", (0, 2)), ("do not lead to vertex v3", (3, 4))):
        with pytest.raises(StoreError, match=fault):
            tree_path(paths, *map(positions, pair), graph=graph)
        with pytest.raises(StoreError, match=fault):
            tree_paths_of_pairs(paths, positions([pair]))


def test_without_predecessors_there_are_no_paths(search):
    paths, _, _ = search(3, ([0, 1], [1, 2], [1, 1]), [0], keep=False)
    with pytest.raises(StoreError, match="--no-predecessors"):
        tree_paths_of_pairs(paths, np.array([[0, 2]]))


def test_no_pairs(search):
    paths, _, _ = search(3, ([0, 1], [1, 2], [1, 1]), [0])
    table = tree_paths_of_pairs(paths, np.empty((0, 2), int))
    assert table.num_rows == 0
    assert table.column_names == ["source", "target", "distance", "hops", "path"]
