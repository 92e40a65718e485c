"""What several tests of formats share."""

from functools import partial

import pytest

from pipelines import import_graph


@pytest.fixture
def load(tmp_path):
    """Import a graph to a store of this test; returns the graph."""
    return partial(import_graph, path=tmp_path / "store", overwrite=True)
