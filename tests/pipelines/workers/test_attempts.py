"""State on the workers, the tasks around it, and workers that are lost while they are measured."""

import gc
import logging
import os
import signal
import threading
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest
from distributed import Client, KilledWorker, LocalCluster, default_client, wait
from distributed.comm import CommClosedError
from zarr.errors import ArrayNotFoundError

from gpuops import NegativeCycleError
from pipelines import generate, single_source_shortest_paths
from pipelines.generators import synthetic_graph
from pipelines.workers import capacity
from pipelines.workers.attempts import Attempt, Run, WorkersChanged, retried, workers_of
from pipelines.workers.capacity import measure_workers
from pipelines.workers.interruption import Interrupted
from pipelines.workers.resident_state import ResidentState, StateLost, clear_states, keep_state, state_of


def _load(attempt):
    clear_states()
    keep_state(attempt, 1)


def _slow(_epoch):
    time.sleep(0.5)
    return 1


may_end = threading.Event()


def _waits(_epoch):
    return may_end.wait(60)


def _next(_epoch, before):
    return before + 1


def test_dropping_tasks_that_depend_on_forgotten_ones(client):
    """Whoever let go of the middle of a chain can drop the attempt, and goes on with the next."""
    client.register_plugin(ResidentState())
    attempt = Attempt(Run(client, workers_of(client)))
    attempt.wait([attempt.submit(_load, 0)])
    middle = attempt.submit(_next, 0, attempt.submit(_slow, 0))
    last = attempt.submit(_next, 0, middle)
    attempt.futures.remove(middle)
    del middle
    time.sleep(0.1)  # until the scheduler knows that nobody wants it
    another = client.submit(_next, "", 1, pure=False)
    assert another.result() == 2
    attempt.cancel()
    del last
    time.sleep(0.3)
    assert another.status == "finished"  # else the connection was lost, and everything with it
    again = Attempt(Run(client, workers_of(client)))
    again.wait([again.submit(_load, 0)])
    assert again.results([again.submit(_next, 0, again.submit(_slow, 0))]) == [2]
    again.cancel()


class _State:
    latest = None


def _load_state(attempt):
    state = _State()
    _State.latest = weakref.ref(state)
    keep_state(attempt, state)


def _fail(attempt):
    state = state_of(attempt)
    try:
        int(f"{state}")
    except ValueError:
        raise ValueError("no luck") from None


def test_state_does_not_outlive_its_attempt_in_the_traceback_of_a_failed_task(client):
    client.register_plugin(ResidentState())
    attempt = Attempt(Run(client, workers_of(client)))
    attempt.wait([attempt.submit(_load_state, 0)])
    gc.disable()
    try:
        with pytest.raises(ValueError, match="no luck"):
            attempt.wait([attempt.submit(_fail, 0)])
        attempt.cancel()
        assert _State.latest() is None
    finally:
        gc.enable()


@pytest.fixture
def plain():
    """Two worker processes under Dask's own settings, as users have them."""
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        with Client(cluster) as client:
            yield client


@pytest.mark.parametrize("dtype", [None, "float32"])
def test_measuring_does_not_read_what_the_client_forgets(client, monkeypatch, dtype):
    """The periodic callback of a client empties its list of workers, at any moment."""
    monkeypatch.setattr(client, "scheduler_info", lambda **_: {"workers": {}})
    (fact,) = measure_workers(client, dtype)
    assert fact.address == workers_of(client)[0]
    assert fact.host in fact.address
    assert (fact.rate > 0) == (dtype is not None)


def test_a_worker_measures_its_product_once_for_each_dtype(client, monkeypatch):
    measured = []
    monkeypatch.setattr(capacity, "minplus_update", lambda c, *_, **__: measured.append(str(c.dtype)))
    capacity._rate.cache_clear()
    for dtype in "int16", "float64", None, "int16", "float64":
        measure_workers(client, dtype)
    capacity._rate.cache_clear()
    assert measured == ["int16"] * 3 + ["float64"] * 3


def _measured_at_the_second_try(note):
    try:
        Path(note).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_killed_while_workers_are_measured_costs_time_alone(plain, tmp_path, monkeypatch):
    monkeypatch.setattr(capacity, "worker_facts", _measured_at_the_second_try)
    pids = plain.run(os.getpid)
    assert measure_workers(plain, str(tmp_path / "note")) == [None, None]
    assert plain.run(os.getpid) != pids


def _measured_late(_dtype):
    may_end.wait(60)


def test_a_worker_that_does_not_answer_is_named(client, monkeypatch):
    may_end.clear()
    monkeypatch.setattr(capacity, "worker_facts", _measured_late)
    with pytest.raises(
        TimeoutError, match=f"no answer from {workers_of(client)[0]} within 1 s; look at the worker's log"
    ):
        measure_workers(client, None, seconds=0.6)
    may_end.set()


def test_a_wait_runs_in_the_loop_of_its_own_client(client, two, monkeypatch):
    """Elsewhere a future whose result is lost later on is bound to that loop, and never fetched again."""
    waited = []

    def recorded(*args, **options):
        waited.append(default_client())
        return wait(*args, **options)

    monkeypatch.setattr("pipelines.workers.attempts.wait", recorded)
    for users in client, two:
        Attempt(Run(users, workers_of(users))).wait([users.submit(int, 1, pure=False)])
    assert set(waited[:1]) == {client}
    assert set(waited[-1:]) == {two}


@pytest.mark.parametrize("error", [KilledWorker("key", SimpleNamespace(address="tcp://gone"), 0), StateLost("none")])
def test_a_result_whose_worker_dies_on_its_way_here_is_a_loss(client, monkeypatch, error):
    """It is computed anew then, where there is no state for it, or no worker."""

    class Lost:
        key = "lost"

        def __await__(self):
            raise error
            yield

    epoch = Attempt(Run(client, workers_of(client)))
    monkeypatch.setattr(epoch, "wait", lambda *_: None)
    with pytest.raises(WorkersChanged, match="lost"):
        epoch.results([Lost()])


@pytest.mark.parametrize("when", ["while it runs", "when it is done"])
def test_a_cancelled_task_is_a_loss(client, monkeypatch, when):
    """Dask cancels tasks of its own accord, when the only worker that may run them is gone."""
    attempt = Attempt(Run(client, workers_of(client), name="cancelled"))
    may_end.clear()
    task = attempt.submit(_waits if when == "while it runs" else _slow, 0)
    if when == "while it runs":
        threading.Timer(0.1, client.cancel, ([task],)).start()
    else:
        wait(task)
        client.cancel([task])
        monkeypatch.setattr(attempt, "wait", lambda *_: None)
    with pytest.raises(WorkersChanged, match=r"task-\w+-1-tilepath-cancelled-0: "):
        attempt.results([task])
    may_end.set()


def _large(_attempt, number):
    return bytes([number]) * (16 << 20)


def test_results_that_take_long_on_their_way_arrive(two_processes, monkeypatch):
    attempt = Attempt(Run(two_processes, workers_of(two_processes)))
    tasks = [attempt.submit(_large, number % 2, number) for number in range(6)]
    attempt.wait(tasks)
    monkeypatch.setattr("pipelines.workers.attempts.POLL_SECONDS", 0.005)
    assert [found[0] for found in attempt.results(tasks)] == list(range(6))
    attempt.cancel()


@pytest.mark.parametrize(
    ("resumes", "message"),
    [
        (True, r"lost 6 times without a commit in between \(gone\); .*, then run again with resume \(--resume\)$"),
        (False, r"lost 6 times \(gone\); look at their logs, then run again$"),
    ],
)
def test_workers_lost_again_and_again_end_a_run(client, resumes, message):
    tried = []

    def attempt(_run, members, _before):
        tried.append(members)
        raise WorkersChanged("gone")

    with pytest.raises(ConnectionError, match=message):
        Run(client, workers_of(client), resumes=resumes).attempts(attempt)
    assert tried == [workers_of(client)] * 6


def test_a_loss_while_an_attempt_begins_begins_it_again(client):
    class Once:
        def done(self):
            return 1

        def run(self):
            pass

        def cancel(self):
            pass

    begun = []

    def begin(run, members, before):
        begun.append(before)
        if len(begun) == 1:
            raise WorkersChanged("gone while it was measured")
        return Once()

    Run(client, workers_of(client)).attempts(begin)
    assert begun == [None, None]


@pytest.mark.parametrize("kind", ["client", "two_processes"])
def test_an_ordinary_negative_cycle_logs_nothing(request, tmp_path, caplog, capfd, kind):
    users = request.getfixturevalue(kind)
    graph = generate(synthetic_graph("negative-cycle", n=300), tmp_path / "g")
    with caplog.at_level(logging.WARNING), pytest.raises(NegativeCycleError, match="->"):
        single_source_shortest_paths(users, graph, tmp_path / "p", [0])
    assert "Compute Failed" not in caplog.text + "".join(capfd.readouterr())


# What Dask logs of a task that runs while its worker closes.
CANCELLED = "Async instruction for <Task cancelled name=\"execute('%s')\"> ended with CancelledError"


def _fails():
    raise KeyError("a task of somebody else")


@pytest.mark.parametrize(
    ("logger", "text", "argument", "error", "kept"),
    [
        ("distributed.scheduler", "Task %s marked as failed because", "x-1-tilepath-y", None, False),
        ("distributed.scheduler", "Task %s marked as failed because", "inc-1", None, True),
        ("distributed.worker", "Worker stream died during communication: %s", "tcp://w", CommClosedError(), False),
        ("distributed.nanny", "Restarting worker (status=%s)", "running", None, False),
        ("distributed.nanny", "Failed to restart worker %s", "w", OSError(), True),
        ("distributed.worker.state_machine", f"{CANCELLED % 'x-1-tilepath-y'}%s", "", None, False),
        ("distributed.worker.state_machine", f"{CANCELLED % 'inc-1'}%s", "", None, True),
        ("asyncio", "Future exception was never retrieved%s", "", TimeoutError(), False),
        ("asyncio", "Future exception was never retrieved%s", "", OSError(28, "disk full"), True),
    ],
)
def test_the_log_is_silent_about_what_a_run_handles(two, caplog, logger, text, argument, error, kept):
    assert retried(two, "test", lambda attempt: len(attempt.members)) == 2
    logging.getLogger(logger).error(text, argument, exc_info=error)
    assert (text % argument in caplog.text) is kept


def _wraps(attempt):
    try:
        raise ArrayNotFoundError("a store", "an array")
    except ArrayNotFoundError as error:
        raise FileExistsError("what the user reads") from error


def test_a_cause_that_cannot_be_pickled_does_not_hide_the_error(client):
    with pytest.raises(FileExistsError, match="what the user reads"):
        retried(client, "test", lambda attempt: attempt.on_all(_wraps))


def test_failures_of_other_tasks_are_logged(client, caplog):
    client.register_plugin(ResidentState())
    with caplog.at_level(logging.WARNING), pytest.raises(KeyError):
        client.submit(_fails).result()
    assert "Compute Failed" in caplog.text


def test_an_interrupted_run_does_not_wait_for_lost_workers(client, monkeypatch):
    monkeypatch.setattr("pipelines.workers.interruption._asked", True)
    with pytest.raises(Interrupted):
        retried(client, "test", lambda attempt: None)
