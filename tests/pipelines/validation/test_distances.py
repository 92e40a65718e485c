"""Right distances pass, and every kind of wrong entry is found."""

import numpy as np
import pytest
import zarr
from families import ALL, diagonals, usual
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pipeline_fixtures import CASES
from scipy.sparse.csgraph import floyd_warshall as scipy_floyd_warshall

from gpuops.certificates import arcs_for, verify_row
from gpuops.errors import VerificationError
from gpuops.numbers import outside_infinity
from pipelines import single_source_shortest_paths
from pipelines.stores.errors import StoreError
from pipelines.validation.certificates import certify
from pipelines.validation.distances import verify_distances


def ring(n=30, seed=2):
    """A cycle with chords: all reach all."""
    rng = np.random.default_rng(seed)
    tails = np.concatenate([np.arange(n), rng.integers(0, n, 2 * n)])
    heads = np.concatenate([(np.arange(n) + 1) % n, rng.integers(0, n, 2 * n)])
    return tails, heads, rng.integers(10, 90, 3 * n)


@pytest.mark.parametrize(
    ("kind", "dtype"), diagonals(list(CASES), ["int16", "float32", "int32", "float64"], always=ALL)
)
def test_right_distances_pass(solve, graphs, kind, dtype):
    n, arcs, facts = graphs[kind]
    distances, graph = solve(n, arcs, dtype, **facts)
    certificate = verify_distances(distances, graph, rows="all")
    assert certificate.rows == n
    assert certificate.slack == 0  # integer-valued floats are exact too
    assert certificate.hops < n
    if dtype.startswith("int"):
        assert certificate.relative == certificate.absolute == 0


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("dtype", usual(["float32", "float64"]))
def test_rounded_distances_pass(solve, dtype, signed):
    """Weights that no sum holds exactly; float64 weights are rounded to the dtype of the distances."""
    rng = np.random.default_rng(0)
    n, m = 300, 1200
    tails, heads = rng.integers(0, n, m), rng.integers(0, n, m)
    weights = rng.lognormal(0, 3, m)
    if signed:  # by potentials, so that no cycle is negative; margins keep rounding from making one so
        potential = rng.uniform(0, 5, n)
        weights = weights + 0.01 + potential[tails] - potential[heads]
    distances, graph = solve(n, (tails, heads, weights), dtype, chunk=128)
    certificate = verify_distances(distances, graph, rows="all")
    assert certificate.slack > 0  # Floyd-Warshall does break the triangle inequality by rounding
    unit = np.finfo(dtype).eps / 2
    assert certificate.relative < 10 * certificate.hops * unit
    assert certificate.absolute < 10 * certificate.hops * unit * (np.ptp(distances[:][np.isfinite(distances[:])]))


@pytest.mark.parametrize("kind", ["distances", "paths"])
def test_a_certificate_that_fails_names_the_store_and_the_cure(solve, client, tmp_path, kind):
    """The arcs of the graph changed, but not the digest that both stores record."""
    store, graph = solve(30, ring(), "int32")
    if kind == "paths":
        store = single_source_shortest_paths(client, graph, tmp_path / "paths", [0, 3])
    weights = zarr.open_array(f"{graph.path}/weights", mode="r+")
    weights[:] = weights[:][::-1]
    with pytest.raises(
        VerificationError, match=rf"^{store.path}: .*; look for damage in its graph .* compute the store"
    ):
        certify(store.path, graph.path, "all")


def test_a_store_of_another_kind_has_no_certificate(solve):
    _, graph = solve(30, ring(), "int32")
    with pytest.raises(StoreError, match=rf"^{graph.path}: a graph store has no certificate$"):
        certify(graph.path)


def test_a_long_path_in_floats(solve):
    """Depth 999: the tolerance has to follow the depth."""
    weights = np.random.default_rng(0).random(999)
    distances, graph = solve(1000, (np.arange(999), np.arange(1, 1000), weights), "float32", chunk=1000)
    assert verify_distances(distances, graph, rows=2).hops == 999


def test_scipy_agrees(solve):
    tails, heads, weights = ring()
    distances, graph = solve(30, (tails, heads, weights), "int32")
    verify_distances(distances, graph, rows="all")
    matrix = np.full((30, 30), np.inf)
    np.minimum.at(matrix, (tails, heads), weights)
    np.testing.assert_array_equal(distances[:], scipy_floyd_warshall(matrix))


def test_rows_are_counted_and_include_the_ends(solve):
    distances, graph = solve(30, ring(), "int32")
    assert [verify_distances(distances, graph, rows=k).rows for k in (1, 2, 7, 29, 30, 99)] == [1, 2, 7, 29, 30, 30]
    for rows in (0, 1.5):
        with pytest.raises(ValueError, match=f"rows is {rows}; give a whole number from 1"):
            verify_distances(distances, graph, rows=rows)
    for spoilt in (0, 29):

        def spoil(matrix, row=spoilt):
            matrix[row, 7] += 1

        with pytest.raises(VerificationError, match=f"from vertex {spoilt} "):
            verify_distances(*solve(30, ring(), "int32", spoil=spoil), rows=2)


def test_stores_of_some_sources(solve):
    sources = [17, 3, 20]
    distances, graph = solve(30, ring(), "int32", sources=sources, chunk=2)
    assert verify_distances(distances, graph).rows == 3

    def spoil(matrix):
        matrix[20, 5] -= 1

    with pytest.raises(VerificationError, match="from vertex 20 to vertex 5"):
        verify_distances(*solve(30, ring(), "int32", sources=sources, spoil=spoil), rows="all")


def too_large(matrix):
    matrix[4, 9] += 1


def too_small(matrix):
    matrix[4, 9] -= 1


def a_little_too_large(matrix):
    matrix[4, 9] *= 1 + 1e-4


def a_little_too_small(matrix):
    matrix[4, 9] *= 1 - 1e-4


def unreachable(matrix):
    matrix[4, 9] = outside_infinity(matrix.dtype)


def diagonal(matrix):
    matrix[4, 4] = 1


def all_shifted(matrix):
    matrix[4] += 1
    matrix[4, 4] = 0


def not_a_number(matrix):
    matrix[4, 9] = np.nan


def minus_infinity(matrix):
    matrix[4, 9] = -np.inf


ANY = [too_large, too_small, unreachable, diagonal, all_shifted]
FLOATS = [a_little_too_large, a_little_too_small, not_a_number, minus_infinity]


SPOILT = [(dtype, spoil) for dtype in ("int32", "int16", "float32", "float64") for spoil in ANY]
SPOILT += [(dtype, spoil) for dtype in ("float32", "float64") for spoil in FLOATS]


@pytest.mark.parametrize(("spoilt", "signed"), diagonals(SPOILT, [False, True]))
def test_one_wrong_entry_is_found(solve, spoilt, signed):
    dtype, spoil = spoilt
    tails, heads, weights = ring()
    if signed:
        weights = weights + 30 * (tails % 2) - 30 * (heads % 2)
    with pytest.raises(VerificationError, match="vertex 4 "):
        verify_distances(*solve(30, (tails, heads, weights), dtype, spoil=spoil), rows="all")


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_an_unreachable_vertex_made_finite_is_found(solve, dtype):
    """Two rings: from one no arc leads to the other, also where the whole other ring is made finite."""
    tails, heads, weights = ring(10)
    arcs = np.concatenate([tails, tails + 10]), np.concatenate([heads, heads + 10]), np.concatenate([weights, weights])

    def one(matrix):
        matrix[2, 15] = 100

    def ten(matrix):
        matrix[2, 10:] = matrix[15, 10:] + 7

    with pytest.raises(VerificationError, match="from vertex 2 to vertex 15 is 100"):
        verify_distances(*solve(20, arcs, dtype, spoil=one), rows="all")
    with pytest.raises(VerificationError, match="from vertex 2 to vertex 15 is 7"):
        verify_distances(*solve(20, arcs, dtype, spoil=ten), rows="all")


def test_a_zero_cycle_does_not_attain_itself():
    """2 and 3 lean on each other over arcs of weight zero, no path leads there at that length."""
    arcs = arcs_for(np.array([0, 1, 2, 3, 4]), np.array([1, 2, 3, 2]), np.array([5, 5, 0, 0]), None, "int32")
    assert verify_row(arcs, np.array([0, 5, 10, 10], np.int32), 0).hops == 3
    with pytest.raises(VerificationError, match="vertex 2 is 9, but"):
        verify_row(arcs, np.array([0, 5, 9, 9], np.int32), 0)


def test_paths_through_closed_vertices_are_no_excuse(solve, graphs):
    """The distances of the graph with all vertices open are wrong for the graph with some closed."""
    n, arcs, facts = graphs["closed"]
    opened, _ = solve(n, arcs, "int32")

    def spoil(matrix):
        matrix[:] = opened[:]

    with pytest.raises(VerificationError):
        verify_distances(*solve(n, arcs, "int32", spoil=spoil, **facts), rows="all")


def test_messages_name_the_arc_and_the_numbers():
    arcs = arcs_for(np.array([0, 2, 3, 3]), np.array([1, 2, 2]), np.array([4, 9, 3]), None, "int32")
    with pytest.raises(VerificationError, match="0 to vertex 2 is 9, .* arc 1 -> 2 of weight 3 .* 4 [+] 3"):
        verify_row(arcs, np.array([0, 4, 9], np.int32), 0)
    with pytest.raises(VerificationError, match="0 to vertex 2 is 8, .* 1 -> 2 makes it 7"):
        verify_row(arcs, np.array([0, 4, 8], np.int32), 0)
    with pytest.raises(VerificationError, match="2 is unreachable, .* arc 0 -> 2"):
        verify_row(arcs, np.array([0, 4, 2**31 - 1], np.int32), 0)
    with pytest.raises(VerificationError, match="vertex 1 to vertex 0 is 3, but no arc"):
        verify_row(arcs, np.array([3, 0, 3], np.int32), 1)


def test_messages_name_vertices_by_label(solve):
    labels, damage = np.array(["Ulm", "Bonn", "Jena"]), []
    for wrong in ({(0, 2): 9}, {(0, 2): 5}, {(0, 2): 2**31 - 1}, {(0, 0): 1}, {(1, 0): 3}):

        def spoil(matrix, wrong=wrong):
            for place, value in wrong.items():
                matrix[place] = value

        with pytest.raises(VerificationError) as caught:
            verify_distances(*solve(3, ([0, 1], [1, 2], [4, 3]), "int32", labels=labels, spoil=spoil))
        damage.append(str(caught.value))
    assert damage == [
        "the distance from vertex Ulm to vertex Jena is 9, but no path has that length; "
        "the arc Bonn -> Jena makes it 7",
        "the distance from vertex Ulm to vertex Jena is 5, but no path has that length; "
        "the arc Bonn -> Jena makes it 7",
        "the distance from vertex Ulm to vertex Jena is unreachable, but the arc Bonn -> Jena of weight 3 "
        "makes it at most 4 + 3",
        "the distance from vertex Ulm to itself is 1, not 0",
        "the distance from vertex Bonn to vertex Ulm is 3, but no arc from a reachable vertex leads there",
    ]


def test_fractional_weights_have_no_integer_distances(solve):
    with pytest.raises(ValueError, match="fractional"):
        verify_distances(*solve(2, ([0], [1], [1.5]), "int32"))


def test_another_graph_is_refused(solve):
    distances, _ = solve(30, ring(), "int32")
    _, other = solve(30, ring(seed=3), "int32")
    with pytest.raises(StoreError, match="another graph"):
        verify_distances(distances, other)


@given(data=st.data())
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_single_change_is_found(data):
    """Random small digraphs with closed vertices, one entry of one row replaced by anything."""
    n = data.draw(st.integers(1, 6))
    arcs = data.draw(st.lists(st.tuples(*[st.integers(0, n - 1)] * 2, st.integers(0, 3)), max_size=14))
    through = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    tails, heads, weights = np.array(sorted(arcs), dtype=np.int64).reshape(-1, 3).T
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    graph = arcs_for(indptr, heads, weights, through, "int16")
    s = data.draw(st.integers(0, n - 1))
    row = bellman_ford(n, tails, heads, weights, through, s)
    verify_row(graph, row, s)
    v, wrong = data.draw(st.integers(0, n - 1)), data.draw(st.integers(-4, 20) | st.just(2**15 - 1))
    if wrong != row[v]:
        row[v] = wrong
        with pytest.raises(VerificationError):
            verify_row(graph, row, s)


def bellman_ford(n, tails, heads, weights, through, s):
    row = np.full(n, 10**6)
    row[s] = 0
    for _ in range(n):
        for u, v, w in zip(tails, heads, weights, strict=True):
            if u == s or through[u]:
                row[v] = min(row[v], row[u] + w)
    return np.where(row < 10**5, row, 2**15 - 1).astype(np.int16)
