"""How many GPUs a run uses."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from oracles import random_arcs, store_arcs

from pipelines import all_pairs_shortest_paths
from pipelines.apsp.in_memory.plan import arithmetic_seconds, choose_workers, estimate
from pipelines.apsp.layout import make_layout
from pipelines.apsp.methods import Job, Request
from pipelines.stores.graph_writer import write_graph
from pipelines.workers.capacity import WorkerFacts

ROOT = Path(__file__).parents[4]


def gpus(count, free=80 << 30, hosts=1):
    return [WorkerFacts(f"w{i}", f"h{i % hosts}", "GPU", True, free, 16.4e12) for i in range(count)]


def everything(_layout):
    return True


@pytest.mark.parametrize(("n", "count"), [(1000, 1), (4096, 1), (32_768, 4), (131_072, 4)])
def test_more_gpus_are_used_where_they_pay(n, count):
    chosen, why = choose_workers(n, 4, None, gpus(4), everything)
    assert chosen == count
    assert why.startswith(f"{count} of 4 GPUs, about ")
    assert " of arithmetic (" in why
    assert ("4 would take" if count == 1 else "1 would take") in why


def test_gpus_that_cannot_hold_the_matrix_are_not_chosen():
    chosen, why = choose_workers(1000, 4, None, gpus(4), lambda layout: layout.workers >= 3)
    assert chosen == 3
    assert why.endswith("; fewer than 3 have too little memory")
    assert choose_workers(1000, 4, None, gpus(4), lambda layout: False) == (4, None)


def test_a_cpu_cluster_is_used_whole():
    cpus = [dataclasses.replace(fact, gpu=False) for fact in gpus(4)]
    assert choose_workers(1000, 4, None, cpus, everything) == (4, None)
    assert choose_workers(1000, 4, None, gpus(1), everything) == (1, None)


def test_panels_through_host_memory_move_the_crossover():
    assert choose_workers(32_768, 4, None, gpus(2), everything)[0] == 2
    assert choose_workers(32_768, 4, None, gpus(2, hosts=2), everything)[0] == 1


def test_the_gpus_of_one_host_are_used_where_those_of_several_do_not_pay():
    facts = [fact for host in range(4) for fact in gpus(16, hosts=4)[host::4]]
    chosen, why = choose_workers(100_000, 4, None, facts, everything)
    assert chosen == choose_workers(100_000, 4, None, gpus(4), everything)[0] == 4
    assert why.startswith("4 of 16 GPUs, about ")


@pytest.mark.parametrize(("count", "dtype", "chosen"), [(2, "int32", 1), (4, "int32", 4), (2, "float32", 2)])
def test_one_gpu_that_does_half_of_the_work_is_as_good_as_two(tmp_path, count, dtype, chosen):
    n = 32_768
    seconds = {}
    for directed in False, True:
        nothing = np.empty(0, np.int64)
        path = tmp_path / f"{directed}"
        graph = write_graph(path, np.zeros(n + 1, np.int64), nothing, nothing.astype(dtype), directed=directed)
        job = Job(graph, np.dtype(dtype), np.ones(n, bool), None, True)
        plan = estimate(Request(job, (0,), None, 60.0, gpus(count), None)).plan
        assert plan.layout.workers == (count if directed else chosen)
        seconds[directed] = estimate(Request(job, (0,), None, 60.0, gpus(1), None)).seconds
    assert seconds[False] / seconds[True] == pytest.approx(0.5 if dtype == "int32" else 1, rel=0.01)


def test_the_threads_that_write_chunks_are_counted(tmp_path, monkeypatch):
    graph = write_graph(tmp_path / "g", np.zeros(2049, np.int64), np.empty(0, np.int64), np.empty(0, "int32"))
    job = Job(graph, np.dtype("int32"), np.ones(2048, bool), None, True)
    cpu, gpu = (dataclasses.replace(gpus(1)[0], gpu=gpu) for gpu in (False, True))

    def stated(fact, threads):
        monkeypatch.setattr("pipelines.workers.saving.SAVERS", threads)
        return sum(estimate(Request(job, None, None, 60.0, [fact], None)).needs.device)

    chunk = 4 << 20  # of four chunks, each thread has five copies of one
    assert stated(gpu, 2) == stated(gpu, 1)
    assert [stated(cpu, threads) - stated(gpu, 1) for threads in (1, 2, 16)] == [5 * chunk, 10 * chunk, 20 * chunk]


def measured(what):
    """Seconds by size and number of H100s."""
    records = json.loads((ROOT / "benchmarks" / "results" / "scaling-h100-80gb-hbm3.json").read_text())["records"]
    return {(r["sizes"]["n"], r["sizes"]["workers"]): what(r) for r in records if "speedup" in r}


def test_the_model_beside_what_was_measured():
    for (n, count), seconds in measured(lambda record: record["seconds"]["median"]).items():
        assert arithmetic_seconds(make_layout(n, count, 4), 4, 16.9e12) == pytest.approx(seconds, rel=0.06)


def test_of_what_was_measured_the_fastest_is_chosen():
    """From store to store: several GPUs take longer to start than one."""
    found = measured(lambda record: record["whole_seconds"])
    for n in {n for n, _ in found}:
        counts = [count for size, count in found if size == n]
        chosen, _ = choose_workers(n, 4, None, gpus(max(counts)), everything)
        assert found[n, chosen] == min(found[n, count] for count in counts)


@pytest.mark.parametrize(("n", "count"), [(8192, 1), (16_384, 4), (32_768, 6), (65_536, 8)])
def test_eight_gpus_are_not_all_used_where_the_chain_is_longer_than_the_share(n, count):
    assert choose_workers(n, 4, None, gpus(8), everything)[0] == count


def test_so_many_workers_as_asked_for(three, tmp_path):
    graph = store_arcs(tmp_path / "g", 300, *random_arcs(300, 1500), "int32")
    options = {"method": "floyd-warshall", "overwrite": True, "block": 32}
    found = [all_pairs_shortest_paths(three, graph, tmp_path / "d", workers=w, **options)[:] for w in (1, 2, 3, 9)]
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])
    for workers in 0, True, 1.5:
        with pytest.raises(ValueError, match=f"workers is {workers!r}; give a whole number from 1"):
            all_pairs_shortest_paths(three, graph, tmp_path / "d", workers=workers, **options)
