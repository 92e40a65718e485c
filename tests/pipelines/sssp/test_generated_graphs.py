"""Searches over graphs that are generated where they are searched: the bits of the same graph in a store."""

import numpy as np
import pytest
from commands import run_command

from clusters import start
from gpuops import VerificationError
from gpuops.errors import WeightRangeError
from pipelines import generate, open_paths, single_source_shortest_paths
from pipelines.generators import RMat
from pipelines.generators.generated_graph import GeneratedGraph, generated_graph
from pipelines.sssp.job import SearchJob
from pipelines.sssp.plan import make_search_plan
from pipelines.stores.contents import writable_array
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.stores.graph_names import generator_of
from pipelines.validation.certificates import certify, certify_paths
from pipelines.validation.generated import certify_on_workers
from pipelines.workers.capacity import DoesNotFitError, WorkerFacts
from pipelines.workers.rings import Ring

GRAPHS = {
    "floats": RMat(9, seed=4),
    "integers": RMat(9, weights="integers", seed=1),
    "directed": RMat(9, edge_factor=4, directed=True, dtype="float64"),
}


@pytest.fixture(scope="module")
def four():
    with start(device="cpu", workers=4, processes=False) as client:
        yield client


@pytest.fixture(scope="module", params=GRAPHS)
def solved(request, client, tmp_path_factory):
    """A description, its store, and the distances of two rows, by one worker from the store."""
    folder, graph = tmp_path_factory.mktemp(request.param), GRAPHS[request.param]
    store = generate(graph, folder / "g")
    paths = single_source_shortest_paths(client, store, folder / "p", [3, 77], verify=True)
    return graph, store, paths.distances()


@pytest.mark.parametrize(
    ("solved", "workers", "options"),
    [
        ("floats", "client", {}),
        pytest.param("floats", "two", {"spread": "vertices"}, marks=pytest.mark.slow),
        ("floats", "four", {"spread": "vertices", "predecessors": False}),
        ("floats", "two", {"spread": "vertices", "piece_arcs": 10_000}),
        ("integers", "four", {"spread": "vertices"}),
        pytest.param("directed", "client", {"spread": "vertices"}, marks=pytest.mark.slow),
        ("directed", "three", {"spread": "vertices"}),
    ],
    indirect=["solved"],
)
def test_has_the_bits_of_the_stored_graph(request, solved, tmp_path, workers, options):
    graph, store, expected = solved
    users = request.getfixturevalue(workers)
    paths = single_source_shortest_paths(users, graph, tmp_path / "p", [3, 77], verify=True, **options)
    np.testing.assert_array_equal(paths.distances(), expected)
    assert paths.verify()
    if paths.has_predecessors:  # by the certificate on the stored graph, too
        certify_paths(paths, store)
    assert paths.graph().description == graph


def test_reads_like_the_store(solved):
    graph, store, _ = solved
    generated = generated_graph(graph)
    assert (generated.n, generated.m, generated.directed) == (store.n, store.m, store.directed)
    assert generated.weight_dtype == store.weight_dtype
    assert generated.weight_min <= store.weight_min <= store.weight_max <= generated.weight_max
    for first, last in [(0, graph.n), (100, 350), (graph.n, graph.n)]:
        for ours, theirs in zip(generated.rows(first, last), store.rows(first, last), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(generated.indptr(first, last), store.indptr(first, last))
    ranges = generated.ranges(3, 10, 100)
    assert ranges == [(10, 40), (40, 70), (70, 100)]


@pytest.mark.parametrize("solved", ["floats"], indirect=True)
def test_between_processes_distances_go_straight(two_processes, solved, tmp_path, capfd):
    graph, _, expected = solved
    paths = single_source_shortest_paths(
        two_processes, graph, tmp_path / "p", [3, 77], spread="vertices", verify=True, progress=True
    )
    np.testing.assert_array_equal(paths.distances(), expected)
    assert "distances go straight from worker to worker, in shared memory" in capfd.readouterr().err


@pytest.mark.parametrize("solved", ["directed"], indirect=True)
def test_or_through_dask_where_memory_cannot_be_mapped(three, solved, tmp_path, capfd, monkeypatch):
    _, store, expected = solved
    monkeypatch.setattr(Ring, "_meet", lambda self, address: "a reason")
    paths = single_source_shortest_paths(three, store, tmp_path / "p", [3, 77], spread="vertices", progress=True)
    np.testing.assert_array_equal(paths.distances(), expected)
    assert "distances travel through Dask and host memory (a reason)" in capfd.readouterr().err


@pytest.mark.gpu
@pytest.mark.parametrize("options", [{}, {"spread": "vertices"}, {"spread": "vertices", "piece_arcs": 10_000}])
def test_a_gpu_generates_the_same(gpu_client, solved, tmp_path, options):
    graph, store, expected = solved
    paths = single_source_shortest_paths(gpu_client, graph, tmp_path / "p", [3, 77], verify=True, **options)
    np.testing.assert_array_equal(paths.distances(), expected)
    certify_paths(paths, store)


@pytest.mark.gpu
@pytest.mark.parametrize("solved", ["floats", "directed"], indirect=True)
def test_two_processes_on_a_gpu_send_distances_straight(two_on_one_gpu, solved, tmp_path, capfd):
    graph, store, expected = solved
    options = {"spread": "vertices", "verify": True, "progress": True}
    for source in (graph, store):
        paths = single_source_shortest_paths(two_on_one_gpu, source, tmp_path / "p", [3, 77], overwrite=True, **options)
        np.testing.assert_array_equal(paths.distances(), expected)
        assert "distances go straight from GPU to GPU" in capfd.readouterr().err


@pytest.mark.multigpu
def test_two_gpus_generate_the_same(two_gpus, solved, tmp_path, capfd):
    graph, store, expected = solved
    options = {"spread": "vertices", "verify": True, "progress": True}
    paths = single_source_shortest_paths(two_gpus, graph, tmp_path / "p", [3, 77], **options)
    np.testing.assert_array_equal(paths.distances(), expected)
    certify_paths(paths, store)
    assert "distances go straight from GPU to GPU" in capfd.readouterr().err


def spoiled(paths, name, vertex, value):
    writable_array(paths.path, name)[0, vertex] = value


@pytest.mark.parametrize("keep", [True, False])
def test_the_certificate_finds_faults(client, two, tmp_path, keep):
    graph = RMat(8, seed=4)
    paths = single_source_shortest_paths(two, graph, tmp_path / "p", [7], spread="vertices", predecessors=keep)
    right = paths.distances(0)
    reached = np.flatnonzero(np.isfinite(right) & (right > 0))
    lost, far = np.flatnonzero(np.isinf(right))[0], reached[np.argmax(right[reached])]
    assert certify(paths.path)[0].arcs == 2 * graph.ids
    for vertex, value, message in [
        (far, right[far] * np.float32(1.5), "at most"),
        (far, np.nextafter(right[far], np.float32(0)), "no path of that length|at most"),
        (far, np.inf, "is unreachable|predecessor" if keep else "is unreachable"),
        (lost, 0.25, "no path of that length"),
        (7, 0.5, "vertex 7 has the distance 0.5"),
        (far, -1, "has the distance -1"),
        (far, np.nan, "has the distance nan"),
    ]:
        spoiled(paths, "distances", vertex, value)
        with pytest.raises(VerificationError, match=message):
            certify_paths(paths)
        with pytest.raises(VerificationError, match=message):
            certify_on_workers(two, paths, paths.graph())
        spoiled(paths, "distances", vertex, right[vertex])
    if keep:
        before = paths.predecessors(0)
        for vertex, value in [(far, lost), (far, -1), (lost, 7), (7, far)]:
            spoiled(paths, "predecessors", vertex, value)
            with pytest.raises(VerificationError, match=f"vertex {vertex} "):
                certify_on_workers(two, paths, paths.graph())
            spoiled(paths, "predecessors", vertex, before[vertex])
    certify_on_workers(two, paths, paths.graph())


def test_a_cutoff_targets_and_several_sources(client, two, tmp_path):
    graph = RMat(9, seed=6)
    store = generate(graph, tmp_path / "g")
    for options in ({"cutoff": 0.1}, {"targets": [9, 40]}, {"together": True}):
        ask = {"sources": [5, 300], "verify": True, **options}
        expected = single_source_shortest_paths(client, store, tmp_path / "p", overwrite=True, **ask)
        found = single_source_shortest_paths(two, graph, tmp_path / "q", overwrite=True, spread="vertices", **ask)
        np.testing.assert_array_equal(found.distances(), expected.distances())


def test_names():
    for graph, name in [
        (RMat(28), "rmat:28"),
        (RMat(9, seed=3, weights="integers"), "rmat:9:seed=3:weights=integers"),
        (RMat(9, dtype="float64", directed=True, a=0.5), "rmat:9:directed=True:a=0.5:dtype=float64"),
    ]:
        made = generated_graph(graph)
        assert isinstance(made, GeneratedGraph)
        assert generator_of(made.path)
        assert {*made.path.split(":")} == {*name.split(":")}
        assert generated_graph(name).description == graph
        assert generated_graph(name).digest == made.digest
        assert open_graph(name).path == made.path
    assert not generator_of("rmat.zarr")
    with pytest.raises(ValueError, match="there is no option 'sed'; the options are seed"):
        generated_graph("rmat:9:sed=3")
    with pytest.raises(ValueError, match="rmat:9:directed=false: directed is True or False, not false"):
        generated_graph("rmat:9:directed=false")
    with pytest.raises(ValueError, match="scale 31: .* 30 at most"):
        generated_graph("rmat:31")
    with pytest.raises(ValueError, match="shifted"):
        generated_graph(RMat(9, shift=1.0))


def test_what_cannot_be_is_refused(client, tmp_path):
    with pytest.raises(WeightRangeError, match="rmat:8: its weights have fractions"):
        single_source_shortest_paths(client, "rmat:8", tmp_path / "p", [0], dtype="int32")
    with pytest.raises(StoreError, match="256 is not a vertex|no vertex"):
        single_source_shortest_paths(client, "rmat:8", tmp_path / "p", [256])
    with pytest.raises(DoesNotFitError, match="the distances of 1,073,741,824 vertices need .* free"):
        single_source_shortest_paths(client, "rmat:30", tmp_path / "p", [0])
    assert not (tmp_path / "p").exists()


def test_four_gpus_of_80_gb_hold_what_one_does_not():
    def plan(scale, gpus):
        facts = [WorkerFacts(f"w{i}", "host", "H100", True, 84_000_000_000, 0.0) for i in range(gpus)]
        job = SearchJob(generated_graph(RMat(scale)), np.dtype("float32"), predecessors=False)
        return make_search_plan(job, 1, facts)

    assert plan(26, 1).spread == "sources"
    assert (plan(28, 1).spread, plan(28, 1).reason) == ("vertices", "the graph does not fit a worker")
    assert plan(28, 1).pieces > 1
    found = plan(28, 4)
    assert (found.spread, found.pieces, found.transposed) == ("vertices", 1, False)
    assert max(found.needs.device) < 0.9 * 84e9


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*command):
        return run_command(*command).output

    out = run("sssp", "rmat:9:seed=5", "p", "--source", "3", "--no-predecessors", "--spread", "vertices", "--verify")
    assert "1 x 512 float32 distances of rmat:9:seed=5" in out
    assert "arcs tested" in run("verify", "p", "--rows", "all")
    run("sssp", "rmat:9:seed=5", "q", "--source", "3")
    np.testing.assert_array_equal(open_paths("p").distances(), open_paths("q").distances())
    assert "3" in run("path", "q", "3", str(int(np.argmax(np.isfinite(open_paths("q").distances(0))))))
