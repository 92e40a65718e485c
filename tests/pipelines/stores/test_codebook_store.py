import os
import pickle
from contextlib import contextmanager

import numpy as np
import pytest
import zarr
from damage import flip

from gpuops.som.grid import Grid
from pipelines.som.mapping_quality import mapping_errors
from pipelines.stores.codebook import CodebookWriter, create_codebook, open_codebook
from pipelines.stores.contents import record
from pipelines.stores.errors import StoreError
from pipelines.stores.mapping import MappingWriter, create_mapping, open_mapping
from pipelines.stores.samples import write_samples

GRID = Grid(2, 3, hexagonal=True)
ROWS = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 1.0], [0.0, 0.0]])
OPTIONS = {"metric": "taxicab", "epochs": 3, "sigma": [2.0, 1.0]}


@pytest.fixture
def samples(tmp_path):
    return write_samples(tmp_path / "s.zarr", ROWS, scaling="zscore", columns=["a", "b"])


def begin(path, samples, grid=GRID, **options):
    facts = {"metric": "taxicab", "sigmas": [2.0, 1.5, 1.0], "options": OPTIONS}
    return create_codebook(path, samples, grid, **(facts | options))


def codebook_of(samples, path, grid=GRID, epochs=3):
    run = begin(path, samples, grid)
    for epoch in range(epochs + 1):
        run.write(epoch, np.full((1, grid.units, samples.d), float(epoch)))
        run.commit(epoch, [1.0 / (e + 1) for e in range(epoch)])
    errors = [1.0 / (e + 1) for e in range(epochs + 1)]
    run.finish(epochs, errors, None if grid.units == 1 else 0.25, np.arange(grid.units))
    return open_codebook(path)


@contextmanager
def changed(path, attribute, value):
    """A store whose attribute is another for a while, or missing."""
    group = zarr.open_group(path)
    kept = group.attrs[attribute]
    if value is None:
        del group.attrs[attribute]
    else:
        group.attrs[attribute] = value
    yield
    group.attrs[attribute] = kept


def test_a_codebook_comes_back_with_its_history(tmp_path, samples):
    found = codebook_of(samples, tmp_path / "m")
    assert (found.grid, found.metric, found.columns, found.d) == (GRID, "taxicab", ("a", "b"), 2)
    assert (found.epochs, found.sigmas, found.options) == (3, (2.0, 1.5, 1.0), OPTIONS)
    assert found.quantization_errors == (1.0, 1 / 2, 1 / 3, 1 / 4)
    assert (found.topographic_error, found.scaling, found.dtype) == (0.25, samples.scaling, samples.dtype)
    assert [found.units(epoch)[0, 0] for epoch in (0, 1, 3, -1, -4)] == [0, 1, 3, 3, 0]
    assert found.units().shape == (6, 2)
    assert found.hits().tolist() == [0, 1, 2, 3, 4, 5]
    assert pickle.loads(pickle.dumps(found)).units().tolist() == found.units().tolist()
    for epoch in (4, -5):
        with pytest.raises(ValueError, match=f"no epoch {epoch}; choose one from 0 to 3"):
            found.units(epoch)
    found.verify()


def test_an_unfinished_codebook_goes_on_where_it_was(tmp_path, samples):
    run = begin(tmp_path / "m", samples)
    assert (run.committed(), CodebookWriter.begun(tmp_path / "m").progress()) == (-1, (-1, 3))
    run.write(0, np.ones((1, 6, 2)))
    run.commit(0, [])
    run.write(1, np.full((1, 6, 2), 2.0))
    run.commit(1, [0.5])
    with pytest.raises(StoreError, match=r"1 of 3 epochs done; repeat .*som train .*s\.zarr"):
        open_codebook(tmp_path / "m")
    (tmp_path / "m" / "codebooks" / "c" / "left.partial").touch()
    again = CodebookWriter.resume(tmp_path / "m", samples, OPTIONS)
    assert not (tmp_path / "m" / "codebooks" / "c" / "left.partial").exists()
    assert (again.committed(), again.errors(), again.read(1)[0, 0]) == (1, [0.5], 2.0)
    with pytest.raises(StoreError, match="another run took this store over"):
        run.commit(2, [0.5, 0.4])
    assert again.committed() == 1


def test_a_run_is_resumed_with_what_it_was_begun_with(tmp_path, samples):
    begin(tmp_path / "m", samples)
    with pytest.raises(StoreError, match="begun with metric taxicab, not cosine; repeat its options"):
        CodebookWriter.resume(tmp_path / "m", samples, OPTIONS | {"metric": "cosine"})
    with pytest.raises(StoreError, match="begun without kernel, not with bubble"):
        CodebookWriter.resume(tmp_path / "m", samples, OPTIONS | {"kernel": "bubble"})
    other = write_samples(tmp_path / "t", ROWS)
    with pytest.raises(StoreError, match="other samples"):
        CodebookWriter.resume(tmp_path / "m", other, OPTIONS)
    with pytest.raises(StoreError, match="is a samples store .*, but a map store .*is needed"):
        CodebookWriter.resume(tmp_path / "t", samples, OPTIONS)
    codebook_of(samples, tmp_path / "done")
    assert CodebookWriter.resume(tmp_path / "done", samples, OPTIONS).finished


def test_training_that_stopped_early(tmp_path, samples):
    found = codebook_of(samples, tmp_path / "m", epochs=1)
    assert (found.epochs, found.sigmas, found.units().tolist()) == (1, (2.0,), found.units(1).tolist())
    assert CodebookWriter.begun(tmp_path / "m").progress() == (1, 1)
    found.verify()
    # Killed between cutting the array and recording it: later epochs have their place again.
    record(str(tmp_path / "m"), zarr.open_group(tmp_path / "m"), {"complete": False})
    run = CodebookWriter.resume(tmp_path / "m", samples, OPTIONS)
    assert (run.committed(), run.epochs) == (1, 3)
    run.write(2, np.full((1, 6, 2), 9.0))
    assert run.read(1)[0, 0] == 1
    assert run.read(2)[0, 0] == 9


def test_a_run_that_fails_while_it_finishes_is_resumed(tmp_path, samples, monkeypatch):
    def failing(path, group, attributes, *arguments, **options):
        if attributes.get("complete"):
            raise OSError("the disk fails")
        record(path, group, attributes, *arguments, **options)

    monkeypatch.setattr("pipelines.stores.codebook.record", failing)
    with pytest.raises(OSError, match="the disk fails"):
        codebook_of(samples, tmp_path / "m")
    monkeypatch.undo()
    run = CodebookWriter.resume(tmp_path / "m", samples, OPTIONS)
    assert (run.committed(), run.errors()) == (3, [1.0, 1 / 2, 1 / 3])
    run.finish(3, [*run.errors(), 0.25], 0.25, np.arange(6))
    assert open_codebook(tmp_path / "m").quantization_errors == (1.0, 1 / 2, 1 / 3, 1 / 4)


def test_a_codebook_finds_its_samples(tmp_path, samples):
    (tmp_path / "a").mkdir()
    found = codebook_of(samples, tmp_path / "a" / "m")
    assert found.samples().digest == samples.digest
    (tmp_path / "b").mkdir()
    (tmp_path / "a").rename(tmp_path / "b" / "a")
    (tmp_path / "s.zarr").rename(tmp_path / "b" / "s.zarr")
    moved = open_codebook(tmp_path / "b" / "a" / "m")
    assert moved.samples().path == str(tmp_path / "b" / "s.zarr")
    (tmp_path / "b" / "s.zarr").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="no longer at"):
        moved.samples()
    assert moved.samples(tmp_path / "elsewhere").n == 4
    other = write_samples(tmp_path / "other", ROWS)
    with pytest.raises(StoreError, match="trained with other samples"):
        moved.samples(other.path)


def test_a_damaged_codebook_is_refused(tmp_path, samples):
    codebook_of(samples, tmp_path / "m")
    for attribute, value in (
        ("grid", {"rows": 2, "columns": 2}),
        ("grid", {"rows": 0, "columns": 2}),
        ("committed", 2),
        ("errors", [1.0]),
        ("columns", ["a"]),
        ("dtype", "float32"),
        ("dtype", "int8"),
        ("scaling", {"kind": "none"}),
        ("options", None),
        ("complete", None),
        ("samples", None),
    ):
        with (
            changed(tmp_path / "m", attribute, value),
            pytest.raises(StoreError, match=f"{tmp_path / 'm'}.*(again|recreate)"),
        ):
            open_codebook(tmp_path / "m")
    open_codebook(tmp_path / "m")


def test_a_damaged_chunk_of_a_codebook_is_found(tmp_path, samples):
    found = codebook_of(samples, tmp_path / "m")
    for array, chunk in (("codebooks", "1/0/0"), ("hits", "0")):
        flip(tmp_path / "m" / array / "c" / chunk)
        with pytest.raises(StoreError, match="damaged"):
            found.verify()
        flip(tmp_path / "m" / array / "c" / chunk)
        found.verify()
    zarr.open_group(tmp_path / "m")["codebooks"][2, 1, 1] = np.nan
    with pytest.raises(StoreError, match="epoch 2 holds values that are not finite"):
        found.verify()
    (tmp_path / "m" / "codebooks" / "c" / "1" / "0" / "0").unlink()
    with pytest.raises(StoreError, match="1 of 4 chunks are missing"):
        found.verify()


# Where samples lie

UNITS = np.array([[0, 1], [0, 3], [5, 0], [2, 1]], np.int32)
DISTANCES = np.array([[0.5, 1.0], [0.0, 0.25], [2.0, 2.0], [1.5, 7.0]])


def place(run, units=UNITS, distances=DISTANCES):
    for start in range(0, 4, run.chunk):
        run.write(start, units[start : start + run.chunk], distances[start : start + run.chunk])
    run.record(np.ones(4, bool))


@pytest.fixture
def in_twos(monkeypatch):
    """Chunks of two rows."""
    monkeypatch.setattr("pipelines.stores.mapping.CHUNK_BYTES", 32)


@pytest.mark.usefixtures("in_twos")
def test_a_mapping_comes_back(tmp_path, samples):
    codebook = codebook_of(samples, tmp_path / "m")
    run = create_mapping(tmp_path / "p", samples, codebook)
    assert run.chunk == 2
    place(run)
    found = open_mapping(tmp_path / "p")
    assert (found.n, found.top, found.dtype, found.grid) == (4, 2, np.float64, GRID)
    assert (found.samples_path, found.samples_digest) == (samples.path, samples.digest)
    assert found.codebook_path == codebook.path
    np.testing.assert_array_equal(found.units(), UNITS)
    np.testing.assert_array_equal(found.distances(1, 3), DISTANCES[1:3])
    assert list(found.ranges()) == [(0, 2), (2, 4)]
    assert found.hits().tolist() == [2, 0, 1, 0, 0, 1]
    # Units 0 and 1 are neighbours, 0 and 3 in the row below as well; 5 and 0 are not, 2 and 1 are.
    assert mapping_errors(found) == {"quantization_error": 1.0, "topographic_error": 0.25}
    assert pickle.loads(pickle.dumps(found)).hits().tolist() == found.hits().tolist()
    found.verify()
    with pytest.raises(StoreError, match="exists already"):
        create_mapping(tmp_path / "p", samples, codebook)


def test_a_mapping_to_a_single_unit(tmp_path, samples):
    codebook = codebook_of(samples, tmp_path / "m", Grid(1, 1))
    assert codebook.topographic_error is None
    run = create_mapping(tmp_path / "p", samples, codebook)
    place(run, np.zeros((4, 1), np.int32), DISTANCES[:, :1])
    found = open_mapping(tmp_path / "p")
    assert (found.top, found.hits().tolist()) == (1, [4])
    assert [*mapping_errors(found)] == ["quantization_error"]


@pytest.mark.usefixtures("in_twos")
def test_an_unfinished_mapping_goes_on_where_it_was(tmp_path, samples):
    codebook = codebook_of(samples, tmp_path / "m")
    run = create_mapping(tmp_path / "p", samples, codebook)
    run.write(2, UNITS[2:], DISTANCES[2:])
    run.record(np.array([False, False, True, True]))
    with pytest.raises(StoreError, match=r"2 of 4 samples done; .*som map .*m .*s\.zarr .*p` with .*--resume"):
        open_mapping(tmp_path / "p")
    again = MappingWriter.resume(tmp_path / "p", samples, {"codebook": codebook})
    assert again.rows_done().tolist() == [False, False, True, True]
    with pytest.raises(StoreError, match="another run took this store over"):
        run.record(np.ones(4, bool))
    place(again)
    open_mapping(tmp_path / "p").verify()
    assert MappingWriter.resume(tmp_path / "p", samples, {"codebook": codebook}).finished


def test_a_mapping_is_resumed_with_what_it_was_begun_with(tmp_path, samples):
    codebook = codebook_of(samples, tmp_path / "m")
    create_mapping(tmp_path / "p", samples, codebook)
    others = write_samples(tmp_path / "t", ROWS + 1)
    with pytest.raises(StoreError, match="other samples than"):
        MappingWriter.resume(tmp_path / "p", others, {"codebook": codebook})
    with pytest.raises(StoreError, match="another map"):
        MappingWriter.resume(tmp_path / "p", samples, {"codebook": codebook_of(samples, tmp_path / "m2", epochs=1)})
    # At the same place and trained in the same way, but with other samples.
    os.rename(tmp_path / "m", tmp_path / "kept")
    with pytest.raises(StoreError, match="another map"):
        MappingWriter.resume(tmp_path / "p", samples, {"codebook": codebook_of(others, tmp_path / "m")})
    assert not MappingWriter.resume(tmp_path / "p", samples, {"codebook": open_codebook(tmp_path / "kept")}).finished


def test_a_mapping_finds_its_samples(tmp_path, samples):
    (tmp_path / "a").mkdir()
    run = create_mapping(tmp_path / "a" / "p", samples, codebook_of(samples, tmp_path / "m"))
    place(run)
    (tmp_path / "b").mkdir()
    (tmp_path / "a").rename(tmp_path / "b" / "a")
    (tmp_path / "s.zarr").rename(tmp_path / "b" / "s.zarr")
    assert open_mapping(tmp_path / "b" / "a" / "p").samples_path == str(tmp_path / "b" / "s.zarr")


def test_a_damaged_mapping_is_found(tmp_path, samples):
    place(create_mapping(tmp_path / "p", samples, codebook_of(samples, tmp_path / "m")))
    found = open_mapping(tmp_path / "p")
    for attribute, value in (("n", 3), ("dtype", "float32"), ("grid", {"rows": 0, "columns": 1}), ("top", "two")):
        with (
            changed(tmp_path / "p", attribute, value),
            pytest.raises(StoreError, match=f"{tmp_path / 'p'}.*(again|recreate)"),
        ):
            open_mapping(tmp_path / "p")
    group = zarr.open_group(tmp_path / "p")
    for array, value in (
        ("units", 6),
        ("units", -1),
        ("distances", -0.5),
        ("distances", np.nan),
        ("distances", np.inf),
    ):
        kept = group[array][:]
        group[array][2, 1] = value
        with pytest.raises(
            StoreError, match="holds -?[16], but its values run from 0 to 5|from row 0 on distances are"
        ):
            found.verify()
        group[array][:] = kept
        found.verify()
    flip(tmp_path / "p" / "distances" / "c" / "0/0")
    with pytest.raises(StoreError, match="damaged"):
        found.verify()
    (tmp_path / "p" / "units" / "c" / "0" / "0").unlink()
    with pytest.raises(StoreError, match="1 of 1 chunks are missing"):
        found.verify()


def test_the_schedule_is_written_once(tmp_path):
    """Commits write the attributes anew; they do not grow with the epochs that are planned."""
    samples, sizes = write_samples(tmp_path / "s", np.ones((4, 2))), []
    for epochs in (10, 1000):
        facts = {"metric": "euclidean", "sigmas": list(np.linspace(3, 1, epochs)), "options": {}}
        run = create_codebook(tmp_path / f"{epochs}", samples, Grid(1, 1), **facts)
        run.write(0, np.ones((1, 1, 2)))
        run.commit(0, [])
        sizes.append((tmp_path / f"{epochs}" / "zarr.json").stat().st_size)
        assert CodebookWriter.begun(tmp_path / f"{epochs}").progress() == (0, epochs)
        assert run.epochs == epochs
    assert abs(sizes[1] - sizes[0]) < 20
    (tmp_path / "10" / "sigmas" / "c" / "0").unlink()
    with pytest.raises(StoreError, match=r"10/sigmas: the chunk c/0 is missing"):
        CodebookWriter.begun(tmp_path / "10").progress()
    zarr.open_array(tmp_path / "1000" / "sigmas", mode="r+").resize((0,))
    with pytest.raises(StoreError, match="a chunk of `sigmas` is not the one written there"):
        CodebookWriter.begun(tmp_path / "1000").verify()
