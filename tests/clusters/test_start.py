"""Starting clusters: what is in force in scheduler and workers, what closing leaves behind, what is refused."""

import asyncio
import math
import multiprocessing
import os
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import dask
import pytest
from dask.system import CPU_COUNT
from distributed import Status

from clusters import ClusterError, gpus, local, start
from clusters.nanny import STARTS, TidyNanny


def children():
    return [child for child in multiprocessing.active_children() if "Dask Worker" in child.name]


def in_worker(dask_worker):
    """The settings a worker was made with, and those its process would use for what it makes later."""
    memory = dask_worker.memory_manager
    return {
        "pid": os.getpid(),
        "threads": dask_worker.state.nthreads,
        "numba": os.environ.get("NUMBA_NUM_THREADS"),
        "data": type(dask_worker.data),
        "resources": dict(dask_worker.state.total_resources),
        "limit": memory.memory_limit,
        "spill": (memory.memory_target_fraction, memory.memory_spill_fraction, memory.memory_pause_fraction),
        "config": dask.config.get("distributed.worker.memory.pause"),
        "connect": dask.config.get("distributed.comm.timeouts.connect"),
    }


def in_scheduler(dask_scheduler):
    return {
        "stealing": "stealing" in dask_scheduler.extensions,
        "saturation": dask_scheduler.WORKER_SATURATION,
        "failures": dask_scheduler.allowed_failures,
        "no workers": dask_scheduler.no_workers_timeout,
    }


SCHEDULER = {"stealing": False, "saturation": math.inf, "failures": 0, "no workers": 60}


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(gpus, "_driver_count", lambda: 0)


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(gpus, "_driver_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


class TestInProcess:
    def test_the_default_is_one_worker_of_one_thread_in_this_process(self, no_gpu):
        with start() as client:
            (worker,) = client.run(in_worker).values()
            assert client.submit(math.sqrt, 4).result() == 2
        assert worker["pid"] == os.getpid()
        assert worker["threads"] == 1
        assert worker["data"] is dict
        assert worker["spill"] == (False, False, False)
        assert worker["limit"] is None
        assert worker["resources"] == {}
        assert children() == []

    def test_scheduler_settings(self):
        with start("cpu") as client:
            assert client.run_on_scheduler(in_scheduler) == SCHEDULER

    def test_a_worker_is_not_lost_when_the_process_was_suspended(self):
        with start("cpu") as client:
            scheduler = client.cluster.scheduler
            assert scheduler.worker_ttl is None
            assert "worker-ttl" not in scheduler.periodic_callbacks

    def test_the_configuration_of_this_process_is_left_alone(self):
        before = dask.config.get("distributed")
        with start("cpu"):
            assert dask.config.get("distributed") is before
        assert dask.config.get("distributed.scheduler.work-stealing") is True
        assert "NUMBA_NUM_THREADS" not in dask.config.get("distributed.nanny.pre-spawn-environ")

    @pytest.mark.parametrize("workers", [2, 3])
    def test_several_workers(self, workers):
        with start("cpu", workers=workers) as client:
            assert list(client.nthreads().values()) == [1] * workers

    def test_tcp_within_one_process(self):
        with start("cpu", workers=2, protocol="tcp") as client:
            assert all(address.startswith("tcp://127.0.0.1") for address in client.nthreads())

    def test_two_clusters_at_once(self):
        with start("cpu") as one, start("cpu") as other:
            assert one.scheduler.address != other.scheduler.address

    def test_close_ends_the_cluster_and_may_be_called_again(self, no_thread_left):
        client = start("cpu")
        cluster = client.cluster
        client.close()
        client.close()
        assert cluster.status.name == "closed"

    def test_an_error_in_the_block_closes_too(self):
        def work():
            with start("cpu") as client:
                clusters.append(client.cluster)
                raise KeyError("x")

        clusters = []
        with pytest.raises(KeyError):
            work()
        assert clusters[0].status.name == "closed"

    def test_workers_that_do_not_stop_in_time_do_not_hide_the_error_of_the_block(self, monkeypatch):
        def close(client, timeout=30):
            right(client, timeout)
            raise TimeoutError

        right = local.ClusterClient.close
        monkeypatch.setattr(local.ClusterClient, "close", close)
        with pytest.raises(ZeroDivisionError), start(device="cpu"):
            raise ZeroDivisionError
        with pytest.raises(TimeoutError), start(device="cpu"):
            pass

    def test_options_reach_dask(self):
        with start("cpu", resources={"MEM": 5}) as client:
            (worker,) = client.run(in_worker).values()
        assert worker["resources"] == {"MEM": 5}

    def test_no_dashboard_unless_asked(self):
        with start("cpu") as client:
            assert client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.http_server.port) != 8787


class TestProcesses:
    def test_settings_hold_also_after_a_worker_was_killed(self, monkeypatch):
        """It comes back however long this takes: Dask would give it up after its `lost-worker-timeout`."""
        monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
        monkeypatch.setattr(local, "CPU_COUNT", 6)
        impatient = dask.config.set({"distributed.deploy.lost-worker-timeout": "100ms"})
        with impatient, start("cpu", workers=2, processes=True, memory_limit="8 GiB") as client:
            assert client.run_on_scheduler(in_scheduler) == SCHEDULER
            assert client.cluster.scheduler.worker_ttl == 20
            first = client.run(in_worker)
            pids = {worker["pid"] for worker in first.values()}
            assert len(pids) == 2
            assert os.getpid() not in pids
            victim = min(pids)
            os.kill(victim, signal.SIGKILL)
            second = _workers_without(client, victim)
            assert len(second) == len(client.cluster.workers) == 2
            for worker in [*first.values(), *second.values()]:
                assert worker["numba"] == "3"
                assert worker["threads"] == 1
                assert worker["data"] is dict  # though a memory limit is set
                assert worker["limit"] == 8 * 2**30
                assert worker["spill"] == (False, False, False)
                assert worker["config"] is False
                assert worker["connect"] == "60s"
            # Numba in this process would fail at its next compilation.
            _until(lambda: "NUMBA_NUM_THREADS" not in os.environ)
        assert children() == []

    def test_the_environment_wins(self, monkeypatch):
        monkeypatch.setenv("NUMBA_NUM_THREADS", "7")
        with start("cpu", processes=True) as client:
            (worker,) = client.run(in_worker).values()
        assert worker["numba"] == "7"

    @pytest.mark.slow
    def test_more_workers_than_cores_have_a_thread_each_and_this_process_keeps_its_environment(self, monkeypatch):
        monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
        monkeypatch.setattr(local, "CPU_COUNT", 1)
        before = dict(os.environ)
        with start("cpu", workers=2, processes=True) as client:
            assert dict(os.environ) == before
            assert {worker["numba"] for worker in client.run(in_worker).values()} == {"1"}

    def test_a_start_that_takes_too_long_leaves_nothing(self):
        with start("cpu", processes=True) as other:
            (spared,) = children()
            with pytest.raises(ClusterError, match=r"within 0.1 s.*longer timeout"):
                start("cpu", workers=2, processes=True, timeout=0.1)
            assert children() == [spared]
            assert other.submit(math.sqrt, 4).result() == 2

    def test_an_option_that_only_the_worker_process_finds_wrong(self):
        with pytest.raises(ClusterError, match="did not start: .*no_such_option"):
            start("cpu", processes=True, no_such_option=1)
        assert children() == []

    @pytest.mark.parametrize(
        ("device", "block"), [("gpu", "with open(__file__):\n    {}"), ("cpu", "for _ in range(1):\n    {}")]
    )
    def test_an_unguarded_script_starts_no_process(self, tmp_path, monkeypatch, device, block):
        """Where there are GPUs too, which are played here."""
        monkeypatch.setattr(gpus, "visible", lambda: ["0"])
        monkeypatch.setattr(gpus, "missing", lambda: None)
        script = tmp_path / "unguarded.py"
        script.write_text("from clusters import start\n" + block.format(f"start('{device}', processes=True)"))
        with pytest.raises(ClusterError, match="must call start"):
            runpy.run_path(str(script), run_name="__main__")
        assert children() == []

    def test_an_unguarded_script_is_told_to_guard_itself(self, tmp_path):
        script = tmp_path / "unguarded.py"
        script.write_text("from clusters import start\nstart('cpu', processes=True)\nprint('started')\n")
        run = subprocess.run(
            [sys.executable, script], env=_environment(), capture_output=True, text=True, timeout=60, check=False
        )
        assert run.returncode != 0
        assert "started" not in run.stdout
        assert run.stderr.count("Traceback") == 1
        last = run.stderr.rstrip().splitlines()[-1]
        assert last.startswith("clusters.errors.ClusterError")
        assert 'must call start() under `if __name__ == "__main__":`; otherwise every worker' in last

    def test_a_guarded_call_is_not_refused(self, tmp_path):
        script = tmp_path / "guarded.py"
        script.write_text(
            "from clusters.main_script import refuse_unguarded\n"
            "if __name__ == '__main__':\n    refuse_unguarded(processes=True)\n"
            "def run():\n    refuse_unguarded(processes=True)\nif __name__ == '__main__': run()\n"
            "__name__ == '__main__' and refuse_unguarded(processes=True)\n"
            "with open(__file__):\n    if __name__ == '__main__':\n        refuse_unguarded(processes=True)\n"
        )
        runpy.run_path(str(script), run_name="__main__")

    def test_a_guarded_script_ends_with_its_workers(self, tmp_path):
        script = tmp_path / "guarded.py"
        script.write_text(
            "from clusters import start\n"
            "if __name__ == '__main__':\n"
            "    client = start('cpu', processes=True)\n"  # never closed
            "    print(*client.run(__import__('os').getpid).values())\n"
        )
        run = subprocess.run(
            [sys.executable, script], env=_environment(), capture_output=True, text=True, timeout=60, check=True
        )
        _until(lambda: not os.path.exists(f"/proc/{int(run.stdout)}"))

    def test_ctrl_c_does_not_reach_worker_processes(self):
        """A terminal sends it to all processes; who dies of it says so in a traceback."""
        with start("cpu", processes=True) as client:
            (child,) = children()
            threads = [path.read_text() for path in Path(f"/proc/{child.pid}/task").glob("*/status")]
            blocked = [int(re.search(r"SigBlk:\s*(\w+)", status)[1], 16) for status in threads]
            assert all(mask >> signal.SIGINT - 1 & 1 for mask in blocked)
            os.kill(child.pid, signal.SIGINT)
            time.sleep(0.5)
            assert [worker["pid"] for worker in client.run(in_worker).values()] == [child.pid]

    @pytest.mark.parametrize("processes", [False, True])
    def test_an_interrupted_block_does_not_wait_for_its_tasks(self, processes):
        def work():
            with start("cpu", processes=processes) as client:
                moments.append(client.submit(time.sleep, 60))
                time.sleep(0.5)
                moments.append(time.monotonic())
                raise KeyboardInterrupt

        moments = []
        with pytest.raises(KeyboardInterrupt):
            work()
        assert time.monotonic() - moments[-1] < 50
        assert children() == []

    @pytest.mark.usefixtures("answers_ctrl_c")
    @pytest.mark.parametrize("processes", [False, True])
    @pytest.mark.parametrize("interrupted", [False, True])
    def test_ctrl_c_while_a_cluster_closes_ends_it(self, processes, interrupted):
        """Also the second Ctrl-C: Dask would wait for the close that was interrupted, whenever it closes again."""

        async def closing():
            client.cluster.status = Status.closing
            os.kill(os.getpid(), signal.SIGINT)  # from a thread, to the main one
            await asyncio.sleep(60)

        client = start("cpu", processes=processes)
        client.cluster._close = closing
        moment = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            client.__exit__(KeyboardInterrupt if interrupted else None, None, None)
        client.close()
        client.cluster.close()
        assert time.monotonic() - moment < 50
        _until(lambda: children() == [])

    @pytest.mark.usefixtures("answers_ctrl_c")
    def test_ctrl_c_while_worker_processes_start_ends_them(self, monkeypatch):
        instantiate, moments = TidyNanny.instantiate, iter([signal.SIGINT])

        async def never_done(nanny):
            await instantiate(nanny)
            for number in moments:  # once
                os.kill(os.getpid(), number)  # from a thread, to the main one
            await asyncio.sleep(60)

        monkeypatch.setattr(TidyNanny, "instantiate", never_done)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            start("cpu", workers=2, processes=True)
        assert time.monotonic() - began < 50
        _until(lambda: children() == [])

    def test_a_worker_process_that_is_killed_while_it_starts_is_started_again(self):
        killed = threading.Thread(target=_kill_children, args=[1])
        killed.start()
        with start("cpu", processes=True) as client:
            assert len(client.run(in_worker)) == 1
        killed.join()

    def test_a_worker_process_that_is_killed_whenever_it_starts_is_given_up(self):
        killed = threading.Thread(target=_kill_children, args=[STARTS])
        killed.start()
        with pytest.raises(
            ClusterError, match=f"a worker process was killed by signal 9 .*, {STARTS} times"
        ) as refusal:
            start("cpu", processes=True)
        killed.join()
        assert "__main__" not in str(refusal.value)
        assert children() == []


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"device": "tpu"}, r"device='tpu': must be one of 'auto', 'cpu'"),
            ({"workers": 0}, "workers=0: must be a whole number of at least 1"),
            ({"workers": True}, "workers=True: must be"),
            ({"workers": 1.5}, "workers=1.5: must be"),
            ({"processes": "yes"}, "processes='yes': must be True, False or None"),
            ({"protocol": "mpi"}, "protocol='mpi': must be one of 'tcp', 'ucx'"),
            ({"protocol": "ucx"}, "protocol='ucx': for GPU workers only"),
            ({"memory_limit": "much"}, "memory_limit='much': must be bytes"),
            ({"memory_limit": -1}, "memory_limit=-1: must be bytes"),
            ({"dashboard": 8787}, "dashboard=8787: must be True, False or an address"),
            ({"timeout": 0}, "timeout=0: must be a positive number"),
            ({"n_workers": 2}, "n_workers=2 is not an option of start.*workers="),
            ({"threads_per_worker": 2}, "threads_per_worker=2 is not an option"),
            ({"asynchronous": True}, "asynchronous=True is not an option"),
        ],
    )
    def test_bad_arguments(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            start(**{"device": "cpu", **arguments})

    def test_an_unknown_option(self):
        with pytest.raises(TypeError, match="no_such_option"):
            start("cpu", no_such_option=1)

    def test_a_dashboard_without_bokeh(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "distributed.dashboard.scheduler", None)
        with pytest.raises(ClusterError, match=r"dashboard=True.*pip install -e .*\[dashboard\]"):
            start("cpu", dashboard=True)

    @pytest.mark.parametrize("device", ["gpu", "cuda"])
    def test_gpus_asked_for_where_there_is_no_driver(self, no_gpu, device):
        with pytest.raises(ClusterError, match=f"device='{device}': no NVIDIA driver.*device='cpu'"):
            start(device)

    def test_gpus_hidden_by_the_environment(self, two_gpus, monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        with pytest.raises(ClusterError, match="CUDA_VISIBLE_DEVICES='' hides every GPU"):
            start("gpu")
        with start() as client:
            assert len(client.nthreads()) == 1

    def test_gpus_asked_for_without_dask_cuda(self, two_gpus, monkeypatch):
        monkeypatch.setitem(sys.modules, "dask_cuda", None)
        with pytest.raises(ClusterError, match=r"device='gpu': dask_cuda.*pip install -e .*\[cuda13\]"):
            start("gpu")

    def test_auto_warns_and_takes_the_cpu_when_a_package_is_missing(self, two_gpus, monkeypatch):
        monkeypatch.setitem(sys.modules, "dask_cuda", None)
        with pytest.warns(UserWarning, match=r"has GPUs, but the run uses the CPU.*\[cuda13\]") as caught:
            client = start()
        with client:
            assert client.submit(math.sqrt, 4).result() == 2
        assert caught[0].filename == __file__

    def test_cpu_asked_for_beside_gpus_does_not_warn(self, two_gpus):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            start("cpu").close()

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"workers": 3}, ValueError, "workers=3: there are 2 GPUs"),
            ({"processes": False}, ValueError, "processes=False: GPU workers are processes"),
            ({"memory_limit": "1 GiB"}, ValueError, "memory_limit='1 GiB': not for GPU workers"),
            ({"protocol": "ucx"}, ClusterError, r"protocol='ucx'.*pip install -e .*\[ucx\]"),
        ],
    )
    def test_what_gpu_workers_cannot_do(self, two_gpus, monkeypatch, arguments, error, message):
        monkeypatch.setattr(gpus, "missing_packages", lambda: None)
        monkeypatch.setattr(gpus.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(error, match=message):
            start("gpu", **arguments)


class TestVisibleGpus:
    @pytest.mark.parametrize(
        ("shown", "names"),
        [
            (None, ["0", "1"]),
            ("1", ["1"]),
            ("1, 0", ["1", "0"]),
            ("", []),
            ("-1", []),
            ("0,-1,1", ["0"]),
            ("0,5,1", ["0"]),
            ("GPU-8ff1,MIG-4b33", ["GPU-8ff1", "MIG-4b33"]),
        ],
    )
    def test_as_cuda_reads_the_variable(self, two_gpus, monkeypatch, shown, names):
        if shown is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
        assert gpus.visible() == names

    def test_nothing_is_visible_without_a_driver(self, no_gpu, monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-8ff1,0")
        assert gpus.visible() == []


@pytest.mark.gpu
@pytest.mark.skipif(gpus.missing() is not None, reason=f"no GPU workers here: {gpus.missing()}")
class TestGpu:
    def test_one_worker_per_gpu_each_with_a_device_of_its_own(self):
        found = gpus.visible()
        with start() as client:
            workers = list(client.run(in_worker).values())
            first = client.run(lambda: os.environ["CUDA_VISIBLE_DEVICES"].split(",")[0]).values()
            total = client.submit(_sum_on_the_gpu).result()
            assert client.run_on_scheduler(in_scheduler) == SCHEDULER
        assert len(workers) == len(found)
        assert sorted(first) == sorted(found)
        assert total == 499500
        for worker in workers:
            assert worker["resources"] == {"GPU": 1}
            assert worker["threads"] == 1
            assert worker["data"] is dict
            assert worker["limit"] is None
            assert worker["numba"] == str(max(1, CPU_COUNT // len(found)))
        assert children() == []

    def test_fewer_workers_than_gpus(self):
        with start("gpu", workers=1) as client:
            assert len(client.nthreads()) == 1

    def test_a_killed_worker_comes_back_with_its_gpu(self):
        with start("gpu", workers=1) as client:
            (first,) = client.run(in_worker).values()
            os.kill(first["pid"], signal.SIGKILL)
            (second,) = _workers_without(client, first["pid"]).values()
            assert {**second, "pid": first["pid"]} == first
            assert client.submit(_sum_on_the_gpu).result() == 499500

    def test_counting_gpus_creates_no_context(self):
        code = "import sys; from clusters import gpus; assert gpus.visible(); assert 'cupy' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], env=_environment(), timeout=60, check=True)


def _sum_on_the_gpu():
    import cupy

    return int(cupy.arange(1000).sum())


def _workers_without(client, pid):
    """What `in_worker` says once a new process has taken the place of `pid`."""
    count = len(client.cluster.workers)

    def workers():
        try:
            found = client.run(in_worker)
        except OSError:  # it died under the question
            return None
        return found if len(found) == count and all(w["pid"] != pid for w in found.values()) else None

    return _until(workers)


def _kill_children(count):
    """Kill the next `count` worker processes as soon as they exist."""
    killed = set()
    for _ in range(count):
        (child, *_rest) = _until(lambda: [child for child in children() if child.pid not in killed])
        killed.add(child.pid)
        os.kill(child.pid, signal.SIGKILL)


def _until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")


def _environment():
    root = os.path.dirname(os.path.dirname(local.__file__))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
