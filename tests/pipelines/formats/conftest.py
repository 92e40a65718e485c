"""What several tests of formats share."""

from functools import partial

import pytest

from pipelines import import_graph, import_samples


@pytest.fixture
def load(tmp_path):
    """Import a graph to a store of this test; returns the graph."""
    return partial(import_graph, path=tmp_path / "store", overwrite=True)


@pytest.fixture
def read(tmp_path):
    """``read(text or bytes, **options)``: the samples store imported from a file of that content."""

    def write(content, name="t.csv", **options):
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(content)
        return import_samples(tmp_path / name, tmp_path / "s", overwrite=True, **({"dtype": "float64"} | options))

    return write
