"""`build_hierarchy` against Floyd and Warshall; its steps, its refusals and other weights on a stored structure."""

import pickle
import re
import sys

import numpy as np
import pytest
from commands import invoke, run_command
from road_graphs import DTYPES, as_floats, made, random_graph

from gpuops import NegativeCycleError
from gpuops.extras import install
from pipelines import (
    DoesNotFitError,
    StoreError,
    WeightRangeError,
    all_pairs_shortest_paths,
    build_hierarchy,
    generate,
    open_hierarchy,
    synthetic_graph,
    write_graph,
)
from pipelines.hierarchy import building


def stored(graph, path, dtype="int32"):
    indptr, indices, weights = graph.rows(dtype)
    return write_graph(path, indptr, indices, weights, through=graph.through)


def streets(height=12, **options):
    """A grid of streets, some of them one way, undirected on request."""
    v = np.arange(height * height).reshape(height, height)
    pairs = np.concatenate(
        [np.stack([v[:, :-1], v[:, 1:]], -1).reshape(-1, 2), np.stack([v[:-1], v[1:]], -1).reshape(-1, 2)]
    )
    return made(height * height, pairs, **{"high": 90, **options})


def every(store):
    return as_floats(store.between(np.arange(store.n), np.arange(store.n)))


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_distances_are_those_of_floyd_and_warshall(client, tmp_path, dtype, closed):
    rng = np.random.default_rng(5)
    for i in range(3):
        graph = random_graph(rng, closed=closed, negative=i > 0, undirected=i == 0)
        opened = stored(graph, tmp_path / f"g{i}")
        store = build_hierarchy(client, opened, tmp_path / f"h{i}", dtype=dtype, verify=True)
        expected = graph.distances()
        assert store.dtype == dtype
        np.testing.assert_array_equal(every(store), expected)
        np.testing.assert_array_equal(as_floats(store.row(0)), expected[0])


def test_metis_orders_in_a_child_process_and_the_command_shows_what_it_made(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.hierarchy.ordering.AT_ONCE", 0)
    graph = streets()
    stored(graph, tmp_path / "g")
    stored(streets(seed=4), tmp_path / "other")
    monkeypatch.chdir(tmp_path)

    def say(*arguments):
        return run_command(*arguments).output

    told = say("hierarchy", "g", "h", "--device", "cpu", "--thorough", "--verify")
    assert "of tables, needs " in told
    assert "144 vertices in" in told
    assert "proved 16 of 144 rows" in told
    assert "the structure of" in say("hierarchy", "other", "h2", "--like", "h", "--device", "cpu")
    assert "144 vertices in" in say("info", "h2", "--verify")
    assert "proved 3 of 144 rows" in say("verify", "h2", "--rows", "3")
    np.testing.assert_array_equal(every(open_hierarchy("h")), graph.distances())
    np.testing.assert_array_equal(every(open_hierarchy("h2")), streets(seed=4).distances())


def test_a_stopped_run_goes_on_after_its_last_step(client, tmp_path, monkeypatch):
    graph = stored(streets(undirected=False), tmp_path / "g")
    calm = build_hierarchy(client, graph, tmp_path / "calm")

    def stop(*_, **__):
        raise RuntimeError("stopped")

    steps = "order_vertices", "hierarchy_structure", "close_hierarchy"
    for done, step in enumerate(steps):
        with monkeypatch.context() as patched:
            patched.setattr(building, step, stop)
            for earlier in steps[: max(0, done - 1)]:  # committed by the run before
                patched.setattr(building, earlier, None)
            with pytest.raises(RuntimeError, match="stopped"):
                build_hierarchy(client, graph, tmp_path / "h", resume=True)
        said = invoke("info", tmp_path / "h", "--verify").output
        assert f"unfinished hierarchy, {done} of 3 steps done" in said
    for path in (tmp_path / "h", calm.path):
        for options, message in (
            ({"thorough": True}, "was begun with thorough False, not True"),
            ({"dtype": "float64"}, "was begun with dtype int32, not float64"),
            ({"like": calm}, "was begun without like, not with"),
        ):
            if options.get("like") is None or path != calm.path:
                with pytest.raises(StoreError, match=message):
                    build_hierarchy(client, graph, path, resume=True, **options)
    again = build_hierarchy(client, graph, tmp_path / "h", resume=True)
    assert not (tmp_path / "h" / "elimination").exists()
    for name in ("order", "front", "out", "into"):
        assert (tmp_path / "h" / name / "c/0").read_bytes() == (tmp_path / "calm" / name / "c/0").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(building, "close_hierarchy", None)
        assert build_hierarchy(client, graph, tmp_path / "h", resume=True).path == again.path


def test_other_weights_and_fewer_arcs_take_the_order_and_the_structure(client, tmp_path, monkeypatch):
    graph = streets(through=np.arange(144) != 70)
    first = build_hierarchy(client, stored(graph, tmp_path / "g"), tmp_path / "h")
    monkeypatch.setattr(building, "order_vertices", None)
    rng = np.random.default_rng(2)
    kept = rng.random(len(graph.tails)) < 0.8
    jammed = graph._replace(tails=graph.tails[kept], heads=graph.heads[kept], weights=3 * graph.weights[kept])
    with monkeypatch.context() as patched:
        patched.setattr(building, "hierarchy_structure", None)
        again = build_hierarchy(
            client, stored(jammed, tmp_path / "j"), tmp_path / "again", like=first.path, verify=True
        )
    np.testing.assert_array_equal(every(again), jammed.distances())
    np.testing.assert_array_equal(again.hierarchy.structure.front, first.hierarchy.structure.front)
    assert (
        build_hierarchy(client, stored(jammed, tmp_path / "k"), again.path, like=first, resume=True).path == again.path
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda g: g._replace(through=np.arange(144) != 70), "as other vertices are closed: "),
        (
            lambda g: g._replace(
                tails=np.r_[g.tails, 0, 5], heads=np.r_[g.heads, 143, 7], weights=np.r_[g.weights, 1, 1]
            ),
            r"as it has no room for [12] arcs?: ",
        ),
    ],
)
def test_a_structure_without_room_is_made_anew_on_the_stored_order(
    client, tmp_path, monkeypatch, capsys, change, reason
):
    first = build_hierarchy(client, stored(streets(), tmp_path / "g"), tmp_path / "h")
    monkeypatch.setattr(building, "order_vertices", None)
    other = change(streets())
    found = build_hierarchy(client, stored(other, tmp_path / "o"), tmp_path / "h2", like=first, progress=True)
    np.testing.assert_array_equal(every(found), other.distances())
    assert re.search(f"a new structure on the order of .*h, {reason}.* relaxations", capsys.readouterr().err)


def test_what_cannot_be_made_is_refused(client, tmp_path, monkeypatch):
    graph = stored(streets(), tmp_path / "g")
    with pytest.raises(
        DoesNotFitError, match="to order 144 vertices and 528 arcs, METIS and the graph need .* limit of"
    ):
        build_hierarchy(client, graph, tmp_path / "h", host_memory=1000)
    assert not (tmp_path / "h").exists()
    with pytest.raises(DoesNotFitError, match="to close .* nodes, the tables and the graph need .* limit of"):
        build_hierarchy(client, graph, tmp_path / "h", host_memory=65_500)
    finished = build_hierarchy(client, graph, tmp_path / "h", resume=True)  # on the order that it keeps
    small = stored(made(2, [(0, 1)]), tmp_path / "s")
    with pytest.raises(ValueError, match=r"h has 144 vertices, and .*s has 2; leave out like \(--like\)"):
        build_hierarchy(client, small, tmp_path / "no", like=finished)
    with pytest.raises(ValueError, match=r"the order is that of .*h; leave out thorough \(--thorough\)"):
        build_hierarchy(client, graph, tmp_path / "no", like=finished, thorough=True)
    cycle = stored(made(3, [(0, 1), (1, 0)], undirected=False)._replace(weights=np.array([1, -2])), tmp_path / "c")
    with pytest.raises(NegativeCycleError):
        build_hierarchy(client, cycle, tmp_path / "no")
    long = stored(made(3, [(0, 1), (1, 2)])._replace(weights=np.full(4, 8000)), tmp_path / "l", "int16")
    with pytest.raises(WeightRangeError, match="l: a distance reaches 8192, too far for int16; use .*--dtype int32"):
        build_hierarchy(client, long, tmp_path / "short", dtype="int16")
    w = 17_500_000
    far = stored(made(41, [(i, i + 1) for i in range(40)])._replace(weights=np.full(80, w)), tmp_path / "f")
    ends = build_hierarchy(client, far, tmp_path / "far")
    assert ends.between([0], [20]) == 20 * w
    for ask in (lambda: ends.between([0], [40]), lambda: ends.row(0)):
        with pytest.raises(WeightRangeError, match="far: a distance is .* make the store again with .*--dtype float64"):
            ask()
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(ImportError, match=r"a thorough order needs pymetis: pip install -e .*\[hierarchy\]"):
        build_hierarchy(client, graph, tmp_path / "no", thorough=True)
    assert not (tmp_path / "no").exists()


def test_without_pymetis_the_order_is_our_own(client, tmp_path, monkeypatch, capsys):
    graph = generate(synthetic_graph("grid", rows=30), tmp_path / "g")
    with_metis = build_hierarchy(client, graph, tmp_path / "metis")
    monkeypatch.setitem(sys.modules, "pymetis", None)
    own = build_hierarchy(client, graph, tmp_path / "own", progress=True, verify=True)
    assert f"ordered without pymetis ({install('hierarchy')} for a better order): " in capsys.readouterr().err
    assert not np.array_equal(own.hierarchy.structure.order, with_metis.hierarchy.structure.order)
    np.testing.assert_allclose(own.row(17), with_metis.row(17), rtol=1e-5)
    monkeypatch.setattr("pipelines.hierarchy.plan.ARC_WORK", 0.001)
    with pytest.raises(DoesNotFitError, match=r"Install pymetis .* or use batched searches, tilepath sssp"):
        build_hierarchy(client, graph, tmp_path / "refused")


def test_a_graph_without_small_separators_is_refused_by_its_exact_cost(client, tmp_path):
    graph = generate(synthetic_graph("rmat", scale=11, edge_factor=3), tmp_path / "g")
    monkeypatch = pytest.MonkeyPatch()
    with monkeypatch.context() as patched:
        patched.setattr("pipelines.hierarchy.plan.ARC_WORK", 0.1)
        message = (
            r"takes [\d.e+]+ relaxations.*Searches suit such a graph.* tilepath sssp or tilepath apsp --method batched"
        )
        with pytest.raises(DoesNotFitError, match=message):
            build_hierarchy(client, graph, tmp_path / "h")
    assert not (tmp_path / "h").exists()


def test_a_step_that_ends_at_the_limit_of_a_wait_is_not_an_error(client, tmp_path, monkeypatch):
    def late(self, futures, limit=np.inf):
        wait(self, futures)
        if np.isfinite(limit):
            raise TimeoutError

    wait = building.Building.wait
    monkeypatch.setattr(building.Building, "wait", late)
    graph = stored(streets(), tmp_path / "g")
    assert build_hierarchy(client, graph, tmp_path / "h").n == graph.n

    def fail(*_, **__):
        raise TimeoutError("of the task")

    monkeypatch.setattr(building, "close_hierarchy", fail)
    with pytest.raises(TimeoutError, match="of the task"):
        build_hierarchy(client, graph, tmp_path / "h2")


@pytest.mark.parametrize("arcs", [[], [(0, 1)]])
def test_graphs_without_arcs_or_with_one(client, tmp_path, arcs):
    graph = made(2, arcs, undirected=False)
    store = build_hierarchy(client, stored(graph, tmp_path / "g"), tmp_path / "h", verify=True)
    np.testing.assert_array_equal(every(store), graph.distances())


def test_an_open_store_never_answers_for_a_store_that_replaced_it(client, tmp_path):
    graph, other = stored(streets(6), tmp_path / "g"), stored(streets(6, high=3), tmp_path / "o")
    opened, used = build_hierarchy(client, graph, tmp_path / "h"), open_hierarchy(tmp_path / "h")
    before, packed = used.row(0), pickle.dumps(opened)
    build_hierarchy(client, other, tmp_path / "h", overwrite=True)
    np.testing.assert_array_equal(used.row(0), before)  # its tables are mapped already
    for ask in (lambda: opened.row(0), lambda: pickle.loads(packed).row(0)):
        with pytest.raises(StoreError, match="h: the store was replaced after it was opened; open it again"):
            ask()


def test_a_graph_without_vertices(client, tmp_path):
    graph = write_graph(tmp_path / "g", np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))
    assert build_hierarchy(client, graph, tmp_path / "h", verify=True).n == 0
    with pytest.raises(ValueError, match="the graph has no vertices"):
        all_pairs_shortest_paths(client, graph, tmp_path / "d")


def test_what_can_never_fit_leaves_no_store_and_names_what_would(client, tmp_path):
    long = stored(made(3, [(0, 1), (1, 2)])._replace(weights=np.full(4, 8000)), tmp_path / "l", "int16")
    with pytest.raises(WeightRangeError, match="--dtype int32"):
        build_hierarchy(client, long, tmp_path / "h", dtype="int16")
    assert not (tmp_path / "h").exists()
    far = stored(made(3, [(0, 1), (1, 2)])._replace(weights=np.full(4, 1e308)), tmp_path / "f", "float64")
    with pytest.raises(WeightRangeError, match=r"--dtype float64\) and smaller weights"):
        build_hierarchy(client, far, tmp_path / "h", dtype="float64")


def test_an_order_that_does_not_suit_another_graph_is_named(client, tmp_path):
    n = 60
    line = build_hierarchy(
        client, stored(made(n, [(i, i + 1) for i in range(n - 1)]), tmp_path / "line"), tmp_path / "h"
    )
    hub = int(line.hierarchy.structure.order[0])
    star = stored(made(n, [(hub, v) for v in range(n) if v != hub]), tmp_path / "star")
    with pytest.raises(DoesNotFitError, match=r"on the order of .*h\. Leave out like \(--like\)"):
        build_hierarchy(client, star, tmp_path / "no", like=line)
    build_hierarchy(client, star, tmp_path / "yes")
