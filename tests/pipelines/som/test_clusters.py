"""Clusters of units against plain definitions, and on samples whose classes are known."""

import os

import numpy as np
import pandas
import pytest
from commands import invoke
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from gpuops.som.grid import Grid
from gpuops.som.metrics import distances_to_all
from pipelines import PointCloud, cluster_map, open_codebook, open_mapping, picture_map, read_clusters
from pipelines.som.classes import count_votes
from pipelines.som.clusters import METHODS, basins, cluster_units
from pipelines.som.heights import p_matrix, pareto_radius, u_star
from pipelines.som.labelled_pictures import spanning_tree, tree_layout
from tilepath.sklearn import SelfOrganizingMap

GRIDS = [Grid(6, 9), Grid(6, 8, hexagonal=True), Grid(6, 8, toroidal=True)]


def pieces(grid, there):
    """How many connected parts these units have."""
    left, count = set(np.flatnonzero(there).tolist()), 0
    while left:
        count += 1
        edge = [left.pop()]
        while edge:
            unit = edge.pop()
            near = left & set(grid.neighbours()[unit].tolist())
            left -= near
            edge += near
    return count


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_basins_are_connected_and_have_one_lowest_unit(grid):
    heights = np.random.default_rng(4).random(grid.units)
    around = grid.neighbours()
    lowest = [u for u in range(grid.units) if all(o < 0 or heights[u] < heights[o] for o in around[u])]
    found = basins(heights, grid, len(lowest))
    assert sorted({*found}) == lowest
    for clusters in range(1, len(lowest) + 1):
        merged = basins(heights, grid, clusters)
        assert len({*merged}) == clusters
        assert all(pieces(grid, merged == number) == 1 for number in {*merged})
    with pytest.raises(ValueError, match=f"has {len(lowest)} basins"):
        basins(heights, grid, len(lowest) + 1)


def test_the_deepest_basins_are_kept_and_found_by_their_gap():
    heights = np.array([0, 5, 4.8, 9, 1, 1.1, 1.0, 8, 2.0])  # basins at 0, 2, 4, 6, 8; those at 2 and 6 are shallow
    for clusters in (3, None):
        assert basins(heights, Grid(1, 9), clusters).tolist() == [0, 0, 0, 4, 4, 4, 4, 4, 8]


def test_merging_adjacent_clusters_leaves_them_in_one_piece():
    grid, units = Grid(7, 7, hexagonal=True), np.random.default_rng(0).normal(size=(49, 2))
    found = cluster_units(units, grid, "agglomerative", 5, adjacent=True)
    assert [pieces(grid, found == number) for number in range(5)] == [1] * 5
    free = cluster_units(units, grid, "agglomerative", 5)
    assert max(pieces(grid, free == number) for number in range(5)) > 1
    for result in (found, free):
        assert np.unique(result, return_index=True)[1].tolist() == sorted(np.unique(result, return_index=True)[1])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["euclidean", "taxicab", "cosine"])
def test_two_far_blobs_are_two_clusters(method, metric):
    rng = np.random.default_rng(1)
    classes = rng.integers(0, 2, 400)
    samples = rng.normal(size=(400, 3)) * 0.3 + np.where(classes[:, None], [4, 0, 1], [0, 4, 1])
    som = SelfOrganizingMap(10, 10, epochs=15, metric=metric, sigma_end=0.7).fit(samples)
    found = cluster_units(som.codebook_, som.grid_, method, 2, metric=metric, samples=samples)
    assert adjusted_rand_score(classes, found[som.labels_]) > 0.95


@pytest.mark.parametrize(("kind", "clusters", "least"), [("hepta", 7, 0.99), ("tetra", 4, 0.95)])
@pytest.mark.parametrize("known", [True, False])
def test_immersion_finds_clusters_of_known_number_and_the_number(kind, clusters, least, known):
    """Spheres that hold a fifth of all samples are as large as several clusters, and only as many are found."""
    values, classes = PointCloud(kind=kind, n=1000, seed=0).points()
    som = SelfOrganizingMap(15, 15, epochs=15).fit(values)
    found = cluster_units(som.codebook_, som.grid_, "immersion", clusters if known else None, samples=values)
    assert found.max() + 1 == clusters
    assert adjusted_rand_score(classes, found[som.labels_]) > least


def test_only_basins_in_which_immersion_ends_are_counted():
    heights = np.array([0, 5, 1, 9, 0.5, 7, 2.0])  # basins at 0, 2, 4, 6, of which 2 and then 6 overflow first
    for clusters, within, expected in (
        (2, [0, 2], [0, 0, 2, 4, 4, 4, 6]),  # two that count are there from the beginning
        (2, [0, 2, 6], [0, 0, 0, 4, 4, 4, 6]),
        (1, [0, 6], [0, 0, 0, 0, 0, 0, 0]),
        (None, [2], [0, 0, 2, 4, 4, 4, 6]),
    ):
        assert basins(heights, Grid(1, 7), clusters, np.array(within)).tolist() == expected
    with pytest.raises(ValueError, match="has 2 basins for clusters"):
        basins(heights, Grid(1, 7), 3, np.array([1, 6]))


def test_average_linkage_keeps_what_is_rare():
    """A few units far from a long cloud of many, which Ward's criterion would rather cut in two."""
    rng = np.random.default_rng(0)
    units = np.concatenate([rng.uniform(-1, 1, (60, 2)) * [6, 1], rng.normal(size=(4, 2)) * 0.1 + [0, 9]])
    rare = np.arange(64) >= 60
    of_average, of_ward = (
        cluster_units(units, Grid(8, 8), "agglomerative", 2, linkage=linkage) for linkage in ("average", "ward")
    )
    assert adjusted_rand_score(rare, of_ward) < 0.5
    assert adjusted_rand_score(rare, of_average) == 1
    np.testing.assert_array_equal(of_ward, cluster_units(units, Grid(8, 8), "agglomerative", 2))


def test_density_and_u_star_are_their_formulas():
    rng = np.random.default_rng(2)
    samples, units = rng.normal(size=(90, 3)), rng.normal(size=(12, 3))
    between = distances_to_all(samples, samples, "euclidean")[np.triu_indices(90, 1)]
    assert pareto_radius(samples) == pytest.approx(np.quantile(between, 0.18))
    assert pareto_radius(samples, clusters=3) == pytest.approx(np.quantile(between, 0.06))
    near = np.sqrt(((samples[:, None] - units) ** 2).sum(axis=2)) <= 1.3
    density = p_matrix(units, samples, radius=1.3)
    np.testing.assert_array_equal(density, near.sum(axis=0))
    walls = rng.random(12)
    raised = u_star(walls, density)
    assert raised[density.argmax()] == pytest.approx(0)
    assert (raised[density < density.mean()] > walls[density < density.mean()]).all()
    np.testing.assert_array_equal(u_star(walls, np.ones(12)), walls)


@pytest.mark.parametrize("metric", ["euclidean", "taxicab", "cosine"])
def test_the_spanning_tree_is_the_shortest(metric):
    units = np.random.default_rng(3).normal(size=(40, 3))
    links = spanning_tree(units, metric)
    distances = distances_to_all(units, units, metric)
    assert distances[links[:, 0], links[:, 1]].sum() == pytest.approx(minimum_spanning_tree(distances).sum())
    assert {*links.ravel().tolist()} == {*range(40)}
    places = tree_layout(units, links)
    assert places.shape == (40, 2)
    assert distances_to_all(places, places, "euclidean")[np.triu_indices(40, 1)].min() > 1e-3


def test_a_vote_and_its_purity():
    units, labels = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([1, 1, 0, 1, 0, -1, 2])
    vote = count_votes(units, labels, 4, 3)
    assert vote.winners.tolist() == [1, 0, 2, -1]  # the first of equals
    np.testing.assert_allclose(vote.purity, [2 / 3, 1 / 2, 1, np.nan])
    assert vote.total_purity() == pytest.approx(4 / 6)
    assert vote.shares(3).tolist() == [[1, 2, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_faults_are_named():
    grid, units = Grid(3, 3), np.random.default_rng(0).normal(size=(9, 2))
    for match, options in {
        "no method 'som'; choose agglomerative": {"method": "som"},
        "say how many clusters kmeans": {"method": "kmeans"},
        "watershed does without it": {"method": "watershed", "adjacent": True},
        "10 clusters of 9 units": {"clusters": 10},
        "no linkage 'single'; choose ward, average": {"clusters": 2, "linkage": "single"},
        "linkage is an option of agglomerative": {"method": "watershed", "linkage": "ward"},
        "this one is cosine; choose average": {"clusters": 2, "linkage": "ward", "metric": "cosine"},
        "density of the samples; name them": {"method": "immersion"},
    }.items():
        with pytest.raises(ValueError, match=match):
            cluster_units(units, grid, **options)
    for options in {"method": "kmeans"}, {}, {"method": "kmeans", "metric": "cosine"}:
        with pytest.raises(ValueError, match="only 2 units of the map differ; choose no more clusters"):
            cluster_units(units[[0, 1, 1, 0, 0, 0, 1, 1, 1]], grid, clusters=3, **options)


def test_from_samples_to_clusters_and_pictures_by_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    iris = load_iris()
    rows = np.column_stack([StandardScaler().fit_transform(iris.data), iris.target_names[iris.target]])
    rows = [["a", "$b$", "c", "d", "kind", "name"], *([*row, f"flower {i}"] for i, row in enumerate(rows))]
    (tmp_path / "iris.csv").write_text("\n".join(map(",".join, rows)))

    def run(text, code=0):
        done = invoke(*text.split())
        assert done.exit_code == code, (done.output, done.exception)
        return f"{done.output}{done.exception or ''}"

    run("som import iris.csv s.zarr --label kind --id name")
    run("som train s.zarr m.zarr --rows 8 --columns 9 --hexagonal --epochs 10 --device cpu")
    run("som map m.zarr s.zarr p.zarr --device cpu")
    assert "3 clusters of 72 units" in run("som cluster m.zarr c.csv --clusters 3 --adjacent")
    run("som cluster m.zarr of_samples.csv --clusters 3 --adjacent --mapping p.zarr")
    table = pandas.read_csv("of_samples.csv")
    assert table.id.tolist() == [f"flower {i}" for i in range(150)]
    assert table.label.tolist() == iris.target_names[iris.target].tolist()
    assert table.unit.tolist() == open_mapping("p.zarr").units()[:, 0].tolist()
    assert table.cluster.tolist() == pandas.read_csv("c.csv").cluster[table.unit].tolist()
    assert adjusted_rand_score(iris.target, table.cluster) > 0.55
    run("som cluster m.zarr c.parquet --clusters 3 --adjacent")
    assert (read_clusters("c.parquet", "m.zarr") == pandas.read_csv("c.csv").cluster).all()
    # Stores may be named by their paths, and a mapping knows its samples.
    assert picture_map("m.zarr", None, "labels", mapping="p.zarr").axes[0].get_title()
    assert picture_map("m.zarr", None, "pmatrix", samples="s.zarr").axes[0].get_title()
    by_path = cluster_map("m.zarr", "immersion", samples="s.zarr")
    assert by_path.tolist() == cluster_map("m.zarr", "immersion").tolist()
    os.rename("s.zarr", "moved.zarr")
    assert "give their path" in run("som cluster m.zarr x.csv --clusters 3 --mapping p.zarr", 1)
    run("som cluster m.zarr x.csv --clusters 3 --adjacent --mapping p.zarr --samples moved.zarr")
    assert (tmp_path / "x.csv").read_text() == (tmp_path / "of_samples.csv").read_text()
    os.rename("moved.zarr", "s.zarr")
    assert "exists already" in run("som cluster m.zarr c.csv --clusters 3", 1)
    # Means of units are those found by hand: a unit counts the same, however many samples it has.
    for seed in range(3):
        run(f"som cluster m.zarr means.csv --method kmeans --clusters 5 --seed {seed} --overwrite")
        by_hand = KMeans(5, n_init=10, random_state=seed).fit_predict(open_codebook("m.zarr").units().astype(float))
        means = np.loadtxt("means.csv", delimiter=",", skiprows=1, dtype=int)[:, 3]
        assert adjusted_rand_score(by_hand, means) == 1
    for kind in ("clusters", "umatrix", "pmatrix", "ustar", "pies", "tree"):
        run(f"som plot m.zarr {kind}.png --kind {kind} --clusters c.csv --mapping p.zarr")
    run("som plot m.zarr way.png --clusters c.csv --text --mapping p.zarr --way 0:9 --way 60:65 --size 4x3")
    assert "give the width and the height in inches" in run("som plot m.zarr x.png --size 4", 2)
    assert "give the first row" in run("som plot m.zarr way.png --mapping p.zarr --way 9", 2)
    assert "not a table of units" in run("som plot m.zarr x.png --clusters of_samples.csv", 1)
    lines = (tmp_path / "c.csv").read_text().splitlines()
    for name, text, match in (
        ("short", lines[:-1], "unit 71 has no line"),
        ("words", [*lines[:2], "1,0,1,red", *lines[3:]], "words.csv, line 3: unit and cluster are whole numbers"),
        ("twice", [*lines, lines[1]], "line 74: unit 0 is not on the map, appears twice"),
    ):
        (tmp_path / f"{name}.csv").write_text("\n".join(text))
        assert match in run(f"som plot m.zarr x.png --clusters {name}.csv", 1)
