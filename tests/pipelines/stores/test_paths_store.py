import json

import numpy as np
import pytest
from damage import flip
from path_rows import write_rows

from pipelines.stores.distances import open_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.paths import PathsWriter, create_paths, open_paths

FAR = np.iinfo("int32").max


@pytest.fixture
def graph(tmp_path):
    return write_graph(tmp_path / "g.zarr", np.arange(6), np.array([1, 2, 3, 4, 0]), np.ones(5, "int32"))


def begin(path, graph, **options):
    return create_paths(path, graph, **({"dtype": "int32", "sources": [4, 1, 3], "chunk": 1} | options))


def fill(run, *, rows=None, spoil=None):
    """The rows, all by default, of a ring of five vertices."""
    done = run.rows_done()
    for row in range(run.rows) if rows is None else rows:
        steps = np.full((len(run.row_sources(row)), 5), 0)
        for i, source in enumerate(run.row_sources(row)):
            steps[i] = (np.arange(5) - source) % 5
        distances = steps.min(axis=0).astype(run.dtype)[None]
        predecessors = np.where(distances == 0, -1, (np.arange(5) - 1) % 5).astype("int32")
        if spoil is not None:
            spoil(distances, predecessors)
        write_rows(run, row, distances, predecessors)
        done[row] = True
    run.record(done)


def test_rows_come_back_and_the_store_pickles_as_its_path(tmp_path, graph):
    run = begin(tmp_path / "p", graph)
    assert (run.rows, run.row_sources(1), PathsWriter.begun(tmp_path / "p").progress()) == (3, (1,), (0, 3))
    fill(run)
    paths = open_paths(tmp_path / "p")
    assert (paths.shape, paths.dtype, paths.sources.tolist()) == ((3, 5), np.int32, [4, 1, 3])
    assert paths.distances(paths.row_of(1)).tolist() == [4, 0, 1, 2, 3]
    assert paths.predecessors(paths.row_of(1)).tolist() == [4, -1, 1, 2, 3]
    assert paths.distances((0, 3)) == 4
    assert [start for start, _, _ in paths.blocks()] == [0, 1, 2]
    assert paths.graph().digest == graph.digest
    paths.verify()
    with pytest.raises(StoreError, match="vertex 0 is not one of its 3 sources; name one of them"):
        paths.row_of(0)


def test_sources_that_count_as_one_have_one_row(tmp_path, graph):
    fill(begin(tmp_path / "p", graph, together=True, cutoff=2.0, targets=[0, 2]))
    paths = open_paths(tmp_path / "p")
    assert (paths.shape, paths.row_of(3), paths.row_sources(0).tolist()) == ((1, 5), 0, [4, 1, 3])
    assert (paths.cutoff, paths.targets) == (2.0, (0, 2))
    assert paths.distances(0).tolist() == [1, 0, 1, 0, 0]


def test_distances_alone(tmp_path, graph):
    run = begin(tmp_path / "p", graph, predecessors=False, dtype="float32")
    for row in range(3):
        write_rows(run, row, np.full((1, 5), np.inf, "float32"), None)  # equal to the fill value, stored all the same
    run.record(np.ones(3, bool))
    paths = open_paths(tmp_path / "p")
    paths.verify()
    with pytest.raises(StoreError, match="holds no predecessors"):
        paths.predecessors()


def test_an_unfinished_store_goes_on_where_it_was(tmp_path, graph):
    run = begin(tmp_path / "p", graph)
    fill(run, rows=[0, 2])
    assert PathsWriter.begun(tmp_path / "p").progress() == (2, 3)
    with pytest.raises(StoreError, match=r"2 of 3 rows done; repeat .*tilepath sssp .*g\.zarr"):
        open_paths(tmp_path / "p")
    again = PathsWriter.resume(tmp_path / "p", graph)
    assert again.rows_done().tolist() == [True, False, True]
    with pytest.raises(StoreError, match="another run took this store over"):
        run.record(np.ones(3, bool))
    again.discard()  # what is done stays
    fill(again)
    open_paths(tmp_path / "p").verify()
    begin(tmp_path / "q", graph).discard()
    assert not (tmp_path / "q").exists()


def test_other_stores_and_other_graphs_are_refused(tmp_path, graph):
    fill(begin(tmp_path / "p", graph))
    other = write_graph(tmp_path / "o.zarr", np.array([0, 1, 1]), np.array([1]), np.ones(1, "int32"))
    with pytest.raises(StoreError, match="another graph"):
        PathsWriter.resume(tmp_path / "p", other)
    with pytest.raises(StoreError, match="computed from another graph"):
        open_paths(tmp_path / "p").graph(other.path)
    with pytest.raises(
        StoreError, match="is a graph store .graph/1., but a paths store .paths/1. is needed; `tilepath sssp"
    ):
        open_paths(graph.path)
    with pytest.raises(StoreError, match="is a paths store"):
        open_distances(tmp_path / "p")
    with pytest.raises(StoreError, match="exists already"):
        begin(tmp_path / "p", graph)
    begin(tmp_path / "p", graph, overwrite=True)
    assert PathsWriter.begun(tmp_path / "p.new").progress() == (0, 3)
    open_paths(tmp_path / "p").verify()


def test_damage_is_found_and_named(tmp_path, graph):
    fill(begin(tmp_path / "p", graph))
    paths = open_paths(tmp_path / "p")
    chunk = tmp_path / "p" / "predecessors" / "c" / "1" / "0"
    flip(chunk, at=-9)
    with pytest.raises(StoreError, match="a chunk is damaged"):
        paths.verify()
    chunk.unlink()
    with pytest.raises(StoreError, match="1 of 3 chunks are missing"):
        paths.verify()


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda d, p: p.__setitem__((0, 2), 5), "predecessors: holds 5, but its values run from -1 to 4"),
        (lambda d, p: d.__setitem__((0, 2), FAR), "unreachable vertex has a predecessor"),
    ],
)
def test_entries_that_cannot_be_are_found(tmp_path, graph, spoil, fault):
    fill(begin(tmp_path / "p", graph), spoil=spoil)
    with pytest.raises(StoreError, match=fault):
        open_paths(tmp_path / "p").verify()


def test_nan_is_found(tmp_path, graph):
    fill(begin(tmp_path / "p", graph, dtype="float32"), spoil=lambda d, p: d.__setitem__((0, 2), np.nan))
    with pytest.raises(StoreError, match="holds NaN"):
        open_paths(tmp_path / "p").verify()


def test_what_is_missing_from_a_store_is_named(tmp_path, graph):
    fill(begin(tmp_path / "p", graph))
    attributes = tmp_path / "p" / "zarr.json"
    content = json.loads(attributes.read_text())
    del content["attributes"]["together"]
    attributes.write_text(json.dumps(content))
    with pytest.raises(StoreError, match="the attribute `together` is missing"):
        open_paths(tmp_path / "p")
    fill(begin(tmp_path / "q", graph))
    (tmp_path / "q" / "predecessors" / "zarr.json").unlink()
    with pytest.raises(StoreError, match="the array `predecessors` is missing"):
        open_paths(tmp_path / "q")
