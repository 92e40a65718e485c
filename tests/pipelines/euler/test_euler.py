"""Euler circuits from store to store, and what people are told."""

import csv
import ctypes
import json
import re
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet
import pytest
from commands import invoke

from gpuops import NotEulerianError, euler_circuit, verify_circuit
from pipelines import euler_circuits, generate
from pipelines.euler import circuits as calls
from pipelines.euler import plan as plans
from pipelines.euler import walks
from pipelines.euler.walks import walk_ends
from pipelines.generators import EulerGraph, UniformRandom, csr
from pipelines.stores.circuits import open_circuits
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.stores.graph_writer import write_graph
from pipelines.workers.attempts import WorkersChanged
from pipelines.workers.capacity import DoesNotFitError, WorkerFacts
from pipelines.workers.interruption import Interrupted, handling


def store(path, arcs, n, labels=None, directed=True, through=None):
    """A graph store of the arcs (tail, head), or of edges."""
    if not directed:
        arcs = [arc for u, v in arcs for arc in ((u, v), (v, u))]
    tails, heads = np.array(arcs, int).reshape(-1, 2).T
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    indices = heads[np.argsort(tails, kind="stable")]
    names = None if labels is None else np.array(list(labels), dtype=object)
    weights = np.ones(len(tails), "f4")
    return write_graph(path, indptr, indices, weights, labels=names, directed=directed, through=through)


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    return generate(EulerGraph(3000, 5, seed=2), tmp_path_factory.mktemp("deep") / "g.zarr")


SQUARES = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (2, 0), (5, 6), (6, 5), (4, 4)]
HOUSE = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3), (1, 4), (2, 4)]


# From store to store


@pytest.mark.parametrize("method", ["stages", "hierholzer", "auto"])
def test_circuits_are_those_of_one_device(client, deep, tmp_path, method):
    circuits = euler_circuits(client, deep, tmp_path / "c.zarr", method=method, start=77, verify=True)
    indptr, indices, _ = deep.rows()
    by = "stages" if method == "stages" else "hierholzer"  # on a CPU
    expected = euler_circuit(indptr, indices, start=77, method=by)
    np.testing.assert_array_equal(circuits.arcs(), expected.arcs)
    np.testing.assert_array_equal(circuits.offsets(), expected.offsets)
    assert (circuits.method, circuits.directed, circuits.path_from) == (by, True, None)
    assert circuits.graph_digest == deep.digest
    circuits.verify()


@pytest.mark.parametrize(
    ("arcs", "n", "options", "begins"),
    [
        (SQUARES, 7, {}, [0, 4, 5]),
        (SQUARES, 7, {"start": 6}, [0, 4, 6]),
        ([*SQUARES, (5, 3)], 7, {"path": True}, [5, 4]),
        ([*SQUARES, (3, 1)], 7, {"path": True, "start": 3}, [3, 4, 5]),
        (HOUSE, 5, {"directed": False, "path": True}, [0]),
        (HOUSE, 5, {"directed": False, "path": True, "start": 3}, [3]),
        ([*HOUSE, (0, 3)], 5, {"directed": False}, [0]),
        ([], 3, {}, []),
    ],
)
def test_walks_of_every_kind(client, tmp_path, arcs, n, options, begins):
    directed = options.get("directed", True)
    graph = store(tmp_path / "g.zarr", arcs, n, directed=directed)
    circuits = euler_circuits(client, graph.path, tmp_path / "c.zarr", verify=True, **options)
    assert open_circuits(tmp_path / "c.zarr").length == circuits.length == len(arcs)
    indptr, indices, _ = graph.rows()
    path = options.get("path", False)
    verify_circuit(indptr, indices, circuits.arcs(), circuits.offsets(), path=path, directed=directed)
    ends = walk_ends(circuits, graph, 100, 100)
    assert [walk.first[0] for walk in ends] == begins
    assert circuits.path_from == next((walk.first[0] for walk in ends if walk.first[0] != walk.first[-1]), None)
    assert (circuits.path_from is None) == (not path)
    assert [len(walk.first) for walk in ends] == (np.diff(circuits.offsets()) + 1).tolist()


def test_long_walks_are_told_by_their_ends(client, deep, tmp_path):
    circuits = euler_circuits(client, deep, tmp_path / "c.zarr")
    (whole,) = walk_ends(circuits, deep, 10**6, 10)
    assert len(whole.first) == circuits.length + 1
    assert (whole.last, whole.skipped) == ((), 0)
    for shown in (2, 9, 10, circuits.length):
        (ends,) = walk_ends(circuits, deep, shown, 10)
        assert ends.first == whole.first[: shown // 2]
        assert ends.last == whole.first[-(shown // 2) :]
        assert ends.skipped == len(whole.first) - 2 * (shown // 2)


def test_a_lost_worker_is_waited_for(client, deep, tmp_path, monkeypatch):
    results, failures = calls.Walking.results, []

    def failing(self, futures):
        found = results(self, futures)
        if not failures:
            failures.append(1)
            raise WorkersChanged("a worker is gone")
        return found

    monkeypatch.setattr(calls.Walking, "results", failing)
    circuits = euler_circuits(client, deep, tmp_path / "c.zarr", overwrite=True)
    assert failures
    np.testing.assert_array_equal(circuits.arcs(), euler_circuit(*deep.rows()[:2]).arcs)


def test_a_run_that_cannot_be_resumed_does_not_advise_it(client, deep, tmp_path, monkeypatch):
    def failing(self):
        raise WorkersChanged("a worker is gone")

    monkeypatch.setattr(calls.Walking, "run", failing)  # before a task that would write the store
    with pytest.raises(
        ConnectionError, match=r"lost 6 times \(a worker is gone\); look at their logs, then run again$"
    ):
        euler_circuits(client, deep, tmp_path / "c.zarr")
    assert not (tmp_path / "c.zarr").exists()


@pytest.mark.usefixtures("answers_ctrl_c")
def test_ctrl_c_stops_a_walk_at_once(client, deep, tmp_path, monkeypatch):
    """There is nothing to commit before the end, so nothing to wait for, and nothing to resume."""

    def interrupting(self, futures):
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("Ctrl-C was only noted")

    monkeypatch.setattr(calls.Walking, "results", interrupting)
    with handling(), pytest.raises(KeyboardInterrupt) as stopped:
        euler_circuits(client, deep, tmp_path / "c.zarr")
    assert not isinstance(stopped.value, Interrupted)


# What is refused


@pytest.mark.parametrize(
    ("arcs", "options", "message"),
    [
        (
            [(0, 1), (1, 2)],
            {},
            r"g\.zarr: 2 vertices .*: Ulm \(0 in, 1 out\), Bonn \(1 in, 0 out\); .*--path",
        ),
        ([(0, 1), (1, 2), (0, 2)], {}, r"Ulm \(0 in, 2 out\), Bonn \(2 in, 0 out\); .*--undirected"),
        ([(0, 1), (1, 2)], {"path": True, "start": "Köln{}"}, "begins at vertex Ulm, not at Köln{}"),
        ([(0, 1), (1, 0)], {"start": "#2"}, "no arc leaves vertex Bonn; start elsewhere"),
        (
            [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0), (0, 0)],
            {"directed": False},
            r"1 vertex has an odd one: Ulm \(degree 3\); there is a circuit along every edge both ways",
        ),
        ([(0, 1), (1, 2), (2, 0), (0, 1), (1, 2), (2, 0)], {"directed": False}, "from Ulm to Köln{} has no arc back"),
    ],
)
def test_vertices_go_by_their_labels(client, tmp_path, arcs, options, message):
    graph = store(tmp_path / "g.zarr", arcs, 3, ["Ulm", "Köln{}", "Bonn"])
    with pytest.raises(NotEulerianError, match=message):
        euler_circuits(client, graph, tmp_path / "c.zarr", **options)
    assert not (tmp_path / "c.zarr").exists()


def test_misuse_is_named(client, deep, tmp_path):
    for options, message in (
        ({"method": "fast"}, "method is 'fast'; pass one of 'stages', 'hierholzer', 'auto'"),
        ({"start": 3000}, "there is no vertex 3000; give a position from 0 to 2999"),
        ({"start": 1.5}, "the start is 1.5; give a label, or"),
    ):
        with pytest.raises(ValueError, match=message):
            euler_circuits(client, deep, tmp_path / "c.zarr", **options)
    euler_circuits(client, deep, tmp_path / "c.zarr")
    with pytest.raises(StoreError, match="exists already"):
        euler_circuits(client, deep, tmp_path / "c.zarr")
    with pytest.raises(StoreError, match="a Zarr 3 group|not made by tilepath|no such|schema"):
        euler_circuits(client, deep, tmp_path, overwrite=True)
    assert euler_circuits(client, deep, tmp_path / "c.zarr", start=5, overwrite=True).arcs()[0] == deep.indptr()[5]


@pytest.mark.parametrize(
    ("gpu", "method", "message"),
    [
        (
            True,
            "stages",
            r"arcs need .* on the GPU of tcp://w, which has 10\.0 KiB free.*About \d+ arcs.*larger GPU.*--device cpu",
        ),
        (False, "stages", r"arcs need .* on here, which has 10\.0 KiB free.*take a machine with more memory"),
        (False, "hierholzer", "take a machine with more memory"),
    ],
)
def test_what_does_not_fit_is_refused(client, deep, tmp_path, monkeypatch, gpu, method, message):
    facts = [WorkerFacts("tcp://w", "here", "some device", gpu, 10 << 10, 0.0)]
    monkeypatch.setattr(plans, "measure_workers", lambda *args: facts)
    with pytest.raises(DoesNotFitError, match=message):
        euler_circuits(client, deep, tmp_path / "c.zarr", method=method)
    assert not (tmp_path / "c.zarr").exists()


def test_the_first_gpu_is_taken(client, deep, tmp_path, monkeypatch):
    facts = [WorkerFacts(f"tcp://{i}", "here", "device", i > 0, 1 << 30, 0.0) for i in range(3)]
    monkeypatch.setattr(plans, "measure_workers", lambda *args: facts)
    for method in ("stages", "auto"):
        plan = plans.make_euler_plan(client, deep, tmp_path / "c.zarr", method=method, directed=True)
        assert (plan.worker.address, plan.method) == ("tcp://1", "stages")
    facts[:] = facts[:1]
    plan = plans.make_euler_plan(client, deep, tmp_path / "c.zarr", method="auto", directed=True)
    assert (plan.worker.address, plan.method) == ("tcp://0", "hierholzer")


def _peak(call):
    """What a call takes at most beyond what there is already, compiled code's arrays too, by the system's books."""
    status, libc = Path("/proc/self/status"), ctypes.CDLL(None)
    libc.mallopt(-3, 1 << 18)  # M_MMAP_THRESHOLD: an array's memory is new when it is made, and gone when it is dropped
    libc.malloc_trim(0)

    def resident(line):
        return 1024 * int(re.search(rf"{line}:\s+(\d+)", status.read_text())[1])

    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is resident
    before = resident("VmRSS")
    call()
    return resident("VmHWM") - before


SIZE = 400_000  # of graphs whose memory is measured


def _deep(k):
    graph = EulerGraph(2 * SIZE // (k + 1), k, seed=1)
    tails, heads, _ = graph.arcs()
    return graph.n, tails, heads


SHAPES = {
    "ring": lambda: _deep(1),
    "deep": lambda: _deep(20),
    "loops": lambda: (1, np.zeros(SIZE, int), np.zeros(SIZE, int)),
    "loops apart": lambda: (SIZE, np.arange(SIZE), np.arange(SIZE)),
    "isolated": lambda: (3 * SIZE, np.array([0, 1, 2]), np.array([1, 2, 0])),
}


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("method", ["stages", "hierholzer"])
@pytest.mark.parametrize("shape", SHAPES)
def test_memory_is_what_is_stated(directed, method, shape):
    """No more is taken than is stated, for a path, too, and no more than twice as much is asked for."""
    n, tails, heads = SHAPES[shape]()
    if not directed:
        tails, heads = tails[: len(tails) // 2 + 2], heads[: len(heads) // 2 + 2]  # edges, of two arcs each
        tails, heads = _closed(n, np.append(tails, heads), np.append(heads, tails))
    order = np.argsort(tails, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    arrays = indptr, heads[order].astype(np.int32)
    graph = SimpleNamespace(n=n, m=len(heads))

    def walk(path, arrays=arrays):
        found = euler_circuit(*arrays, method=method, directed=directed, path=path)
        verify_circuit(*arrays, *found, directed=directed, path=path)

    walk(False, (np.array([0, 2]), np.zeros(2, np.int32)))  # what is compiled
    used = [_peak(lambda: walk(False))]
    if shape not in ("loops", "loops apart"):
        fewer = _without(*arrays, 1 if directed else _edge_arcs(*arrays))
        used.append(_peak(lambda: walk(True, fewer)))
    stated = plans.memory_needed(graph, method, directed, gpu=False)
    most = max(used) + sum(array.nbytes for array in arrays)
    assert most <= stated <= 2 * most


def _closed(n, tails, heads):
    """An undirected graph with further edges that pair its vertices of odd degree."""
    odd = np.flatnonzero(np.bincount(tails, minlength=n) % 2)
    return np.append(tails, odd), np.append(heads, odd.reshape(-1, 2)[:, ::-1])


def _edge_arcs(indptr, indices):
    """The arcs of an edge that is no loop."""
    tails = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    first = int(np.flatnonzero(tails != indices)[0])
    return [first, int(np.flatnonzero((tails == indices[first]) & (indices == tails[first]))[0])]


def _without(indptr, indices, arcs):
    tails = np.delete(np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), arcs)
    return np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=len(indptr) - 1))]), np.delete(indices, arcs)


# The commands


def call(*arguments):
    return invoke(*arguments, catch_exceptions=False)


def test_commands(tmp_path):
    graph = store(tmp_path / "g.zarr", SQUARES, 7, "abcdefg", through=np.arange(7) > 1)
    done = call("euler", graph.path, tmp_path / "c.zarr", "--start", "c", "--verify", "--device", "cpu")
    assert done.stdout == (f"{tmp_path}/c.zarr: 3 Euler circuits along 9 arcs of {tmp_path}/g.zarr, proved\n")
    told = done.stderr
    for line in (
        r"7 vertices, 9 arcs on .*, by stages: memory .*, disk 36 B",
        r"closed to through traffic: 2 vertices; a walk along all arcs passes through closed vertices, too",
        r"1\. Predecessors computed in 0\.\d{3} s",
        r"2\. Partitioned: 3 circuits in 0\.\d{3} s",
        r"3\. Circuits linked by 0 swaps in",
        r"4\. Swapped: 3 circuits left in",
        r"5\. Walk put in order in",
        r"Proved: every arc once in",
        r"Walked in 0\.\d{3} s in all",
    ):
        assert re.search(f"^{line}", told, re.MULTILINE), told
    assert "Edges directed" not in told

    shown = call("path", tmp_path / "c.zarr").stdout.splitlines()
    assert [line.split(" -> ")[0] for line in shown] == ["c", "e", "f"]
    assert [len(line.split(" -> ")) for line in shown] == [7, 2, 3]
    assert "3 Euler circuits" in call("info", tmp_path / "c.zarr", "--verify").stdout

    for table in ("t.csv", "t.parquet"):
        assert "9 arcs in walking order" in call("path", tmp_path / "c.zarr", "--out", tmp_path / table).stdout
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [row["circuit"] for row in rows] == list("000000122")
    assert [row["source"] for row in rows[:6]] == shown[0].split(" -> ")[:-1]
    assert [row["target"] for row in rows[:6]] == shown[0].split(" -> ")[1:]
    call("export", tmp_path / "c.zarr", tmp_path / "exported.csv")
    assert (tmp_path / "exported.csv").read_text() == (tmp_path / "t.csv").read_text()
    assert pyarrow.parquet.read_table(tmp_path / "t.parquet")["arc"].to_pylist() == [int(row["arc"]) for row in rows]


def test_commands_for_undirected_graphs_and_paths(tmp_path):
    graph = store(tmp_path / "g.zarr", HOUSE, 5, directed=False)
    done = call("euler", graph.path, tmp_path / "both.zarr", "--device", "cpu")
    assert "each edge is walked in both directions; pass --undirected to walk it once\n" in done.stderr
    assert "1 Euler circuit along 16 arcs" in done.stdout
    options = ["--undirected", "--path", "--start", "3", "--method", "hierholzer", "--device", "cpu"]
    done = call("euler", graph.path, tmp_path / "c.zarr", *options)
    assert "both ways" not in done.stderr
    assert "1. Edges directed: 9 in" in done.stderr  # eight, and the one that closes the path
    assert "2. Hierholzer's algorithm: 1 circuit in" in done.stderr
    assert "an Euler path along 8 edges" in done.stdout
    (line,) = call("path", tmp_path / "c.zarr").stdout.splitlines()
    assert line.startswith("3 -> ")
    assert line.endswith(" -> 0")


def test_long_walks_and_many_are_cut_short(tmp_path):
    graph = store(tmp_path / "g.zarr", [(v, v) for v in range(12) for _ in range(60)], 12)
    call("euler", graph.path, tmp_path / "c.zarr", "--device", "cpu")
    lines = call("path", tmp_path / "c.zarr").stdout.splitlines()
    assert len(lines) == 11
    assert lines[3] == " -> ".join(["3"] * 20 + ["... 21 more ..."] + ["3"] * 20)
    assert lines[-1] == "and 2 more walks; --out TABLE writes all"


def test_walks_as_json_are_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(walks, "_PIECE", 7)
    graph = store(tmp_path / "g.zarr", [(v, v) for v in range(3) for _ in range(60)] + [(3, 4), (4, 3)], 5, "abcde")
    call("euler", graph.path, tmp_path / "c.zarr", "--device", "cpu")
    found = json.loads(call("path", tmp_path / "c.zarr", "--json").stdout)
    assert found == {
        "arcs": 182,
        "closed": True,
        "walks": [["a"] * 61, ["b"] * 61, ["c"] * 61, ["d", "e", "d"]],
    }
    house = store(tmp_path / "house.zarr", HOUSE, 5, directed=False)
    call("euler", house.path, tmp_path / "p.zarr", "--undirected", "--path", "--device", "cpu")
    found = json.loads(call("path", tmp_path / "p.zarr", "--json").stdout)
    assert (found["arcs"], found["closed"]) == (8, False)
    assert " -> ".join(found["walks"][0]) == call("path", tmp_path / "p.zarr").stdout.strip()
    none = store(tmp_path / "none.zarr", [], 3)
    call("euler", none.path, tmp_path / "n.zarr", "--device", "cpu")
    expected = {"arcs": 0, "closed": True, "walks": []}
    assert json.loads(call("path", tmp_path / "n.zarr", "--json").stdout) == expected


def test_a_graph_without_arcs_has_no_walk_and_one_with_one_arc_has_one(tmp_path):
    graph = store(tmp_path / "none.zarr", [], 3)
    assert "0 Euler circuits along 0 arcs" in call("euler", graph.path, tmp_path / "a.zarr", "--device", "cpu").stdout
    assert "none.zarr has no arcs" in call("path", tmp_path / "a.zarr").stdout
    loop = store(tmp_path / "loop.zarr", [(0, 0)], 1)
    told = call("euler", loop.path, tmp_path / "b.zarr", "--path", "--device", "cpu").stderr
    assert re.search(r"^1 vertex, 1 arc on .*", told, re.MULTILINE), told
    assert re.search(r"^Read 1 arc in", told, re.MULTILINE), told
    assert call("path", tmp_path / "b.zarr").stdout == "0 -> 0\n"


def test_mistakes_at_the_command_line(tmp_path):
    graph = store(tmp_path / "g.zarr", SQUARES, 7)
    call("euler", graph.path, tmp_path / "c.zarr", "--device", "cpu")
    done = call("path", tmp_path / "c.zarr", "1", "2")
    assert done.exit_code == 2
    assert "STORE holds Euler circuits" in done.stderr
    for options in ["--out", tmp_path / "t.csv", "--json"], ["--overwrite", "--json"]:
        done = call("path", tmp_path / "c.zarr", *options)
        assert done.exit_code == 2
        assert "--out or --json" in done.stderr
    shutil.rmtree(tmp_path / "c.zarr" / "arcs" / "c")
    done = invoke("path", tmp_path / "c.zarr", "--json")
    assert isinstance(done.exception, StoreError)
    assert done.stdout == ""
    for arguments in (["path", tmp_path / "c.zarr", "--out", "t.txt"], ["euler", graph.path, "x", "--start", "9"]):
        with pytest.raises(ValueError, match=r"tables are|no vertex '9'"):
            call(*arguments)


@pytest.mark.gpu
def test_a_gpu_finds_the_same_walk(gpu_client, client, tmp_path):
    made = UniformRandom(5000, edge_factor=3, seed=4)
    graph = open_graph(generate(made, tmp_path / "g.zarr").path)
    for name, options in (("a", {}), ("b", {"start": 7}), ("c", {"method": "hierholzer"})):
        ours = euler_circuits(gpu_client, graph, tmp_path / f"{name}.zarr", verify=True, **options)
        theirs = euler_circuits(client, graph, tmp_path / f"{name}-cpu.zarr", **options)
        np.testing.assert_array_equal(ours.arcs(), theirs.arcs())
    assert len(csr(made)[1]) == ours.length
