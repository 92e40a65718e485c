"""Pieces by threads, in order."""

import gc
import threading

import numba
import numpy as np
import pytest

from pipelines.formats.errors import FormatError
from pipelines.formats.graphs import import_graph
from pipelines.workers.ahead import in_turn


@pytest.fixture(params=[1, 2, 5])
def threads(request, monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", request.param)
    return request.param


@pytest.mark.parametrize("given", [None, 2])
def test_results_come_in_order_and_few_pieces_are_ahead(threads, given):
    taken = []

    def items():
        for i in range(40):
            taken.append(i)
            yield i

    done = []
    for i in in_turn(lambda x: x * x, items(), given):
        done.append(i)
        assert len(taken) - len(done) <= (given or threads) + 1
    assert done == [i * i for i in range(40)]


def test_errors_come_in_order(threads):
    """The error of a piece before that of the source, which reads ahead; and results before either."""

    def items(last):
        yield from range(last)
        raise OSError("the source")

    def step(i):
        if i == 3:
            raise ValueError("the piece")
        return i

    found = []
    with pytest.raises(ValueError, match="the piece"):
        found.extend(in_turn(step, items(4)))
    assert found == [0, 1, 2]
    with pytest.raises(OSError, match="the source"):
        found.extend(in_turn(step, items(3)))
    assert found == [0, 1, 2, 0, 1, 2]


def test_little_is_done_after_an_end(threads):
    done = []
    results = in_turn(lambda x: done.append(x) or x, iter(range(1000)))
    assert next(results) == 0
    results.close()
    assert len(done) <= threads + 2


@pytest.mark.parametrize("threads", [2], indirect=True)  # by one, nothing is ahead
def test_an_iterator_given_up_may_end_while_a_thread_starts(threads):
    """Garbage is collected in any thread, also in one that `threading` is starting and holds locks for."""
    ended = threading.Event()

    class GivenUp:
        def __init__(self):
            self.results = in_turn(lambda x: x, iter(range(1000)))
            next(self.results)
            self.itself = self  # for the collector

    def collect():
        with getattr(threading, "_shutdown_locks_lock", threading._active_limbo_lock):  # gone in Python 3.13
            gc.collect()
        ended.set()

    gc.freeze()  # so that the collector has only that object to look at
    GivenUp()
    collector = threading.Thread(target=collect, daemon=True)
    collector.start()
    assert ended.wait(60)


def test_the_first_line_at_fault_is_named_whatever_is_read_ahead(tmp_path, monkeypatch, threads):
    """Behind the lines that are looked at first: a word for a vertex, one for a weight, and a zero byte."""
    monkeypatch.setattr("pipelines.formats.text_file.BLOCK_BYTES", 1 << 10)
    lines = [f"{i} {i + 1} 5" for i in range(3000)]
    lines[2000], lines[2400], lines[2500] = "200 x 5", "600 601 heavy", "800 8\x0001 5"
    for expected in ("line 2001: .*whole numbers", "line 2401: .*float64", "line 2501: .*zero byte"):
        (tmp_path / "g.txt").write_text("\n".join(lines) + "\n")
        with pytest.raises(FormatError, match=expected):
            import_graph(tmp_path / "g.txt", tmp_path / "g.zarr")
        lines[int(expected[5:9]) - 1] = "0 1 5"


def test_a_store_is_the_same_by_any_number_of_threads(tmp_path, monkeypatch, threads):
    """Decimals appear late, arcs are parallel; they are sorted in one range, by ranges in memory, and from a file."""
    monkeypatch.setattr("pipelines.formats.text_file.BLOCK_BYTES", 1 << 12)
    rng = np.random.default_rng(1)
    arcs = rng.integers(0, 300, (5000, 3))
    lines = [f"{a} {b} {w}" for a, b, w in arcs]
    lines[4000] += ".25"
    (tmp_path / "g.txt").write_text("\n".join(lines) + "\n")
    weights = arcs[:, 2] + 0.0
    weights[4000] += 0.25
    order = np.lexsort((arcs[:, 1], arcs[:, 0]))
    for memory in (None, 300_000, 50_000):
        graph = import_graph(tmp_path / "g.txt", tmp_path / "g.zarr", overwrite=True, memory=memory)
        indptr, indices, found = graph.rows()
        np.testing.assert_array_equal(indptr, np.searchsorted(arcs[order, 0], np.arange(301)))
        np.testing.assert_array_equal(indices, arcs[order, 1])
        np.testing.assert_array_equal(found, weights[order])
