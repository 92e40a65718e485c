"""Stores that an earlier version wrote: every later version has to read them, with the values that they had.

`tests/data/stores-1.tar.xz` holds stores of every schema, as `tests/tiny_stores.py` wrote them for version 0.1.0, and
`stores-1-options.tar.xz` stores with the arrays and attributes that these lack. Never write an archive again: if a
schema changes, add an archive of its new stores, and let the new version read all.
"""

import tarfile
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest
import zarr
from tiny_stores import RING

from pipelines import shortest_path
from pipelines.stores.codebook import CodebookWriter, open_codebook
from pipelines.stores.kinds import KINDS
from pipelines.stores.schema import kind_of

ARCHIVES = Path(__file__).parents[2] / "data"
CODEBOOKS = (np.arange(12).reshape(6, 2) / 7 + np.arange(4)[:, None, None]).astype("float32")  # by epoch
PROGRESS = {  # of the unfinished stores
    "part-codebook": (1, 3),
    "part-distances": (1, 3),
    "part-hierarchy": (2, 3),
    "part-mapping": (2, 4),
    "part-matrix": (2, 3),
    "part-paths": (2, 3),
    "part-searched": (2, 5),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frozen")
    for path in ARCHIVES.glob("stores-*.tar.xz"):
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
    return folder


def opened(path):
    return kind_of(path).open(path)


def equal(found, expected):
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_every_schema_is_there_and_every_store_is_whole(stores):
    paths = sorted(stores.iterdir())
    assert {kind_of(path).schema for path in paths} == set(KINDS)
    for path in paths:
        if path.name in PROGRESS:
            progress = kind_of(path).progress(path)
            assert (progress.finished, progress.done, progress.total) == (False, *PROGRESS[path.name])
        else:
            assert opened(path).verify()


def test_every_array_and_attribute_is_there(stores):
    found = {schema: set() for schema in KINDS}
    for path in stores.iterdir():
        group = zarr.open_group(path, mode="r")
        found[group.attrs["schema"]].update(group.attrs, group)
    for schema, kind in KINDS.items():
        declared = resolve_name(f"pipelines.stores.{kind.opener.partition(':')[0]}:DECLARED")
        assert {each.name for each in (*declared.attributes, *declared.arrays)} <= found[schema]


def test_graphs(stores):
    graph = opened(stores / "graph")
    for found, expected in zip(graph.rows(), (np.arange(6), [1, 2, 3, 4, 0], np.ones(5)), strict=True):
        equal(found, expected)
    assert graph.labels().tolist() == ["a", "b", "č", "d d", "e"]
    equal(graph.coordinates(), np.arange(10).reshape(5, 2))
    assert (graph.weight_unit, graph.through().all()) == ("m", True)
    lines = opened(stores / "lines")
    equal(lines.lines().points, np.arange(10).reshape(5, 2))
    assert lines.crs == "EPSG:3857"
    turns = opened(stores / "turns")
    equal(turns.through(), np.arange(5) != 1)
    assert turns.road_vertices == 3


def test_distances_and_paths(stores):
    equal(opened(stores / "distances")[:], RING)
    equal(opened(stores / "rows")[:], RING[[4, 1]])
    paths, nearest = opened(stores / "paths"), opened(stores / "nearest")
    equal(paths.distances(), RING[[4, 1, 3]])
    equal(paths.predecessors(), np.where(RING, np.roll(np.arange(5), 1), -1)[[4, 1, 3]])
    equal(nearest.distances()[0], RING[[4, 1, 3]].min(axis=0))
    assert (nearest.cutoff, opened(stores / "one").row_vertices().tolist()) == (3, [0])
    assert list(shortest_path(opened(stores / "distances"), "e", "č", graph=stores / "graph").vertices) == [4, 0, 1, 2]
    hierarchy = opened(stores / "hierarchy")
    expected = np.where(np.triu(np.ones((5, 5), bool)) | (np.arange(5) == 4)[:, None], RING, np.inf)  # 4 is closed
    equal([hierarchy.row(source) for source in range(5)], expected)


def test_matrices_and_circuits(stores):
    matrix, circuits = opened(stores / "matrix"), opened(stores / "circuits")
    equal(matrix.to_numpy(), [[0, 2], [1, 2], [2, 2]])
    assert [list(names) for names in matrix.names()] == [["x", "y", "z"], ["ö", "p"]]
    equal(circuits.arcs(), np.arange(5))
    equal(circuits.offsets(), [0, 5])


def test_maps(stores):
    samples, codebook, mapping = (opened(stores / name) for name in ("samples", "codebook", "mapping"))
    given = np.array([[1, 2], [3, 5], [4, 1], [0, 0.5]])
    weights = np.array([1, 2, 1, 0.5])
    equal(samples.weights(), weights)
    np.testing.assert_allclose(samples.values(), (given - given.mean(0)) / given.std(0), rtol=1e-6)
    names = [samples.label_names()[code] if code >= 0 else None for code in samples.labels()]
    assert names == ["setosa", None, "virginica", "setosa"]
    for epoch in range(4):
        equal(codebook.units(epoch), CODEBOOKS[epoch])
    equal(codebook.hits(), [1, 0, 1, 0, 1, 1])
    equal(mapping.units(), [[0, 1], [2, 3], [4, 0], [5, 1]])
    equal(mapping.distances(), np.array([[0.5, 1], [0, 0.25], [2, 2], [1.5, 7]], "float32"))


def test_optional_arrays_and_attributes(stores):
    roads, named, classified = (opened(stores / name) for name in ("roads", "named", "classified"))
    assert (roads.weight_name, roads.weight_unit, roads.attribution) == ("minutes", "min", "© surveyors")
    metres = roads.with_weights("metres")
    equal(metres.rows()[2], [1.5, 2.5, 3.5])
    assert metres.weight_unit == "m"
    assert (roads.integer_labels, roads.labels().tolist()) == (True, ["10", "20", "30"])
    equal(roads.classes().of_arcs, [0, 1, -1])
    assert roads.classes().names == ("path", "primary")
    equal([opened(stores / "negative").row(source) for source in range(3)], [[0, 5, 3], [2, 0, -2], [4, 9, 0]])
    assert named.ids() == ["one", "", "drei"]
    classes, votes = classified.votes()
    assert classes.tolist() == ["no", "yes"]
    equal(votes, [[2, 0], [0, 1]])


def test_an_unfinished_run_goes_on(stores):
    run = CodebookWriter.resume(
        stores / "part-codebook", opened(stores / "samples"), {"metric": "euclidean", "epochs": 3}
    )
    equal(run.read(1), CODEBOOKS[1])
    assert open_codebook(stores / "codebook").d == 2
