"""The estimator against scikit-learn's own checks, against `train_som` bit by bit, and against formulas written out."""

import importlib
import io
import pickle
import subprocess
import sys

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from pipeline_fixtures import cloud
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpuops import best_matching_units
from gpuops.som.grid import Grid
from pipelines import train_som
from pipelines.som.cells import cell_colours
from pipelines.som.clusters import cluster_units
from pipelines.som.pictures import KINDS
from pipelines.stores.samples import write_samples
from tilepath.sklearn import SelfOrganizingMap, SelfOrganizingMapClassifier


# The checks fit some hundred maps; small ones and few epochs find the same faults.
@parametrize_with_checks(
    [
        SelfOrganizingMap(),
        SelfOrganizingMap(4, 3, epochs=3, missing=True, hexagonal=True, metric="taxicab", kernel="linear"),
        SelfOrganizingMap(2, 3, epochs=3, toroidal=True, metric="cosine", schedule="exponential", tolerance=0.01),
    ],
    expected_failed_checks=lambda estimator: (
        {"check_sample_weight_equivalence_on_dense_data": "the size of the map follows the number of samples"}
        if estimator.rows is None
        else {}
    ),
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


pytestmark = pytest.mark.filterwarnings("ignore:in batches, the mexican hat")

CASES = {
    "plain": {},
    "hexagonal bubble": {"hexagonal": True, "kernel": "bubble", "initial": "random", "seed": 3},
    "torus, taxicab": {"toroidal": True, "metric": "taxicab", "kernel": "linear", "schedule": "exponential"},
    "hexagonal torus": {"hexagonal": True, "toroidal": True, "sigma": 2.5, "sigma_end": 0.7},
    "missing": {"missing": 0.2},
    "missing, random": {"missing": 0.2, "initial": "random", "seed": 2**40 + 1},
    "weights, cosine, hat": {"weighted": True, "metric": "cosine", "kernel": "mexican_hat"},
    "tolerance": {"sigma": 1.0, "epochs": 60, "tolerance": 1e-2},
    "given": {"initial": np.random.default_rng(1).normal(size=(42, 4))},
}


def both(client, folder, kind, dtype):
    """What `train_som` makes of a case, and the estimator, samples and weights for the same."""
    options = {"epochs": 3, **CASES[kind]}
    values = cloud(700, missing=options.pop("missing", 0.0)).astype(dtype)
    weights = np.random.default_rng(5).random(700) if options.pop("weighted", False) else None
    absent = bool(np.isnan(values).any())
    samples = write_samples(folder / "s", values, weights=weights, missing=absent)
    want = train_som(client, samples, folder / "m", 6, 7, piece_rows=101, **options)
    options["random_state"] = options.pop("seed", None)
    return want, SelfOrganizingMap(6, 7, missing=absent, **options), values, weights


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *((kind, "float32") for kind in CASES),
        *((kind, "float64") for kind in ("plain", "missing", "weights, cosine, hat", "given")),
    ],
)
def test_the_same_bits_as_the_pipeline(client, tmp_path, kind, dtype):
    want, estimator, values, weights = both(client, tmp_path, kind, dtype)
    got = estimator.fit(values, sample_weight=weights)
    assert got.codebook_.dtype == dtype
    np.testing.assert_array_equal(got.codebook_, want.units())
    assert got.grid_ == want.grid
    assert got.n_iter_ == want.epochs
    assert (kind == "tolerance") == (got.n_iter_ < got.epochs)
    assert tuple(got.quantization_errors_) == want.quantization_errors
    assert got.topographic_error_ == want.topographic_error
    np.testing.assert_array_equal(np.bincount(got.labels_, minlength=42), want.hits())
    np.testing.assert_array_equal(got.predict(values), got.labels_)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", CASES)
def test_a_gpu_changes_no_bit(gpu, client, tmp_path, kind):
    want, estimator, values, weights = both(client, tmp_path, kind, "float32")
    got = estimator.set_params(device="gpu").fit(values, sample_weight=weights)
    np.testing.assert_array_equal(got.codebook_, want.units())
    assert tuple(got.quantization_errors_) == want.quantization_errors
    on_cpu = pickle.loads(pickle.dumps(got)).set_params(device="cpu")
    np.testing.assert_array_equal(got.predict(values), on_cpu.predict(values))
    np.testing.assert_array_equal(got.transform(values), on_cpu.transform(values))


def test_as_many_calls_of_partial_fit_are_a_fit(client):
    values, weights = cloud(300), np.random.default_rng(0).random(300)
    whole = SelfOrganizingMap(5, 4, epochs=4).fit(values, sample_weight=weights)
    parts = SelfOrganizingMap(5, 4, epochs=4)
    for done in range(1, 5):
        parts.partial_fit(values, sample_weight=weights)
        assert parts.n_iter_ == done == len(parts.quantization_errors_)
    np.testing.assert_array_equal(parts.codebook_, whole.codebook_)
    assert parts.quantization_errors_ == whole.quantization_errors_[:-1]
    assert not hasattr(parts, "labels_")
    # Further epochs have the radius of the last epoch, whether it came from `fit` or from `partial_fit`.
    further = SelfOrganizingMap(5, 4, epochs=1, sigma=1.0, initial=whole.codebook_).fit(cloud(100, seed=1))
    for one in parts, whole:
        one.partial_fit(cloud(100, seed=1))
        np.testing.assert_array_equal(one.codebook_, further.codebook_)
        assert one.quantization_errors_[-1] == further.quantization_errors_[0]
        assert not hasattr(one, "labels_")
        assert not hasattr(one, "topographic_error_")
        assert one.n_iter_ == 5


def test_a_single_epoch_has_the_first_reach_and_later_ones_the_last():
    values = cloud(200)
    one = SelfOrganizingMap(5, 4, epochs=1, sigma=3.0, sigma_end=0.5).partial_fit(values)
    np.testing.assert_array_equal(
        one.codebook_, SelfOrganizingMap(5, 4, epochs=1, sigma=3.0, sigma_end=0.5).fit(values).codebook_
    )
    then = SelfOrganizingMap(5, 4, epochs=1, sigma=0.5, sigma_end=0.5, initial=one.codebook_).fit(values)
    np.testing.assert_array_equal(one.partial_fit(values).codebook_, then.codebook_)


def test_fit_forgets_what_was_learnt_before():
    values = cloud(200)
    again = SelfOrganizingMap(3, 3, epochs=3).partial_fit(cloud(50, d=2)).fit(values)
    fresh = SelfOrganizingMap(3, 3, epochs=3).fit(values)
    np.testing.assert_array_equal(again.codebook_, fresh.codebook_)
    assert again.quantization_errors_ == fresh.quantization_errors_
    assert again.n_features_in_ == 4


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_a_weight_is_a_repetition(learn):
    values = cloud(200)
    times = np.random.default_rng(2).integers(0, 4, 200)
    first = values[:25]
    repeated, weighted = (SelfOrganizingMap(5, 5, epochs=5, initial=first) for _ in range(2))
    getattr(repeated, learn)(np.repeat(values, times, axis=0))
    getattr(weighted, learn)(values, sample_weight=times)
    np.testing.assert_allclose(weighted.codebook_, repeated.codebook_, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(weighted.quantization_errors_, repeated.quantization_errors_, rtol=1e-11)
    score = repeated.score(np.repeat(values, times, axis=0))
    assert weighted.score(values, sample_weight=times) == pytest.approx(score, rel=1e-11)
    assert weighted.score(values) != pytest.approx(score, rel=1e-3)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("metric", ["euclidean", "taxicab", "cosine"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transform_gives_all_distances(metric, missing, dtype):
    values = cloud(300, d=7, missing=0.3 * missing).astype(dtype)
    found = SelfOrganizingMap(4, 5, epochs=2, metric=metric, missing=missing).fit(values)
    values = np.concatenate([values, np.zeros((1, 7), dtype)])  # a direction it has not
    got = found.transform(values)
    assert got.shape == (301, 20)
    assert got.dtype == dtype
    x, w = values[:, None].astype("float64"), found.codebook_[None].astype("float64")
    present = ~np.isnan(x)
    x, w = np.where(present, x, 0), w * present
    if metric == "euclidean":
        want = np.linalg.norm(x - w, axis=2)
    elif metric == "taxicab":
        want = abs(x - w).sum(axis=2)
    else:
        lengths = np.linalg.norm(x, axis=2) * np.linalg.norm(w, axis=2)
        want = np.where(lengths > 0, 1 - (x * w).sum(axis=2) / np.maximum(lengths, 1e-300), 1)
    np.testing.assert_allclose(got, want, rtol=1e-6 if dtype == "float32" else 1e-11, atol=1e-12)
    # What a search finds is in the matrix, to the last bit.
    units, distances = best_matching_units(values, found.codebook_, metric, missing=missing)
    np.testing.assert_array_equal(got[np.arange(301), units], distances)
    np.testing.assert_array_equal(got.min(axis=1), distances)
    np.testing.assert_array_equal(found.predict(values), units)
    found.cpu_block, found.piece_bytes = 33, 1000
    np.testing.assert_array_equal(found.transform(values), got)
    np.testing.assert_array_equal(found.predict(values), units)


def test_pieces_change_no_bit():
    values = cloud(500, missing=0.1)
    weights = np.random.default_rng(3).random(500)
    one, many = (SelfOrganizingMap(6, 6, epochs=4, missing=True) for _ in range(2))
    one.fit(values, sample_weight=weights)
    many.piece_bytes = 1000
    many.fit(values, sample_weight=weights)
    np.testing.assert_array_equal(many.codebook_, one.codebook_)
    np.testing.assert_array_equal(many.labels_, one.labels_)
    assert many.quantization_errors_ == one.quantization_errors_


def test_missing_values_are_left_out():
    """Of two columns that tell the same, either may be missing."""
    side = np.random.default_rng(3).integers(0, 2, 400)
    values = np.stack([side * 10.0, side * 10.0], axis=1)
    values[:150, 0] = np.nan
    values[150:300, 1] = np.nan
    found = SelfOrganizingMap(1, 2, epochs=5, sigma_end=0.1, missing=True).fit(values)
    np.testing.assert_allclose(np.sort(found.codebook_[:, 0]), [0, 10], atol=1e-9)
    assert len(np.unique(found.labels_[side == 0])) == len(np.unique(found.labels_[side == 1])) == 1
    with pytest.raises(ValueError, match="NaN"):
        SelfOrganizingMap(1, 2).fit(values)


@pytest.mark.parametrize("hexagonal", [False, True])
def test_a_torus_has_no_border(hexagonal):
    """On a ring of samples a closed map has units of equal standing, an open one has ends."""
    turn = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    rows = 2 if hexagonal else 1
    options = {"hexagonal": hexagonal, "epochs": 30, "sigma": 2.0, "sigma_end": 1.0}
    angles = np.arange(12) / 12 * 2 * np.pi
    first = np.tile(np.stack([np.cos(angles), np.sin(angles)], axis=1), (rows, 1))
    hits = [
        np.bincount(found.labels_, minlength=12 * rows).reshape(rows, 12).sum(axis=0)
        for toroidal in (True, False)
        for found in [SelfOrganizingMap(rows, 12, toroidal=toroidal, initial=first, **options).fit(ring)]
    ]
    assert np.ptp(hits[0]) <= 4 * rows < np.ptp(hits[1])
    assert SelfOrganizingMap(2, 3, hexagonal=True, toroidal=True).fit(ring).grid_ == Grid(2, 3, True, True)


def test_it_pickles_and_clones():
    values = cloud(100)
    found = SelfOrganizingMap(4, 4, epochs=3, hexagonal=True, initial=values[:16]).fit(values)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict(values), found.labels_)
    np.testing.assert_array_equal(
        again.partial_fit(values).codebook_, pickle.loads(pickle.dumps(found)).partial_fit(values).codebook_
    )
    fresh = clone(found)
    assert not hasattr(fresh, "codebook_")
    np.testing.assert_array_equal(fresh.fit(values).codebook_, found.codebook_)


def test_it_takes_part_in_a_pipeline_and_a_search():
    values = cloud(150) * [1, 10, 100, 1000]
    chain = make_pipeline(StandardScaler(), SelfOrganizingMap(3, 4, epochs=3)).fit(values)
    assert chain.transform(values).shape == (150, 12)
    np.testing.assert_array_equal(chain.predict(values), chain.transform(values).argmin(axis=1))
    assert chain.get_feature_names_out()[[0, 11]].tolist() == ["selforganizingmap0", "selforganizingmap11"]
    search = GridSearchCV(chain, {"selforganizingmap__rows": [1, 4], "selforganizingmap__sigma_end": [0.3, 3.0]}, cv=3)
    search.fit(values)
    assert search.best_params_ == {"selforganizingmap__rows": 4, "selforganizingmap__sigma_end": 0.3}


def test_random_state_draws_the_samples_to_begin_with():
    values = cloud(100)

    def first(state):
        # A neighbourhood so short that a unit moves to the mean of its own samples.
        found = SelfOrganizingMap(3, 3, epochs=1, sigma=0.1, initial="random", random_state=state)
        return found.fit(values).codebook_.tolist()

    assert first(7) == first(7) != first(8)
    assert first(np.random.RandomState(7)) == first(np.random.RandomState(7)) != first(np.random.RandomState(8))
    assert first(None) != first(None)


def test_a_map_keeps_its_dtype():
    values = cloud(80)
    found = SelfOrganizingMap(3, 3, epochs=2).fit(values.astype("float32"))
    assert found.transform(values).dtype == "float32"
    assert found.partial_fit(values).codebook_.dtype == "float32"
    assert SelfOrganizingMap(3, 3, epochs=2).fit(np.rint(values).astype(int)).codebook_.dtype == "float64"


def test_a_single_unit_and_a_single_sample():
    found = SelfOrganizingMap(1, 1, epochs=2).fit([[1.0, 2.0], [3.0, 6.0]])
    np.testing.assert_allclose(found.codebook_, [[2.0, 4.0]])
    assert found.topographic_error_ is None
    assert found.labels_.tolist() == [0, 0]
    alone = SelfOrganizingMap(2, 2, epochs=2).fit([[1.0, 2.0]])
    np.testing.assert_allclose(alone.codebook_, np.tile([1.0, 2.0], (4, 1)))
    assert alone.score([[1.0, 3.0]]) == pytest.approx(-1)


def test_what_hides_the_others_is_named():
    values = cloud(300)
    values[17, 2] = 1e20
    for learn in "fit", "partial_fit":
        with pytest.raises(ValueError, match=r"X: row 17 \(from 0\), column 2 is 1e\+20, while most samples differ by"):
            getattr(SelfOrganizingMap(3, 3), learn)(values)
    values[17, 2] = np.nan
    found = SelfOrganizingMap(3, 3, missing=True).fit(values)
    assert np.ptp(found.codebook_, axis=0).min() > 1


@pytest.mark.parametrize("kind", [SelfOrganizingMap, SelfOrganizingMapClassifier])
def test_a_fit_that_failed_leaves_no_fitted_map(kind):
    values = cloud(20)
    values[3, 1] = np.nan
    som = kind(2, 2)
    with pytest.raises(ValueError, match="NaN"):
        som.fit(values, np.arange(20) % 2)
    with pytest.raises(NotFittedError):
        som.predict(cloud(20))


def test_errors_name_the_cure():
    values = cloud(20)

    def refused(match, error=ValueError, X=values, rows=5, learn="fit", weights=None, **options):
        with pytest.raises(error, match=match):
            getattr(SelfOrganizingMap(rows, 5, **options), learn)(X, sample_weight=weights)

    for learn in "fit", "partial_fit":
        refused("25 units cannot begin with 20 samples", initial="random", learn=learn)
        refused("initial is 'somewhere'; pass 'pca', 'random' or an array", initial="somewhere", learn=learn)
        refused(r"initial\) has the shape \(3, 4\)", initial=np.zeros((3, 4)), learn=learn)
        refused("metric is 'chebyshev'; pass one of 'euclidean'", metric="chebyshev", learn=learn)
        refused("neighbourhood is 'box'", kernel="box", learn=learn)
        refused("even number of rows", hexagonal=True, toroidal=True, learn=learn)
        refused("rows is 0; give a whole number from 1", rows=0, learn=learn)
        refused("rows is 2.5; give an integer", TypeError, rows=2.5, learn=learn)
        refused("epochs is '3'; give an integer", TypeError, epochs="3", learn=learn)
        refused("epochs is 0", epochs=0, learn=learn)
        refused("sigma is -1", sigma=-1, learn=learn)
        refused("sigma_end is 0", sigma_end=0, learn=learn)
        refused("schedule is 'cosine'", schedule="cosine", learn=learn)
        refused("tolerance is 2; give a fraction", tolerance=2, learn=learn)
        refused("random_state is -1", initial="random", random_state=-1, learn=learn)
        refused("device is 'tpu'; pass one of 'auto', 'cpu', 'gpu'", device="tpu", learn=learn)
        refused("X: no value is larger than .*e-140, and squares of such values vanish", X=values * 1e-140, learn=learn)
        refused("weight.*zero", weights=np.zeros(20), learn=learn)
        refused("[Nn]egative", weights=np.full(20, -1), learn=learn)
        for name, given, cure in (
            ("tolerance", "a", "a number, or None"),
            ("random_state", np.random.default_rng(0), "an integer, a RandomState, or None"),
            ("sigma", "2", "a number, or None"),
            ("missing", "no", "True or False"),
            ("metric", None, "a name"),
        ):
            refused(f"{name} is .*; give {cure}", TypeError, learn=learn, **{name: given})
        dates = pd.DataFrame({"x": values[:, 0], "day": pd.Timestamp("2020-01-01")})
        refused("column 'day' of X holds dates or times", TypeError, X=dates, learn=learn)
        refused("column 0 of X holds dates", TypeError, X=values.astype("datetime64[s]"), learn=learn)
        frame = pd.DataFrame(values[:, :2], columns=["CD3", "CD4"]).mask(values[:, :2] == values[3, 1])
        refused(r"X is NaN in row 3 \(from 0\), column 'CD4'; .* pass missing=True", X=frame, learn=learn)
    holes = values.copy()
    holes[3] = np.nan
    refused("row 3 of X has no value at all; leave it out", X=holes, missing=True)
    holes = values.copy()
    holes[:, 2] = np.nan
    refused("column 2 of X has no value at all; leave it out", X=holes, missing=True)
    refused("infinity", X=np.full((3, 2), np.inf), missing=True)
    refused("magnitude 1e[+]200", X=np.full((3, 2), -1e200))
    found = SelfOrganizingMap(3, 3, epochs=1).fit(values)
    with pytest.raises(ValueError, match="map on Grid.*fit a new one"):
        found.set_params(rows=4).partial_fit(values)


def test_a_gpu_that_is_not_there_is_an_error(monkeypatch):
    class Cuda:
        is_available = staticmethod(lambda: False)

    class NoGpu:
        cuda = Cuda

    monkeypatch.setitem(sys.modules, "cupy", NoGpu)
    with pytest.raises(RuntimeError, match="pass 'cpu' or 'auto'"):
        SelfOrganizingMap(device="gpu").fit(cloud(20))
    SelfOrganizingMap(2, 2, device="auto").fit(cloud(20))
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"pip install -e .*\[cuda13\]"):
        SelfOrganizingMap(device="gpu").fit(cloud(20))
    SelfOrganizingMap(2, 2, device="auto").fit(cloud(20))


def test_without_scikit_learn_the_cure_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "tilepath.sklearn")
    with pytest.raises(ImportError, match=r"pip install -e .*\[sklearn\]"):
        importlib.import_module("tilepath.sklearn")


def test_a_masked_value_is_missing_to_the_estimator():
    values = np.random.default_rng(0).normal(size=(50, 3))
    mask = np.random.default_rng(1).random((50, 3)) < 0.2
    mask[:, 0] = False
    masked = np.ma.masked_array(np.where(mask, 1e6, values), mask)
    found = SelfOrganizingMap(3, 3, epochs=2, missing=True).fit(masked)
    want = SelfOrganizingMap(3, 3, epochs=2, missing=True).fit(np.where(mask, np.nan, values))
    np.testing.assert_array_equal(found.codebook_, want.codebook_)
    with pytest.raises(ValueError, match="NaN"):
        SelfOrganizingMap(3, 3).fit(masked)


@pytest.mark.filterwarnings("default:in batches, the mexican hat")
def test_the_mexican_hat_warns():
    with pytest.warns(UserWarning, match="in batches, the mexican hat"):
        SelfOrganizingMap(3, 3, epochs=1, kernel="mexican_hat").fit(np.random.default_rng(0).normal(size=(30, 2)))


def test_it_imports_neither_distributed_nor_zarr():
    code = (
        "import sys, tilepath.sklearn; sys.exit(str([m for m in ('dask', 'distributed', 'zarr') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"


def test_manhattan_is_taxicab():
    X = cloud(100)
    a, b = (SelfOrganizingMap(4, 5, epochs=3, metric=name).fit(X) for name in ("manhattan", "taxicab"))
    np.testing.assert_array_equal(a.codebook_, b.codebook_)
    np.testing.assert_array_equal(a.transform(X), b.transform(X))
    np.testing.assert_array_equal(a.u_matrix_, b.u_matrix_)


@pytest.mark.parametrize("seed", [7, 2**64 - 1])  # the number of the epoch is added to the seed
def test_online_training_is_that_of_the_pipeline(client, tmp_path, seed):
    X = cloud(120)
    store = write_samples(tmp_path / "s", X)
    options = {"epochs": 3, "hexagonal": True, "metric": "taxicab", "online": True, "rate": 0.3, "rate_end": 0.02}
    want = train_som(client, store, tmp_path / "m", rows=4, columns=5, seed=seed, **options)
    found = SelfOrganizingMap(4, 5, random_state=seed, **options).fit(X)
    np.testing.assert_array_equal(found.codebook_, want.units())
    assert found.quantization_errors_ == list(want.quantization_errors)
    with pytest.raises(ValueError, match="cannot use weights"):
        found.fit(X, sample_weight=np.ones(120))
    with pytest.raises(ValueError, match="rate is 2; give a part of the way to a sample, above 0"):
        SelfOrganizingMap(online=True, rate=2).fit(X)


def test_places_on_the_grid_hits_and_pictures():
    X = cloud(150)
    som = SelfOrganizingMap(4, 6, epochs=3, hexagonal=True).fit(X)
    where = som.grid_coordinates()
    np.testing.assert_array_equal(where[:, 0] * 6 + where[:, 1], som.labels_)
    np.testing.assert_array_equal(som.grid_coordinates(X[:9]), where[:9])
    np.testing.assert_array_equal(som.hits_.ravel(), np.bincount(som.labels_, minlength=24))
    assert som.u_matrix_.shape == som.hits_.shape == (4, 6)
    figure = Figure()
    for number, options in enumerate(({}, {"kind": "hits"}, {"kind": "plane", "column": 3})):
        axes = som.plot(axes=figure.add_subplot(1, 3, number + 1), **options)
        assert axes.get_title() == ("U-matrix", "hits", "column 3")[number]
    figure.savefig(io.BytesIO())
    with pytest.raises(ValueError, match="there is no column 4"):
        som.plot("plane", 4)
    with pytest.raises(ValueError, match="no picture 'heat'"):
        som.plot("heat")
    quality = som.quality(X)
    assert set(quality) == {"explained_variance", "trustworthiness", "neighbourhood_preservation"}
    assert all(0.4 < value <= 1 for value in quality.values())


def test_samples_with_missing_values_have_the_two_errors():
    X = cloud(80)
    X[::7, 1] = np.nan
    som = SelfOrganizingMap(3, 4, epochs=3, missing=True).fit(X)
    quality = som.quality(X)
    assert quality == {
        "quantization_error": som.quantization_errors_[-1],
        "topographic_error": som.topographic_error_,
    }


def test_planes_of_chosen_columns():
    som = SelfOrganizingMap(3, 4, epochs=3).fit(cloud(60))
    assert len(som.plot("planes").axes) == 2 * len(som.plot("planes", [2, 0]).axes)
    titles = [axes.get_title() for axes in som.plot("planes", [2, 0]).axes if axes.get_title()]
    assert titles == ["2", "0"]
    with pytest.raises(ValueError, match="there is no column 9"):
        som.plot("planes", [0, 9])
    plt.close("all")


@parametrize_with_checks([SelfOrganizingMapClassifier(3, 3, epochs=3, lvq_epochs=2)])
def test_scikit_learns_checks_of_the_classifier(estimator, check):
    check(estimator)


def test_units_vote_and_a_class_driven_step_helps():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    plain = SelfOrganizingMapClassifier(3, 3).fit(X, names)
    assert plain.score(X, names) == np.mean(plain.predict(X) == names)
    for unit in np.unique(plain.labels_):
        mine = names[plain.labels_ == unit]
        assert plain.purity_[unit] == np.mean(mine == plain.classes_[plain.unit_classes_[unit]])
    driven = SelfOrganizingMapClassifier(3, 3, lvq_epochs=20, random_state=0).fit(X, names)
    assert driven.score(X, names) > plain.score(X, names)
    wide = SelfOrganizingMapClassifier(12, 12).fit(X, names)  # some units have no samples, and yet a class
    assert np.isnan(wide.purity_).any()
    assert wide.unit_classes_.min() >= 0
    for options, match in (
        ({"lvq_rate": 1}, "lvq_rate 1"),
        ({"lvq_epochs": 1, "metric": "cosine"}, "Euclidean maps only"),
        ({"lvq_epochs": 1, "missing": True}, "does not support missing values"),
    ):
        with pytest.raises(ValueError, match=match):
            SelfOrganizingMapClassifier(**options).fit(X, y)


def test_a_map_of_the_usual_size_has_the_sides_of_train_som(client, tmp_path):
    X = cloud(150)
    trained = train_som(client, write_samples(tmp_path / "s", X), tmp_path / "m", epochs=2)
    som = SelfOrganizingMap(epochs=2).fit(X)
    assert som.grid_ == trained.grid
    np.testing.assert_array_equal(som.codebook_, trained.units())
    assert SelfOrganizingMap(columns=3, epochs=1).fit(X).grid_ == Grid(20, 3)
    begun = SelfOrganizingMap(epochs=2).partial_fit(X)
    assert begun.partial_fit(X[:40]).grid_ == trained.grid  # the sides of the first samples


@pytest.mark.parametrize("options", [{}, {"hexagonal": True, "metric": "taxicab"}, {"toroidal": True}])
def test_score_adds_the_path_to_the_second_unit(options):
    X, weights = cloud(80), np.random.default_rng(2).random(80)
    som = SelfOrganizingMap(4, 6, epochs=3, **options).fit(X)
    units = som.codebook_.astype(float)
    order = 1 if "metric" in options else 2
    links = nx.Graph()
    for unit, around in enumerate(som.grid_.neighbours()):
        for other in around[around >= 0].tolist():
            links.add_edge(unit, other, weight=np.linalg.norm(units[unit] - units[other], ord=order))
    errors = []
    for x in X:
        apart = np.linalg.norm(units - x, ord=order, axis=1)
        first, second = np.argsort(apart, kind="stable")[:2].tolist()
        errors.append(apart[first] + nx.dijkstra_path_length(links, first, second))
    np.testing.assert_allclose(som.score(X), -np.mean(errors), rtol=1e-12)
    np.testing.assert_allclose(som.score(X, sample_weight=weights), -np.average(errors, weights=weights), rtol=1e-12)
    alone = SelfOrganizingMap(1, 1, epochs=1).fit(X)
    np.testing.assert_allclose(alone.score(X), -alone.quantization_errors_[-1], rtol=1e-6)


def test_units_are_turned_back_into_values():
    X = cloud(90)
    som = SelfOrganizingMap(3, 4, epochs=2).fit(X)
    units = som.predict(X)
    np.testing.assert_array_equal(som.inverse_transform(units), som.codebook_[units])
    np.testing.assert_array_equal(som.inverse_transform(som.transform(X)), som.codebook_[units])
    for wrong in np.array([12]), np.array([-1]), np.array([0.5]), np.zeros((2, 5)):
        with pytest.raises(ValueError, match="give units from 0 to 11, or a row of 12 distances for each sample"):
            som.inverse_transform(wrong)


def test_clusters_of_units():
    X = cloud(200)
    som = SelfOrganizingMap(5, 6, epochs=4).fit(X)
    found = som.cluster(3)
    np.testing.assert_array_equal(found, cluster_units(som.codebook_, som.grid_, clusters=3))
    np.testing.assert_array_equal(som.unit_clusters_, found)
    immersed = som.cluster(2, "immersion", X=X)
    np.testing.assert_array_equal(immersed, cluster_units(som.codebook_, som.grid_, "immersion", 2, samples=X))
    assert not hasattr(som.fit(X), "unit_clusters_")


def test_the_classifier_gives_the_shares_of_its_units():
    X, y = load_iris(return_X_y=True)
    som = SelfOrganizingMapClassifier(6, 7, epochs=5).fit(X, y)
    shares = som.predict_proba(X)
    for unit in np.unique(som.labels_):
        of_unit = np.bincount(y[som.labels_ == unit], minlength=3)
        np.testing.assert_allclose(shares[som.labels_ == unit], [of_unit / of_unit.sum()] * of_unit.sum())
    empty = np.setdiff1d(np.arange(42), som.labels_)
    full = np.unique(som.labels_)
    for unit in empty:
        nearest = full[np.linalg.norm(som.codebook_[full] - som.codebook_[unit], axis=1).argmin()]
        np.testing.assert_array_equal(som.unit_shares_[unit], som.unit_shares_[nearest])
    np.testing.assert_array_equal(som.classes_[shares.argmax(axis=1)], som.predict(X))


@pytest.mark.parametrize("kind", [*KINDS, "plane"])
def test_every_picture_of_the_command_line_is_a_picture_of_the_estimator(kind):
    X = cloud(60)
    som = SelfOrganizingMap(3, 4, epochs=3).fit(X)
    som.cluster(2)
    needs = {"pmatrix": {"X": X}, "ustar": {"X": X}, "labels": {"y": som.labels_ % 3}, "pies": {"y": som.labels_ % 3}}
    drawn = som.plot(kind, title="a $title", **needs.get(kind, {}))
    figure = drawn if isinstance(drawn, Figure) else drawn.figure
    figure.savefig(io.BytesIO(), format="png", dpi=30)
    words = [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
    assert "a $title" in words
    plt.close(figure)


def test_a_picture_of_the_estimator_is_as_large_as_asked():
    som = SelfOrganizingMap(4, 4, epochs=1).fit(cloud(60))
    axes = som.plot(size=(2, 9), cmap="cividis")
    width, height = axes.get_position().size * axes.figure.get_size_inches()
    assert np.allclose((width, height), 2)
    assert axes.collections[0].get_cmap().name == "cividis"
    plt.close(axes.figure)


def test_a_picture_says_what_it_lacks():
    X = cloud(60)
    som = SelfOrganizingMap(3, 4, epochs=3).fit(X)
    for options, message in (
        ({"kind": "pmatrix"}, "pmatrix shows the density of samples; pass them as X"),
        ({"kind": "pies"}, "pies show the labels of the samples; pass them as y"),
        ({"kind": "labels", "y": [1, 2]}, "give the label of each of the 60 samples of fit or X"),
        ({"kind": "tree", "axes": Figure().add_subplot()}, "tree needs a figure of its own; leave out axes"),
        ({"axes": Figure().add_subplot(), "size": (3, 3)}, "size is for a new figure; leave out axes or size"),
        ({"kind": "clusters"}, "lacks what the picture shows; call cluster first"),
    ):
        with pytest.raises(ValueError, match=message):
            som.plot(**options)


@pytest.mark.parametrize("dtype", ["object", "category", "string"])
def test_samples_without_a_label_do_not_vote_and_train_no_classifier(dtype):
    X, kinds = load_iris(return_X_y=True)
    y = pd.Series([None if kind == 2 else f"kind {kind}" for kind in kinds], dtype=dtype)
    som = SelfOrganizingMap(4, 5).fit(X)
    axes = som.plot("labels", y=y)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["kind 0", "kind 1", "no sample"]
    grey = axes.get_legend().get_patches()[-1].get_facecolor()
    coloured = (cell_colours(axes) != grey).any(axis=1)
    assert set(np.flatnonzero(coloured)) == set(som.predict(X[kinds < 2]))
    plt.close("all")
    with pytest.raises(ValueError, match=r"y has no class in row 100 .*keep = y\.notna\(\)"):
        SelfOrganizingMapClassifier(2, 2).fit(X, y)
