"""What a cut takes, and what is refused before anything is written."""

from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from pipelines import generate, partition_graph, synthetic_graph
from pipelines.apsp.boundary import BOUNDARY
from pipelines.apsp.methods import Job as AllPairs
from pipelines.apsp.methods import Request
from pipelines.boundary.cut_graph import Job
from pipelines.boundary.plan import closing_memory, describe, refuse_what_cannot_fit
from pipelines.stores.boundary import Cut
from pipelines.workers.capacity import DoesNotFitError, WorkerFacts, within_budget
from tilepath.cli import tilepath

N, PARTS, BOUNDARY_VERTICES = 100_000, 100, 20_000  # 1.6 GB of distances between them
CUT = Cut(np.repeat(np.arange(PARTS, dtype=np.int32), N // PARTS), np.arange(N) % 5 == 0)


def job(potentials=None, closed=False):
    through = np.arange(N) > 0 if closed else np.ones(N, bool)
    return Job(SimpleNamespace(n=N, m=3 * N, through=lambda: through), np.dtype("float32"), potentials, True)


def facts(device=None, host=10**11, workers=1):
    name, free = ("CPU", host) if device is None else ("H100", device)
    return [WorkerFacts(f"tcp://{k}", "node", name, device is not None, free, 1e10, 1, host) for k in range(workers)]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (facts(15 * 10**8), r"takes 1\.\d+ GiB of the memory of the GPU of tcp://0, which has 1\.4 GiB free; give "
         r"fewer parts \(--parts\), or join them on the CPU \(--device cpu\), or search instead \(tilepath sssp\)"),
        (facts(15 * 10**8, 3 * 10**9), r"of the GPU of .*give fewer parts \(--parts\), or search instead"),
        (facts(10**11, 3 * 10**9), r"takes 3\.\d GiB of the memory of node, which has 2\.8 GiB free; give fewer parts"),
        (facts(host=3 * 10**9), r"of the memory of node, which has 2\.8 GiB free; give fewer parts"),
        (within_budget(facts(10**11), 15 * 10**8, None), "of the memory of the GPU of tcp://0, which has 1.6 GiB free"),
        (within_budget(facts(), None, 2 * 10**9), "of the memory of node, which has 2.1 GiB free"),
    ],
)  # fmt: skip
def test_a_boundary_that_fits_neither_gpu_nor_host_is_refused_with_what_would_do(tmp_path, where, message):
    with pytest.raises(DoesNotFitError, match=f"^to join 100 parts by 20,000 boundary vertices .*{message}"):
        refuse_what_cannot_fit(CUT, job(), where, tmp_path / "b")
    refuse_what_cannot_fit(CUT, job(), facts(10**11, workers=2), tmp_path / "b")


def test_parts_that_do_not_fit_want_to_be_more(tmp_path):
    one = Cut(np.zeros(N, np.int32), np.zeros(N, bool))
    with pytest.raises(DoesNotFitError, match=r"close parts of up to 100,000 vertices takes .*give more parts"):
        refuse_what_cannot_fit(one, job(), facts(), tmp_path / "b")


def test_closed_vertices_and_potentials_take_more():
    plain = closing_memory(CUT, job(), gpu=True)[1]
    assert closing_memory(CUT, job(closed=True), gpu=True)[1].device > 2 * plain.device
    assert closing_memory(CUT, job((np.zeros(N), np.zeros(N))), gpu=True)[1].host > 2 * plain.host


def test_the_plan_states_its_memory():
    closing, joining = closing_memory(CUT, job(), gpu=True)
    assert " of tables, needs 1.8 GiB of GPU memory and 3.0 GiB of RAM" in describe(CUT, job().dtype, closing | joining)


def test_a_command_that_cannot_fit_writes_nothing_and_names_the_memory(client, tmp_path):
    graph = generate(synthetic_graph("road", rows=60, columns=60), tmp_path / "g")
    arguments = ["partition", graph.path, str(tmp_path / "b"), "--parts", "180", "--device", "cpu"]
    said = CliRunner().invoke(tilepath, [*arguments, "--host-memory", "10MB"])
    assert isinstance(said.exception, DoesNotFitError)
    assert "which has 10.6 MiB free; give fewer parts (--parts)" in str(said.exception)
    assert not (tmp_path / "b").exists()
    partition_graph(client, graph, tmp_path / "b", parts=20, host_memory=10**9)


def test_all_pairs_passes_over_a_boundary_that_does_not_fit_the_budget(tmp_path):
    graph = generate(synthetic_graph("road", rows=60, columns=60), tmp_path / "g")
    all_pairs = AllPairs(graph, np.dtype("float32"), np.ones(graph.n, bool), None, True)
    for budget in (10**11, None), (10**6, None), (10**11, 10**6):
        where = within_budget(facts(10**11), *budget)
        found = BOUNDARY.estimate(Request(all_pairs, None, None, 60.0, where, None))
        if budget == (10**11, None):
            assert found.too_large is None
            assert " of GPU memory and " in found.summary
            found.refuse(tmp_path / "d")
            continue
        assert found.too_large == "the tables of parts do not fit in memory"
        with pytest.raises(DoesNotFitError, match="parts with .* boundary vertices take .*; use --method batched"):
            found.refuse(tmp_path / "d")
