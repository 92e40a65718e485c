"""Damaged stores of every schema: a StoreError that names the store, or what was written, and never anything else.

`outcome` is what a user can do with a store: open it, read all of it, and verify it. The campaign plays random
damage on copies of `tiny_stores`; `pytest -m slow` runs the long one.
"""

import json
import random
import shutil
from dataclasses import fields

import numpy as np
import pytest

from pipelines.store_info import kind_of
from pipelines.stores import StoreError
from pipelines.stores.schema import open_store, store_schema

NAMES = "graph distances rows part-distances part-searched paths part-paths nearest samples codebook part-codebook"
NAMES = (*NAMES.split(), "mapping", "part-mapping")
ARRAYS = {
    "graph/1": ("indptr", "rows", "labels", "coordinates", "through"),
    "distances/1": ("blocks",),
    "paths/1": ("distances", "predecessors"),
    "samples/1": ("values", "weights", "labels", "label_names"),
    "codebook/1": ("units", "hits"),
    "mapping/1": ("units", "distances"),
}


def outcome(path):
    """Everything that is told of a store, as text."""
    kind, schema = kind_of(path), store_schema(path)
    progress = kind.progress(path)
    if progress[0] < progress[1]:
        kind.verify_part(path)
        return repr((progress, open_store(path).attrs.asdict()))
    store = kind.open(path)
    kind.describe(store)
    told = [getattr(store, field.name) for field in fields(store) if not field.name.endswith("path")]
    for name in ARRAYS[schema]:
        found = getattr(store, name)()
        told.append(list(found) if name == "blocks" else found)
    store.verify()
    return repr(_plain(told))


def _plain(value):
    """With every entry of arrays, and sets in order."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tolist()
    if isinstance(value, frozenset):
        return sorted(value)
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


# Damage: each changes the files of a store, drawn by a generator of random numbers.


def flip(rng, files):
    """One bit, or a few bytes."""
    file = rng.choice(files)
    content = bytearray(file.read_bytes())
    for _ in range(rng.choice([1, 1, 8])):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    file.write_bytes(content)


def truncate(rng, files):
    file = rng.choice(files)
    file.write_bytes(file.read_bytes()[: rng.randrange(file.stat().st_size)])


def delete(rng, files):
    rng.choice(files).unlink()


def delete_array(rng, files):
    shutil.rmtree(rng.choice([file.parent for file in files if file.name == "zarr.json"][1:]))


def copy_over(rng, files):
    """One chunk over another, most of them of the same array."""
    chunks = [file for file in files if file.name != "zarr.json"]
    source = rng.choice(chunks)
    kin = [file for file in chunks if file.parts[-4] == source.parts[-4] or rng.random() < 0.1]
    rng.choice(kin).write_bytes(source.read_bytes())


def swap(rng, files):
    first, second = rng.sample(files, 2)
    kept = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(kept)


def replace_with_folder(rng, files):
    file = rng.choice(files)
    file.unlink()
    file.mkdir()


def edit_json(rng, files):
    """Remove a value of the attributes or of the metadata, or put another in its place."""
    file = rng.choice([file for file in files if file.name == "zarr.json"])
    document = json.loads(file.read_text())
    holder = document["attributes"] if document["attributes"] and rng.random() < 0.8 else document
    while True:
        key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        if not (isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.6):
            break
        holder = holder[key]
    others = [
        None,
        True,
        False,
        -1,
        0,
        1,
        2,
        3,
        10**9,
        2.5,
        float("nan"),
        "",
        "x",
        "float64",
        "slot-0",
        "int32",
        "../graph",
    ]
    others += [[], [0], [[0, 1]], [[0, 3]], ["a", "b"], {}, {"slot": "slot-0", "stage": 1}, {"slot": 3}, 10**400]
    if rng.random() < 0.2:
        del holder[key]
    else:
        holder[key] = rng.choice(others)
    file.write_text(json.dumps(document))


DAMAGE = (
    flip,
    flip,
    truncate,
    delete,
    delete_array,
    copy_over,
    copy_over,
    swap,
    replace_with_folder,
    edit_json,
    edit_json,
)


def play(folder, name, seed, whole):
    """Damage a copy of a store and look at it: "same", or the error; AssertionError if it tells anything else."""
    victim = folder / "victim"
    shutil.rmtree(victim, ignore_errors=True)
    shutil.copytree(folder / name, victim)
    rng = random.Random(seed)
    damage = rng.choice(DAMAGE)
    damage(rng, sorted(file for file in victim.rglob("*") if file.is_file()))
    case = f"{name}, seed {seed}, {damage.__name__}"
    try:
        told = outcome(victim)
    except Exception as error:
        if not isinstance(error, StoreError) or str(victim) not in str(error) or "\n" in str(error):
            raise AssertionError(f"{case}: {error!r}") from error
        return str(error)
    assert told == whole, f"{case}: other values without an error"
    return "same"


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_damage_is_an_error_or_changes_nothing(tiny_stores, count):
    whole = {name: outcome(tiny_stores / name) for name in NAMES}
    rng = random.Random(count)
    found = [play(tiny_stores, name, rng.randrange(2**32), whole[name]) for name in (NAMES * count)[:count]]
    assert sum(told == "same" for told in found) < count / 5  # such as a bit of an attribute that Zarr alone reads
