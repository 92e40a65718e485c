"""Which vertex a name means."""

import numpy as np
import pytest

from pipelines.stores import StoreError, write_graph
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
        with pytest.raises(StoreError, match=r"there is no vertex .*; give an index from 0 to 19"):
            graph.vertex(name)


def test_with_labels_digits_are_never_an_index(tmp_path):
    graph = named(tmp_path / "g", [str(10 * i) for i in range(20)])
    assert [graph.vertex(name) for name in ("10", " 10", "190\n", "#10", " #10", 10)] == [1, 1, 19, 10, 10, 10]
    for name in (*NOT_INTEGERS, "1", "5", "19", "010", "+10", "1_0", "#20", "\udcff"):
        with pytest.raises(StoreError, match=r"give a label, such as '0', or an index from #0 to #19"):
            graph.vertex(name)
    with pytest.raises(StoreError, match="there is no vertex 20; give an index from 0 to 19"):
        graph.vertex(20)


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
    with pytest.raises(StoreError, match="3 vertices are labelled 'b'; name one by its index, such as #1"):
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
