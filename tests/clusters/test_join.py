"""Joining clusters that others started: waiting, the check of their settings, and the recipes for SLURM."""

import contextlib
import errno
import json
import math
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster

from clusters import CONFIG_FILE, ClusterError, batch, borrowed, join
from clusters.settings import in_force
from tilepath.cli import command

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts" / "slurm"
STAND_INS = Path(__file__).parent / "stand_ins"
DASK = [sys.executable, "-m", "dask"]


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT), **{name: str(value) for name, value in more.items()}}


@contextlib.contextmanager
def batch_cluster(file, **env):
    """A scheduler and a worker as a batch job starts them, in processes of their own."""
    common = f"--scheduler-file {file} --host 127.0.0.1 --no-dashboard --dashboard-address :0"
    commands = [f"scheduler --port 0 {common}", f"worker --nthreads 1 --memory-limit 0 {common}"]
    started = [
        subprocess.Popen(
            [*DASK, *command.split()],
            env=environment(DASK_TEMPORARY_DIRECTORY=file.parent, **env),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for command in commands
    ]
    try:
        yield
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def listening(**options):
    with LocalCluster(n_workers=1, processes=False, protocol="tcp", dashboard_address=":0", **options) as cluster:
        yield cluster


@pytest.fixture
def impatient(monkeypatch):
    """A wait is announced almost at once."""
    monkeypatch.setattr(batch, "SILENCE_SECONDS", 0.05)


def test_join_by_scheduler_file_waits_for_the_cluster_and_leaves_it_running(tmp_path, impatient, capsys):
    file = tmp_path / "scheduler.json"
    with batch_cluster(file, DASK_CONFIG=CONFIG_FILE), warnings.catch_warnings():
        warnings.simplefilter("error")
        with join(file, timeout=60) as client:  # long before there is a file
            assert client.submit(math.sqrt, 4).result() == 2
            (memory,) = client.run(lambda dask_worker: dask_worker.memory_manager.memory_pause_fraction).values()
            assert memory is False
        address = json.loads(file.read_text())["address"]
        with join(address=address, workers=1, timeout=30) as client:
            assert len(client.nthreads()) == 1
        with pytest.raises(ClusterError, match=r"1 of 2 workers came to tcp://\S+ within 4 s; .*--workers.*--timeout"):
            join(file, workers=2, timeout=4)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"Waiting for the scheduler file {file}, up to 60 s"
    assert said[-1] == "Waiting for workers: 1 of 2 are there, up to 4 s"


def test_settings_that_cost_time_are_warned_of_where_others_use_the_cluster(monkeypatch):
    monkeypatch.setattr(borrowed, "LEAVING_SECONDS", 0)
    with in_force({}, processes=True), dask.config.set({"distributed.scheduler.worker-saturation": 1.1}):
        with listening(threads_per_worker=1) as cluster, Client(cluster, set_as_default=False) as other:
            cluster.scheduler.no_workers_timeout = None
            Client._instances.discard(other)  # as if another process had opened it
            told = r"worker-saturation is 1.1.*no-workers-timeout is not set.*DASK_CONFIG"
            with pytest.warns(UserWarning, match=told), join(address=cluster):
                assert cluster.scheduler.WORKER_SATURATION == 1.1


def test_a_cluster_with_the_settings_of_tilepath_is_not_changed():
    with in_force({}, processes=True), listening(threads_per_worker=1) as cluster, warnings.catch_warnings():
        warnings.simplefilter("error")
        with join(address=cluster):
            assert borrowed.NAME not in cluster.scheduler.plugins


@pytest.mark.parametrize(
    ("content", "lack"),
    [(None, "it does not exist"), ("", "it does not hold the address of a scheduler"), ("[1]", "does not hold")],
)
def test_a_scheduler_file_that_never_comes(tmp_path, content, lack):
    file = tmp_path / "scheduler.json"
    if content is not None:
        file.write_text(content)
    began = time.monotonic()
    with pytest.raises(ClusterError, match=f"{lack}.*dask scheduler --scheduler-file.*--timeout"):
        join(file, timeout=0.3)
    assert time.monotonic() - began < 30


def test_a_scheduler_file_of_an_earlier_job(tmp_path, impatient, capsys):
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": "tcp://127.0.0.1:9"}))
    # On a busy machine the last attempt to connect may end by its own time limit and not by a refusal.
    told = r"at tcp://127.0.0.1:9 within 1.5 s( \(Connection refused\))?; .*left over from an earlier"
    with pytest.raises(ClusterError, match=told):
        join(file, timeout=1.5)
    assert capsys.readouterr().err == "Waiting for the scheduler at tcp://127.0.0.1:9, up to 1.5 s\n"


def test_the_error_says_why_the_last_attempt_to_connect_failed(monkeypatch):
    def refuse(*_, **__):
        raise OSError("timed out") from ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")

    monkeypatch.setattr(batch, "Client", refuse)
    with pytest.raises(ClusterError, match=r"at tcp://127.0.0.1:9 within 1 s \(Connection refused\); correct the"):
        join(address="tcp://127.0.0.1:9", timeout=1)


def test_a_server_that_is_no_scheduler():
    def speak_another_protocol():
        with server.accept()[0] as peer:
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9)

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        answer = threading.Thread(target=speak_another_protocol)
        answer.start()
        with pytest.raises(ClusterError, match=f"the server at 127.0.0.1:{port} is not a Dask scheduler"):
            join(address=f"127.0.0.1:{port}", timeout=60)
        answer.join()


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("garbage", ValueError, "missing port"),
        ("tcp://", ValueError, "missing port"),
        ("127.0.0.1:x", ValueError, "not the address of a scheduler, such as tcp://10.0.0.1:8786"),
        ("tcp://127.0.0.1:99999", ValueError, "there is no port 99999"),
        ("carrier-pigeon://127.0.0.1:1", ValueError, "unknown address scheme"),
        ("garbage.invalid:8786", ClusterError, "the host 'garbage.invalid' is not known"),
    ],
)
def test_what_is_no_address_fails_at_once(tmp_path, no_thread_left, address, error, message):
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": address}))
    began = time.monotonic()
    with pytest.raises(error, match=message):
        join(address=address)
    with pytest.raises(error, match=message):
        join(file)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly one"),
        ({"scheduler_file": "f", "address": "tcp://127.0.0.1:1"}, "exactly one"),
        ({"address": "tcp://127.0.0.1:1", "timeout": -1}, "timeout=-1: must be a positive"),
        ({"address": "tcp://127.0.0.1:1", "workers": 0}, "workers=0: must be a whole number"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        join(**arguments)


def recipe_run(recipe, *command, folder, status=0, nodes=2, **env):
    """Run a recipe as the batch script of job 17 on so many nodes. Returns its exit status and its log.

    Commands in stand_ins take the place of SLURM, dask-cuda and Apptainer. A command in place of tilepath joins the
    cluster, asks the workers for their settings, and ends with `status`.
    """
    played = folder / "tilepath"
    played.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        "if sys.argv[1:] == ['warm']:\n"
        "    sys.exit(print('warm'))\n"
        "from clusters import join\n"
        "def ask(dask_worker):\n"
        "    limit = dask_worker.memory_manager.memory_limit\n"
        "    return os.environ['NUMBA_NUM_THREADS'], limit, dask_worker.state.total_resources\n"
        "command, (file, _, workers, _, timeout) = sys.argv[1:-6], sys.argv[-5:]\n"
        "with join(file, workers=int(workers), timeout=float(timeout)) as client:\n"
        "    print(command, *client.run(ask).values())\n"
        f"sys.exit({status})\n",
    )
    played.chmod(played.stat().st_mode | stat.S_IXUSR)
    with open(folder / "log", "w") as log:
        job = subprocess.Popen(
            ["bash", SCRIPTS / recipe, *command],
            env=environment(
                PATH=os.pathsep.join(map(str, (folder, STAND_INS, Path(sys.executable).parent, os.environ["PATH"]))),
                DASK_TEMPORARY_DIRECTORY=folder,
                SLURM_JOB_ID=17,
                SLURM_JOB_NUM_NODES=nodes,
                SLURM_SUBMIT_DIR=folder,
                SLURM_CPUS_PER_TASK=4,
                SLURM_GPUS_ON_NODE=2,
                CUDA_VISIBLE_DEVICES="0,1",
                IN_CONTAINER=folder / "in container",
                **env,
            ),
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            result = job.wait(200)
        finally:
            os.killpg(job.pid, signal.SIGKILL)  # as SLURM does
            job.wait()
    return result, (folder / "log").read_text()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_recipe_for_cpus_runs_its_command_on_a_full_cluster_and_returns_its_status(tmp_path):
    (tmp_path / "scheduler-17.json").write_text('{"address": "tcp://127.0.0.1:9"}')  # left by a node that was lost
    result, said = recipe_run("cpu.sbatch", "apsp", "g.zarr", "100%.zarr", folder=tmp_path, status=3)
    assert result == 3, said
    assert "['apsp', 'g.zarr', '100%.zarr', '--resume']" in said  # SLURM may have begun this job before
    assert said.count("('4', None, {})") == 2, said
    assert not (tmp_path / "scheduler-17.json").exists()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_recipe_for_gpus_in_containers_and_in_an_array(tmp_path):
    """`euler` has no --resume; each command runs in a container."""
    command = "euler", "g-%a.zarr", "c-%a.zarr", "--start", "%a"
    container = "apptainer exec --nv image.sif"
    options = {"nodes": 1, "CONTAINER": container, "SLURM_ARRAY_TASK_ID": 5}
    result, said = recipe_run("gpu.sbatch", *command, folder=tmp_path, **options)
    assert result == 0, said
    assert "['euler', 'g-5.zarr', 'c-5.zarr', '--start', '5']" in said
    assert said.count("warm\n") == 1, said
    assert said.count("('2', None, {'STAND_IN': 1") == 2, said
    ran = sorted((tmp_path / "in container").read_text().split())
    assert ran == ["dask", "dask", "python", "tilepath", "tilepath"]  # dask: a scheduler, and the workers of a node


def test_the_settings_file_is_one_that_dask_reads():
    read = "import dask, json; print(json.dumps(dask.config.get('distributed.scheduler')))"
    out = subprocess.run(
        [sys.executable, "-c", read], env=environment(DASK_CONFIG=CONFIG_FILE), capture_output=True, check=True
    )
    scheduler = json.loads(out.stdout)
    assert scheduler["work-stealing"] is False
    assert scheduler["allowed-failures"] == 0


@pytest.mark.parametrize("recipe", ["cpu.sbatch", "gpu.sbatch"])
def test_recipes_resume_the_commands_that_can_be_resumed(recipe):
    options = {name: {option for each in command.params for option in each.opts} for name, command in commands()}
    on_clusters = {name for name, known in options.items() if "--scheduler-file" in known}
    (line,) = [line for line in (SCRIPTS / recipe).read_text().splitlines() if "+=(--resume)" in line]
    begin_again = set(re.findall(r"\$1 == ([\w-]+)", line))
    assert begin_again == {name for name in on_clusters if "--resume" not in options[name]}


def commands():
    """Names of commands, those of `tilepath som` with the name of their group, and the commands."""
    for name, found in command.tilepath.commands.items():
        inner = getattr(found, "commands", {"": found})
        yield from ((f"{name} {each}".strip(), inner[each]) for each in inner)
