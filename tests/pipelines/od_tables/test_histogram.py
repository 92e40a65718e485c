"""Distributions of distances against igraph and against the matrix, in blocks, and what is refused."""

import igraph
import numpy as np
import pandas as pd
import pytest
from commands import run_command
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines import distance_histogram, positions, write_graph
from pipelines.od_tables import histogram, plan
from pipelines.od_tables.histogram import counted_in_bins


def test_numbers_of_arcs_are_those_of_igraph(tmp_path):
    rng = np.random.default_rng(2)
    edges = igraph.Graph(60, list({tuple(sorted(pair)) for pair in rng.integers(0, 60, (70, 2)).tolist()})).simplify()
    both = np.array([arc for u, v in edges.get_edgelist() for arc in ((u, v), (v, u))])
    both = both[np.lexsort(both.T[::-1])]
    indptr = np.searchsorted(both[:, 0], np.arange(61))
    graph = write_graph(tmp_path / "g", indptr, both[:, 1], directed=False)
    found = distance_histogram(graph, width=1)
    expected = edges.path_length_hist(directed=False)
    assert (found["pairs"].iloc[1:-1] / 2).tolist() == [count for *_, count in expected.bins()]
    assert (found["pairs"].iloc[0], found["pairs"].iloc[-1]) == (0, 2 * expected.unconnected)
    assert found[["begin", "end"]].iloc[[1, -1]].to_numpy().tolist() == [[1, 2], [np.inf, np.inf]]


def test_pairs_are_counted_block_by_block(source, matrix, monkeypatch):
    monkeypatch.setattr(plan, "BLOCK_BYTES", 8 * len(matrix) * 7)  # 7 origins at a time
    starts, ends = [3, 9, 9, 40, 41, 42, 43, 50, 51], [5, 9, 12]
    for origins, destinations, expected in (
        (None, None, matrix[~np.eye(len(matrix), dtype=bool)]),
        (starts, ends, matrix[np.ix_(starts, ends)]),
        (starts, None, np.concatenate([np.delete(matrix[v], v) for v in starts])),
        (None, ends, matrix[:, ends]),
    ):
        given = [None if each is None else positions(each) for each in (origins, destinations)]
        found = distance_histogram(source, *given, width=7.5)
        joined = expected[np.isfinite(expected)]
        counts, edges = np.histogram(joined, np.arange(0, joined.max() + 15, 7.5))
        there = np.isfinite(found["begin"])
        assert found["pairs"][there].tolist() == counts[: there.sum()].tolist()
        assert not counts[there.sum() :].any()
        np.testing.assert_array_equal(found["end"][there], edges[1 : there.sum() + 1])
        assert found["pairs"].sum() == expected.size


@settings(max_examples=30)
@given(st.lists(st.integers(0, 400)), st.sampled_from([0.1, 0.3, 1.0, 1.915]), st.booleans())
def test_an_edge_of_bins_belongs_to_the_upper_bin(steps, width, on_edges):
    distances = np.array(steps, float) * (width if on_edges else 0.37)
    counts = counted_in_bins(distances, width)
    for k, count in enumerate(counts.tolist()):
        assert count == ((distances >= k * width) & (distances < (k + 1) * width)).sum()
    assert counts.sum() == len(steps)


def test_the_default_width_and_what_is_refused(source, matrix, monkeypatch, tmp_path):
    found = distance_histogram(source)
    width = found["end"].iloc[0]
    assert width in {step * 10.0**power for step in (1, 2, 5) for power in range(-2, 3)}
    assert 8 <= np.isfinite(found["begin"]).sum() <= 21
    for width in 0, -1, np.inf, "0min":
        with pytest.raises(ValueError, match=r"width \(--width\) is .*; give a (width above 0|distance of 0 or more)"):
            distance_histogram(source, width=width)
    for unit, width in (None, 60), ("min", 1):
        found = distance_histogram(source, width="1min", unit=unit)
        pd.testing.assert_frame_equal(found, distance_histogram(source, width=width, unit=unit))
        assert found["end"].iloc[0] == width
    monkeypatch.setattr(histogram, "MOST_BINS", 10)
    with pytest.raises(ValueError, match=r"width \(--width\) is 0.5, but distances are up to .*; give a larger width"):
        distance_histogram(source, width=0.5)
    (tmp_path / "o.csv").write_text("vertex\nv3\nv9\n")
    table, origins = tmp_path / "h.csv", tmp_path / "o.csv"
    done = run_command("histogram", source.path, table, "--origins", origins, "--width", "0.5min")
    table = pd.read_csv(tmp_path / "h.csv")
    assert table["end"].iloc[0] == 30
    assert table["pairs"].sum() == 2 * (len(matrix) - 1)
    assert f"{2 * (len(matrix) - 1)} pairs in {len(table)} bin" in done.output
