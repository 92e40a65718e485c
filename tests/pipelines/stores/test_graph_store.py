import pickle
import re
import shutil

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.formats.graphs.by_rows import graph_by_rows
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.stores.graph_writer import new_graph, write_graph
from pipelines.stores.lines import Lines, points_along
from pipelines.stores.samples import write_samples


def small(path, **facts):
    return write_graph(path, np.array([0, 2, 3, 3]), np.array([2, 1, 2]), np.array([5, 1, 1], dtype="int32"), **facts)


def test_round_trip(tmp_path):
    graph = small(
        tmp_path / "g.zarr",
        labels=np.array(["a", "b", "č"]),
        coordinates=np.arange(6.0).reshape(3, 2),
        through=np.array([True, False, True]),
        weight_unit="m",
        source="a test",
        directed=True,
    )
    assert (graph.n, graph.m, graph.weight_min, graph.weight_max, graph.weight_unit) == (3, 3, 1, 5, "m")
    indptr, indices, weights = graph.rows()
    assert (indptr.tolist(), indices.tolist(), weights.tolist()) == ([0, 2, 3, 3], [1, 2, 2], [1, 5, 1])
    assert weights.dtype == "int32"
    assert [part.tolist() for part in graph.rows(1, 3)] == [[0, 1, 1], [2], [1]]
    assert graph.labels().tolist() == ["a", "b", "č"]
    assert graph.coordinates().tolist() == [[0, 1], [2, 3], [4, 5]]
    assert graph.through().tolist() == [True, False, True]
    assert (graph.vertex("č"), graph.vertex("#1"), graph.label(2)) == (2, 1, "č")
    graph.verify()
    assert pickle.loads(pickle.dumps(graph)) == graph


@given(
    st.integers(1, 20).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(-99, 99)), max_size=60),
            st.integers(1, 60),
        )
    )
)
@settings(max_examples=20)  # two stores each
def test_pieces_of_any_size_give_the_same_store(tmp_path_factory, case):
    n, arcs, size = case
    folder = tmp_path_factory.mktemp("pieces")
    arcs = np.array(sorted(arcs, key=lambda arc: arc[:2]), dtype=np.int64).reshape(-1, 3)
    digests = []
    for name, step in (("whole", max(len(arcs), 1)), ("pieces", size)):
        with new_graph(folder / name, n=n, m=len(arcs), weight_dtype="int16") as writer:
            for start in range(0, len(arcs), step):
                writer.append(*arcs[start : start + step].T)
        graph = open_graph(folder / name)
        graph.verify()
        digests.append(graph.digest)
    assert digests[0] == digests[1]
    tails = np.repeat(np.arange(n), np.diff(graph.indptr()))
    np.testing.assert_array_equal(np.stack([tails, *graph.rows()[1:]], axis=1), arcs)


def test_arrays_of_several_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.stores.graph_writer.CHUNK_BYTES", 64)
    rng = np.random.default_rng(0)
    tails, indices = np.sort(rng.integers(0, 100, 1000)), rng.integers(0, 100, 1000)
    with new_graph(tmp_path / "g", n=100, m=1000, weight_dtype="float64") as writer:
        for piece in np.array_split(np.arange(1000), 37):
            writer.append(tails[piece], indices[piece], piece.astype(float))
        writer.annotate(labels=np.arange(100).astype(str), coordinates=np.ones((100, 2)))
    graph = open_graph(tmp_path / "g")
    graph.verify()
    np.testing.assert_array_equal(graph.rows()[1], indices)
    np.testing.assert_array_equal(graph.rows()[2], np.arange(1000))
    assert graph.label(99) == "99"


@pytest.mark.parametrize("labels", [range(8, 11), range(0, 6, 2), range(2, -1, -1), range(-1, 2)])
def test_labels_may_be_any_range(tmp_path, labels):
    assert small(tmp_path / "g", labels=labels).labels().tolist() == [*map(str, labels)]


@pytest.mark.parametrize("sorted_rows", [True, False])
def test_an_unweighted_graph_has_no_weights_and_reads_as_one_of_ones(tmp_path, sorted_rows):
    arrays = np.array([0, 2, 3, 3]), np.array([2, 1, 2])
    bare = write_graph(tmp_path / "bare", *arrays, sorted_rows=sorted_rows)
    ones = write_graph(tmp_path / "ones", *arrays, np.ones(3, "int32"), sorted_rows=sorted_rows)
    assert (bare.weighted, ones.weighted) == (False, True)
    assert not (tmp_path / "bare" / "weights").exists()
    assert bare.digest == ones.digest
    assert (bare.weight_dtype, bare.weight_min, bare.weight_max) == (np.int32, 1, 1)
    for read in (
        lambda graph: graph.rows(),
        lambda graph: graph.rows(1, 3),
        lambda graph: graph.rows_in(np, "float64", 0, 3),
        lambda graph: (graph.weights(), graph.weights(1), graph.weights(0, 2), graph.weights(2, 2)),
        lambda graph: (graph.reverse.weights(), graph.reverse.weights(1, 3)),
    ):
        for mine, theirs in zip(read(bare), read(ones), strict=True):
            np.testing.assert_array_equal(mine, theirs, strict=True)
    assert "; unweighted (each arc counts 1)" in bare.describe()
    assert bare.verify().checked[0].startswith("every chunk of indptr and indices (2 in all)")
    assert pickle.loads(pickle.dumps(bare)) == bare
    none = write_graph(tmp_path / "none", np.zeros(6, int), np.empty(0, "int32"))
    none.verify()
    assert (none.weighted, none.rows()[2].tolist()) == (False, [])


@pytest.mark.parametrize(("dtype", "weights"), [(None, np.ones(2)), ("float32", None)])
def test_weights_are_given_exactly_where_a_graph_is_weighted(tmp_path, dtype, weights):
    with (
        pytest.raises(ValueError, match="weights are given for an unweighted graph, or missing for a weighted one"),
        new_graph(tmp_path / "g", n=2, m=2, weight_dtype=dtype) as writer,
    ):
        writer.append(np.array([0, 1]), np.array([1, 0]), weights)
    assert list(tmp_path.iterdir()) == []


def test_no_vertices_and_no_arcs(tmp_path):
    none = write_graph(tmp_path / "none", np.array([0]), np.empty(0, "int32"), np.empty(0, "float32"))
    bare = write_graph(tmp_path / "bare", np.zeros(6, int), np.empty(0, "int32"), np.empty(0, "float32"))
    assert (none.n, none.m, bare.n, bare.m) == (0, 0, 5, 0)
    none.verify()
    bare.verify()


@pytest.mark.parametrize(
    ("arcs", "message"),
    [
        (([1, 0], [0, 0], [1, 1]), "order of their tails"),
        (([0, 3], [0, 0], [1, 1]), "has a vertex outside"),
        (([0, 1], [0, -1], [1, 1]), "has a vertex outside"),
        (([0, 1], [0, 1], [1, np.nan]), "NaN or infinite"),
        (([0, 1], [0, 1], [1, np.inf]), "NaN or infinite"),
        (([0], [0], [1]), "1 arcs were appended, but 2 were announced"),
        (([0, 0, 1], [0, 1, 1], [1, 1, 1]), "more arcs"),
    ],
)
def test_bad_arcs_leave_nothing_behind(tmp_path, arcs, message):
    with (
        pytest.raises(ValueError, match=message),
        new_graph(tmp_path / "g", n=3, m=2, weight_dtype="float64") as writer,
    ):
        writer.append(*map(np.array, arcs))
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_the_way(tmp_path):
    small(tmp_path / "g")
    with pytest.raises(StoreError, match="exists already"):
        small(tmp_path / "g")
    assert small(tmp_path / "g", overwrite=True, weight_unit="m").weight_unit == "m"
    (tmp_path / "file").write_text("precious")
    with pytest.raises(StoreError):
        small(tmp_path / "file", overwrite=True)
    assert (tmp_path / "file").read_text() == "precious"


def test_foreign_and_missing_stores(tmp_path):
    with pytest.raises(StoreError, match="no such store"):
        open_graph(tmp_path / "nothing")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="not a Zarr 3 group"):
        open_graph(tmp_path / "folder")
    (tmp_path / "edges.csv").write_text("0,1\n")
    with pytest.raises(StoreError, match="is a file, not a store; import it first"):
        open_graph(tmp_path / "edges.csv")
    zarr.open_group(tmp_path / "other", mode="w")
    with pytest.raises(StoreError, match="not made by tilepath"):
        open_graph(tmp_path / "other")
    zarr.open_group(tmp_path / "distances", mode="w").attrs["schema"] = "distances/2"
    with pytest.raises(StoreError, match="is a distances store .*, but a graph store .*is needed.*tilepath import"):
        open_graph(tmp_path / "distances")


def test_damage_is_found_and_named(tmp_path):
    graph = small(tmp_path / "g", through=np.array([True, False, True]))
    group = zarr.open_group(tmp_path / "g", mode="r+")
    group["through"][1] = True
    with pytest.raises(StoreError, match="do not match the recorded digest"):
        graph.verify()
    group["indices"][0] = 7
    with pytest.raises(StoreError, match="indices: holds 7, but its values run from 0 to 2"):
        graph.verify()
    group["indptr"][1] = 9
    with pytest.raises(StoreError, match="indptr: holds 9, but its values run from 0 to 3"):
        graph.verify()
    group.attrs["m"] = 4
    with pytest.raises(StoreError, match=r"array `indices` is int32 \(3,\), expected"):
        open_graph(tmp_path / "g")
    shutil.rmtree(tmp_path / "g" / "weights")
    group.attrs["m"] = 3
    with pytest.raises(StoreError, match="`weights` is missing"):
        open_graph(tmp_path / "g")


def test_unknown_and_ambiguous_vertices(tmp_path):
    graph = small(tmp_path / "g", labels=np.array(["x", "x", "1"]))
    assert graph.vertex("1") == 2  # a label comes before an index
    with pytest.raises(StoreError, match="2 vertices are labelled 'x'"):
        graph.vertex("x")
    for name in ("y", "3", "-1", 3):
        with pytest.raises(StoreError, match="no vertex"):
            graph.vertex(name)


@pytest.mark.parametrize(("dtype", "stored"), [(">f8", "float64"), ("bool", "int32"), ("float16", "float32")])
def test_weights_of_any_dtype_of_numbers(tmp_path, dtype, stored):
    graph = write_graph(tmp_path / "g", np.array([0, 1]), np.array([0]), np.array([1], dtype))
    assert (graph.weights().tolist(), graph.weights().dtype) == ([1], stored)
    with graph_by_rows(tmp_path / "rows", vertices=1) as rows:
        rows.append([0], np.array([1], dtype))
    assert open_graph(tmp_path / "rows").weights().dtype == stored


@pytest.mark.parametrize(
    ("indptr", "indices", "weights", "message"),
    [
        ([0, 2, 1], [0, 1], [1, 1], "indptr must rise from 0 to the number of arcs, 2"),
        ([0, 1, 1], [0, 1], [1, 1], "indptr must rise from 0 to the number of arcs, 2"),
        ([0, 1, 2], [0, 2], [1, 1], "indices run from 0 to 2; they must be vertices, 0 to 1"),
        ([0, 1, 2], [0, 1], [1], "there are 2 indices and 1 weights"),
        ([0, 1, 2], [0, 1], [1j, 1], "weights are complex128; convert them to integers or floats of at most 64 bits"),
        ([0, 1, 2], [0, 1], ["1", "1"], "weights are <U1; convert them"),
    ],
)
def test_arrays_that_are_not_a_graph_are_refused_by_name(tmp_path, indptr, indices, weights, message):
    with pytest.raises((TypeError, ValueError), match=message):
        write_graph(tmp_path / "g", *map(np.array, (indptr, indices, weights)))
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_option_names_the_function_that_was_called(tmp_path):
    with pytest.raises(TypeError, match=r"write_graph\(\) got an unexpected keyword argument 'unit'"):
        write_graph(tmp_path / "g", np.array([0, 1]), np.array([0]), unit="s")


def test_attributes_of_numpy_are_recorded(tmp_path):
    flags = {"directed": np.True_, "simplified": np.False_, "sorted_rows": np.True_, "input_edges": np.int64(7)}
    graph = write_graph(tmp_path / "g", [0, 1, 2], [1, 0], **flags)
    assert (graph.directed, graph.simplified, graph.sorted_rows, graph.input_edges) == (True, False, True, 7)
    assert write_samples(tmp_path / "s", np.eye(3), missing=np.True_).missing


@pytest.mark.parametrize(
    ("annotation", "shape"),
    [
        ({"labels": ["a", "b", "c"]}, "(3,), not (2,)"),
        ({"coordinates": np.zeros((3, 2))}, "(3, 2), not (2, 2)"),
        ({"coordinates": np.zeros((2, 3))}, "(2, 3), not (2, 2)"),
        ({"through": np.ones(3, bool)}, "(3,), not (2,)"),
    ],
)
def test_annotations_of_another_shape_replace_no_store(tmp_path, annotation, shape):
    kept = write_graph(tmp_path / "g", [0, 1, 2], [1, 0])
    (name,) = annotation
    with pytest.raises(ValueError, match=re.escape(f"{name}: the shape is {shape}, for 2 vertices")):
        write_graph(tmp_path / "g", [0, 1, 1], [1], overwrite=True, **annotation)
    assert open_graph(tmp_path / "g") == kept


def test_lines_are_kept_and_checked(tmp_path):
    def mapped(**changed):
        numbers, offsets = np.array([1, -1, 0]), np.array([0, 3])
        points = np.array([[0.0, 0], [1, 2], [3, 3]])
        facts = {"lines": Lines(**{"of_arcs": numbers, "offsets": offsets, "points": points} | changed)}
        places = np.array([[0.0, 0], [3, 3]])
        return write_graph(tmp_path / "m", [0, 2, 3], [1, 1, 0], coordinates=places, overwrite=True, crs="X", **facts)

    graph = mapped()
    graph.verify()
    offsets, points = points_along(
        graph.lines(), graph.coordinates(), np.arange(3), np.array([0, 0, 1]), np.array([1, 1, 0])
    )
    assert offsets.tolist() == [0, 3, 6, 8]
    assert points.tolist() == [[0, 0], [1, 2], [3, 3], [3, 3], [1, 2], [0, 0], [3, 3], [0, 0]]
    assert (graph.crs, "with coordinates and lines in X" in graph.describe()) == ("X", True)
    for changed, says in (
        ({"of_arcs": np.array([1, 2, 0])}, "a line that does not exist"),
        ({"of_arcs": np.array([1, 1])}, "arc_lines has 2 entries, but there are 3 arcs"),
        ({"offsets": np.array([0, 2])}, "do not fit their points"),
        ({"offsets": np.array([0, 2, 3])}, "do not fit their points"),  # a line of one point
    ):
        with pytest.raises(ValueError, match=says):
            mapped(**changed)
    mapped()
    group = zarr.open_group(tmp_path / "m")
    group.attrs["contents"] = {name: value for name, value in group.attrs["contents"].items() if name != "line_points"}
    shutil.rmtree(tmp_path / "m" / "line_points")
    with pytest.raises(StoreError, match="some of the arrays of lines are missing"):
        open_graph(tmp_path / "m")
