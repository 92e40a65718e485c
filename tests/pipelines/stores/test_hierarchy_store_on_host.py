"""Positions in CuPy arrays, with the kernels on the host (host_shim/)."""

import numpy as np
import pytest

from gpuops.hierarchy.blocks_cuda import Answers
from pipelines import StoreError, distances_between, positions
from pipelines.stores.hierarchy import open_hierarchy


@pytest.fixture(scope="module")
def store(host_shim, tiny_stores):
    return open_hierarchy(tiny_stores / "hierarchy")


@pytest.mark.parametrize("targets", [[3, 0, 3], [0, 1, 2, 3, 4]], ids=["block", "rows"])
def test_positions_stay_on_the_device(host_shim, monkeypatch, store, targets):
    fill, taken = Answers.fill, []

    def seen(answers, vertices, origins, out):
        taken.extend(given for given in (vertices, origins) if given is not None)
        fill(answers, vertices, origins, out)

    monkeypatch.setattr(Answers, "fill", seen)
    given = [host_shim.asarray(np.array(each, np.int32)) for each in (targets, [1, 4, 2, 1])]
    found = distances_between(store, positions(given[1]), positions(given[0]))
    np.testing.assert_array_equal(found.get(), store.between([1, 4, 2, 1], targets))
    assert all(any(np.shares_memory(each, array) for array in given) for each in taken)
    assert len(taken) == (1 if len(targets) == 5 else 2)


def test_positions_of_no_vertex(host_shim, store):
    for wrong in [1, 5], [-1, 1]:
        with pytest.raises(StoreError, match=r"source [12] of the list: there is no vertex '#(5|-1)'; give a position"):
            distances_between(store, positions(host_shim.asarray(np.array(wrong))), positions([0]))
