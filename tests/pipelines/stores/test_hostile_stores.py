"""Stores that claim more than they have, expand to gigabytes or lead elsewhere are refused before memory is taken."""

import json
import os
import pickle
import shutil
import struct
import tracemalloc

import google_crc32c
import numcodecs
import numpy as np
import pytest
from commands import invoke

from pipelines.stores.declared import origin_path
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.origin import OfGraph
from pipelines.stores.schema import kind_of

HUGE = 2**60
GIB = 1 << 30


@pytest.fixture
def graph(tmp_path):
    """The path of a graph store."""
    write_graph(tmp_path / "g", np.arange(4), np.array([1, 2, 0]), np.array([2, 3, 4.5]), labels=["a", "b", "c"])
    return tmp_path / "g"


@pytest.fixture(autouse=True)
def little_memory():
    """No test may take memory for what a store claims."""
    tracemalloc.start()
    yield
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100 << 20


def edited(file, edit):
    document = json.loads(file.read_text())
    edit(document)
    file.write_text(json.dumps(document))


def chunk_of(store, array):
    return next(file for file in (store / array / "c").rglob("*") if file.is_file())


def write(file, content):
    """A chunk whose checksum is right."""
    file.write_bytes(content + google_crc32c.value(content).to_bytes(4, "little"))


def everything(path):
    """Open a store, read all of it, and verify it."""
    store = kind_of(path).open(path)
    store.rows(), store.labels(), store.verify()


@pytest.mark.parametrize("n", [HUGE, 2**36])
@pytest.mark.parametrize("chunk", [None, 2**40])
def test_a_graph_that_claims_many_vertices(graph, n, chunk):
    def claim(length):
        def edit(array):
            array["shape"] = [length]
            if chunk:
                array["chunk_grid"]["configuration"]["chunk_shape"] = [chunk]

        return edit

    edited(graph / "zarr.json", lambda group: group["attributes"].update(n=n, m=n))
    for array, length in (("indptr", n + 1), ("indices", n), ("weights", n), ("labels", n)):
        edited(graph / array / "zarr.json", claim(length))
    for call in (open_graph, everything):
        with pytest.raises(StoreError, match=rf"{graph}.*(chunk|damaged)"):
            call(graph)
    for command in (["info"], ["info", "--verify"], ["components"]):
        result = invoke(*command, graph)
        assert isinstance(result.exception, StoreError | SystemExit), result.exception
        assert "Traceback" not in result.output


@pytest.mark.parametrize("array", ["indices", "weights"])
def test_a_chunk_that_expands_to_gigabytes(graph, array):
    """2 KiB that Blosc expands to 512 KiB, and a header that says 2 GiB."""
    bomb = bytes(numcodecs.Blosc(cname="lz4").encode(np.zeros(512 << 10, np.uint8)))
    claim = bomb[:4] + struct.pack("<I", 2**31 - 17) + bomb[8:]
    for content in (bomb, claim):
        write(chunk_of(graph, array), content)
        with pytest.raises(StoreError, match=rf"{graph}/{array}.*would expand to [\d,]+ bytes, but its array has"):
            everything(graph)


def test_texts_that_expand_to_more_than_the_memory(graph, monkeypatch):
    monkeypatch.setattr("pipelines.stores.chunk_limits.available_memory", lambda: 1 << 20)
    assert open_graph(graph).labels().tolist() == ["a", "b", "c"]
    for size in (1 << 20, 60_000, 200):  # whose lengths a frame states in 4, 2 bytes and 1
        write(chunk_of(graph, "labels"), numcodecs.Zstd().encode(np.zeros(size + 1, np.uint8)))
        expected = "would expand to 1,048,577 bytes, but 1,048,576 are free" if size == 1 << 20 else "damaged"
        with pytest.raises(StoreError, match=rf"{graph}/labels.*{expected}"):
            open_graph(graph).labels()


def test_a_frame_that_does_not_state_its_size(graph):
    content = bytearray(numcodecs.Zstd().encode(b"x" * 100))
    content[4] &= 0b00011111  # no size; with a window instead of a single segment
    write(chunk_of(graph, "labels"), bytes(content))
    with pytest.raises(StoreError, match="would expand to an unknown number of bytes"):
        open_graph(graph).labels()


def sparse(file):
    file.touch()
    os.truncate(file, 64 * GIB)


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda file: file.symlink_to("/dev/zero"), "is a device or a pipe"),
        (os.mkfifo, "is a device or a pipe"),
        (sparse, "has 68,719,476,736 bytes"),
    ],
)
def test_a_chunk_without_end(graph, make, fault):
    chunk = chunk_of(graph, "indices")
    chunk.unlink()
    make(chunk)
    with pytest.raises(StoreError, match=rf"{graph}/indices/c/0: .*{fault}"):
        open_graph(graph).rows()


@pytest.mark.parametrize("array", ["", "indices"])
def test_metadata_that_is_a_pipe(graph, array):
    about = graph / array / "zarr.json"
    about.unlink()
    os.mkfifo(about)
    with pytest.raises(StoreError, match="(is not a file|is missing); the store is damaged; recreate it"):
        open_graph(graph)


@pytest.mark.parametrize("where", ["/", "/etc", "..", "rmat:30:seed=1", "rmat:40:seed=1", "/dev/zero"])
def test_a_result_whose_graph_is_elsewhere(graph, tmp_path, where):
    """A result names its graph. Another store is not taken for it, and nothing of that is read but its digest."""
    shutil.copytree(graph, tmp_path / "result")
    origin = {"path": where, "relative": where, "digest": open_graph(graph).digest}
    found = OfGraph()
    found.path, found.graph_path = str(tmp_path / "result"), origin_path(tmp_path / "result", origin)
    found.graph_digest = origin["digest"]
    with pytest.raises(ValueError, match="no longer at|another graph|not a Zarr 3 group|scale of 30 at most"):
        found.graph()


@pytest.mark.parametrize("name", ["../other", "/etc", "a/b", ".."])
def test_arrays_outside_of_the_store(graph, name):
    edited(graph / "zarr.json", lambda group: group["attributes"]["contents"].update({name: "0"}))
    with pytest.raises(
        StoreError, match=rf"{graph}: the attributes are damaged \(the array '.*' is not within the store"
    ):
        open_graph(graph)


def test_links_within_a_store_are_neither_followed_nor_deleted_with_what_they_lead_to(graph, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "x.partial").write_text("x")
    (graph / "link").symlink_to(kept)
    (graph / "old.partial").symlink_to(kept)
    write_graph(graph, np.array([0, 1]), np.array([0]), np.array([2.0]), overwrite=True)
    assert (kept / "x.partial").read_text() == "x"
    assert open_graph(graph).n == 1


@pytest.mark.parametrize("codec", ["numcodecs.pickle", "pickle"])
def test_no_pickle_is_loaded_from_a_store(graph, tmp_path, codec):
    class Planted:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "planted"),))

    def edit(array):
        array["codecs"].insert(1, {"name": codec, "configuration": {}})

    edited(graph / "labels" / "zarr.json", edit)
    write(chunk_of(graph, "labels"), pickle.dumps(Planted()))
    with pytest.raises(StoreError, match=rf"{graph}.*labels"):
        everything(graph)
    assert not (tmp_path / "planted").exists()
