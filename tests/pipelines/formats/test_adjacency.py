"""Lines `a -> b, c`, read and written, and vectors of successors."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.formats.graphs import FormatError, adjacency, import_graph
from pipelines.formats.graphs.adjacency import write_adjacency_text
from pipelines.formats.graphs.in_memory import cycles
from pipelines.stores.graph_writer import write_graph


@pytest.fixture
def load(tmp_path):
    def load(content, name="g.adj", **options):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return import_graph(file, tmp_path / "store", overwrite=True, **options)

    return load


def test_names_in_order_of_first_appearance(load):
    graph = load('# rays\n\na -> b, c\r\n  "Ulm, ""Donau""" ->a,a,  Neu-Ulm \nd\ne ->\nb -> "->", b\nz\n')
    assert graph.labels().tolist() == ["a", "b", "c", 'Ulm, "Donau"', "Neu-Ulm", "d", "e", "->", "z"]
    assert dict(graph)['Ulm, "Donau"'] == ["a", "a", "Neu-Ulm"]
    assert dict(graph)["b"] == ["b", "->"]
    assert [name for name, heads in graph if not heads] == ["c", "Neu-Ulm", "d", "e", "->", "z"]
    assert (graph.m, set(graph.weights().tolist()), graph.weight_dtype) == (7, {1}, "int32")


def test_the_published_rays_and_their_reverse(load):
    graph = load("a -> b, c, d, e")
    assert list(graph.reverse) == [("a", []), *((name, ["a"]) for name in "bcde")]


def test_a_txt_file_with_an_arrow_is_adjacency_unless_it_is_said_to_have_columns(load):
    assert list(load("# c\n1 -> 2\n", "g.txt")) == [("1", ["2"]), ("2", [])]
    assert "labels" not in load("0 -> 2\n", "g.txt", columns=[0, 2]).optional
    assert load("0 1\n", "g.txt").m == 1


def test_numbers_of_vertices_on_request(load):
    graph = load("0 -> 2\n5\n", labels=False)
    assert (graph.n, graph["0"], "labels" in graph.optional) == (6, ["2"], False)
    assert load("0 -> 2\n", labels=False, vertices=9).n == 9
    assert load("0 -> 2, 1\n2 -> 1\n", labels=False, directed=False)["1"] == ["0", "2"]
    for text, options, match in (
        ("0 -> 2\n", {"vertices": 2}, "line 1: names a vertex 2, but there are 2"),
        ("0 -> x\n", {}, "line 1: 'x' is not the number of a vertex"),
        ("0 -> 1\n3000000\n", {}, "implies 3,000,001 vertices, far more than the 1 arcs"),
    ):
        with pytest.raises(FormatError, match=match):
            load(text, labels=False, **options)
    with pytest.raises(FormatError, match="leave out vertices"):
        load("a -> b\n", vertices=3)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("a -> b -> c", "more than one arrow"),
        ("a -> b,, c", "an empty name"),
        ("a -> b,", "an empty name"),
        ("a -> ,", "an empty name"),
        ("-> b", "no name before the arrow"),
        ("a, b", "a comma before the arrow"),
        ("a, b -> c", "a comma before the arrow"),
        ("a -> b # remark", "a # that may begin a comment"),
        ('a -> "b', "an unmatched quotation mark"),
        ('a -> b"', "an unmatched quotation mark"),
        ('a -> "b" c', "two names without a comma"),
        ('a "b" -> c', "two names without a comma"),
        (b"a -> \xff", "is not UTF-8"),
        (b"a -> \0", "zero byte"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(load, line, match):
    content = b"# c\nx -> y\n" + (line if isinstance(line, bytes) else line.encode()) + b"\nz -> x\n"
    with pytest.raises(FormatError, match=f"g.adj, line 3: .*{match}"):
        load(content)


def test_a_file_without_vertices(load):
    with pytest.raises(FormatError, match="holds no vertices and no arcs"):
        load("# nothing\n\n")
    with pytest.raises(FormatError, match="weight='w' has no meaning"):
        load("a -> b\n", weight="w")


NAMES = st.text(st.sampled_from('ab "#,->\tü'), min_size=0, max_size=5)


@settings(max_examples=6)  # four stores each
@given(
    st.lists(NAMES, min_size=1, max_size=8, unique=True).flatmap(
        lambda names: st.tuples(
            st.just(names),
            st.lists(st.tuples(*[st.integers(0, len(names) - 1)] * 2), max_size=20),
            st.sampled_from([2, adjacency.PIECE]),
        )
    )
)
def test_what_is_written_is_read_again(tmp_path_factory, case):
    names, arcs, piece = case
    folder = tmp_path_factory.mktemp("adjacency")
    tails, heads = np.array(sorted(arcs, key=lambda arc: arc[0]), np.int64).reshape(-1, 2).T
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=len(names)))])
    options = {"sorted_rows": False, "source": "a test"}
    for labels, read in ((np.array(names, object), {}), (None, {"labels": False})):
        name = "named" if read == {} else "numbered"
        graph = write_graph(folder / name, indptr, heads.astype("int32"), heads * 0 + 1, labels=labels, **options)
        assert write_adjacency_text(graph.path, folder / f"{name}.adj") == len(names)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(adjacency, "PIECE", piece)
            again = import_graph(folder / f"{name}.adj", folder / f"{name}-again", sorted_rows=False, **read)
        again.verify()
        assert dict(again) == dict(graph)
    assert list(again) == list(graph)  # by numbers it is the same graph


def test_what_text_cannot_hold_is_not_written(tmp_path):
    def named(*labels):
        indptr = np.zeros(len(labels) + 1, int)
        none = np.empty(0, "int32")
        return write_graph(tmp_path / "g", indptr, none, none, labels=np.array(labels), overwrite=True)

    with pytest.raises(ValueError, match="several vertices are labelled 'a'"):
        write_adjacency_text(named("a", "a"), tmp_path / "x.adj")
    with pytest.raises(ValueError, match="has a line break"):
        write_adjacency_text(named("a\nb"), tmp_path / "x.adj")
    assert not list(tmp_path.glob("x*"))
    write_adjacency_text(named("a"), tmp_path / "x.adj")
    with pytest.raises(FileExistsError, match="--overwrite"):
        write_adjacency_text(named("b"), tmp_path / "x.adj")
    assert (tmp_path / "x.adj").read_text() == "a\n"


# Successors ---------------------------------------------------------------------------------------------------------


def test_a_vector_of_successors(tmp_path):
    told = []
    graph = import_graph(np.array([2, 0, 1, 4, 3], np.int16), tmp_path / "g", report=told.append)
    assert list(graph) == [("0", ["2"]), ("1", ["0"]), ("2", ["1"]), ("3", ["4"]), ("4", ["3"])]
    assert told == ["a permutation of 5 with 2 cycles, the longest of 3"]
    told.clear()
    graph = import_graph(np.array([1, -1, 1]), tmp_path / "forest", report=told.append)
    assert (dict(graph), told) == ({"0": ["1"], "1": [], "2": ["1"]}, [])


@settings(max_examples=30)
@given(st.permutations(range(9)))
def test_cycles_of_a_permutation(successors):
    order, offsets = cycles(np.array(successors))
    assert sorted(order.tolist()) == list(range(9))
    firsts = []
    for begin, end in pairwise(offsets):
        cycle = order[begin:end].tolist()
        assert [successors[v] for v in cycle] == [*cycle[1:], cycle[0]]
        assert cycle[0] == min(cycle)
        firsts.append(cycle[0])
    assert firsts == sorted(firsts)


@pytest.mark.parametrize(
    ("successors", "match"),
    [
        (np.array([0, 2]), "the successor of 1 is 2; give a vertex, 0 to 1, or -1 for none"),
        (np.array([-2]), "the successor of 0 is -2"),
        (np.array([2**63], np.uint64), "the successor of 0 is 9223372036854775808"),
        (np.eye(2), r"an array of float64, 2 x 2, is not a vector of .*, or a matrix .* as scipy\.sparse\.csr_array"),
        (np.zeros((2, 2), int), "an array of int64, 2 x 2"),
        (np.array([], int), "holds no vertices"),
        ([1, 0], r"entry 0 \(from 0\): 1 is neither .*, or give a vector of successors as a NumPy array"),
    ],
)
def test_what_is_not_a_vector_of_successors(tmp_path, successors, match):
    with pytest.raises(FormatError, match=match):
        import_graph(successors, tmp_path / "g")
