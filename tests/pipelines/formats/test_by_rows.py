"""A graph store written row by row."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilepath
from pipelines import graph_by_rows, open_graph, write_graph
from pipelines.formats.graphs import by_rows
from pipelines.stores.errors import StoreError

INFINITY = float("inf")


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 8), st.integers(-9, 9)), max_size=5), min_size=9, max_size=9),
    st.lists(st.integers(0, 9), max_size=3),
    st.sampled_from([1, 3, 1 << 18]),
    st.booleans(),
)
@settings(max_examples=25)
def test_rows_make_the_graph_of_their_arrays(tmp_path_factory, rows, cuts, piece, sorted_rows):
    folder = tmp_path_factory.mktemp("rows")
    degrees = np.array([len(row) for row in rows])
    heads, weights = np.array([arc for row in rows for arc in row], np.int64).reshape(-1, 2).T
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    weights = weights.astype("int32")
    facts = {"sorted_rows": sorted_rows, "weight_unit": "km"}
    expected = write_graph(folder / "whole", indptr, heads.astype("int32"), weights, **facts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_rows, "PIECE", piece)
        with graph_by_rows(folder / "g", unit="km", sorted_rows=sorted_rows) as graph:
            for first, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 9], strict=True):
                arcs = slice(indptr[first], indptr[stop])
                graph.append_rows(degrees[first:stop], heads[arcs], weights[arcs])
            assert (graph.n, graph.m) == (9, len(heads))
    found = open_graph(folder / "g")
    found.verify()
    assert (found.digest, found.weight_unit, found.source) == (expected.digest, "km", "rows")


def test_rows_of_lists_one_after_the_other(tmp_path):
    with tilepath.graph_by_rows(tmp_path / "g", vertices=4, labels=iter("abcd")) as graph:
        for heads in [2, 1], (), np.array([3]), []:
            graph.append(heads)
    found = open_graph(tmp_path / "g")
    assert list(found) == [("a", ["b", "c"]), ("b", []), ("c", ["d"]), ("d", [])]
    assert (found.weights().tolist(), found.weight_dtype) == ([1, 1, 1], "int32")
    with graph_by_rows(tmp_path / "g", directed=False, overwrite=True) as graph:
        graph.append([1], [0.5])
        graph.append([1], [2])
    found = open_graph(tmp_path / "g")
    assert (found["0"], found["1"], found.weight_dtype, found.directed) == (["1"], ["0", "1", "1"], "float64", False)


@pytest.mark.parametrize(
    ("weights", "dtype"),
    [
        (np.array([1, 2], "float32"), "float32"),
        (np.array([1, 2], "int16"), "int16"),
        (np.array([True, False]), "int32"),
        ([1, 2], "int32"),
        ([1, 2**40], "int64"),
        ([1, 2.5], "float64"),
    ],
)
def test_weights_keep_their_dtype(tmp_path, weights, dtype):
    with graph_by_rows(tmp_path / "g") as graph:
        graph.append([0, 0], weights)
    found = open_graph(tmp_path / "g")
    assert (found.weights().tolist(), found.weight_dtype) == (list(weights), dtype)


def append(*rows, **options):
    def write(path):
        with graph_by_rows(path, **options) as graph:
            for row in rows:
                graph.append(*row)

    return write


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (append(), "g: no rows were appended; append a row for each vertex"),
        (append([[0]], vertices=2), "g: 1 row appended, but vertices=2 announced; append a row for each vertex"),
        (append([[0]], [[]], vertices=1), "g: 2 rows appended, but vertices=1 announced"),
        (append([[5]]), "g: an arc leads to vertex 5, but only 1 row appended; append a row for each vertex, empty if"),
        (append([[0]], [[-1]]), "g, row 1 and on: heads run from -1 to -1; give numbers from 0 to 2^62 - 1"),
        (append([[0.5]]), "g, row 0 and on: heads are float64 of shape (1,); give a list of whole numbers"),
        (append([[0], [1, 2]]), "g, row 0 and on: weights are int64 of shape (2,); give 1 number"),
        (append([[0], [1]], [[]], [[0]]), "g, row 2 and on: no weights are given, but the rows before have weights"),
        (append([[0]], [[0], [1]]), "g, row 1 and on: weights are given, but the rows before have none"),
        (append([[0], [1]], [[0, 1], [1, INFINITY]]), "g, arc 2 (from 0): arc 1 -> 1, weight inf; weights must be"),
        (append([[0], np.array([2**63], "uint64")]), "g, arc 0 (from 0): arc 0 -> 0, weight 9223372036854775808"),
        (append([[0]], labels=[]), "labels: the shape is (0,), not (1,), for 1 vertex"),
    ],
)
def test_what_is_refused_leaves_nothing(tmp_path, write, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        write(tmp_path / "g")
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_the_block_leaves_nothing_and_keeps_what_is_there(tmp_path):
    def stop(path, **options):
        with pytest.raises(KeyError, match="stop"), graph_by_rows(path, **options) as graph:
            fail_after_a_row(graph)
        with pytest.raises(ValueError, match="the block has ended"):
            graph.append([0])

    def fail_after_a_row(graph):
        graph.append([0])
        raise KeyError("stop")

    stop(tmp_path / "g")
    assert list(tmp_path.iterdir()) == []
    append([[0]])(tmp_path / "g")
    stop(tmp_path / "g", overwrite=True)
    assert open_graph(tmp_path / "g").m == 1
    with pytest.raises(StoreError, match="exists already"):
        append([[0]])(tmp_path / "g")
    with pytest.raises(ValueError, match="row 0 and on: degrees add up to 3, but there are 2 heads"):
        with graph_by_rows(tmp_path / "new") as graph:
            graph.append_rows([1, 2], [0, 1])
    assert [path.name for path in tmp_path.iterdir()] == ["g"]
