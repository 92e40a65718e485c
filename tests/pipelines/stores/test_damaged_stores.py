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
import zarr

from pipelines.analysis.measures import measures
from pipelines.pictures.distances import picture_distances
from pipelines.routes.paths import shortest_path
from pipelines.stores.contents import writable_array
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.hierarchy import open_hierarchy
from pipelines.stores.schema import kind_of, open_store, store_schema
from tilepath.cli.describe import store_facts, store_info

NAMES = "graph distances rows part-distances part-searched paths one part-paths nearest samples codebook part-codebook"
NAMES = (*NAMES.split(), "mapping", "part-mapping")  # also as version 0.1 made them
NEWER = ("unweighted", "lines", "hierarchy", "part-hierarchy", "matrix", "part-matrix", "circuits")
EVERY = NAMES + NEWER
ONE_CHUNK = {"hierarchy", "part-hierarchy"}  # whose arrays are never cut into chunks
HIERARCHY_ARRAYS = ("order", "starts", "roots", "out", "entering_ends", "leaving_lengths", "beside_starts")
READS = {  # what reads an array, by its name
    "graph/1": {
        "indptr": lambda graph: graph.indptr(),
        "indices": lambda graph: graph.rows()[1],
        "weights": lambda graph: graph.rows()[2],
        "labels": lambda graph: graph.labels(),
        "coordinates": lambda graph: graph.coordinates(),
        "through": lambda graph: graph.through(),
        "arc_lines": lambda graph: graph.lines(),
        "line_offsets": lambda graph: graph.lines(),
        "line_points": lambda graph: graph.lines(),
    },
    "distances/2": {"distances": lambda distances: list(distances.blocks())},
    "paths/1": {"distances": lambda paths: paths.distances(), "predecessors": lambda paths: paths.predecessors()},
    "hierarchy/1": {
        name: lambda kept: open_hierarchy(kept.path).between(range(5), range(5)) for name in HIERARCHY_ARRAYS
    },
    "matrix/2": {
        "distances": lambda matrix: matrix[:],
        "origin": lambda matrix: matrix.names()[0],
        "destination": lambda matrix: matrix.names()[1],
    },
    "circuits/1": {"arcs": lambda circuits: circuits.arcs(), "offsets": lambda circuits: circuits.offsets()},
    "samples/1": {
        "values": lambda samples: samples.values(),
        "weights": lambda samples: samples.weights(),
        "labels": lambda samples: samples.labels(),
        "label_names": lambda samples: samples.label_names(),
    },
    "codebook/1": {
        "codebooks": lambda codebook: codebook.units(),
        "hits": lambda codebook: codebook.hits(),
    },
    "mapping/1": {
        "units": lambda mapping: mapping.units(),
        "distances": lambda mapping: mapping.distances(),
        "weights": lambda mapping: mapping.weights(),
    },
}


def outcome(path):
    """Everything that is told of a store, as text."""
    kind = kind_of(path)
    progress = kind.progress(path)
    if not progress.finished:
        kind.begun(path).verify()
        return repr((progress, open_store(path).attrs.asdict()))
    store = kind.open(path)
    store.describe()
    told = [getattr(store, field.name) for field in fields(store) if not field.name.endswith("path")]
    told += [read(store) for read in READS[store_schema(path)].values()]
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


def copy_of_another_store(rng, files):
    """A chunk of a store beside this one, whose array has the same name, over the chunk in its place."""
    chunk = rng.choice([file for file in files if file.name != "zarr.json"])
    store = next(folder for folder in chunk.parents if folder.name == "victim")
    others = sorted(store.parent.glob(f"*/{chunk.relative_to(store)}"))
    chunk.write_bytes(rng.choice(others).read_bytes())


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
        "checkpoint-0",
        "int32",
        "../graph",
    ]
    others += [[], [0], [[0, 1]], [[0, 3]], ["a", "b"], {}, {"slot": "checkpoint-0", "stage": 1}, {"slot": 3}, 10**400]
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
    copy_of_another_store,
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


@pytest.mark.parametrize("count", [75, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_damage_is_an_error_or_changes_nothing(tiny_stores, count):
    whole = {name: outcome(tiny_stores / name) for name in EVERY}
    rng = random.Random(count)
    found = [play(tiny_stores, name, rng.randrange(2**32), whole[name]) for name in (EVERY * count)[:count]]
    assert sum(told == "same" for told in found) < count / 5  # such as a bit of an attribute that Zarr alone reads


# One by one


def copy_of(tiny_stores, tmp_path, name):
    """A copy beside a copy of the graph, as results find their graph."""
    for each in {"graph", name}:
        shutil.copytree(tiny_stores / each, tmp_path / each)
    return tmp_path / name


def chunks_of(store):
    return sorted(file for file in store.rglob("*") if file.is_file() and file.name != "zarr.json")


@pytest.mark.parametrize("name", [name for name in EVERY if "part" not in name])
def test_a_missing_chunk_is_never_read_as_its_fill_value(tiny_stores, tmp_path, name):
    path = copy_of(tiny_stores, tmp_path, name)
    store = kind_of(path).open(path)
    for array, read in READS[store_schema(path)].items():
        read(store)
        if not (path / array).exists():  # an optional array
            continue
        chunk = chunks_of(path / array)[-1]
        content = chunk.read_bytes()
        chunk.unlink()
        with pytest.raises(StoreError, match=rf"{path}/{array}: the chunk c/.* is missing; .*(again|recreate)"):
            read(store)
        with pytest.raises(StoreError, match=rf"{path}: 1 of \d+ chunks are missing in `{array}`; recreate the store"):
            store.verify()
        chunk.write_bytes(content)
    store.verify()


def test_commands_do_not_take_a_missing_chunk_for_unreachable(tiny_stores, tmp_path):
    path = copy_of(tiny_stores, tmp_path, "distances")
    chunks_of(path / "distances")[-1].unlink()
    store = kind_of(path).open(path)
    for command in (
        measures,
        lambda of: shortest_path(of, "#4", "#3"),
        lambda of: picture_distances(of, tmp_path / "p.png"),
    ):
        with pytest.raises(StoreError, match="is missing"):
            command(store)


@pytest.mark.parametrize(
    "name", sorted({*EVERY} - {"graph", "unweighted", "lines", "one", "nearest", "part-mapping"} - ONE_CHUNK)
)
def test_a_copy_of_one_chunk_over_another_is_found(tiny_stores, tmp_path, name):
    path = copy_of(tiny_stores, tmp_path, name)
    list(store_info(path, verify=True))
    arrays = [chunks_of(file.parent) for file in path.glob("*/zarr.json")]
    pairs = [(chunks[i], chunks[i - 1]) for chunks in arrays for i in range(len(chunks)) if len(chunks) > 1]
    pairs = [(first, second) for first, second in pairs if first.read_bytes() != second.read_bytes()]
    assert pairs
    for first, second in pairs:
        kept = second.read_bytes()
        second.write_bytes(first.read_bytes())
        with pytest.raises(StoreError, match=str(path)):
            list(store_info(path, verify=True))
        second.write_bytes(kept)


def other_values(path, name, change):
    """Rewrite an array, with checksums that are right."""
    array = zarr.open_group(path)[name]
    values = array[:]
    change(values)
    array[:] = values


@pytest.mark.parametrize(
    ("name", "array", "change"),
    [
        ("graph", "labels", lambda v: v.__setitem__(1, "z")),
        ("graph", "coordinates", lambda v: v.__setitem__((0, 0), 7)),
        ("lines", "line_points", lambda v: v.__setitem__((0, 0), 7)),
        ("rows", "sources", lambda v: v.__setitem__(0, 2)),
        ("paths", "sources", lambda v: v.__setitem__(0, 0)),
        ("part-paths", "sources", lambda v: v.__setitem__(0, 0)),
        ("samples", "label_names", lambda v: v.__setitem__(0, "z")),
        ("samples", "labels", lambda v: v.__setitem__(0, 1)),
        ("codebook", "hits", lambda v: v.__setitem__(0, 9)),
        ("mapping", "units", lambda v: v.__setitem__((0, 0), 1)),
        ("part-distances", "checkpoint-1", lambda v: v.__setitem__((0, 1), 9)),
        ("hierarchy", "order", lambda v: v.__setitem__(0, 7)),
        ("part-hierarchy", "starts", lambda v: v.__setitem__(1, 3)),
    ],
)
def test_arrays_that_were_changed_are_found(tiny_stores, tmp_path, name, array, change):
    path = copy_of(tiny_stores, tmp_path, name)
    other_values(path, array, change)
    with pytest.raises(StoreError, match=rf"{path}: a chunk of `{array}` is not the one written there"):
        list(store_info(path, verify=True))


@pytest.mark.parametrize(
    ("name", "array", "value"),
    [
        ("graph", "indptr", 6),  # of 5 arcs
        ("graph", "indptr", -1),
        ("graph", "indptr", 2),  # in its first place: it no longer rises from 0
        ("graph", "indices", 5),
        ("graph", "indices", -1),
        ("graph", "weights", -7),
        ("paths", "predecessors", 5),
        ("paths", "predecessors", -2),
        ("circuits", "arcs", 5),
        ("circuits", "offsets", 1),
        ("samples", "labels", 2),
        ("mapping", "units", 6),
    ],
)
def test_no_value_leads_outside_what_it_is_an_index_of(tiny_stores, tmp_path, name, array, value):
    path = copy_of(tiny_stores, tmp_path, name)
    other_values(path, array, lambda values: values.__setitem__((0,) * values.ndim, value))
    store = kind_of(path).open(path)
    for look in READS[store_schema(path)][array], lambda store: store.verify():
        with pytest.raises(StoreError, match=rf"{path}.*`?{array}.*(holds|rise from).*(again|recreate)"):
            look(store)


@pytest.mark.parametrize(
    ("name", "attribute", "value"),
    [
        ("nearest", "targets", [1, 2]),
        ("nearest", "cutoff", 4.0),
        ("graph", "weight_unit", "km"),
        ("rows", "graph", {"path": "/elsewhere", "relative": "../graph", "digest": "0"}),
        ("samples", "scaling", {"kind": "zscore", "offsets": [0.0, 0.0], "factors": [1.0, 1.0]}),
        ("samples", "columns", ["y", "x"]),
        ("codebook", "metric", "cosine"),
        ("mapping", "grid", {"rows": 3, "columns": 2, "hexagonal": True, "toroidal": False}),
        ("part-paths", "done", [[0, 1]]),
        ("part-codebook", "sigmas", [3.0, 2.0, 1.0]),
    ],
)
def test_attributes_that_were_changed_are_found(tiny_stores, tmp_path, name, attribute, value):
    path = copy_of(tiny_stores, tmp_path, name)
    zarr.open_group(path).attrs[attribute] = value
    with pytest.raises(StoreError, match=str(path)):
        list(store_info(path, verify=True))


def test_an_array_that_reads_otherwise_is_found(tiny_stores, tmp_path):
    path = copy_of(tiny_stores, tmp_path, "distances")
    about = path / "distances" / "zarr.json"
    about.write_text(about.read_text().replace('"little"', '"big"'))
    with pytest.raises(StoreError, match="the attributes differ from those recorded"):
        kind_of(path).open(path).verify()


def test_an_array_that_is_gone_is_missed(tiny_stores, tmp_path):
    gone = (
        ("graph", "weights"),
        ("graph", "through"),
        ("lines", "line_points"),
        ("graph", "labels"),
        ("rows", "sources"),
        ("samples", "labels"),
    )
    for name, array in gone:
        path = copy_of(tiny_stores, tmp_path / f"{name}-{array}", name)
        shutil.rmtree(path / array)
        with pytest.raises(StoreError, match=f"the array `{array}` is missing; the store is damaged; recreate it"):
            kind_of(path).open(path)


def test_a_graph_does_not_become_unweighted_by_damage(tmp_path):
    """The array and its record are gone, so that the store opens as an unweighted one."""
    write_graph(tmp_path / "g", np.arange(3), np.array([1, 0]), np.array([2, 3], "int32"))
    shutil.rmtree(tmp_path / "g" / "weights")
    group = zarr.open_group(tmp_path / "g")
    group.attrs["contents"] = {name: value for name, value in group.attrs["contents"].items() if name != "weights"}
    graph = open_graph(tmp_path / "g")
    assert not graph.weighted
    with pytest.raises(StoreError, match="contents do not match the recorded digest"):
        graph.verify()


def test_what_was_verified_is_said(tiny_stores):
    assert list(store_info(tiny_stores / "graph", verify=True))[-1] == (
        "checked: every chunk of indptr, indices, weights, coordinates, labels and through (6 in all); the digest of "
        "the graph; that each chunk is the one written there; the attributes"
    )
    part = list(store_info(tiny_stores / "part-paths", verify=True))
    assert "unfinished paths, 2 of 3 rows done" in part[0]
    assert part[-1].startswith(
        "checked: every chunk of distances, predecessors, sources, source and target (7 in all); "
    )
    facts = store_facts(tiny_stores / "part-codebook", verify=True)
    assert (facts["complete"], facts["done"], facts["total"], facts["unit"]) == (False, 1, 3, "epochs")
    assert facts["verified"]["checked"][0] == "every chunk of codebooks and sigmas (3 in all)"
    assert "sigmas" not in facts["attributes"]  # every commit would write them again


def test_a_run_does_not_go_on_from_a_state_that_is_not_the_one_committed(tiny_stores, tmp_path):
    path = copy_of(tiny_stores, tmp_path, "part-distances")
    chunks = chunks_of(path / "checkpoint-1")
    shutil.copyfile(chunks[0], chunks[1])
    with pytest.raises(StoreError, match="a chunk of `checkpoint-1` is not the one written there"):
        DistancesWriter.resume(path, open_graph(tmp_path / "graph"))


@pytest.mark.parametrize(
    ("name", "attribute", "value"),
    [
        ("distances", "committed", 5),
        ("distances", "committed", {"slot": "../graph", "stage": 1}),
        ("distances", "committed", {"stage": 1}),
        ("distances", "committed", None),
        ("distances", "dtype", "(f4,"),
        ("distances", "graph", "g.zarr"),
        ("part-distances", "committed", {"slot": "checkpoint-1", "stage": 9}),
        ("part-distances", "stages", "many"),
        ("paths", "targets", ["a"]),
        ("paths", "cutoff", "far"),
        ("paths", "together", "no"),
        ("part-paths", "done", [[0, 9]]),
        ("part-paths", "done", 3),
        ("hierarchy", "done", 2),
        ("hierarchy", "cost", {"nodes": "many"}),
        ("hierarchy", "bound", 7),
        ("hierarchy", "dtype", "complex64"),
        ("part-hierarchy", "done", 9),
        ("part-hierarchy", "plan", None),
        ("graph", "weight_dtype", "(2,)f4"),
        ("graph", "contents", [1]),
        ("samples", "largest_weight", "heavy"),
        ("samples", "origins", [[5]]),
        ("codebook", "committed", "all"),
        ("codebook", "options", 1),
        ("part-codebook", "sigmas", None),
        ("mapping", "samples", {"path": 3}),
        ("part-mapping", "n", "four"),
    ],
)
def test_damaged_attributes_are_named(tiny_stores, tmp_path, name, attribute, value):
    path = copy_of(tiny_stores, tmp_path, name)
    zarr.open_group(path).attrs[attribute] = value
    with pytest.raises(StoreError, match=rf"{path}.*(again|recreate)"):
        outcome(path)


def test_a_hierarchy_without_its_seal_is_damaged(tiny_stores, tmp_path):
    path = copy_of(tiny_stores, tmp_path, "hierarchy")
    del zarr.open_group(path).attrs["seal"]
    with pytest.raises(StoreError, match=rf"{path}.*seal.*again"):
        open_hierarchy(path)


@pytest.mark.parametrize("word", ["blosc", "bytes", "crc32c"])
@pytest.mark.parametrize("name", ["codebook", "part-codebook", "part-mapping", "part-paths"])
def test_an_array_whose_codec_is_unknown_is_named_by_who_writes_it(tiny_stores, tmp_path, name, word):
    path = copy_of(tiny_stores, tmp_path, name)
    for about in sorted(path.glob("*/zarr.json")):
        text = about.read_text()
        if f'"name": "{word}"' not in text:
            continue
        for other in ("gzip", word[:-1] + chr(ord(word[-1]) ^ 1)):
            about.write_text(text.replace(f'"name": "{word}"', f'"name": "{other}"'))
            with pytest.raises(StoreError, match=rf"{path}: the array `{about.parent.name}` is damaged .*recreate"):
                writable_array(str(path), about.parent.name)
        about.write_text(text)


def test_chunks_of_no_length_are_damage(tiny_stores, tmp_path):
    path = copy_of(tiny_stores, tmp_path, "codebook")
    about = path / "codebooks" / "zarr.json"
    facts = json.loads(about.read_text())
    facts["chunk_grid"]["configuration"]["chunk_shape"][0] = 0
    about.write_text(json.dumps(facts))
    with pytest.raises(StoreError, match=f"{path}.*codebooks.* is damaged"):  # in the words of Zarr's version
        list(store_info(path, verify=True))


def test_the_names_of_labels_are_verified(tiny_stores, tmp_path):
    path = copy_of(tiny_stores, tmp_path, "samples")
    assert "every chunk of values, weights, labels and label_names" in list(store_info(path, verify=True))[2]
    zarr.open_array(path / "label_names", mode="r+")[:] = np.array(["virginica", "setosa"], object)
    with pytest.raises(StoreError, match="a chunk of `label_names` is not the one written there"):
        list(store_info(path, verify=True))
