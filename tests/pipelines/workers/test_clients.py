"""A call whose client was forgotten says so."""

import inspect
import os
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
from distributed import Client

import tilepath
from pipelines.workers import clients
from pipelines.workers.clients import takes_client

CALLS = [name for name in tilepath.__all__ if not inspect.isclass(getattr(tilepath, name))]
CALLS = [name for name in CALLS if [*inspect.signature(getattr(tilepath, name)).parameters][:1] == ["client"]]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_without_its_client_says_so(name):
    call = getattr(tilepath, name)
    for arguments, options in [
        (("graph.zarr", "out.zarr"), {}),
        ((), {"client": None}),
        ((object(), "graph.zarr", "out.zarr"), {}),
        ((), {}),
    ]:
        with pytest.raises(TypeError, match=rf"{name}: the first argument is the Dask client; .*tilepath\.start\(\)"):
            call(*arguments, **options)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_with_a_closed_client_says_so(name):
    with pytest.raises(ValueError, match=rf"{name}: the client is closed, .*tilepath\.start\(\)"):
        getattr(tilepath, name)(Mock(spec=Client, status="closed"), "graph.zarr", "out.zarr")


def test_the_calls_that_take_a_client_are_found():
    assert {"all_pairs_shortest_paths", "betweenness", "build_hierarchy", "map_samples"} <= {*CALLS}


def a_client():
    return Mock(spec=Client, status="running", scheduler=Mock(address="tcp://test"))


def test_calls_of_several_threads_use_a_cluster_one_after_the_other():
    running, together = [], []

    @takes_client
    def call(client):
        running.append(client)
        together.append(len(running))
        time.sleep(0.01)
        running.remove(client)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(call, [a_client() for _ in range(3)]))
    assert together == [1, 1, 1]


def test_a_forked_process_is_told_to_be_spawned(monkeypatch):
    """Dask's threads are missing there, so that a call would wait forever."""
    monkeypatch.setattr(clients, "_ran_in", os.getppid())
    with pytest.raises(ValueError, match=r"list: this process was forked .*get_context\('spawn'\)"):
        takes_client(list)(a_client())
