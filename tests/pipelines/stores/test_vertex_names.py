"""Which vertex a name means."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pipelines import positions
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.vertex_names import SEVERAL, UNKNOWN

NOT_INTEGERS = ("01", "+1", "1_0", "-1", "1.0", "1e1", "٣", "", " ", "#", "# 1", "#01", "##1", "#-1", "0x1", "9" * 5000)


def named(path, labels, n=20):
    labels = None if labels is None else np.array(labels)
    return write_graph(path, np.zeros(n + 1, int), np.empty(0, "int32"), np.empty(0, "int32"), labels=labels)


def test_without_labels_text_is_the_decimal_index(tmp_path):
    graph = named(tmp_path / "g", None)
    assert [graph.vertex(name) for name in ("0", "10", "19", " 7\t", "#7", " #0 ", 19, np.int32(3))] == [
        *(0, 10, 19, 7, 7, 0, 19, 3)
    ]
    for name in (*NOT_INTEGERS, "20", "#20", 20, -1, "x", "\udcff"):
        with pytest.raises(StoreError, match=r"there is no vertex .*; give a position from 0 to 19"):
            graph.vertex(name)


def test_with_labels_digits_are_never_an_index(tmp_path):
    graph = named(tmp_path / "g", [str(10 * i) for i in range(20)])
    assert [graph.vertex(name) for name in ("10", " 10", "190\n", "#10", " #10", 10)] == [1, 1, 19, 10, 10, 1]
    for name in (*NOT_INTEGERS, "1", "5", "19", "010", "+10", "1_0", "#20", "\udcff"):
        with pytest.raises(StoreError, match=r"give a label, such as '0', or a position from #0 to #19"):
            graph.vertex(name)
    for name in (5, -1, 10**30):
        with pytest.raises(
            StoreError, match=rf"no vertex labelled {name}; give a label, such as '0', or a position, as"
        ):
            graph.vertex(name)


def test_labels_that_look_like_an_index_or_have_blanks(tmp_path):
    graph = named(tmp_path / "g", ["#2", " a", "a", "b ", "7", "", "x y"], 7)
    names = ["#2", " #2", "#3", " a", "a", "a ", "b ", "b", "7", "#6", "", "x y", " x y ", "x  y"]
    assert graph.find(names).tolist() == [0, 0, 3, 1, 2, 2, 3, UNKNOWN, 4, 6, 5, 6, 6, UNKNOWN]


def test_every_name_given_out_is_understood(tmp_path):
    for labels in (None, ["#2", " a", "a", "b ", "7", "", "x y"]):
        graph = named(tmp_path / f"g{labels is None}", labels, 7)
        assert graph.find(graph.names(range(7))).tolist() == list(range(7))
        assert graph.names([4, 0]) == [graph.label(4), graph.label(0)]


def test_labels_of_several_vertices(tmp_path):
    graph = named(tmp_path / "g", ["a", "b", "b", "b"], 4)
    assert graph.find(["b", "a", "b", "#2", " b"]).tolist() == [SEVERAL, 0, SEVERAL, 2, SEVERAL]
    with pytest.raises(StoreError, match="3 vertices are labelled 'b'; name one by position, such as #1"):
        graph.vertex("b")
    assert graph.vertex("#3") == 3


def test_no_vertices_at_all(tmp_path):
    with pytest.raises(StoreError, match="there is no vertex '0'; the graph has no vertices"):
        named(tmp_path / "g", None, 0).vertex("0")


@pytest.mark.parametrize("labelled", [False, True])
def test_many_names_mean_what_each_does(tmp_path, labelled):
    rng = np.random.default_rng(0)
    labels = [f"v{i}" if i % 3 else str(rng.integers(30)) for i in range(50)] if labelled else None
    graph = named(tmp_path / "g", labels, 50)
    names = [f"{a}{b}{c}" for a in ("", " ") for b in ("", "#", "v", "0", "+") for c in range(55)] + [""]
    names = [*names, *names[::-1]]

    def one(name):
        try:
            return graph.vertex(name)
        except StoreError:
            return None

    found = [int(v) if v >= 0 else None for v in graph.find(names)]
    assert found[::29] == [one(name) for name in names[::29]]

    def plainly(name):
        text = name.strip()
        if labelled and text in labels:
            return labels.index(text) if labels.count(text) == 1 else None
        digits = text.removeprefix("#")
        if not digits.isdigit() or str(int(digits)) != digits or int(digits) >= 50 or (labelled and digits == text):
            return None
        return int(digits)

    assert found == [plainly(name) for name in names]


LISTS = [
    [7, 30],
    (np.int16(7), "30"),
    range(7, 31, 23),
    {7: 0, 30: 0}.keys(),
    np.array([7, 30], np.uint64),
    np.array(["7", "30"]),
    np.array(["7", 30], object),
    pd.Series([7, 30]),
    pd.Series([7, 30], dtype="Int64"),
    pd.Series(["7", "30"]).astype("category"),
    pd.Index([7, 30]),
    pa.array([7, 30]),
    pa.chunked_array([["7"], ["30"]]),
    ["#1", "#4"],
    positions([1, 4]),
    positions(pd.Series([1, 4], dtype="UInt8")),
]


@pytest.mark.parametrize("labels", [["5", "7", "x", "12", "30"], ["5", "7", "9", "12", "30"]])
@pytest.mark.parametrize("given", LISTS, ids=lambda given: type(given).__name__)
def test_lists_of_any_library_name_vertices_by_text_and_by_int(tmp_path, given, labels):
    assert named(tmp_path / "g", labels, 5).vertices(given).tolist() == [1, 4]


def test_an_int_is_an_index_where_there_are_no_labels(tmp_path):
    graph = named(tmp_path / "g", None)
    assert graph.vertices([3, "4", "#5", np.int8(6)]).tolist() == [3, 4, 5, 6]
    assert graph.vertices(np.arange(20)).tolist() == list(range(20))
    for nothing in ([], (), np.array([]), pd.Series([], dtype=object), positions([])):
        assert (graph.vertices(nothing).dtype, len(graph.vertices(nothing))) == (np.int64, 0)
    for given in ([3, 20], [-1], ["x"], positions([20]), positions([-1]), [2**64]):
        with pytest.raises(StoreError, match="there is no vertex .*; give a position from 0 to 19"):
            graph.vertices(given)


@pytest.mark.parametrize("labels", [None, [str(10 * i) for i in range(20)]])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("12", "the sources are not a list but '12'; give a list of vertices, such as"),
        (None, "the sources are not a list but None"),
        (10, "the sources are not a list but 10"),
        (np.array(10), r"the sources are not a list but have the shape \(\)"),
        (np.array([[10], [0]]), r"the sources are not a list but have the shape \(2, 1\)"),
        (positions([[10], [0]]), r"the sources have the shape \(2, 1\)"),
        ([[10], [0]], r"source 1 of the list is \[10\]; give a label"),
        (["10", 1.5], "source 2 of the list is 1.5; give a label"),
        (np.array([10.0, 0.0]), r"source 1 of the list is 10.0; .*convert them to ints, such as by .astype\(\"int64"),
        ([np.nan], "source 1 of the list is nan; fill in the vertex that is missing"),
        (pd.Series([10, None], dtype="Int64"), "source 2 of the list is nan; fill in the vertex"),
        (pa.array(["10", None]), "source 2 of the list is None; fill in the vertex"),
        ([0, True], "source 2 of the list is True"),
        (np.zeros(20, bool), r"the sources are a mask; give .* frame\[mask\], or positions\(np.flatnonzero\(mask\)\)"),
        ([True, False], "the sources are a mask; give"),
        ([b"10"], "source 1 of the list is b'10'"),
        ([(13.4, 52.5)], r"source 1 of the list is \(13.4, 52.5\); tilepath.vertices_at\(network, places\).vertices"),
    ],
)
def test_what_names_no_vertex_is_refused_with_its_place(tmp_path, labels, given, message):
    with pytest.raises(ValueError, match=message):
        named(tmp_path / "g", labels).vertices(given, "source")


def test_one_vertex_is_named_by_one_name(tmp_path):
    graph = named(tmp_path / "g", [str(10 * i) for i in range(20)])
    assert [graph.vertex(name) for name in (positions(3), positions(np.int8(4)), np.array(50))] == [3, 4, 5]
    assert (graph[positions(3)], 10 in graph, 1 in graph, "#1" in graph, 1.0 in graph) == ([], True, False, True, False)
    for name in (None, True, 1.0, ["10"], positions([3])):
        with pytest.raises(ValueError, match="the start is .*; give a label, or"):
            graph.vertex(name, "start")


def test_positions_are_integers():
    for wrong in ([1.5], ["1"], [None], [True], "1"):
        with pytest.raises(ValueError, match="position"):
            positions(wrong)


def test_positions_are_used_as_an_array(tmp_path):
    graph, several = named(tmp_path / "g", [str(10 * i) for i in range(20)]), positions([3, 1, 4])
    assert (len(several), np.asarray(several).tolist(), np.add(several, 1).tolist()) == (3, [3, 1, 4], [4, 2, 5])
    assert (repr(several), repr(several[0])) == ("positions([3, 1, 4])", "positions(3)")
    assert (graph.vertex(several[-1]), int(several[-1]), graph.vertices(several[:2]).tolist()) == (4, 4, [3, 1])
    assert graph.vertices(list(several)).tolist() == [3, 1, 4]  # not the labels 3, 1 and 4
    with pytest.raises(TypeError, match="one position has no length"):
        len(several[0])


def test_ints_that_are_labels_of_several_or_are_written_otherwise(tmp_path):
    graph = named(tmp_path / "g", ["1", "1", "02", "3", "+4", " 5"], 6)
    assert graph.vertex(3) == 3
    with pytest.raises(StoreError, match="2 vertices are labelled '1'; name one by position, such as #0"):
        graph.vertices([3, 1])
    for name in (2, 4, 5):
        with pytest.raises(StoreError, match=f"there is no vertex labelled {name}; give a label, such as '1'"):
            graph.vertex(name)
    assert named(tmp_path / "h", [str(2**63), "-1"], 2).vertices([-1, 2**63, np.uint64(2**63)]).tolist() == [1, 0, 0]
