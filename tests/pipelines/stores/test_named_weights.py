"""A store with several weights: they are found by name, by results computed from them, and in derived stores."""

import shutil

import numpy as np
import pytest
from commands import run_command

import tilepath
from pipelines import StoreError, export_store, import_graph, open_graph, write_reverse
from pipelines.stores.contents import writable_array
from pipelines.stores.distances import create_distances, open_distances
from pipelines.stores.schema import open_store, store_schema

TABLE = "tail,head,time,length,toll\nb,a,3,30.5,0\na,b,4,10,2\na,b,1,20,2\nb,c,2,7.25,9\nc,a,5,1,1\na,c,9,2.5,0\n"


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "roads.csv"
    file.write_text(TABLE)
    return file


@pytest.fixture
def roads(table, tmp_path):
    return import_graph(table, tmp_path / "roads.zarr", weight="time", also=["length", "toll"])


@pytest.mark.parametrize("sorted_rows", [True, False])
def test_each_of_several_weights_is_as_if_imported_alone(table, tmp_path, sorted_rows):
    table.write_text(TABLE.replace("tail,head", "p,q"))
    options = {"sorted_rows": sorted_rows, "columns": ["q", "p"], "unit": "min"}
    graph = import_graph(table, tmp_path / "all", weight="time", also=["length", "toll"], **options)
    assert graph.verify()
    assert (graph.weight_name, graph.weight_unit) == ("time", "min")
    for name in "time", "length", "toll":
        alone = import_graph(table, tmp_path / name, weight=name, columns=["q", "p"], sorted_rows=sorted_rows)
        chosen = open_graph(f"{tmp_path / 'all'}#{name}")
        assert chosen.digest == alone.digest == graph.weighted_by(name).digest == open_graph(graph.path, name).digest
        for one, other in zip(chosen.rows(), alone.rows(), strict=True):
            np.testing.assert_array_equal(one, other)
        assert chosen.weights().dtype == alone.weights().dtype == chosen.weight_dtype
        assert (chosen.weight_min, chosen.weight_max) == (alone.weight_min, alone.weight_max)
        assert (chosen.weight_name, chosen.weight_unit) == (name, "min" if name == "time" else name)


def solved(graph, path):
    """A store of distances of a graph with three vertices."""
    run = create_distances(
        path, graph, dtype="float64", chunk=4, stages=1, options={"method": "batched", "block": None}
    )
    run.make_result()
    run.write_rows(0, np.zeros((3, 3)), result=True)
    run.commit(1)
    return open_distances(path)


def test_what_is_computed_from_weights_finds_them_again(roads, tmp_path):
    by_length = roads.weighted_by("length")
    distances = solved(by_length, tmp_path / "d.zarr")
    assert distances.graph().weight_name == distances.graph(roads.path).weight_name == "length"
    assert tilepath.shortest_path(by_length, "a", "c").distance == 2.5
    assert tilepath.shortest_path(roads.path, "a", "c").distance == 3
    assert tilepath.shortest_path(f"{roads.path}#toll", "a", "c").distance == 0
    moved = shutil.move(roads.path, tmp_path / "moved.zarr")
    assert distances.graph(moved).digest == by_length.digest


def test_tables_add_other_weights_up_along_a_path(roads):
    found = tilepath.od(roads, ["a"], ["c"], also="length, toll")
    assert found[["distance", "length", "toll"]].to_numpy().tolist() == [[3, 27.25, 11]]
    assert tilepath.od(roads.weighted_by("toll"), ["a"], ["c"], also=["time"])["time"].tolist() == [9]
    with pytest.raises(StoreError, match="no weights called 'fuel'; its weights are time, length, toll"):
        tilepath.od(roads, ["a"], ["c"], also="fuel")


def test_a_graph_is_changed_to_other_weights_of_its_store(roads):
    changed = roads.with_weights("toll", closed=[("a", "c")], one_way=True)
    assert tilepath.shortest_path(changed, "a", "c").distance == 11


def test_derived_graphs_and_tables_of_arcs_have_the_weights(roads, tmp_path):
    back = write_reverse(roads.weighted_by("length"), tmp_path / "back.zarr")
    assert back.verify()
    for name in "time", "length", "toll":
        expected = sorted(zip(*roads.weighted_by(name).rows()[1:], strict=True), key=str)
        tails = np.repeat(np.arange(3), np.diff(back.indptr()))
        found = back.weighted_by(name).weights()
        assert sorted(zip(tails, found, strict=True), key=str) == expected
    export_store(f"{roads.path}#toll", tmp_path / "arcs.csv")
    assert sorted(line.rsplit(",", 1)[1] for line in (tmp_path / "arcs.csv").read_text().split()[1:]) == [*"001229"]


def test_wrong_names_are_refused(roads, table, tmp_path):
    with pytest.raises(StoreError, match=r"no weights called 'fuel'; its weights are time, length, toll; choose one"):
        open_graph(f"{roads.path}#fuel")
    plain = import_graph([("a", "b", 1)], tmp_path / "plain.zarr")
    with pytest.raises(StoreError, match="have no names"):
        open_graph(plain.path, "time")
    with pytest.raises(StoreError, match="no such store"):
        open_graph(tmp_path / "absent.zarr#time")
    solved(roads, tmp_path / "h.zarr")
    with pytest.raises(StoreError, match="is a distances store .* no weights to choose from"):
        store_schema(tmp_path / "h.zarr#time")
    for options, part in (
        ({"also": ["time"]}, "two weights called 'time'"),
        ({"also": ["fuel"]}, "no column 'fuel'"),
        ({"also": ["toll"], "simplify": True}, "leave simplify or also"),
    ):
        with pytest.raises(ValueError, match=part):
            import_graph(table, tmp_path / "new.zarr", weight="time", **options)
        assert not (tmp_path / "new.zarr").exists()


def test_damage_of_other_weights_is_found(roads):
    for name, value in ("weights_2", 1), ("weights_1", 20.0):
        array = writable_array(roads.path, name)
        before = array[0]
        array[0] = value if before != value else value + 1
        with pytest.raises(StoreError, match="do not match"):
            open_graph(roads.path).verify()
        array[0] = before
    group = open_store(roads.path, mode="r+")
    records = group.attrs["more_weights"]
    for wrong in (
        3,
        [3],
        [{}],
        [records[0] | {"unit": 3}],
        [records[0] | {"dtype": "int8"}],
        [records[0] | {"min": "0"}],
    ):
        group.attrs["more_weights"] = wrong
        with pytest.raises(StoreError):
            open_graph(roads.path)


def test_commands_choose_weights_by_name(table, tmp_path):
    def run(*arguments):
        return run_command(*arguments).output

    store = tmp_path / "roads.zarr"
    said = run("import", table, store, "--weight", "time", "--also", "length", "--also", "toll")
    assert "called time, no unit; also with length, toll" in said
    assert "a -> c: 3 over" in run("path", store, "a", "c")
    assert "a -> c: 2.5 over" in run("path", store, "a", "c", "--weight", "length")
