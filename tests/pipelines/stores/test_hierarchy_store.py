"""The hierarchy store: its schema as data, arrays that processes share, and damage that every reader finds."""

import mmap
import re
import shutil
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore

from gpuops.hierarchy import HierarchyStructure
from pipelines.stores import hierarchy
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.stores.hierarchy import DECLARED, STRUCTURE, create_hierarchy, open_hierarchy

RING = (np.arange(5)[None] - np.arange(5)[:, None]) % 5


@pytest.fixture
def store(tiny_stores, tmp_path):
    for name in "graph", "hierarchy":
        shutil.copytree(tiny_stores / name, tmp_path / name)
    return tmp_path / "hierarchy"


def test_the_store_has_the_arrays_of_the_schema_and_plain_zarr_reads_them(store):
    opened = open_hierarchy(store)
    through = np.array([True, True, True, True, False])
    expected = np.full((5, 5), np.inf)
    for start in range(5):  # along the ring, until the closed vertex is behind
        for steps in range(5):
            end = (start + steps) % 5
            expected[start, end] = steps
            if steps and not through[end]:
                break
    np.testing.assert_array_equal(opened.between(range(5), range(5)), expected)
    group = zarr.open_group(store, mode="r")
    absent = "elimination", "potentials"
    declared = {each.name for each in DECLARED.arrays if each.name not in absent}
    assert {name for name, _ in group.arrays()} == declared
    np.testing.assert_array_equal(group["order"][:], opened.hierarchy.structure.order)
    assert group["leaving_ends"].metadata.dimension_names == ("leaving",)


def test_an_array_is_opened_once_to_check_the_store_and_once_to_map_it(store, monkeypatch):
    read, get = [], LocalStore.get

    async def counting(self, key, *arguments, **options):
        read.append(str(self.root / key))
        return await get(self, key, *arguments, **options)

    monkeypatch.setattr(LocalStore, "get", counting)
    assert open_hierarchy(store).hierarchy.structure.order.size == 5
    for name in ("order", "front", "out", "leaving_ends"):
        assert read.count(str(store / name / "zarr.json")) == 2, name


def test_the_documentation_lists_the_arrays():
    told = set(re.findall(r"^(\w+) ", hierarchy.__doc__.partition("===\n")[2], re.MULTILINE))
    assert {each.name for each in DECLARED.arrays if not each.name.startswith(("entering", "beside"))} <= told
    assert {field.name for field in fields(HierarchyStructure)} == {*STRUCTURE}


def test_arrays_are_mapped_files_that_stay_as_they_are(store):
    tables = open_hierarchy(store).hierarchy
    memory = tables.out
    while isinstance(memory, np.ndarray):
        memory = memory.base
    assert isinstance(getattr(memory, "obj", memory), mmap.mmap)
    assert str(store / "out" / "c" / "0") in Path("/proc/self/maps").read_text()
    tables.out[:] = 7  # in this process alone
    assert open_hierarchy(store).between([0], [1]) == 1


@pytest.mark.parametrize("name", ["order", "starts", "out", "entering_lengths"])
def test_values_of_another_writer_are_found_when_they_are_read(store, name):
    array = zarr.open_group(store)[name]
    array[:] = np.roll(array[:], 1) + 1
    with pytest.raises(StoreError, match=rf"{store}: a chunk of `{name}` is not the one written there; recreate"):
        open_hierarchy(store).between([0], [1])


def test_a_damaged_or_short_chunk_is_found(store):
    chunk = store / "out" / "c" / "0"
    content = chunk.read_bytes()
    for damaged in (b"", content[:-1], content + b"x", bytes([content[0] ^ 1]) + content[1:]):
        chunk.write_bytes(damaged)
        with pytest.raises(StoreError, match=rf"{chunk}: the chunk is damaged .*recreate the store"):
            open_hierarchy(store).between([0], [1])


def test_lengths_that_do_not_belong_together_are_found(store):
    about = store / "front_starts" / "zarr.json"
    about.write_text(about.read_text().replace('"shape":[2]', '"shape":[3]').replace("[\n    2\n  ]", "[3]"))
    with pytest.raises(StoreError, match=r"array `front_starts` is int64 \(3,\), expected int64 \(2,\)"):
        open_hierarchy(store)


def test_an_unfinished_store_names_the_command(tiny_stores):
    with pytest.raises(StoreError, match="2 of 3 steps done; repeat `tilepath hierarchy .*graph .*part-hierarchy`"):
        open_hierarchy(tiny_stores / "part-hierarchy")
    with pytest.raises(StoreError, match=r"is a distances store .*; `tilepath hierarchy GRAPH STORE` makes one"):
        open_hierarchy(tiny_stores / "distances")


def test_a_dtype_that_is_none_is_found(store):
    path = store / "zarr.json"
    path.write_text(path.read_text().replace('"dtype": "float32"', '"dtype": "x"', 1))
    with pytest.raises(StoreError, match="damaged"):
        open_hierarchy(store)


@pytest.mark.parametrize("replaces", [False, True])
def test_a_commit_that_is_made_twice_counts_once(tiny_stores, tmp_path, replaces):
    """By a task of an attempt that was given up, and by the next attempt, which also finds the store where it grew."""
    finished = open_hierarchy(tiny_stores / "hierarchy").hierarchy
    if replaces:
        shutil.copytree(tiny_stores / "hierarchy", tmp_path / "h")
    options = {"dtype": np.dtype("float32"), "options": {}, "overwrite": replaces}
    run = create_hierarchy(tmp_path / "h", open_graph(tiny_stores / "graph"), **options)
    order = finished.structure.order
    for _ in range(2):
        run.commit_order(order, None)
    for _ in range(2):
        run.commit_structure(finished.structure, open_hierarchy(tiny_stores / "hierarchy").cost)
    for _ in range(2):
        run.complete(finished)
        assert run.done() == 3
    open_hierarchy(run.path).verify()
