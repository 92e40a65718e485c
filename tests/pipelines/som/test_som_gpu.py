"""Maps trained on GPUs are those of the CPU, to the last bit."""

from functools import partial

import numpy as np
import pytest
from distributed import Client, Nanny, Scheduler, SpecCluster
from pipeline_fixtures import cloud

from pipelines import map_samples, planned, train_som
from pipelines.stores.samples import write_samples


def assert_same_map(got, want):
    for epoch in range(want.epochs + 1):
        np.testing.assert_array_equal(got.units(epoch), want.units(epoch))
    np.testing.assert_array_equal(got.hits(), want.hits())
    assert got.quantization_errors == want.quantization_errors
    assert got.topographic_error == want.topographic_error


KINDS = {
    "plain": {},
    "float64": {"dtype": "float64"},
    "missing": {"missing": 0.2},
    "weights": {"weighted": True},
    "columns of all magnitudes": {"magnitudes": 10.0 ** np.arange(-20, 25, 5)},
    "hexagonal torus, taxicab": {"hexagonal": True, "toroidal": True, "metric": "taxicab"},
    "cosine, hat": {"metric": "cosine", "kernel": "mexican_hat"},
    "hexagonal bubble": {"hexagonal": True, "kernel": "bubble", "initial": "random"},
    "online": {"online": True},
}


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:in batches, the mexican hat")
@pytest.mark.parametrize("kind", KINDS)
def test_a_map_equals_the_cpus(gpu_client, client, tmp_path, kind):
    options = dict(KINDS[kind])
    values = cloud(3000, 9, missing=options.pop("missing", 0.0)) * options.pop("magnitudes", 1)
    weights = np.random.default_rng(1).random(3000) if options.pop("weighted", False) else None
    dtype = options.pop("dtype", "float32")
    samples = write_samples(
        tmp_path / "s", values, weights=weights, missing=bool(np.isnan(values).any()), dtype=dtype, chunk_rows=311
    )
    want = train_som(client, samples, tmp_path / "cpu", 12, 10, epochs=4, **options)
    assert_same_map(train_som(gpu_client, samples, tmp_path / "gpu", 12, 10, epochs=4, **options), want)
    if not options.get("online"):
        streamed = {"resident": False, "piece_rows": 700}
        assert_same_map(train_som(gpu_client, samples, tmp_path / "str", 12, 10, epochs=4, **streamed, **options), want)
    placed, known = (
        map_samples(clients, want, samples, tmp_path / name) for clients, name in ((gpu_client, "a"), (client, "b"))
    )
    np.testing.assert_array_equal(placed.units(), known.units())
    np.testing.assert_array_equal(placed.distances(), known.distances())


@pytest.mark.gpu
@pytest.mark.usefixtures("dealt_to_all")
@pytest.mark.parametrize("way", ["straight", "through Dask"])
@pytest.mark.parametrize("kind", ["plain", "missing"])
def test_sums_go_from_process_to_process_on_a_gpu(two_on_one_gpu, client, tmp_path, capsys, kind, way):
    values = cloud(3000, 9, missing=0.2 if kind == "missing" else 0.0)
    samples = write_samples(tmp_path / "s", values, missing=kind == "missing")
    want = train_som(client, samples, tmp_path / "cpu", 12, 10, epochs=5)
    if way == "through Dask":
        two_on_one_gpu.run(_cannot_hand_out, True)
    capsys.readouterr()
    try:
        got = train_som(two_on_one_gpu, samples, tmp_path / "gpu", 12, 10, epochs=5, progress=True)
    finally:
        two_on_one_gpu.run(_cannot_hand_out, False)
    said = "sums go straight from GPU to GPU" if way == "straight" else "sums travel through Dask and host memory"
    assert said in capsys.readouterr().err
    assert_same_map(got, want)


@pytest.mark.gpu
@pytest.mark.usefixtures("dealt_to_all")
def test_a_gpu_and_a_cpu_train_the_map_of_one(client, tmp_path, capsys):
    pytest.importorskip("cupy")
    options = {"nthreads": 1, "dashboard_address": None, "host": "127.0.0.1"}
    workers = {
        "gpu": {"cls": Nanny, "options": {**options, "resources": {"GPU": 1}}},
        "cpu": {"cls": Nanny, "options": options},
    }
    samples = write_samples(tmp_path / "s", cloud(3000, 9))
    want = train_som(client, samples, tmp_path / "cpu", 12, 10, epochs=5)
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": None, "port": 0, "host": "127.0.0.1"}}
    with SpecCluster(workers=workers, scheduler=scheduler) as cluster, Client(cluster) as mixed:
        mixed.wait_for_workers(2, timeout=60)
        capsys.readouterr()
        got = train_som(mixed, samples, tmp_path / "mixed", 12, 10, epochs=5, progress=True)
    assert "some sums travel through Dask and host memory (workers of different kinds)" in capsys.readouterr().err
    assert_same_map(got, want)


@pytest.mark.gpu
@pytest.mark.parametrize("units", [4, 40])
def test_no_run_takes_more_memory_than_planned(gpu_client, tmp_path, units):
    samples = write_samples(tmp_path / "s", np.random.default_rng(1).random((300_000, 9), np.float32))
    train = partial(train_som, gpu_client, samples, tmp_path / "m", units, 40, epochs=3, overwrite=True)
    place = partial(map_samples, gpu_client, tmp_path / "m", samples, tmp_path / "u", overwrite=True)
    for run in train, place:
        run()  # compiles
        before = gpu_client.run(_pool_emptied)
        run()
        (taken,) = (after - before[worker] for worker, after in gpu_client.run(_pool_bytes).items())
        stated = planned(run.func, *run.args, **run.keywords).memory_bytes
        assert 0.5 * stated < taken <= stated


def _pool_emptied():
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
    return cupy.get_default_memory_pool().used_bytes()


def _pool_bytes():
    import cupy

    return cupy.get_default_memory_pool().total_bytes()


def _cannot_hand_out(cannot):
    from pipelines.workers import mapped_memory, rings

    def refuse(_count):
        raise mapped_memory.CannotMap("for a test")

    rings.DeviceMemory = refuse if cannot else mapped_memory.DeviceMemory


@pytest.mark.multigpu
@pytest.mark.usefixtures("dealt_to_all")
def test_two_gpus_train_the_map_of_one(two_gpus, client, tmp_path):
    samples = write_samples(tmp_path / "s", cloud(5000, 9))
    want = train_som(client, samples, tmp_path / "cpu", 12, 10, epochs=4)
    for resident in True, False:
        got = train_som(two_gpus, samples, tmp_path / f"{resident}", 12, 10, epochs=4, resident=resident)
        assert_same_map(got, want)
    placed = map_samples(two_gpus, want, samples, tmp_path / "placed")
    np.testing.assert_array_equal(placed.hits(), want.hits())
