"""The commands path, stats and picture, on stores with labels that are not indices."""

import json
import shutil

import numpy as np
import pyarrow.csv
import pytest
from path_rows import write_rows

from pipelines.stores.paths import create_paths

LABELS = np.array(["3", "0", "Ulm", "1"])
MONEY = r"a$\b$"  # which matplotlib would take for a formula
ARCS = [0, 1, 2], [1, 2, 3], [0.1, 0.2, 2.5e9]


@pytest.fixture
def stores(solve):
    """Distances, and paths from 0 and 2, of a lane of four vertices."""
    distances, graph = solve(4, ARCS, "float64", labels=LABELS, weight_unit="km")
    place = distances.path.replace("distances", "paths")
    run = create_paths(place, graph, dtype="float64", sources=[0, 2], chunk=2)
    write_rows(run, 0, distances[:][[0, 2]], np.array([[-1, 0, 1, 2], [-1, -1, -1, 2]], np.int32))
    run.record(np.ones(2, bool))
    return distances.path, place, graph.path


def test_vertices_by_label_and_by_marked_index(tilepath, stores):
    for store in stores:  # the last is the graph, which is searched
        assert tilepath("path", store, "3", "Ulm").splitlines()[1] == "3 -> 0 -> Ulm"
        assert tilepath("path", store, " 3", "#3").splitlines()[1] == "3 -> 0 -> Ulm -> 1"
        for wrong in ("2", "03", "+3", "3_"):
            tilepath("path", store, wrong, "Ulm", fault=f"there is no vertex '{wrong}'; give a label")
    tilepath("path", stores[0], "1", "Ulm", fault="no path leads from vertex 1 to vertex Ulm")
    tilepath("path", stores[2], "1", "Ulm", fault="no path leads from vertex 1 to vertex Ulm")
    tilepath("path", stores[2], "3", "Ulm", "--graph", stores[2], fault="is a graph itself; leave out graph (--graph)")
    tilepath("path", stores[1], "0", "Ulm", fault="the paths from 2 of 4 vertices only; vertex 0 is not among them")


def test_numbers_in_full(tilepath, stores):
    for store in stores:
        found = json.loads(tilepath("path", store, "3", "Ulm", "--json"))
        assert found.pop("distance") == 0.1 + 0.2  # 0.30000000000000004
        assert found == {"source": "3", "target": "Ulm", "unit": "km", "arcs": 2, "path": ["3", "0", "Ulm"]}
    found = json.loads(tilepath("stats", stores[0], "--json", "--out", "m.csv"))
    assert found == {
        "vertices": 4,
        "rows": 4,
        "diameter": 0.1 + 0.2 + 2.5e9,
        "diameter_from": "3",
        "diameter_to": "1",
        "radius": 0.1 + 0.2 + 2.5e9,
        "mean_distance": pytest.approx((0.1 + 0.2 + 0.3 + 3 * 2.5e9 + 0.5) / 6, rel=1e-15),
        "unreachable_pairs": 6,
        "unit": "km",
        "weak_components": 1,
        "components": [{"vertices": 4, "diameter": 0.1 + 0.2 + 2.5e9, "radius": 0.1 + 0.2 + 2.5e9}],
    }
    assert "diameter           2.5e+09 km, from 3 to 1" in tilepath("stats", stores[0])


def test_the_k_shortest_paths_of_a_graph(tilepath, solve):
    _, graph = solve(3, ([0, 0, 1], [1, 2, 2], [1, 5, 1]), "int32", labels=np.array(["a", "b", "c"]))
    assert tilepath("path", graph.path, "a", "c", "--k", "3").splitlines() == [
        "a -> c: 2 over 2 arcs",
        "a -> b -> c",
        "a -> c: 5 over 1 arc",
        "a -> c",
    ]
    found = json.loads(tilepath("path", graph.path, "a", "c", "--k", "1", "--json"))
    assert found == [{"source": "a", "target": "c", "distance": 2, "unit": "", "arcs": 2, "path": ["a", "b", "c"]}]
    tilepath("path", graph.path, "a", "c", "--k", "0", fault="k is 0; give a whole number from 1")
    tilepath("path", graph.path, "--k", "2", fault="name SOURCE and TARGET")


def test_k_paths_need_a_graph_and_two_vertices(tilepath, stores, tmp_path):
    tilepath("path", stores[0], "3", "Ulm", "--k", "2", fault="--k searches a graph; give its store as STORE")
    (tmp_path / "pairs.csv").write_text("source,target\n3,Ulm\n")
    tilepath("path", stores[2], "--k", "2", "--pairs", "pairs.csv", "--out", "o.csv", fault="leave out SOURCE, TARGET")


def test_measures_of_a_graph_without_all_pairs(tilepath, solve, tmp_path):
    _, graph = solve(4, ([0, 1, 2, 3], [1, 2, 3, 0], [1, 5, 1, 2]), "int32", labels=LABELS, weight_unit="km")
    assert tilepath("stats", graph.path, "--out", "e.csv").splitlines() == [
        "diameter           8 km, from 0 to 3",
        "radius             4 km",
        "centre             1 vertex: Ulm",
        "searches           from 4 of 4 vertices",
        "e.csv: eccentricity of 4 vertices",
    ]
    assert (tmp_path / "e.csv").read_text().splitlines()[1:] == ['"3",7', '"0",8', '"Ulm",4', '"1",8']
    found = json.loads(tilepath("stats", graph.path, "--hops", "--json"))
    assert found["center"] == found["periphery"] == LABELS.tolist()
    assert (found["diameter"], found["radius"], found["unit"]) == (3, 3, "arcs")
    tilepath("stats", graph.path, "--graph", graph.path, fault="STORE is a graph itself; leave out --graph")


def test_measures_by_hops_need_a_graph(tilepath, stores):
    tilepath("stats", stores[0], "--hops", fault="--hops counts arcs of a graph; give its store as STORE")
    assert "radius             2.5e+09 km" in tilepath("stats", stores[2])


def test_tables_of_pairs_of_any_store(tilepath, stores, tmp_path):
    (tmp_path / "pairs.csv").write_text("source,target\n3, Ulm\n#2,1\n")
    for store in stores:
        assert (
            tilepath("path", store, "--pairs", "pairs.csv", "--out", "out.tsv", "--overwrite") == "out.tsv: 2 paths\n"
        )
        rows = (tmp_path / "out.tsv").read_text().splitlines()
        assert rows[1:] == ['"3"\t"Ulm"\t0.30000000000000004\t2\t"3 0 Ulm"', '"Ulm"\t"1"\t2500000000\t1\t"Ulm 1"']
        tilepath("path", store, "--pairs", "pairs.csv", "--out", "out.tsv", fault="--overwrite")
        tilepath("path", store, "--pairs", "pairs.csv", fault="needs --out")
        tilepath(
            "path",
            store,
            "--pairs",
            "pairs.csv",
            "--out",
            "x.csv",
            "--json",
            fault="leave out SOURCE",
        )
        tilepath("path", store, "3", "Ulm", "--out", "x.csv", fault="--out and --overwrite need --pairs")


def test_measures_are_written_by_label_and_not_over_a_file(tilepath, stores, tmp_path):
    tilepath("stats", stores[0], "--out", "m.csv")
    assert (
        pyarrow.csv.read_csv("m.csv", convert_options=pyarrow.csv.ConvertOptions(column_types={"vertex": "str"}))[
            "vertex"
        ].to_pylist()
        == LABELS.tolist()
    )
    before = (tmp_path / "m.csv").read_bytes()
    tilepath("stats", stores[0], "--out", "m.csv", fault="m.csv exists already")
    assert (tmp_path / "m.csv").read_bytes() == before
    tilepath("stats", stores[0], "--out", "m.csv", "--overwrite")
    tilepath("stats", stores[0], "--out", "m.xls", fault="m.xls: tables are .csv")


def test_measures_of_some_rows_say_so(tilepath, solve):
    some, _ = solve(4, ARCS, "float64", labels=LABELS, sources=[2, 1])
    told = tilepath("stats", some.path)
    assert told.splitlines()[0] == "from only 2 of 4 vertices:"
    assert "radius             undefined: no vertex reaches all others (at most 2 of 3)" in told
    found = json.loads(tilepath("stats", some.path, "--json"))
    assert (found["rows"], found["vertices"], found["radius"]) == (2, 4, None)
    whole, _ = solve(4, ARCS, "float64", labels=LABELS)
    assert "only" not in tilepath("stats", whole.path)


def test_an_undefined_radius_of_a_graph_is_said_as_that_of_distances(tilepath, tmp_path):
    (tmp_path / "e.csv").write_text("source,target\na,b\nc,b\n")
    tilepath("import", "e.csv", "g.zarr", "--labels")
    assert "radius             undefined: no vertex reaches all others\n" in tilepath("stats", "g.zarr")


def test_each_weak_component_has_its_own_radius(tilepath, solve):
    apart, _ = solve(6, ([0, 1, 3, 4, 4], [1, 2, 4, 3, 4], [3, 4, 1, 2, 9]), "int32")
    assert tilepath("stats", apart.path).splitlines()[1:] == [
        "radius             undefined: no vertex reaches all others (at most 2 of 5)",
        "mean distance      3.4",
        "unreachable pairs  25",
        "weak components    3",
        "  of 3 vertices: diameter 7, radius 7",
        "  of 2 vertices: diameter 2, radius 1",
    ]
    found = json.loads(tilepath("stats", apart.path, "--json", "--out", "m.csv"))
    assert found["components"][1] == {"vertices": 2, "diameter": 2.0, "radius": 1.0}
    assert pyarrow.csv.read_csv("m.csv")["component"].to_pylist() == [0, 0, 0, 1, 1, 2]
    sinks, _ = solve(3, ([0, 1], [2, 2], [3, 4]), "int32")  # of one component, where no vertex reaches both others
    assert "components" not in tilepath("stats", sinks.path)
    assert json.loads(tilepath("stats", sinks.path, "--json"))["components"] == [
        {"vertices": 3, "diameter": 4.0, "radius": None}
    ]


def test_a_graph_that_was_moved(tilepath, stores, tmp_path):
    shutil.move(stores[2], tmp_path / "moved")
    for arguments in (("stats", stores[0]), ("picture", stores[0], "d.png"), ("path", stores[0], "3", "Ulm")):
        tilepath(*arguments, fault="give its path (graph, --graph)")
        assert tilepath(*arguments, "--graph", "moved")


def test_the_axes_of_a_picture_have_labels(tilepath, solve, stores, tmp_path):
    def texts(store):
        tilepath("picture", store, "d.svg", "--overwrite")
        return (tmp_path / "d.svg").read_text()

    assert "<!-- Ulm -->" in texts(stores[0])
    priced, _ = solve(2, ([0], [1], [1]), "int32", labels=np.array(["x", MONEY]))
    assert f"<!-- {MONEY} -->" in texts(priced.path)
    n = 100
    ring = np.arange(n), (np.arange(n) + 1) % n, np.ones(n)
    some, _ = solve(n, ring, "int32", labels=np.array([f"label of {v}" for v in range(n)]), sources=[77, 5])
    drawn = texts(some.path)
    for label in ("label of 77", "label of 5", "label of 0", "label of 20", "label of 80"):
        assert f"<!-- {label} -->" in drawn
    plain, _ = solve(n, ring, "int32", sources=[77, 5])
    drawn = texts(plain.path)
    assert "<!-- 77 -->" in drawn
    assert "<!-- 80 -->" in drawn
