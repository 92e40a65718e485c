"""State on the workers, and the tasks around it."""

import time

from pipelines.resident import Epoch, ResidentState, clear, keep, workers_of


def _load(epoch):
    clear()
    keep(epoch, 1)


def _slow(_epoch):
    time.sleep(0.5)
    return 1


def _next(_epoch, before):
    return before + 1


def test_dropping_tasks_that_depend_on_forgotten_ones(client):
    """Whoever let go of the middle of a chain can drop the epoch, and goes on with the next."""
    client.register_plugin(ResidentState())
    epoch = Epoch(client, workers_of(client), "test", "first")
    epoch.wait([epoch.submit(_load, 0)])
    middle = epoch.submit(_next, 0, epoch.submit(_slow, 0))
    last = epoch.submit(_next, 0, middle)
    epoch.futures.remove(middle)
    del middle
    time.sleep(0.1)  # until the scheduler knows that nobody wants it
    another = client.submit(_next, "", 1, pure=False)
    assert another.result() == 2
    epoch.cancel()
    del last
    time.sleep(0.3)
    assert another.status == "finished"  # else the connection was lost, and everything with it
    again = Epoch(client, workers_of(client), "test", "second")
    again.wait([again.submit(_load, 0)])
    assert again.results([again.submit(_next, 0, again.submit(_slow, 0))]) == [2]
    again.cancel()
