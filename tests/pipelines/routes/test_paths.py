"""Paths walked back from distances: each one exists, obeys closed vertices and is as long as the matrix says."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from families import diagonals, usual
from oracles import dijkstra
from path_rows import rounding_arcs
from pipeline_fixtures import CASES
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra as scipy_dijkstra

from gpuops.errors import NegativeCycleError, VerificationError
from gpuops.numbers import outside_infinity
from pipelines import positions, write_graph
from pipelines.files.tables import write_table
from pipelines.routes.paths import NoPathError, PathFinder, paths_of_pairs, predecessors, shortest_path
from pipelines.stores.errors import StoreError
from pipelines.workers.capacity import DoesNotFitError


def route(distances, graph, source, target):
    """`shortest_path` of what the fixture `solve` returns; the two below likewise."""
    return shortest_path(distances, source, target, graph=graph)


def table_of(distances, graph, pairs, out=None, **options):
    return paths_of_pairs(distances, pairs, out=out, graph=graph, **options)


def trees_of(distances, graph, sources):
    return predecessors(distances, sources, graph=graph)


def test_the_graph_is_a_keyword_that_may_be_left_out(solve, tmp_path):
    distances, _ = solve(3, ([0, 1], [1, 2], [1, 1]), "int32")
    assert shortest_path(distances, 0, 2).vertices == (0, 1, 2)
    assert paths_of_pairs(distances, np.array([[0, 2]]))["hops"].to_pylist() == [2]
    assert predecessors(distances, [0]).tolist() == [[-1, 0, 1]]
    (tmp_path / "pairs.csv").write_text("source,target\n0,1\n")
    for call in (
        lambda: shortest_path(distances, None, 0, 2),
        lambda: paths_of_pairs(distances, None, tmp_path / "pairs.csv", overwrite=True),
        lambda: predecessors(distances, None, [0]),
    ):
        with pytest.raises(TypeError, match="positional argument"):  # not one argument taken for another
            call()


def lightest(arcs):
    """(tail, head) -> weight of the lightest arc."""
    table = {}
    for u, v, w in zip(*(np.asarray(a).tolist() for a in arcs), strict=True):
        table[u, v] = min(w, table.get((u, v), w))
    return table


@pytest.mark.parametrize(("kind", "dtype"), diagonals(list(CASES), ["int16", "float32"]))
def test_all_paths(solve, graphs, kind, dtype):
    n, arcs, facts = graphs[kind]
    distances, graph = solve(n, arcs, dtype, **facts)
    matrix, weight = distances[:], lightest(arcs)
    through = facts.get("through", np.ones(n, bool))
    finder = PathFinder(distances, graph)
    for s in range(0, n, 3):
        for t in range(n):
            if matrix[s, t] == outside_infinity(dtype):
                with pytest.raises(NoPathError, match=f"vertex {s} to vertex {t}"):
                    finder.path(s, t)
                continue
            path = finder.path(s, t)
            assert (path.vertices[0], path.vertices[-1]) == (s, t)
            assert len(set(path.vertices)) == len(path.vertices)
            assert all(through[v] for v in path.vertices[1:-1])
            steps = zip(path.vertices[:-1], path.vertices[1:], strict=True)
            assert path.weights == tuple(weight[step] for step in steps)
            assert path.total == sum(path.weights) == path.distance == matrix[s, t]


def test_a_graph_is_searched_for_what_its_distances_say(solve, graphs, case):
    n, arcs, facts = graphs[case]
    distances, graph = solve(n, arcs, "int32", **facts)
    pairs = positions([(s, t) for s in range(0, n, 7) for t in range(n)])
    assert paths_of_pairs(graph.path, pairs).equals(paths_of_pairs(distances, pairs))
    sources = [0, n - 1]
    np.testing.assert_array_equal(predecessors(graph, sources), predecessors(distances, sources))
    assert predecessors(graph, []).shape == (0, n)
    assert shortest_path(graph, 0, 0).vertices == (0,)


def test_searches_that_cannot_be_are_refused_with_a_cure(solve, monkeypatch):
    _, graph = solve(3, ([0, 1], [1, 2], [1, 1]), "int32")
    _, cycle = solve(2, ([0, 1], [1, 0], [1, -2]), "int32", spoil=lambda matrix: None, labels=np.array(["a", "b"]))
    with pytest.raises(NegativeCycleError, match="the cycle .*a.* weighs -1"):
        shortest_path(cycle, "a", "b")
    with pytest.raises(ValueError, match=r"graph is a graph itself; leave out graph \(--graph\)"):
        shortest_path(graph.path, 0, 1, graph=graph)
    monkeypatch.setattr("pipelines.routes.distances.MOST_ARCS", 9)
    assert paths_of_pairs(graph, [(0, 1)]).num_rows == 1
    with pytest.raises(DoesNotFitError, match=r"2 searches in a graph of 2 arcs, .*tilepath sssp.*tilepath hierarchy"):
        paths_of_pairs(graph, [(0, 1), (1, 2)])
    monkeypatch.setattr("pipelines.workers.capacity.available_memory", lambda: 100)
    with pytest.raises(DoesNotFitError, match=r"need .* has 100 B free\. Let the workers of a cluster search"):
        shortest_path(graph, 0, 1)


@pytest.mark.parametrize("kind", ["closed", "closed undirected", "all closed", "closed plateaus"])
def test_dijkstra_agrees_where_vertices_are_closed(solve, graphs, kind):
    n, arcs, facts = graphs[kind]
    distances, graph = solve(n, arcs, "int32", **facts)
    table = table_of(distances, graph, np.argwhere(np.ones((n, n))))
    expected = np.array([dijkstra(n, *arcs, facts["through"], s) for s in range(n)]).ravel()
    assert table["distance"].to_pylist() == [None if np.isinf(d) else d for d in expected]


def test_predecessors_lead_home(solve, graphs, case):
    """Following them from anywhere ends at the source, and the weights on the way add up to the distance."""
    n, arcs, facts = graphs[case]
    distances, graph = solve(n, arcs, "int32", **facts)
    matrix, weight = distances[:], lightest(arcs)
    through = facts.get("through", np.ones(n, bool))
    trees = trees_of(distances, graph, range(n))
    assert trees.dtype == np.int32
    for s in range(n):
        for t in range(n):
            v, length, steps = t, 0, 0
            while trees[s, v] >= 0:
                u = int(trees[s, v])
                assert u == s or through[u]
                length, v, steps = length + weight[u, v], u, steps + 1
                assert steps < n
            if matrix[s, t] == outside_infinity("int32"):
                assert steps == 0
            else:
                assert (v, length) == (s, matrix[s, t])


def test_predecessors_of_some_sources_in_any_order(solve, graphs):
    n, arcs, _ = graphs["random"]
    distances, graph = solve(n, arcs, "int32", sources=[30, 4, 9], chunk=2)
    trees = trees_of(distances, graph, [9, 30, 9])
    every = trees_of(*solve(n, arcs, "int32"), range(n))
    np.testing.assert_array_equal(trees, every[[9, 30, 9]])
    with pytest.raises(StoreError, match="not among them"):
        trees_of(distances, graph, [5])


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("dtype", usual(["float32", "float64"]))
def test_rounded_distances(solve, dtype, signed):
    """Weights over twelve orders of magnitude: many arcs vanish beside the distances, in both directions."""
    n, arcs = rounding_arcs(signed)
    distances, graph = solve(n, arcs, dtype, chunk=64)
    matrix = distances[:].astype(np.float64)
    finder = PathFinder(distances, graph)
    unit, spread = np.finfo(dtype).eps, np.ptp(matrix[np.isfinite(matrix)])
    for s in range(0, n, 7):
        for t in np.flatnonzero(np.isfinite(matrix[s])):
            path = finder.path(s, int(t))
            # each arc fits within the tolerance of at most 64 arcs, 64 eps of the distance (of the spread, if signed)
            scale = spread if signed else matrix[s, t]
            assert abs(path.total - matrix[s, t]) <= 64 * unit * scale * max(1, len(path.weights))
    trees = trees_of(distances, graph, range(n))
    assert ((trees >= 0).sum(axis=1) == np.isfinite(matrix).sum(axis=1) - 1).all()


def test_scipy_agrees(solve):
    rng = np.random.default_rng(1)
    n, m = 200, 800
    cells = rng.choice(n * n, m, replace=False)
    tails, heads, weights = cells // n, cells % n, rng.integers(1, 100, m)
    distances, graph = solve(n, (tails, heads, weights), "int32", chunk=64)
    expected = scipy_dijkstra(csr_array((weights.astype(float), (tails, heads)), shape=(n, n)))
    pairs = rng.integers(0, n, (500, 2))
    table = table_of(distances, graph, pairs)
    found = [np.inf if d is None else d for d in table["distance"].to_pylist()]
    assert found == [expected[s, t] for s, t in pairs]


def test_zero_cycles_cost_no_detour_without_end(solve):
    """A long lane of arcs of weight zero both ways, with dead ends of its own: every walk still arrives."""
    lane, n = 300, 600
    a, b = np.arange(lane - 1), np.arange(1, lane)
    stubs = np.arange(lane), np.arange(lane, n)
    tails = np.concatenate([a, b, *stubs])
    heads = np.concatenate([b, a, *stubs[::-1]])
    distances, graph = solve(n, (tails, heads, np.zeros(len(tails), int)), "int32", chunk=600)
    assert route(distances, graph, 0, lane - 1).vertices == tuple(range(lane))
    assert len(route(distances, graph, lane, n - 1).weights) == lane + 1


def test_a_long_walk_remembers_where_it_was(tmp_path):
    """The first tight arc at every vertex leads back."""
    lane = 1500
    lower, upper = np.arange(lane - 1), np.arange(1, lane)
    order = np.argsort(np.concatenate([lower, upper]), kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(np.concatenate([lower, upper])))])
    indices = np.concatenate([upper, lower])[order]
    graph = write_graph(tmp_path / "graph", indptr, indices, np.zeros(len(indices), int), directed=False)
    assert shortest_path(graph, lane - 1, 0).vertices == tuple(range(lane - 1, -1, -1))


def test_the_smallest_of_parallel_arcs(solve):
    arcs = np.array([0, 0, 0, 1, 1]), np.array([1, 1, 1, 1, 2]), np.array([7.5, 2.5, 2.5000001, 0.0, 1.0])
    path = route(*solve(3, arcs, "float32"), 0, 2)
    assert (path.vertices, path.weights, path.distance, path.total) == ((0, 1, 2), (2.5, 1.0), 3.5, 3.5)


def test_trivial_path(solve):
    path = route(*solve(2, ([0], [0], [3]), "int32"), 0, 0)
    assert (path.vertices, path.weights, path.distance, path.total) == ((0,), (), 0, 0)


def test_labels_paths_and_a_graph_found_by_itself(solve):
    arcs = [0, 1, 2], [1, 2, 0], [1, 1, 1]
    distances, graph = solve(3, arcs, "int32", labels=np.array(["x", "y", "0"]))
    assert shortest_path(distances.path, "x", "0").vertices == (0, 1, 2)
    assert route(distances, graph.path, "y", positions(0)).vertices == (1, 2, 0)
    with pytest.raises(StoreError, match="no vertex 'z'"):
        route(distances, graph, "x", "z")


def test_damaged_distances_are_no_path(solve, graphs):
    n, arcs, _ = graphs["random"]

    def spoil(matrix):
        matrix[3, 8] -= 1

    distances, graph = solve(n, arcs, "int32", spoil=spoil)
    with pytest.raises(VerificationError, match="vertex 3 to vertex 8"):
        route(distances, graph, 3, 8)
    with pytest.raises(VerificationError, match="vertex 3 to vertex 8"):
        trees_of(distances, graph, [3])


@pytest.fixture
def towns(solve):
    """0 - 1 - 2 in line, 3 apart; the label of 3 is the index of another."""
    arcs = [0, 1, 1, 2], [1, 0, 2, 1], [4, 4, 5, 5]
    labels = np.array(["Ulm", "007", "Bad Urach", "1"])
    return solve(4, arcs, "int32", labels=labels, directed=False, weight_unit="min")


def test_table_of_pairs(towns, tmp_path):
    (tmp_path / "in.csv").write_text("name,target,source\nlorry,Bad Urach,Ulm\ncar,1,007\nvan, #0 ,007\nbus,Ulm,Ulm\n")
    table = table_of(*towns, tmp_path / "in.csv", tmp_path / "out.parquet")
    expected = {
        "source": ["Ulm", "007", "007", "Ulm"],
        "target": ["Bad Urach", "1", "Ulm", "Ulm"],
        "distance": [9, None, 4, 0],
        "hops": [2, None, 1, 0],
        "path": [["Ulm", "007", "Bad Urach"], None, ["007", "Ulm"], ["Ulm"]],
    }
    assert table.to_pydict() == expected
    read = pa.parquet.read_table(tmp_path / "out.parquet")
    assert read.equals(table)
    assert read.schema.field("distance").metadata[b"unit"] == b"min"
    (tmp_path / "in.csv").write_text(" Origin;Destination\nUlm;Bad Urach\n007;1\n007;#0\nUlm;Ulm\n")
    assert table_of(*towns, tmp_path / "in.csv").equals(table)

    array = np.array([[0, 2], [1, 3], [1, 0], [0, 0]])
    for pairs in (positions(array), positions(array.astype(np.uint8).tolist()), table, tmp_path / "out.parquet"):
        assert table_of(*towns, pairs).equals(table)

    table_of(*towns, positions(array), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[1:3] == [
        '"Ulm","Bad Urach",9,2,"Ulm 007 Bad Urach"',
        '"007","1",,,',
    ]
    assert table_of(*towns, tmp_path / "out.csv").equals(table)


def test_an_empty_table_of_pairs(towns, tmp_path):
    (tmp_path / "in.csv").write_text("source,target\n")
    for pairs in (tmp_path / "in.csv", np.empty((0, 2), np.int64), [], positions([])):
        table = table_of(*towns, pairs, tmp_path / "out.csv", overwrite=True)
        assert table.num_rows == 0
        assert table.column_names == ["source", "target", "distance", "hops", "path"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source,target\nUlm,007\nUlm,Ulmm\n", "in.csv, row 2: .*no vertex 'Ulmm'"),
        ("source,target\nUlm,007\n4,007\n", "in.csv, row 2: .*no vertex '4'"),
        ("source,target\n,007\n", "in.csv, row 1: .*no vertex ''"),
        ("from,target\nUlm,007\n", "no column `source`; its columns are from, target"),
    ],
)
def test_bad_tables_are_named(towns, tmp_path, text, message):
    (tmp_path / "in.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        table_of(*towns, tmp_path / "in.csv")


def test_bad_pairs_are_named(towns, solve, tmp_path):
    for wrong, message in (
        (np.array([["Ulm", "1"], ["Ulm", "4"]]), "target 2 of the list: there is no vertex '4'"),
        (positions([[0, 1], [0, 4]]), "target 2 of the list: there is no vertex '#4'"),
        (np.array([[1.0, 1.0]]), "source 1 of the list is 1.0; floats do not name"),
        (np.array([[True, True]]), "the sources are a mask"),
        ([("Ulm", "1"), ("1", None)], "target 2 of the list is None"),
    ):
        with pytest.raises(ValueError, match=message):
            table_of(*towns, wrong)
    with pytest.raises(ValueError, match=r"shape \(P, 2\)"):
        table_of(*towns, np.array([1, 2]))
    with pytest.raises(ValueError, match=r"out.txt: tables are .csv, .tsv"):
        table_of(*towns, np.array([[0, 1]]), tmp_path / "out.txt")
    with pytest.raises(ValueError, match=r"pairs, row 1: a vertex is missing"):
        table_of(*towns, pa.table({"source": pa.array([None], pa.string()), "target": ["Ulm"]}))
    some = solve(3, ([0], [1], [1]), "int32", sources=[1, 2])
    with pytest.raises(ValueError, match=r"pairs, row 2: .* from 2 of 3 vertices only; vertex 0 is not"):
        table_of(*some, np.array([[2, 0], [0, 1]]))
    twins = solve(3, ([0], [1], [1]), "int32", labels=np.array(["a", "a", "b"]))
    with pytest.raises(ValueError, match=r"row 1: .*2 vertices are labelled 'a'"):
        table_of(*twins, pa.table({"source": ["a"], "target": ["b"]}))


def test_many_pairs_grow_the_buffer(solve):
    """All pairs of a ring: paths of up to n - 1 arcs, far more vertices than one path has."""
    n = 50
    ring = np.arange(n), (np.arange(n) + 1) % n, np.ones(n, int)
    table = table_of(*solve(n, ring, "int16"), np.argwhere(np.ones((n, n))))
    for s, t, path in zip(*(table[c].to_pylist() for c in ("source", "target", "path")), strict=True):
        assert path == [(s + i) % n for i in range((t - s) % n + 1)]


@pytest.fixture
def numbered(solve):
    """A ring whose labels are the indices of others: the label of i is i + 1."""
    n = 6
    ring = np.arange(n), (np.arange(n) + 1) % n, np.ones(n, int)
    return solve(n, ring, "int32", labels=np.array([str(i + 1) for i in range(n)]))


def test_a_table_of_pairs_means_the_same_in_every_format_and_type(numbered, tmp_path):
    rows = [("1", "3"), ("6", "2"), ("5", "5")]
    expected = [["1", "2", "3"], ["6", "1", "2"], ["5"]]
    integers = np.array(rows).astype(int)
    text = pa.array([s for s, _ in rows]), pa.array([t for _, t in rows])
    kinds = [pa.int8(), pa.uint64(), pa.int64(), pa.float16(), pa.float32(), pa.float64(), pa.large_string()]
    columns = [[pa.array(column).cast(kind) for column in integers.T] for kind in kinds]
    columns += [
        text,
        [column.dictionary_encode() for column in text],
        [column.cast(pa.string_view()) for column in text],
    ]
    tables = [pa.table({"source": source, "target": target}) for source, target in columns]
    for table in tables:
        pa.parquet.write_table(table, tmp_path / "pairs.parquet")
        for pairs in (table, tmp_path / "pairs.parquet"):
            assert table_of(*numbered, pairs)["path"].to_pylist() == expected
    for name in ("p.csv", "p.CSV", "p.tsv", "p.csv.gz", "P.TSV.GZ", "p.pq", "p.Parquet"):
        write_table(tables[0], tmp_path / name)
        assert table_of(*numbered, tmp_path / name)["path"].to_pylist() == expected
    for pairs in (integers, integers.tolist(), positions(integers - 1), np.array(rows), rows):
        assert table_of(*numbered, pairs)["path"].to_pylist() == expected


def test_a_missing_value_makes_a_column_float_and_no_label_an_index(numbered, tmp_path):
    for missing in (pa.array([1.0, None, 2.0]), pa.array([1.0, np.nan, 2.0]), pa.array([1, None, 2])):
        pa.parquet.write_table(pa.table({"source": missing, "target": missing}), tmp_path / "p.parquet")
        with pytest.raises(ValueError, match=r"p.parquet, row 2: a vertex is missing; fill it in"):
            table_of(*numbered, tmp_path / "p.parquet")
    for wrong in (
        pa.array([0]),
        pa.array([0.0]),
        pa.array(["0"]),
        pa.array(["01"]),
        pa.array(["+1"]),
        pa.array(["1_0"]),
    ):
        with pytest.raises(ValueError, match=r"pairs, row 1: .*there is no vertex"):
            table_of(*numbered, pa.table({"source": wrong, "target": wrong}))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.0, 1.5]), r"pairs, row 2: 1.5 is not a vertex"),
        (pa.array([1.0, np.inf]), r"pairs, row 2: inf is not a vertex"),
        (pa.array([1.0, 2.0**60]), r"pairs, row 2: .* is not a vertex"),
        (pa.array([1.0, 2.0**30], pa.float32()), r"pairs, row 2: .* whole numbers that float holds exactly"),
        (pa.array([True, False]), r"is bool; give text or whole numbers"),
        (pa.array([[1], [2]]), r"is list<item: int64>; give text or whole numbers"),
        (pa.array([None, None]), r"pairs, row 1: a vertex is missing"),
    ],
)
def test_columns_that_name_no_vertices(numbered, column, message):
    with pytest.raises(ValueError, match=message):
        table_of(*numbered, pa.table({"source": column, "target": column}))


def test_files_that_are_not_tables_are_named(numbered, tmp_path):
    one = pa.array(["1"])
    pa.parquet.write_table(pa.table([one, one, one], ["source", "target", "source"]), tmp_path / "twice.parquet")
    (tmp_path / "twice.csv").write_text("source,target,source\n1,2,1\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "ragged.csv").write_text("source,target\n1,2\n1,2,3\n")
    (tmp_path / "bytes.csv").write_bytes(b"source,target\n\xff,2\n")
    (tmp_path / "plain.csv.gz").write_text("source,target\n1,2\n")
    (tmp_path / "plain.parquet").write_text("source,target\n1,2\n")
    for file in tmp_path.iterdir():
        with pytest.raises(ValueError, match=file.name):
            table_of(*numbered, file)


def test_a_table_is_replaced_only_if_asked_for(numbered, tmp_path):
    pairs = np.array([[1, 2]])
    for name in ("out.csv", "out.parquet"):
        (tmp_path / name).write_text("precious")
        with pytest.raises(FileExistsError, match=rf"{name} exists already; .*--overwrite"):
            table_of(*numbered, pairs, tmp_path / name)
        assert (tmp_path / name).read_text() == "precious"
        assert table_of(*numbered, pairs, tmp_path / name, overwrite=True).num_rows == 1
        assert b"precious" not in (tmp_path / name).read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.csv", "out.parquet"]


def test_the_table_of_pairs_is_never_replaced(numbered, tmp_path):
    (tmp_path / "pairs.csv").write_text("source,target\n1,2\n")
    (tmp_path / "same.csv").symlink_to(tmp_path / "pairs.csv")
    for out in (tmp_path / "pairs.csv", tmp_path / "same.csv"):
        with pytest.raises(ValueError, match="the file its pairs are read from"):
            table_of(*numbered, tmp_path / "pairs.csv", out, overwrite=True)
    assert (tmp_path / "pairs.csv").read_text() == "source,target\n1,2\n"


def test_messages_name_vertices_by_label(solve):
    arcs = [0, 1], [1, 2], [1, 1]
    labels = np.array(["Ulm", "Bonn", "Jena"])
    distances, graph = solve(3, arcs, "int32", labels=labels, sources=[0, 1])
    for call in (route, lambda d, g, s, t: trees_of(d, g, [s])):
        with pytest.raises(StoreError, match="from 2 of 3 vertices only; vertex Jena is not among them"):
            call(distances, graph, "Jena", "Ulm")

    def spoil(matrix):
        matrix[0, 2] = 7

    with pytest.raises(VerificationError, match="no path from vertex Ulm to vertex Jena has length 7"):
        route(*solve(3, arcs, "int32", labels=labels, spoil=spoil), "Ulm", "Jena")
    assert trees_of(distances, graph, ["Bonn", "#0"]).tolist() == [[-1, -1, 1], [-1, 0, 1]]
