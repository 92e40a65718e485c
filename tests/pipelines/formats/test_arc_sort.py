"""The external sort gives the same store whatever memory it has, and leaves nothing behind."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from pipelines.formats import arc_spool
from pipelines.formats.arc_sort import write_sorted
from pipelines.formats.arc_spool import ARC_BYTES
from pipelines.formats.arc_stream import ArcStream
from pipelines.formats.errors import FormatError
from pipelines.stores.errors import StoreError


def pieces_of(tails, heads, weights, size):
    for start in range(0, len(tails), size):
        part = slice(start, start + size)
        yield tails[part], heads[part], None if weights is None else weights[part]


def random_arcs(seed, n, m, dtype):
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, n, (2, m)) ** 2 // n  # some vertices have far more arcs than others
    return tails, heads, None if dtype is None else rng.integers(-50, 50, m).astype(dtype)


@settings(max_examples=14, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 300),
    m=st.integers(0, 1000),
    dtype=st.sampled_from([None, "int32", "float64"]),  # None: unweighted; moved as words of that size
    limit=st.integers(1, 200),
    size=st.integers(1, 300),
    directed=st.booleans(),
    simplify=st.booleans(),
)
def test_any_memory_gives_the_same_store(tmp_path_factory, seed, n, m, dtype, limit, size, directed, simplify):
    folder = tmp_path_factory.mktemp("sort")
    tails, heads, weights = random_arcs(seed, n, m, dtype)

    def stream():
        facts = {"directed": directed, "weighted": dtype is not None, "weight_dtype": dtype}
        return ArcStream(pieces_of(tails, heads, weights, size), n=n, **facts)

    graph = write_sorted(folder / "small", stream(), simplify=simplify, memory=limit * ARC_BYTES)
    whole = write_sorted(folder / "whole", stream(), simplify=simplify)
    assert graph.digest == whole.digest
    graph.verify()
    assert graph.weighted == (dtype is not None)
    weights = np.ones(m, int) if weights is None else weights
    if not directed:
        tails, heads, weights = (
            np.stack([tails, heads], 1).ravel(),
            np.stack([heads, tails], 1).ravel(),
            weights.repeat(2),
        )
    order = np.lexsort((heads, tails))
    expected = list(zip(tails[order], heads[order], weights[order], strict=True))
    if simplify:
        lightest = {}
        for t, h, w in expected:
            lightest[t, h] = min(w, lightest.get((t, h), w))
        expected = [(t, h, w) for (t, h), w in lightest.items() if t != h]
    indptr, indices, found = graph.rows()
    got = list(zip(np.repeat(np.arange(n), np.diff(indptr)), indices, found, strict=True))
    assert got == expected
    assert graph.input_edges == m
    assert sorted(item.name for item in folder.iterdir()) == ["small", "whole"]


def test_small_memory_really_sorts_by_ranges(tmp_path, monkeypatch):
    sizes = []
    sort = arc_spool.sort_rows
    monkeypatch.setattr(
        arc_spool, "sort_rows", lambda rows, heads, *w: sizes.append(len(heads)) or sort(rows, heads, *w)
    )
    arcs = ArcStream(pieces_of(*random_arcs(0, 500, 5000, "int32"), 300), n=500)
    write_sorted(tmp_path / "store", arcs, memory=200 * ARC_BYTES)
    assert len(sizes) > 20
    assert sum(sizes) == 5000


def test_weights_without_a_dtype_take_the_smallest_that_holds_all(tmp_path):
    def dtype_of(*weights):
        pieces = [(np.zeros(1, int), np.zeros(1, int), np.array([w])) for w in weights]
        return write_sorted(tmp_path / "store", ArcStream(pieces), overwrite=True).weight_dtype

    assert dtype_of(1, -(2**31)) == np.int32
    assert dtype_of(1, 2**31) == np.int64
    assert dtype_of(1, 0.5) == np.float64


def test_an_error_of_the_source_leaves_nothing(tmp_path):
    def pieces():
        yield from pieces_of(*random_arcs(0, 50, 500, "int32"), 100)
        raise FormatError("line 7")

    with pytest.raises(FormatError, match="line 7"):
        write_sorted(tmp_path / "store", ArcStream(pieces()), memory=50 * ARC_BYTES)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_store_error(tmp_path, monkeypatch):
    monkeypatch.setattr(arc_spool, "_unlinked_file", lambda folder: open("/dev/full", "w+b", buffering=0))
    arcs = ArcStream(pieces_of(*random_arcs(0, 50, 500, "int32"), 100))
    with pytest.raises(StoreError, match=r"store: the disk is full; free some space"):
        write_sorted(tmp_path / "store", arcs, memory=50 * ARC_BYTES)
    assert list(tmp_path.iterdir()) == []


def test_no_vertex_and_foreign_vertices_are_refused(tmp_path):
    with pytest.raises(FormatError, match="no vertices"):
        write_sorted(tmp_path / "store", ArcStream([]))
    arcs = [(np.array([0]), np.array([5]), np.array([1]))]
    with pytest.raises(FormatError, match="vertex 5, but there are only 3"):
        write_sorted(tmp_path / "store", ArcStream(arcs, n=3))
    assert write_sorted(tmp_path / "store", ArcStream([], n=3)).n == 3


@pytest.mark.parametrize("shorter", range(3))
def test_columns_of_different_lengths_are_refused(tmp_path, shorter):
    """Compiled functions would read beyond the end of the shorter one."""
    piece = [np.array([0, 1]), np.array([1, 0]), np.array([5, 6])]
    piece[shorter] = piece[shorter][:1]
    with pytest.raises(ValueError, match="columns of different lengths"):
        write_sorted(tmp_path / "store", ArcStream([tuple(piece)]))


def one_arc(head):
    return [(np.array([head]), np.array([1]), np.array([5]))]


def test_memory_is_compared_with_what_is_free_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.formats.arc_spool.available_memory", lambda: 100 << 20)

    def unread():
        raise AssertionError("arcs were read")
        yield

    n = 1_500_000  # 46 MiB by themselves, 229 MiB with labels
    assert write_sorted(tmp_path / "store", ArcStream([], n=n), overwrite=True).n == n
    numbered = write_sorted(tmp_path / "store", ArcStream([], n=n, labels=range(1, n + 1)), overwrite=True)
    assert (numbered.label(0), numbered.label(n - 1)) == ("1", "1500000")  # numbers take no memory of their own
    with pytest.raises(FormatError, match=r"x: 1,500,000 vertices need 228.9 MiB .* 100.0 MiB are free.*--no-labels"):
        write_sorted(tmp_path / "other", ArcStream(unread(), n=n, labels=map(str, range(n)), source="x"))
    with pytest.raises(FormatError, match=r"x: 3,000,000 vertices need 91.6 MiB .* more memory"):
        write_sorted(tmp_path / "other", ArcStream(unread(), n=2 * n, source="x"))
    with pytest.raises(FormatError, match=r"x: vertex number 3000000 implies 3000001 vertices.* 100.0 MiB .*--labels"):
        write_sorted(tmp_path / "other", ArcStream(one_arc(2 * n), source="x"))
    assert [item.name for item in tmp_path.iterdir()] == ["store"]


def test_far_more_vertices_than_arcs_are_asked_about(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.formats.arc_spool.available_memory", lambda: 64 << 30)
    with pytest.raises(FormatError, match=r"x: .* 500,000,001 vertices.*--labels.*--vertices 500000001"):
        write_sorted(tmp_path / "store", ArcStream(one_arc(500_000_000), source="x"), memory=1 << 20)
    assert list(tmp_path.iterdir()) == []
    assert write_sorted(tmp_path / "store", ArcStream(one_arc(2_000_000), n=2_000_001)).n == 2_000_001
    assert write_sorted(tmp_path / "small", ArcStream(one_arc(1_000_000))).n == 1_000_001
