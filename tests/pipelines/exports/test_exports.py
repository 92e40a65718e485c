"""Stores as files of other formats: what is read back is what the store holds, and nothing half written stays."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse as sp
from commands import invoke
from path_rows import write_rows
from tiny_stores import tiny_stores as tiny_stores

import pipelines
from gpuops.numbers import outside_infinity
from pipelines import exports
from pipelines.stores.circuits import open_circuits
from pipelines.stores.codebook import open_codebook
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.mapping import open_mapping
from pipelines.stores.paths import create_paths
from pipelines.stores.samples import open_samples, write_samples

LABELS = np.array(["3", "0", "Ulm, west", "1"])
ARCS = [0, 1, 2], [1, 2, 3], [0.1, 0.2, 2.5e9]


@pytest.fixture
def stores(solve):
    """The graph, the distances and the paths from 0 and 2, of a lane of four vertices."""
    distances, graph = solve(4, ARCS, "float64", labels=LABELS)
    place = distances.path.replace("distances", "paths")
    run = create_paths(place, graph, dtype="float64", sources=[0, 2], chunk=2)
    write_rows(run, 0, distances[:][[0, 2]], np.array([[-1, 0, 1, 2], [-1, -1, -1, 2]], np.int32))
    run.record(np.ones(2, bool))
    return graph, distances, pipelines.open_paths(place)


def table(path):
    return pa.parquet.read_table(path) if path.suffix == ".parquet" else pa.csv.read_csv(path)


@pytest.fixture(params=[1, 1 << 20], ids=["small pieces", "one piece"])
def _pieces(request, monkeypatch):
    monkeypatch.setattr(exports, "_PIECE", request.param)


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".parquet"])
def test_tables_of_pairs_and_arcs(tmp_path, stores, suffix):
    graph, distances, paths = stores
    for store, expected in (
        (graph, [("3", "0", 0.1), ("0", "Ulm, west", 0.2), ("Ulm, west", "1", 2.5e9)]),
        (distances, [(LABELS[s], LABELS[t], distances[s, t]) for s in range(4) for t in range(s, 4)]),
        (
            paths,
            [(LABELS[0], LABELS[t], distances[0, t], LABELS[t - 1] if t else None) for t in range(4)]
            + [("Ulm, west", "Ulm, west", 0.0, None), ("Ulm, west", "1", 2.5e9, "Ulm, west")],
        ),
    ):
        out = tmp_path / f"{store.path.rpartition('/')[2]}{suffix}"
        assert pipelines.export_store(store.path, out) == len(expected)
        if suffix == ".tsv.gz":
            options = pa.csv.ParseOptions(delimiter="\t")
            found = pa.csv.read_csv(pa.input_stream(str(out), compression="gzip"), parse_options=options)
        else:
            found = table(out)
        rows = [tuple(None if value == "" else value for value in row.values()) for row in found.to_pylist()]
        assert [tuple(map(str, row)) for row in rows] == [tuple(map(str, row)) for row in expected]
        names = ["source", "target", "weight" if store is graph else "distance", "predecessor"]
        assert found.column_names == names[: len(expected[0])]


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int16"])
def test_arrays_and_matrix_market(tmp_path, solve, dtype):
    rng = np.random.default_rng(0)
    arcs = rng.integers(0, 40, 60), rng.integers(0, 40, 60), rng.integers(1, 9, 60)
    distances, graph = solve(40, arcs, dtype)
    assert pipelines.export_store(distances.path, tmp_path / "d.npy") == 40
    array = np.load(tmp_path / "d.npy")
    assert array.dtype == dtype
    np.testing.assert_array_equal(array, distances[:])

    reached = array != outside_infinity(dtype)
    assert pipelines.export_store(distances.path, tmp_path / "d.mtx") == reached.sum()
    found = scipy.io.mmread(tmp_path / "d.mtx", spmatrix=False)
    assert found.shape == (40, 40)
    np.testing.assert_array_equal(found.toarray()[reached], array[reached])
    assert sorted(zip(found.row, found.col, strict=True)) == sorted(zip(*np.nonzero(reached), strict=True))

    pipelines.export_store(graph.path, tmp_path / "g.mtx")
    expected = sp.coo_array((arcs[2], arcs[:2]), shape=(40, 40)).toarray()
    np.testing.assert_array_equal(scipy.io.mmread(tmp_path / "g.mtx", spmatrix=False).toarray(), expected)
    again = pipelines.import_graph(tmp_path / "g.mtx", tmp_path / "again.zarr")
    for mine, theirs in zip(again.rows(), graph.rows(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".mtx"])
def test_an_unweighted_graph_is_exported_without_weights_and_read_again(tmp_path, suffix):
    graph = write_graph(tmp_path / "g", np.array([0, 2, 3, 5]), np.array([1, 2, 0, 0, 0]))
    assert pipelines.export_store(graph.path, tmp_path / f"g{suffix}") == 5
    options = {} if suffix == ".mtx" else {"labels": True}
    again = pipelines.import_graph(tmp_path / f"g{suffix}", tmp_path / "again", **options)
    assert (again.weighted, again.digest) == (False, graph.digest)


@pytest.mark.usefixtures("_pieces")
def test_walks(tmp_path):
    arcs = np.array([0, 0, 1, 2, 3, 4]), np.array([1, 2, 0, 0, 4, 3])
    graph = write_graph(
        tmp_path / "graph", np.array([0, 2, 3, 4, 5, 6]), arcs[1], np.ones(6), labels=np.array([*"abcde"])
    )
    assert invoke("euler", graph.path, tmp_path / "circuits").exit_code == 0
    store = open_circuits(tmp_path / "circuits")
    assert pipelines.export_store(store.path, tmp_path / "c.csv") == 6
    found = table(tmp_path / "c.csv").to_pydict()
    assert found["arc"] == store.arcs().tolist()
    assert found["circuit"] == [0, 0, 0, 0, 1, 1]
    assert found["position"] == [0, 1, 2, 3, 0, 1]
    assert found["source"] == ["abcde"[arcs[0][arc]] for arc in found["arc"]]
    assert found["target"] == ["abcde"[arcs[1][arc]] for arc in found["arc"]]
    pipelines.export_store(store.path, tmp_path / "c.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), store.arcs())


@pytest.mark.usefixtures("_pieces")
def test_maps_and_samples(tmp_path, monkeypatch, tiny_stores):
    monkeypatch.setattr(exports, "_PIECE", max(exports._PIECE, 500))  # bytes, of some rows
    codebook = open_codebook(tiny_stores / "codebook")
    mapping = open_mapping(tiny_stores / "mapping")
    samples = open_samples(tiny_stores / "samples")
    for store, array in ((codebook, codebook.units()), (mapping, mapping.units()), (samples, samples.values())):
        pipelines.export_store(store.path, tmp_path / "x.npy", overwrite=True)
        np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), array)
        pipelines.export_store(store.path, tmp_path / "x.parquet", overwrite=True)
        found = table(tmp_path / "x.parquet")
        assert found.num_rows == len(array)
        if store is mapping:
            np.testing.assert_array_equal(found["unit2"], array[:, 1])
            np.testing.assert_array_equal(found["distance"], mapping.distances()[:, 0])
            continue
        for name, column in zip(store.columns, array.T, strict=True):
            np.testing.assert_array_equal(found[name], column)
        if store is samples:
            names = [None if label < 0 else samples.label_names()[label] for label in samples.labels()]
            assert found["label"].to_pylist() == names
            np.testing.assert_array_equal(found["weight"], samples.weights())
        else:
            np.testing.assert_array_equal(found["hits"], codebook.hits())
            assert found["row"][-1].as_py() == codebook.grid.rows - 1


def test_columns_of_one_name(tmp_path):
    write_samples(tmp_path / "s", np.ones((3, 2), np.float32), columns=["label", "x"], labels=np.array([*"aba"]))
    pipelines.export_store(tmp_path / "s", tmp_path / "s.csv")
    assert table(tmp_path / "s.csv").column_names == ["label", "x", "label_"]


@pytest.mark.parametrize(
    ("name", "out", "says"),
    [
        ("graph", "x.npy", "a graph store cannot be exported to .npy; choose one of .csv, .tsv, .csv.gz, .tsv.gz, .pa"),
        ("samples", "x.mtx", "a samples store cannot be exported to .mtx; choose one of"),
        ("graph", "x.txt", "a store is exported to one of .csv, .tsv"),
        ("graph", "there.csv", "there.csv exists already; choose another name or pass overwrite"),
        ("half", "x.csv", "with its options and resume (--resume)"),
        ("nothing", "x.csv", "no such store"),
    ],
)
def test_what_is_refused(tmp_path, stores, tiny_stores, monkeypatch, name, out, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.csv").write_text("kept")
    known = {"graph": stores[0].path, "samples": tiny_stores / "samples", "half": tiny_stores / "part-paths"}
    place = known.get(name, tmp_path / name)
    before = sorted(tmp_path.iterdir())
    done = invoke("export", place, out)
    assert says in str(done.exception)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "there.csv").read_text() == "kept"


def test_the_command(tmp_path, stores):
    out = tmp_path / "d.csv"
    done = invoke("export", stores[1].path, out)
    assert (done.exit_code, done.stdout) == (0, f"{out}: 10 rows\n")
    assert invoke("export", stores[0].path, out, "--overwrite").stdout == f"{out}: 3 rows\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv"]


def test_a_fault_half_way_leaves_the_file_that_was_there(tmp_path, stores, monkeypatch):
    out = tmp_path / "d.csv"
    out.write_text("kept")

    def fail(store):
        yield from [(0, np.zeros((1, 4)), None)]
        raise StoreError("a chunk is damaged")

    monkeypatch.setattr(exports, "_rows_of", fail)
    for suffix in ".csv", ".npy", ".mtx", ".parquet":
        with pytest.raises(StoreError, match="a chunk is damaged"):
            pipelines.export_store(stores[1].path, out.with_suffix(suffix), overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["d.csv"]
    assert out.read_text() == "kept"


def test_a_graph_that_was_moved(tmp_path, stores):
    import shutil

    shutil.move(stores[0].path, tmp_path / "moved")
    with pytest.raises(StoreError, match="moved|is not at|no longer"):
        pipelines.export_store(stores[1].path, tmp_path / "d.csv")
    assert pipelines.export_store(stores[1].path, tmp_path / "d.csv", graph=tmp_path / "moved") == 10
    assert open_graph(tmp_path / "moved").n == 4


@pytest.mark.slow
def test_memory_does_not_grow_with_the_matrix(tmp_path, solve, monkeypatch):
    monkeypatch.setattr(exports, "_PIECE", 1 << 12)
    n = 500  # up to 0.7 MB are taken whatever n is; half of the matrix is 1 MB
    ring = np.arange(n), (np.arange(n) + 1) % n, np.ones(n)
    distances, _ = solve(n, ring, "float64", chunk=32)
    small, _ = solve(3, [each[:3] % 3 for each in ring], "float64")
    for suffix in ".npy", ".mtx", ".csv", ".parquet":
        pipelines.export_store(small.path, tmp_path / f"once{suffix}")  # what is imported and kept is not counted
        tracemalloc.start()
        try:
            pipelines.export_store(distances.path, tmp_path / f"d{suffix}")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < n * n * 8 / 2, suffix  # half of the matrix
