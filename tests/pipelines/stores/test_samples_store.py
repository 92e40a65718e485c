import os
import pickle
from itertools import pairwise

import numpy as np
import pytest
import zarr
from damage import flip
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.samples import new_samples, open_samples, write_samples
from pipelines.stores.scaling import Moments

ROWS = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0], [7.0, 8.5, 9.0], [0.25, 0.0, 1e-3]])


def in_pieces(path, values, cuts, *, weights=None, labels=None, **facts):
    """Write samples by pieces that end at `cuts`."""
    columns = [f"c{i}" for i in range(values.shape[1])]
    ends = [0, *sorted(cuts), len(values)]
    with new_samples(
        path, columns=columns, weighted=weights is not None, labelled=labels is not None, **facts
    ) as writer:
        for start, stop in pairwise(ends):
            extras = (None if extra is None else extra[start:stop] for extra in (weights, labels))
            writer.append(values[start:stop], *extras)
    return open_samples(path)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_come_back(tmp_path, dtype):
    weights, labels = np.array([1.0, 0.0, 2.5, 1.0]), ["b", "a", None, "b"]
    samples = write_samples(
        tmp_path / "s", ROWS, weights=weights, labels=labels, columns=["x", "y", "z"], dtype=dtype, source="by hand"
    )
    assert (samples.n, samples.d, samples.dtype, samples.columns) == (4, 3, np.dtype(dtype), ("x", "y", "z"))
    np.testing.assert_array_equal(samples.values(), ROWS.astype(dtype))
    np.testing.assert_array_equal(samples.values(1, 3), ROWS[1:3].astype(dtype))
    np.testing.assert_array_equal(samples.weights(2), weights[2:])
    assert samples.labels().tolist() == [0, 1, -1, 0]
    assert samples.label_names() == ["b", "a"]
    assert (samples.minima, samples.maxima) == ((0.25, -2, -6), (7, 8.5, 9))
    np.testing.assert_allclose(samples.means, ROWS.astype(dtype).mean(axis=0, dtype=float), rtol=1e-14)
    assert samples.magnitudes == (7, 8.5, 9)
    assert (samples.largest_weight, samples.missing, samples.source) == (2.5, False, "by hand")
    assert samples.row_bytes == 4 * samples.dtype.itemsize
    assert pickle.loads(pickle.dumps(samples)).values().tolist() == samples.values().tolist()
    samples.verify()


def test_samples_without_labels_or_weights(tmp_path):
    samples = write_samples(tmp_path / "s", ROWS.astype("float32"))
    assert (samples.dtype, samples.weights(), samples.largest_weight, samples.columns) == (
        np.float32, None, None, ("0", "1", "2"),
    )  # fmt: skip
    with pytest.raises(StoreError, match=r"no labels; .*--label"):
        samples.labels()
    with pytest.raises(StoreError, match="no labels"):
        samples.label_names()
    assert write_samples(tmp_path / "none", ROWS, labels=[None] * 4).label_names() == []
    integers = write_samples(tmp_path / "i", np.arange(6, dtype="int16").reshape(3, 2))
    assert integers.values().tolist() == [[0, 1], [2, 3], [4, 5]]


@settings(max_examples=10)
@given(data=st.data())
def test_pieces_leave_no_trace(tmp_path_factory, data):
    """Any cutting and any chunks: the same values, facts and digest."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    n, missing = data.draw(st.integers(1, 40)), data.draw(st.booleans())
    scaling = data.draw(st.sampled_from(["none", "zscore", "minmax", "arcsinh"]))
    steps = np.array([1e-5, 1e-5, 1])  # so wide that float32 merges no two values, scaled or not
    values = np.round(rng.normal(size=(n, 3)) * [1, 1e-3, 1e5] / steps) * steps + [0, 5, 1e3]
    values[0] = [10, 10, 1e6]  # no column is constant
    values = np.concatenate([values, [[0, 0, 0]]])
    if missing:
        values[1:-1:3, 1] = np.nan
    weights, labels = rng.random(n + 1), [str(i % 3) for i in range(n + 1)]
    options = {"scaling": scaling, "missing": missing, "dtype": data.draw(st.sampled_from(["float32", "float64"]))}
    path = tmp_path_factory.mktemp("samples")
    whole = in_pieces(path / "whole", values, [], weights=weights, labels=labels, **options)
    cuts = data.draw(st.lists(st.integers(0, n + 1), max_size=5))
    chunk = data.draw(st.integers(1, 50))
    cut = in_pieces(path / "cut", values, cuts, weights=weights, labels=labels, chunk_rows=chunk, **options)
    assert cut.digest == whole.digest
    for fact in ("minima", "maxima", "means", "scaling", "largest_weight"):
        assert getattr(cut, fact) == getattr(whole, fact)
    for array in ("values", "weights", "labels"):
        np.testing.assert_array_equal(getattr(cut, array)(), getattr(whole, array)())
    cut.verify()


@given(n=st.integers(1, 300), d=st.integers(1, 3), seed=st.integers(0, 99), block=st.integers(1, 64))
def test_moments_are_those_of_numpy_for_any_pieces(n, d, seed, block):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, d)) + 1e4
    values[rng.random((n, d)) < 0.2] = np.nan
    values[0] = 1e4
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.stores.scaling.BLOCK_VALUES", block)
        whole, pieces = Moments(d), Moments(d)
        whole.add(values)
        for start in range(0, n, 7):
            pieces.add(values[start : start + 7])
        whole.finish()
        pieces.finish()
    np.testing.assert_allclose(whole.means, np.nanmean(values, axis=0), rtol=1e-14)
    # Rounding is relative to the mean, 1e4.
    np.testing.assert_allclose(whole.deviations, np.nanstd(values, axis=0), rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(whole.minima, np.nanmin(values, axis=0))
    np.testing.assert_array_equal(whole.maxima, np.nanmax(values, axis=0))
    assert whole.counts.tolist() == (~np.isnan(values)).sum(axis=0).tolist()
    for name in ("means", "deviations", "minima", "maxima", "counts"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(pieces, name))


@pytest.mark.parametrize("scaling", ["zscore", "minmax", "arcsinh"])
def test_scaling_is_recorded_and_undone(tmp_path, scaling):
    rows = np.concatenate([ROWS, [[np.nan, 1.0, np.nan]]])
    cofactor = 2.0 if scaling == "arcsinh" else None
    samples = write_samples(tmp_path / "s", rows, scaling=scaling, cofactor=cofactor, missing=True)
    want = {
        "zscore": (rows - np.nanmean(rows, axis=0)) / np.nanstd(rows, axis=0),
        "minmax": (rows - np.nanmin(rows, axis=0)) / np.ptp(rows[:4], axis=0),
        "arcsinh": np.arcsinh(rows / 2),
    }[scaling]
    np.testing.assert_allclose(samples.values(), want, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(samples.scaling.undo(samples.values()), rows, rtol=1e-13, atol=1e-14)
    assert samples.scaling.kind == scaling
    np.testing.assert_allclose(samples.minima, np.nanmin(want, axis=0), rtol=1e-13, atol=1e-15)
    assert sorted(os.listdir(tmp_path / "s")) == ["values", "zarr.json"]  # not what they were before


def test_what_is_scaled_may_exceed_the_dtype(tmp_path):
    wide = np.array([[0.0], [1e100], [-3e100]])
    samples = write_samples(tmp_path / "s", wide, dtype="float32", scaling="minmax")
    np.testing.assert_allclose(samples.values(), [[0.75], [1.0], [0.0]], rtol=1e-6)


def test_a_caller_may_use_its_arrays_again(tmp_path):
    piece, weights = np.empty((2, 3), np.float32), np.empty(2, np.float32)
    with new_samples(tmp_path / "s", columns="xyz", weighted=True) as writer:
        for i in range(4):
            piece[:], weights[:] = i, i
            writer.append(piece, weights)
    samples = open_samples(tmp_path / "s")
    assert samples.values()[:, 0].tolist() == samples.weights().tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    samples.verify()


@pytest.mark.parametrize("sizes", [[5] * 7, [25, 10], [3, 31, 1], [10, 10, 10, 5]])
@pytest.mark.parametrize("scaling", ["none", "arcsinh"])
def test_whole_chunks_are_on_disk_before_the_end(tmp_path, sizes, scaling):
    """Rows do not gather in memory, and none is lost or moved."""
    values, start = np.arange(105.0).reshape(35, 3), 0
    cofactor = 1.0 if scaling == "arcsinh" else None
    with new_samples(tmp_path / "s", columns="xyz", chunk_rows=10, scaling=scaling, cofactor=cofactor) as writer:
        for size in sizes:
            writer.append(values[start : start + size])
            start += size
            array = writer.group["values" if scaling == "none" else "raw"]
            assert array.shape[0] == start // 10 * 10
            assert array.nchunks_initialized == start // 10
    samples = open_samples(tmp_path / "s")
    np.testing.assert_allclose(samples.values(), values if scaling == "none" else np.arcsinh(values), rtol=1e-6)
    samples.verify()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"values": [[1, np.nan, 2]]}, r"here: row 4 \(from 0\), column 'y' has no value; declare .*--missing"),
        (
            {"values": [[1, 2, np.inf]], "missing": True},
            r"row 4 \(from 0\), column 'z' is inf; float32 samples are fin",
        ),
        ({"values": [[1, -1e39, 2]]}, "column 'y' is -1e\\+39; float32 samples are finite and at most 3.4e"),
        ({"values": np.float32([[1, -np.inf, 2]]), "dtype": "float64"}, "column 'y' is -inf; float64"),
        ({"values": [[1, 2e151, 2]], "dtype": "float64"}, "at most 3.27e\\+150"),
        ({"values": [[1, 1e200, 2]], "scaling": "zscore"}, "column 'y' is 1e\\+200"),
        ({"values": [[np.nan] * 3], "missing": True}, r"row 4 \(from 0\) has no value at all; leave it out"),
        ({"values": [[1, 2]]}, r"rows have the shape \(1, 2\); expected 3 values in each"),
        ({"values": [1, 2, 3]}, "shape"),
        ({"values": [["a", "b", "c"]]}, "real numbers"),
        ({"values": [[1, 2j, 3]]}, "real numbers"),
        ({"values": [[1, None, 3]]}, "real numbers"),
        ({"weights": [-1.0]}, r"row 4 \(from 0\) has the weight -1.0; give a finite number >= 0"),
        ({"weights": [np.nan]}, "row 4 .* has the weight nan"),
        ({"weights": [1e39]}, "row 4 .* has the weight 1e"),
        ({"weights": [[1.0]]}, "weights have the shape"),
        ({"weights": None}, "give weights with every row of the samples, or with none"),
        ({"labels": ["a", "b"]}, "give labels with every row"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_and_leaves_no_store(tmp_path, change, fault):
    facts = {"weighted": True, "labelled": True, "source": "here"}
    facts |= {name: change[name] for name in ("missing", "dtype", "scaling") if name in change}
    row = {"values": [[1, 2, 3]], "weights": [1.0], "labels": ["a"]} | change
    values = row["values"]
    values = values if isinstance(values, np.ndarray) else np.array(values, object if None in values[:1] else None)

    def write():
        with new_samples(tmp_path / "s", columns=["x", "y", "z"], **facts) as writer:
            writer.append(ROWS, np.ones(4), ["a"] * 4)
            writer.append(values, row["weights"], row["labels"])

    with pytest.raises(ValueError, match=fault):
        write()
    assert os.listdir(tmp_path) == []


def test_a_refused_piece_leaves_nothing_behind(tmp_path):
    with new_samples(tmp_path / "s", columns=["x", "y", "z"], weighted=True) as writer:
        writer.append(ROWS, np.ones(4))
        with pytest.raises(ValueError, match="row 4 .* has the weight"):
            writer.append(ROWS * 100, np.full(4, -1.0))
    samples = open_samples(tmp_path / "s")
    assert (samples.n, max(samples.magnitudes)) == (4, 9.0)
    samples.verify()


@pytest.mark.parametrize(
    ("values", "facts", "fault"),
    [
        (np.empty((0, 2)), {}, "there are no rows"),
        (np.empty((2, 0)), {}, "there is no column"),
        (np.empty(3), {}, r"shape \(3,\); give a matrix"),
        ([[1, np.nan], [2, np.nan]], {"missing": True}, "column '1' is empty; leave it out"),
        ([[1, np.nan], [2, np.nan]], {"missing": True, "scaling": "arcsinh"}, "column '1' is empty"),
        ([[1, 2], [3, 4]], {"weights": [0.0, 0.0]}, "all weights are 0"),
        ([[1, 2]], {"scaling": "log"}, "scaling is 'log'; pass one of 'none', 'zscore'"),
        ([[1, 2]], {"scaling": "arcsinh", "cofactor": 0.0}, "the cofactor is 0.0"),
        ([[1, 2]], {"cofactor": 150}, r"cofactor \(--cofactor\) goes with the scaling arcsinh .*, not with 'none'"),
        ([[1, 2]], {"dtype": "float16"}, "float32 or float64, not float16"),
        ([[1, 2]], {"columns": ["a", "a"]}, "two columns are called 'a'"),
        ([[1, 2]], {"chunk_rows": -1}, "chunk_rows is -1"),
    ],
)
def test_samples_that_cannot_be_used_are_refused(tmp_path, values, facts, fault):
    with pytest.raises(ValueError, match=fault):
        write_samples(tmp_path / "s", np.array(values), **facts)
    assert os.listdir(tmp_path) == []


def test_a_store_is_whole_or_absent(tmp_path):
    write_samples(tmp_path / "s", ROWS)
    with pytest.raises(StoreError, match=r"s exists already; .*--overwrite"):
        write_samples(tmp_path / "s", ROWS)

    def write():
        with new_samples(tmp_path / "s", columns="xyz", chunk_rows=1, overwrite=True) as writer:
            writer.append(ROWS)
            (partial,) = (name for name in os.listdir(tmp_path) if name != "s")
            with pytest.raises(StoreError, match="without a `schema`"):  # what a killed run leaves
                open_samples(tmp_path / partial)
            raise RuntimeError("the plug is pulled")

    with pytest.raises(RuntimeError, match="the plug"):
        write()
    assert os.listdir(tmp_path) == ["s"]
    open_samples(tmp_path / "s").verify()
    assert write_samples(tmp_path / "s", ROWS[:1], overwrite=True).n == 1


def test_the_digest_is_of_what_a_map_depends_on(tmp_path):
    def digest(name, values=ROWS, **facts):
        return write_samples(tmp_path / name, values, **facts).digest

    plain = digest("plain")
    assert digest("same", labels=["a"] * 4, columns=["x", "y", "z"], chunk_rows=1, source="elsewhere") == plain
    others = [
        digest("turned", ROWS[::-1]),
        digest("narrow", dtype="float32"),
        digest("missing", missing=True),
        digest("weights", weights=np.ones(4)),
        digest("scaled", scaling="zscore"),
        digest("reshaped", ROWS.reshape(6, 2)),
        digest("shorter", ROWS[:3]),
    ]
    assert len({plain, *others}) == 8


@pytest.mark.parametrize("array", ["values", "weights", "labels"])
def test_damage_is_found(tmp_path, array):
    samples = write_samples(tmp_path / "s", ROWS, weights=np.ones(4), labels=list("abab"), chunk_rows=2)
    samples.verify()
    chunk = "1/0" if array == "values" else "1"
    flip(tmp_path / "s" / array / "c" / chunk)
    with pytest.raises(StoreError, match="damaged"):
        samples.verify()
    (tmp_path / "s" / array / "c" / chunk).unlink()
    with pytest.raises(StoreError, match="1 of 2 chunks are missing"):
        samples.verify()


def test_values_that_were_changed_are_found(tmp_path):
    samples = write_samples(tmp_path / "s", ROWS, weights=np.ones(4), labels=list("abab"))
    group = zarr.open_group(tmp_path / "s")
    for name, fault in (("values", "recorded digest"), ("weights", "recorded digest"), ("labels", "run from -1 to 1")):
        kept = group[name][:]
        group[name][2] = 7
        with pytest.raises(StoreError, match=fault):
            samples.verify()
        group[name][:] = kept
        samples.verify()


def test_damaged_attributes_are_refused(tmp_path):
    write_samples(tmp_path / "s", ROWS)
    group = zarr.open_group(tmp_path / "s")
    for attribute, value in (
        ("n", 5),
        ("n", "many"),
        ("columns", ["x", "y"]),
        ("dtype", "float32"),
        ("dtype", "int32"),
        ("minima", [1.0]),
        ("scaling", {"kind": "zscore", "offsets": [1.0], "factors": [1.0]}),
        ("scaling", {"kind": "log", "offsets": [0.0] * 3, "factors": [1.0] * 3}),
        ("digest", None),
        ("largest_weight", 1.0),
    ):
        kept = group.attrs[attribute]
        if value is None:
            del group.attrs[attribute]
        else:
            group.attrs[attribute] = value
        with pytest.raises(StoreError, match=rf"{tmp_path / 's'}.*(again|recreate)"):
            open_samples(tmp_path / "s")
        group.attrs[attribute] = kept
    open_samples(tmp_path / "s")


def test_other_stores_are_no_samples(tmp_path):
    write_graph(tmp_path / "g", np.array([0, 1]), np.array([0]), np.ones(1))
    with pytest.raises(StoreError, match="is a graph store .*, but a samples store .*is needed"):
        open_samples(tmp_path / "g")
    with pytest.raises(StoreError, match="no such store"):
        open_samples(tmp_path / "nothing")
    write_samples(tmp_path / "s", ROWS, labels=list("abab"))
    (tmp_path / "s" / "label_names").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="`label_names` is missing"):
        open_samples(tmp_path / "s")


@pytest.mark.parametrize(
    ("values", "scaling", "want"),
    [
        ([[1, 2], [1, 4]], "zscore", [[0, -1], [0, 1]]),
        ([[0.1, 2], [0.1, 3], [0.1, 4]], "minmax", [[0, 0], [0, 0.5], [0, 1]]),
        ([[0, 2], [1e-200, 4]], "zscore", [[0, -1], [0, 1]]),  # its variance is 0
    ],
)
def test_a_constant_column_has_the_factor_1_and_is_said(tmp_path, values, scaling, want):
    with pytest.warns(UserWarning, match="s: column '0' is constant: it is stored with factor 1"):
        samples = write_samples(tmp_path / "s", np.array(values), scaling=scaling, dtype="float64")
    np.testing.assert_allclose(samples.values(), want, atol=1e-15)
    assert samples.scaling.factors[0] == 1
    np.testing.assert_allclose(samples.scaling.undo(samples.values()), values, atol=1e-15)


@pytest.mark.parametrize("given", [False, True])
def test_a_piece_that_is_refused_leaves_nothing(tmp_path, given):
    """Also one that only its transform, or the scaling of another store, refuses."""
    options = {"transforms": {"x": "log"}, "scaling": "none"}
    if given:
        options = {
            "scaling": write_samples(
                tmp_path / "other", np.array([[1.0], [3.0]]), columns=["x"], scaling="minmax"
            ).scaling
        }
    refused = np.full((2, 1), -1.0) if not given else np.full((2, 1), 1e300)
    with new_samples(
        tmp_path / "s", columns=["x"], dtype="float32", weighted=True, labelled=True, identified=True, **options
    ) as writer:
        with pytest.raises(ValueError, match="x"):
            writer.append(refused, np.ones(2), ["a", "b"], ["p", "q"])
        writer.append(np.ones((2, 1)), np.full(2, 3.0), ["c", "d"], ["r", "s"])
    found = open_samples(tmp_path / "s")
    assert (found.n, found.label_names(), found.ids()) == (2, ["c", "d"], ["r", "s"])
    assert found.weights().tolist() == [3.0, 3.0]
    found.verify()
