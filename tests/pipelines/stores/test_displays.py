"""The text of a graph in a terminal, and its picture or table in a notebook."""

import os
import shutil
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from pipelines import open_graph, write_graph
from pipelines.pictures import inline
from pipelines.stores import displays


def written(path, n, arcs, **facts):
    tails, heads = np.array(arcs, np.int64).reshape(-1, 2).T
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    return write_graph(path, indptr, heads.astype("int32"), np.ones(len(arcs), "int32"), **facts)


@pytest.fixture
def reads(monkeypatch):
    """The numbers of entries that are read of each array."""
    from pipelines.stores.contents import StoredArray

    sizes, read = [], StoredArray.__getitem__
    monkeypatch.setattr(StoredArray, "__getitem__", lambda *asked: sizes.append(len(found := read(*asked))) or found)
    return sizes


def test_the_text_is_what_it_is_and_its_first_rows(tmp_path):
    arcs = [(0, 2), (0, 1), (0, 1), (2, 2), (3, 0)]
    graph = written(tmp_path / "roads.zarr", 4, arcs, labels=np.array(["a", "b, c", "", "d\n" * 20]))
    assert repr(graph).splitlines() == [
        "<directed graph roads.zarr: 4 vertices, 5 arcs>",
        'a -> "b, c", "b, c", ""',
        '"b, c" ->',
        '"" -> ""',
        f"{'d ' * 11}d\u2026 -> a",
    ]
    first, *rows = repr(graph.reverse).splitlines()
    assert first == "<reverse of directed graph roads.zarr: 4 vertices, 5 arcs>"
    assert rows[0] == f"a -> {'d ' * 11}d\u2026"
    assert repr(written(tmp_path / "none", 0, [])) == "<directed graph none: 0 vertices, 0 arcs>"


def test_few_rows_and_few_neighbours_are_read(tmp_path, reads):
    star = written(tmp_path / "star", 5000, [(0, v) for v in range(5000)] + [(7, 1)])
    text = repr(star).splitlines()
    assert text[1] == "0 -> 0, 1, 2, 3, 4, 5, 6, 7, ... 4,992 more"
    assert text[2:] == ["1 ->", "2 ->", "3 ->", "4 ->", "5 ->", "and 4,994 more"]
    assert 0 < sum(reads) <= displays.ROWS * displays.NEIGHBOURS


def test_a_generated_graph_is_not_generated_for_its_text():
    graph = open_graph("rmat:30")
    assert repr(graph) == "<undirected graph rmat:30: 1,073,741,824 vertices, 34,359,738,368 arcs>"
    assert graph._repr_html_() == f"<p>{repr(graph)[1:-1]}</p>"


@pytest.mark.parametrize("array", ["indptr", "indices", "labels"])
def test_the_text_of_a_damaged_store_says_so(tmp_path, array):
    graph = written(tmp_path / "g", 3, [(0, 1), (1, 2)], labels=np.array(["a", "b", "c"]))
    os.remove(tmp_path / "g" / array / "c" / "0")
    title, row = repr(graph).splitlines()
    assert title == "<directed graph g: 3 vertices, 2 arcs>"
    assert row.startswith("rows cannot be read: ")
    assert f"{array}: the chunk c/0 is missing" in row
    shown = graph._repr_html_()
    assert shown.startswith("<pre>&lt;directed graph g")
    assert "is missing" in shown
    shutil.rmtree(tmp_path / "g")
    assert "rows cannot be read" in repr(graph)
    assert "rows cannot be read" in graph._repr_html_()


def test_a_small_graph_is_a_picture_in_a_notebook(tmp_path):
    graph = written(tmp_path / "g", 3, [(0, 1), (1, 2)], labels=np.array(["<a>", "b", "c"]))
    page = ElementTree.fromstring(graph._repr_html_())
    (svg,) = page
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert "<!-- g: 3 vertices, 2 arcs -->" in graph._repr_html_()


def test_a_large_graph_or_no_matplotlib_is_a_table_in_a_notebook(tmp_path, monkeypatch):
    most = inline.MOST_VERTICES
    shown = written(tmp_path / "g", most + 1, [(0, v) for v in range(9)])._repr_html_()
    title, rest = shown.split("<table>")
    assert title == f"<p>directed graph g: {most + 1} vertices, 9 arcs</p>"
    assert "<td>0</td><td>9</td><td>0, 1, 2, 3, 4, 5, 6, 7, ... 1 more</td>" in rest
    assert rest.endswith(f"</table><p>and {most + 1 - displays.ROWS} more</p>")
    small = written(tmp_path / "small", 2, [(0, 1)], labels=np.array(["<a>", "b"]))
    assert "<svg" in small._repr_html_()
    assert "<td>b</td><td>1</td><td>&lt;a&gt;</td>" in small.reverse._repr_html_()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "<td>&lt;a&gt;</td><td>1</td><td>b</td>" in small._repr_html_()
    assert not list(tmp_path.glob("*.svg"))
