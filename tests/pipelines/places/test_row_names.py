"""By which names a table of distances calls the rows of the tables that it was asked for."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pipelines import changes, criticality, graph_to_gdfs, isochrones, od, positions, vertices_at, write_graph
from pipelines.od_tables.what_if import roads_in

AT = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
PLACES = pd.DataFrame(AT, columns=["x", "y"])
POINTS = gpd.GeoDataFrame(geometry=gpd.points_from_xy(*AT.T))
NAMES = ["north", "south", "east"]
FEATURES = pd.MultiIndex.from_tuples([("node", 5), ("way", 5), ("way", 6)], names=["element", "id"])


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    path = tmp_path_factory.mktemp("ring") / "g"
    return write_graph(path, np.array([0, 1, 2, 3]), np.array([1, 2, 0]), np.array([5, 6, 7]), coordinates=AT * 1000)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (PLACES.assign(name=NAMES), NAMES),
        (PLACES.assign(Name=NAMES, id=[7, 8, 9]), [7, 8, 9]),
        (PLACES.assign(name=["a", None, "b"]), [0, 1, 2]),
        (PLACES.assign(name=["a", "b", "a"]), [0, 1, 2]),
        (PLACES.set_axis([4, 9, 2]), [4, 9, 2]),
        (PLACES.set_axis(NAMES).assign(name=["a", "a", "a"]), NAMES),
        (PLACES.rename_axis("osmid"), [0, 1, 2]),
        (PLACES, [0, 1, 2]),
        (PLACES.iloc[0], [0]),
        (POINTS, [0, 1, 2]),
        (POINTS.geometry, [0, 1, 2]),
        (POINTS.geometry.array, [1, 2, 3]),
        (AT, [1, 2, 3]),
        (pa.table({"x": AT[:, 0], "y": AT[:, 1]}), [1, 2, 3]),
        (PLACES[::-1], [2, 1, 0]),
        (POINTS.assign(name=NAMES), NAMES),
        (POINTS.set_axis(NAMES), NAMES),
        (POINTS.geometry.set_axis(FEATURES), ["node/5", "way/5", "way/6"]),
        (pa.table({"x": AT[:, 0], "y": AT[:, 1], "name": NAMES}), NAMES),
        (pd.DataFrame({"vertex": [2, 0]}, index=["a", "b"]), [2, 0]),
        (pd.DataFrame({"vertex": [2, 0], "name": ["a", "b"]}), ["a", "b"]),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*farther than")
def test_rows_have_the_names_of_the_frame(ring, given, expected):
    found = od(ring, given, [0])
    assert found["origin"].tolist() == expected
    assert found["origin"].dtype == ("int64" if isinstance(expected[0], int) else "object")


@pytest.mark.parametrize("given", [PLACES.set_axis([4, 9, 2]), POINTS.geometry.set_axis(NAMES)], ids=type)
def test_numbers_of_the_origins_have_their_index(ring, given):
    pd.testing.assert_index_equal(od(ring, given, [0], reduce="count").index, given.index)


@pytest.mark.filterwarnings("ignore:.*farther than")
def test_a_table_joins_the_frame_by_its_index(ring, tmp_path):
    homes = POINTS.assign(people=[10, 20, 30])
    times = od(ring, homes, [0]).merge(homes, left_on="origin", right_index=True)
    assert times["people"].tolist() == [10, 20, 30]
    pairs = pd.DataFrame({"origin": [2], "destination": [0]})
    near = homes.set_geometry(gpd.points_from_xy(*(AT * 1000).T))
    assert od(ring, near, positions([0]), pairs=pairs)["distance"].tolist() == od(ring, [2], [0])["distance"].tolist()
    homes.to_parquet(tmp_path / "homes.parquet")
    assert od(ring, tmp_path / "homes.parquet", [0])["origin"].tolist() == [1, 2, 3]


def test_equal_ids_are_said_once_and_ids_may_be_of_several_types(ring):
    given = PLACES.assign(id=["a", 7, "a"], others=[[1], "b", {2}])
    text = (
        "the origins: 2 rows are not alone with their id, first the rows of index 0 and 2 with 'a'; give each row an id"
    )
    for options in {}, {"destinations": [0]}:
        with pytest.warns(UserWarning, match=text) as caught:
            found = od(ring, given, **options)
        assert found["origin"].unique().tolist() == ["a", "7"]
        assert sum("not alone" in str(each.message) for each in caught) == 1
    named = pd.DataFrame({"vertex": [2, 0], "id": [5, 5]})
    with pytest.warns(UserWarning, match="first the rows of index 0 and 1 with 5"):
        od(ring, named, [0])
    with pytest.raises(ValueError, match="with 5; .* since pairs name origins by their ids"):
        od(ring, named, pairs=pd.DataFrame({"origin": [5], "destination": [0]}))


def test_a_file_has_names_too(ring, tmp_path):
    PLACES.assign(NAME=NAMES).to_csv(tmp_path / "o.csv", index=False)
    PLACES.assign(id=["a", "", "c"]).to_csv(tmp_path / "n.csv", index=False)
    assert od(ring, tmp_path / "o.csv", [0])["origin"].tolist() == NAMES
    with pytest.raises(ValueError, match=r"n.csv, row 2: `id` is missing"):
        od(ring, tmp_path / "n.csv", [0])


@pytest.mark.filterwarnings("ignore:.*farther than")
def test_messages_name_the_label_of_the_row_and_files_that_are_missing(ring, tmp_path):
    bad = PLACES.set_axis(NAMES).assign(y=[0.0, None, 1.0])
    with pytest.raises(ValueError, match="^the origins, index 'south': `y` is missing"):
        od(ring, bad, [0])
    with pytest.warns(UserWarning, match=r"the origins: .*, the worst is index 'south', "):
        od(ring, PLACES.set_axis(NAMES).assign(x=[0, 1200, 0]), [0])
    with pytest.raises(FileNotFoundError, match=r"none.csv: there is no such file; correct the name or the folder$"):
        od(ring, tmp_path / "none.csv", [0])
    with pytest.raises(ValueError, match=r"tables .*parquet.* and layers .*.gpkg.*give a list of names: \['0'\]"):
        od(ring, "0", [0])


def test_messages_do_not_show_the_internal_name_of_the_index(ring):
    with pytest.raises(ValueError, match="the origins, index (None|nan): the index is missing; fill it in"):
        od(ring, PLACES.set_axis(["a", None, "b"]), [0])
    with pytest.raises(ValueError, match="no column `seats`; its columns are x, y$"):
        od(ring, [0], PLACES, reduce="sum:seats")


OTHERS = [1, 2, 0]  # names of other vertices than those at the places
NEAR = pd.DataFrame(AT * 1000, columns=["x", "y"])
NEAR_POINTS = gpd.GeoDataFrame(geometry=gpd.points_from_xy(*(AT * 1000).T))


@pytest.mark.parametrize(
    "places",
    [NEAR, NEAR_POINTS, NEAR_POINTS.rename_geometry("at"), pd.DataFrame(NEAR_POINTS), pa.table(NEAR)],
    ids=["columns", "points", "renamed", "joined", "arrow"],
)
def test_a_place_counts_beside_a_column_origin(ring, places, tmp_path):
    def beside(column):
        return places.append_column(column, pa.array(OTHERS)) if hasattr(places, "append_column") else places.assign(
            **{column: OTHERS}
        )  # fmt: skip

    rows = [0, 5, 11, 13, 0, 6, 7, 12, 0]  # along the ring of 5, 6 and 7
    assert od(ring, beside("origin"), beside("destination"))["distance"].tolist() == rows
    assert od(ring, beside("Origin"), positions([0, 1, 2]))["distance"].tolist() == rows
    assert vertices_at(ring, beside("place")).vertices.indices.tolist() == [0, 1, 2]
    assert isochrones(ring, beside("source"), 1)["moved"].tolist() == [0, 0, 0]
    for column in "vertex", "Vertex":
        with pytest.raises(
            ValueError, match="^the origins, .*: the vertex 1 .* is not at the place of the row; leave out"
        ):
            od(ring, beside(column), [0])


def test_a_table_of_vertices_with_their_places_is_taken_as_it_is(ring):
    nodes = graph_to_gdfs(ring)[0].iloc[[2, 0]]
    assert od(ring, nodes, nodes)["origin"].tolist() == [2, 2, 0, 0]
    nodes.loc[nodes.index[1], "vertex"] = 1
    with pytest.raises(ValueError, match="the vertex 1 .* is not at the place"):
        od(ring, nodes, [0])


def test_a_place_counts_in_a_file_too(ring, tmp_path):
    path = tmp_path / "o.csv"
    NEAR.assign(origin=OTHERS, destination=OTHERS).to_csv(path, index=False)
    assert od(ring, path, [0])["distance"].tolist() == [0, 13, 7]
    NEAR.assign(origin=OTHERS).to_csv(path, index=False)
    assert roads_in(path, ring).column_names == ["x", "y"]
    pd.DataFrame({"origin": OTHERS, "geometry": NEAR_POINTS.to_wkt().geometry}).to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"o.csv: the column `geometry` is not read, as the table is no layer; give a"):
        od(ring, path, [0])


@pytest.mark.parametrize("places", [NEAR, NEAR_POINTS.assign(id=NAMES), pd.DataFrame({"vertex": OTHERS})], ids=len)
@pytest.mark.filterwarnings("ignore:the .*s. none is named")
def test_a_frame_without_rows_has_no_rows(ring, places):
    """As a group of a frame that a filter left empty."""
    none = places.iloc[:0]
    for options in {}, {"nearest": 1}, {"within": 9}, {"reduce": "count"}, {"paths": True}, {"paths": "lines"}:
        pd.testing.assert_frame_equal(od(ring, none, places, **options), od(ring, places, **options).iloc[:0])
        assert not len(od(ring, none, **options))
    assert od(ring, places, none, reduce="count")["count"].tolist() == [0, 0, 0]
    for options in {}, {"kind": "edges"}, {"together": True}, {"kind": "edges", "together": True}:
        expected = isochrones(ring, places, 8, **options).iloc[:0]
        found = isochrones(ring, none, 8, **options)
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)  # pandas 3 has a dtype of text without text
    for sides in (none, places), (places, none), (none, None):
        assert not len(changes(ring, ring.with_weights(np.array([5, 6, 9])), *sides))
    assert criticality(ring, [(0, 1)], none)["longer"].tolist() == [0]


def test_an_empty_selection_is_a_warning(ring):
    none, shut = PLACES.iloc[:0], ring.with_weights(closed=[(0, 1)])
    for names, asked in (
        ("the origins", lambda: od(ring, none, PLACES)),
        ("the destinations", lambda: od(ring, PLACES, none, reduce="count")),
        ("the origins, the destinations", lambda: changes(ring, shut, [])),
        ("the origins", lambda: criticality(ring, [(0, 1)], none, [0])),
        ("the sources", lambda: isochrones(ring, none, 8)),
        ("roads", lambda: criticality(ring, [], [0], [1])),
    ):
        with pytest.warns(UserWarning, match=f"^{names}: no.* named.*; look at how they were chosen$") as said:
            asked()
        assert [each.filename for each in said] == [__file__], names


def test_a_layer_without_points_is_refused(ring, tmp_path):
    NEAR_POINTS.iloc[:0].to_parquet(tmp_path / "homes.parquet")
    with pytest.raises(ValueError, match="homes.parquet: no rows; give at least one origin"):
        od(ring, tmp_path / "homes.parquet", [0])
