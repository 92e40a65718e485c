"""Every command that reads the arcs of a graph, on a store whose chunk of heads is that of a larger graph."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from commands import invoke

from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph

COMMANDS = """
info G --verify
info G --full
info G --json
verify G
graph show G
graph show G 7
graph degrees G
graph components G
graph reverse G r.zarr
graph tree G t.zarr
graph tree G t.csv
apsp G d.zarr --method floyd-warshall
apsp G d.zarr --method batched
apsp G d.zarr --method hierarchy
sssp G p.zarr --source 1
sssp G p.zarr --source 1 --spread vertices
hierarchy G h.zarr
euler G c.zarr
od G m.csv --origins v.csv --destinations v.csv
picture G g.svg
export G e.csv
export G e.mtx
export G e.parquet
""".strip().splitlines()


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A graph of 50 vertices with the heads of another one; as many arcs, and the checksum of the chunk is right."""
    folder = tmp_path_factory.mktemp("mixed")
    rng = np.random.default_rng(3)
    for name, n in ("G", 50), ("larger", 5_000):
        tails, heads = rng.integers(0, 50, 300), rng.integers(0, n, 300)
        indptr = np.searchsorted(np.sort(tails), np.arange(n + 1))
        write_graph(folder / name, indptr, heads, np.ones(300, "int32"))
    shutil.copyfile(folder / "larger/indices/c/0", folder / "G/indices/c/0")
    return folder / "G"


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_takes_heads_that_are_no_vertices(mixed, client, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("vertex\n1\n2\n")
    monkeypatch.setattr("tilepath.cli.cluster._open_client", lambda *_: nullcontext(client))
    done = invoke(*command.replace("G", str(mixed)).split())
    assert isinstance(done.exception, StoreError), (done.output, done.exception)
    assert re.match(rf"{mixed}/indices: holds [0-9,]+, but its values run from 0 to 49; ", str(done.exception))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_kernel_reads_or_writes_outside_an_array(tmp_path):
    files = [__file__, Path(__file__).parents[1] / "pipelines/stores/test_damaged_stores.py"]
    checked = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-m", "pytest", "-q", *files], env=checked, check=True)
