"""Joining clusters that run with other settings: they get the settings of tilepath until its last client ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from distributed import Client, LocalCluster, Worker, WorkerPlugin

from clusters import CONFIG_FILE, ClusterError, borrowed, join
from tilepath.cli.cluster import NAMES, _open_client

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cluster():
    """A cluster with Dask's settings, whose worker has two threads and no limit of memory near which it pauses."""
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "protocol": "tcp"}
    with LocalCluster(dashboard_address=":0", memory_limit="1TiB", **options) as made:
        yield made


def settings(cluster):
    scheduler = cluster.scheduler
    (host,) = scheduler.host_info.values()
    return {
        "stealing": "stealing" in scheduler.periodic_callbacks,
        "failures": scheduler.allowed_failures,
        "saturation": scheduler.WORKER_SATURATION,
        "without workers": scheduler.no_workers_timeout,
        "silence": (scheduler.worker_ttl, scheduler.periodic_callbacks["worker-ttl"].callback_time),
        "planned threads": (*(each.nthreads for each in scheduler.workers.values()), scheduler.total_nthreads),
        "threads of the host": host["nthreads"],
        "threads": [worker.state.nthreads for worker in cluster.workers.values()],
        "memory": [
            (worker.memory_manager.memory_pause_fraction, worker.memory_manager.memory_spill_fraction)
            for worker in cluster.workers.values()
        ],
        "resources": [dict(worker.state.total_resources) for worker in cluster.workers.values()],
    }


def soon(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def of_another_program(client):
    """Make this process take `client` for the client of another program."""
    Client._instances.discard(client)
    return client


running, may_end = threading.Lock(), threading.Event()


def runs_alone(_):
    """A task of Dask: return whether no other of these tasks is running."""
    if not running.acquire(blocking=False):
        return False
    time.sleep(0.01)
    running.release()
    return True


def waits(seconds):
    """A task of Dask that ends when the test lets it."""
    return may_end.wait(seconds)


def test_a_plain_cluster_is_changed_until_the_client_ends(cluster, monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    before = settings(cluster)
    assert (before["stealing"], before["threads"]) == (True, [2])
    with Client(cluster) as notebook, join(address=cluster, workers=1) as client:
        during = settings(cluster)
        assert (during["stealing"], during["failures"], during["saturation"]) == (False, 0, float("inf"))
        assert (during["without workers"], during["silence"]) == (60, (20, 20_000))
        assert (during["planned threads"], during["threads of the host"]) == ((1, 1), 1)
        assert (during["threads"], during["memory"]) == ([1], [(False, False)])
        assert all(client.gather([client.submit(runs_alone, number) for number in range(20)]))
        cluster.scale(2)  # a worker that comes later, as after a restart by its nanny
        notebook.wait_for_workers(2)
        assert settings(cluster)["threads"] == [1, 1]
        assert settings(cluster)["planned threads"] == (1, 1, 2)
        cluster.scale(1)
        soon(lambda: len(cluster.workers) == 1)
    assert os.environ["NUMBA_NUM_THREADS"] == "3"
    soon(lambda: settings(cluster) == before)


@pytest.mark.slow
def test_a_client_that_is_killed_leaves_the_settings_of_the_cluster(cluster):
    before = settings(cluster)
    script = "import sys, clusters; clusters.join(address=sys.argv[1]); print('joined', flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", script, cluster.scheduler_address],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout.readline() == b"joined\n"
        assert settings(cluster)["threads"] == [1]
        process.send_signal(signal.SIGKILL)
    soon(lambda: settings(cluster) == before)


def test_the_settings_stay_while_any_client_of_tilepath_is_connected(cluster):
    before = settings(cluster)
    first = of_another_program(join(address=cluster))
    with join(address=cluster.scheduler_address):
        first.close()
        plugin = cluster.scheduler.plugins[borrowed.NAME]
        soon(lambda: len(plugin.connected) == 1 and not plugin.tasks)
        assert settings(cluster)["threads"] == [1]
    soon(lambda: settings(cluster) == before)


def test_a_client_whose_connection_was_lost_gets_the_settings_again(cluster):
    before = settings(cluster)
    with join(address=cluster) as client:
        during, told = settings(cluster), []
        put_back = cluster.scheduler.plugins[borrowed.NAME]._put_back

        async def count():
            told.append("put back")
            await put_back()

        cluster.scheduler.plugins[borrowed.NAME]._put_back = count
        cluster.loop.add_callback(client.scheduler_comm.comm.abort)
        soon(lambda: told)
        soon(lambda: settings(cluster) == during)
    soon(lambda: settings(cluster) == before)


def test_a_cluster_that_others_use_is_refused_and_left_as_it_is(cluster, monkeypatch):
    monkeypatch.setattr(borrowed, "LEAVING_SECONDS", 0.2)
    before = settings(cluster)
    with Client(cluster, name="notebook", set_as_default=False) as other:
        of_another_program(other)
        with pytest.raises(ClusterError) as refusal:
            join(address=cluster)
        message = str(refusal.value)
        assert "work-stealing is on, must be off; allowed-failures is 3, must be 0; 1 worker has several" in message
        assert "others use it (1 other client: Client-notebook-" in message
        assert f"export DASK_CONFIG={CONFIG_FILE}" in message
        assert "--nthreads 1" in message
        other.close()
    soon(lambda: other.id not in cluster.scheduler.clients)
    may_end.clear()
    with Client(cluster, set_as_default=False) as notebook:
        kept = notebook.submit(waits, 60)
        soon(lambda: [task.state for task in list(cluster.scheduler.tasks.values())] == ["processing"])
        with pytest.raises(ClusterError, match=r"others use it \(1 task under way\)"):
            join(address=cluster)
        may_end.set()
        kept.release()
    assert settings(cluster) == before


def test_workers_that_cannot_be_held_to_one_task_are_refused(cluster, monkeypatch):
    class Unable(WorkerPlugin):
        name = borrowed.NAME

        def __init__(self, *_):
            pass

    before = settings(cluster)
    monkeypatch.setattr(borrowed, "OneTask", Unable)
    with pytest.raises(ClusterError, match=r"tcp://\S+ cannot be held to one task.*`--nthreads 1`"):
        join(address=cluster)
    soon(lambda: settings(cluster) == before)


def test_a_command_joins_and_tells_where_the_dashboard_is(cluster, capsys):
    with _open_client(
        dict.fromkeys(NAMES) | {"scheduler": cluster.scheduler_address, "timeout": 60, "dashboard": True}
    ):
        assert settings(cluster)["threads"] == [1]
    assert capsys.readouterr().err == f"Dashboard: {cluster.dashboard_link}\n"


def test_workers_of_dask_cuda_have_a_gpu(cluster):
    class CPUAffinity(WorkerPlugin):
        pass

    CPUAffinity.__module__ = "dask_cuda.plugins"
    (worker,) = cluster.workers.values()
    worker.plugins["cpu affinity"] = CPUAffinity()
    with join(address=cluster) as client:
        assert worker.state.total_resources == {"GPU": 1}
        assert client.submit(lambda: "ran", resources={"GPU": 1}).result(timeout=60) == "ran"
    soon(lambda: worker.state.total_resources == {"GPU": 0})


def test_numba_in_worker_processes_gets_the_worker_s_share_of_the_cores(monkeypatch):
    """Played with a worker that takes this process for another one, in which Numba is not imported yet."""
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr("dask.system.CPU_COUNT", 12)
    options = {"n_workers": 0, "processes": False, "protocol": "tcp", "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        host = cluster.scheduler_address.split("//")[1].split(":")[0]
        for threads, workers, numba in ((2, 1, "12"), (2, 3, "4"), (5, 4, "5")):
            client.register_plugin(borrowed.OneTask(("another host", 0), {host: workers}))
            cluster.sync(_with_worker, cluster, threads, lambda: seen.append(os.environ["NUMBA_NUM_THREADS"]))
            client.unregister_worker_plugin(borrowed.NAME)
            assert seen.pop() == numba
            assert "NUMBA_NUM_THREADS" not in os.environ


seen: list[str] = []


async def _with_worker(cluster, threads, call):
    async with Worker(cluster.scheduler_address, nthreads=threads, dashboard_address=":0") as worker:
        call()
        await worker.plugin_remove(borrowed.NAME)
