"""Undirected graphs with integer weights: half of the work, the same distances."""

import numpy as np
import pytest
from families import diagonals
from oracles import dijkstra, random_arcs, store_arcs

from pipelines import all_pairs_shortest_paths
from pipelines.apsp.in_memory import resident_rows


@pytest.fixture
def short_strips(monkeypatch):
    monkeypatch.setattr("pipelines.apsp.in_memory.resident_rows.LEAST_ROWS", 40)


def solved(client, graph, out, **options):
    return all_pairs_shortest_paths(client, graph, out, method="floyd-warshall", overwrite=True, **options)


@pytest.mark.parametrize("users", ["client", pytest.param("gpu_client", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(
    ("block", "closed", "dtype"),
    diagonals([16, 40, 64], [None, "first", "scattered", "blocks"], ["int32", "int16"], count=2),
)
def test_half_of_the_work_gives_all_distances(
    request, tmp_path, capsys, monkeypatch, short_strips, users, dtype, closed, block
):
    n, users = 150, request.getfixturevalue(users)
    arcs = random_arcs(n, 500, high=50, undirected=True)
    through = np.ones(n, dtype=bool)
    if closed:
        through[{"first": slice(0, 30), "scattered": slice(0, None, 3), "blocks": slice(32, 96)}[closed]] = False
    graph = store_arcs(tmp_path / "g", n, *arcs, "int32", through=through)
    options = {"dtype": dtype, "block": block, "progress": True}
    half = solved(users, graph, tmp_path / "half", **options)[:]
    assert "half of the work, by symmetry" in capsys.readouterr().err
    want = np.array([dijkstra(n, *arcs, through, s) for s in range(n)])
    np.testing.assert_array_equal(half, np.where(np.isfinite(want), want, np.iinfo(dtype).max).astype(dtype))
    few = solved(users, graph, tmp_path / "few", sources=[149, 3, 70], **options)[:]
    np.testing.assert_array_equal(few, half[[149, 3, 70]])


@pytest.mark.parametrize("kind", ["directed", "floats", "two workers"])
def test_what_is_not_symmetric_takes_all_of_the_work(client, two, tmp_path, capsys, kind):
    arcs = random_arcs(100, 500, high=50, undirected=kind != "directed")
    graph = store_arcs(tmp_path / "g", 100, *arcs, "float32" if kind == "floats" else "int32")
    solved(two if kind == "two workers" else client, graph, tmp_path / "d", progress=True, verify=True)
    assert "symmetry" not in capsys.readouterr().err


def test_commits_hold_the_whole_matrix(client, two, tmp_path, monkeypatch, short_strips):
    """A run that committed half-way can go on anywhere."""
    monkeypatch.setattr("pipelines.apsp.commits.COMMIT_SHARE", float("inf"))
    arcs = random_arcs(150, 900, high=50, undirected=True)
    graph = store_arcs(tmp_path / "g", 150, *arcs, "int32")
    want = solved(two, graph, tmp_path / "want", block=16)[:]
    commits = []

    def stop(matrix, block):
        mirror(matrix, block)
        commits.append(bool((matrix == matrix.T).all()))
        if len(commits) == 4:
            raise OSError("stopped by the test")

    mirror = resident_rows.mirror
    monkeypatch.setattr(resident_rows, "mirror", stop)
    with pytest.raises(OSError, match="stopped by the test"):
        solved(client, graph, tmp_path / "d", block=16, commit_seconds=0)
    assert commits == [True] * 4
    found = all_pairs_shortest_paths(two, graph, tmp_path / "d", resume=True)[:]
    np.testing.assert_array_equal(found, want)


def test_symmetry_is_seen_in_the_matrix(monkeypatch, short_strips):
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 9, (100, 100), dtype="int32")
    matrix = np.minimum(matrix, matrix.T)
    assert resident_rows.is_symmetric(matrix)
    assert not resident_rows.is_symmetric(matrix.astype("float32"))
    for i, j in (0, 99), (99, 0), (50, 49), (39, 40):
        spoilt = matrix.copy()
        spoilt[i, j] += 1
        assert not resident_rows.is_symmetric(spoilt)
