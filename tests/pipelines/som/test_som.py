"""Training and mapping against formulas written out, and against themselves on other workers and in other pieces."""

import os
import signal
import threading
import time
import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from commands import invoke
from families import ALL, SLOW, diagonals, one_in, usual
from pipeline_fixtures import cloud, kill_at, let_tasks_end

from gpuops import quantization_error, topographic_error
from gpuops.som.grid import Grid
from pipelines import map_samples, planned, train_som
from pipelines.generators.point_clouds import PointCloud, write_cloud
from pipelines.som import learner, training
from pipelines.som.epoch import MapJob, accumulate, survey
from pipelines.som.mapping_quality import mapping_errors
from pipelines.som.plan import SomPlan, make_som_plan, piece_bytes
from pipelines.som.resolution import refuse_unresolved
from pipelines.som.schedule import settled, sigma_schedule
from pipelines.som.shard import Piece
from pipelines.som.start import products_of, random_rows, steps_for
from pipelines.stores.codebook import CodebookWriter, open_codebook
from pipelines.stores.errors import StoreError
from pipelines.stores.mapping import MappingWriter, open_mapping
from pipelines.stores.samples import open_samples, write_samples
from pipelines.workers.attempts import WorkersChanged
from pipelines.workers.capacity import DoesNotFitError, WorkerFacts

pytestmark = pytest.mark.usefixtures("dealt_to_all")


@pytest.fixture
def every_epoch(monkeypatch):
    """A commit after every epoch."""
    monkeypatch.setattr(training, "SECONDS", 0.0)


def batch_step(values, codebook, rows, columns, sigma):
    """MiniSom's train_batch_offline at a learning rate of 1: sums by winner, weighted by the neighbourhood."""
    winners = ((values[:, None] - codebook[None]) ** 2).sum(axis=2).argmin(axis=1)
    numerator, denominator = np.zeros((rows, columns, values.shape[1])), np.zeros((rows, columns, 1))
    for winner in np.unique(winners):
        row, column = divmod(winner, columns)
        along = np.exp(-((np.arange(rows) - row) ** 2) / (2 * sigma**2))
        across = np.exp(-((np.arange(columns) - column) ** 2) / (2 * sigma**2))
        h = np.outer(along, across)[..., None]
        numerator += h * values[winners == winner].sum(axis=0)
        denominator += h * (winners == winner).sum()
    return (numerator / denominator).reshape(rows * columns, -1)


def test_an_epoch_is_the_batch_step_of_minisom(three, tmp_path):
    values = cloud(300)
    samples = write_samples(tmp_path / "s", values)
    first = np.random.default_rng(1).normal(size=(30, 4))
    found = train_som(three, samples, tmp_path / "m", 5, 6, epochs=2, sigma=2.0, sigma_end=1.5, initial=first)
    np.testing.assert_array_equal(found.units(0), first)
    second = batch_step(values, first, 5, 6, 2.0)
    np.testing.assert_allclose(found.units(1), second, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.units(), batch_step(values, second, 5, 6, 1.5), rtol=1e-12, atol=1e-12)
    for epoch, error in enumerate(found.quantization_errors):
        distances = np.linalg.norm(values[:, None] - found.units(epoch)[None], axis=2)
        np.testing.assert_allclose(error, distances.min(axis=1).mean(), rtol=1e-12)


CASES = {
    "plain": {},
    "hexagonal bubble": {"hexagonal": True, "kernel": "bubble", "initial": "random", "seed": 3},
    "torus, taxicab": {"toroidal": True, "metric": "taxicab", "kernel": "linear", "schedule": "exponential"},
    "missing": {"missing": 0.2},
    "weights, cosine, hat": {"weighted": True, "metric": "cosine", "kernel": "mexican_hat"},
    "columns of all magnitudes": {"magnitudes": [1e-17, 1, 360, 3e12], "scaling": "none"},
}


@pytest.mark.filterwarnings("ignore:in batches, the mexican hat")
@pytest.mark.parametrize(("kind", "dtype"), diagonals(list(CASES), ["float32", "float64"], always=ALL))
def test_workers_and_pieces_change_no_bit(client, three, tmp_path, kind, dtype):
    options = dict(CASES[kind])
    values = cloud(700, missing=options.pop("missing", 0.0)) * options.pop("magnitudes", 1)
    weights = np.random.default_rng(5).random(700) if options.pop("weighted", False) else None
    facts = {"dtype": dtype, "missing": bool(np.isnan(values).any()), "weights": weights}
    facts["scaling"] = options.pop("scaling", "zscore")
    samples = write_samples(tmp_path / "a", values, **facts)
    in_chunks = write_samples(tmp_path / "b", values, chunk_rows=83, **facts)
    assert samples.digest == in_chunks.digest
    want = train_som(client, samples, tmp_path / "want", 6, 7, epochs=4, **options)
    got = train_som(three, in_chunks, tmp_path / "got", 6, 7, epochs=4, resident=False, piece_rows=57, **options)
    assert want.quantization_errors == got.quantization_errors
    assert want.topographic_error == got.topographic_error
    np.testing.assert_array_equal(want.hits(), got.hits())
    for epoch in range(5):
        np.testing.assert_array_equal(want.units(epoch), got.units(epoch))
    assert want.quantization_errors[-1] < want.quantization_errors[1]
    want.verify()


@pytest.mark.parametrize("missing", [False, True])
def test_a_small_column_beside_a_large_one(client, tmp_path, missing):
    """Returns beside market values: every column of the next codebook is the mean, to rounding of its own."""
    magnitudes = np.array([1e-17, 1e-3, 3e12])
    values = cloud(1000, d=3) * magnitudes
    first = np.random.default_rng(1).normal(size=(30, 3)) * magnitudes
    samples = write_samples(tmp_path / "s", values, missing=missing)
    found = train_som(client, samples, tmp_path / "m", 5, 6, epochs=1, sigma=2.0, initial=first)
    expected = batch_step(values, first, 5, 6, 2.0)
    np.testing.assert_allclose(found.units() / magnitudes, expected / magnitudes, rtol=1e-9, atol=1e-9)


SPOILT = {
    "a stand-in for a missing value": lambda x, w: (_with(x, 1, 17, -1e20), w),
    "many of them": lambda x, w: (_with(x, 1, slice(17, 700), 1e36), w),
    "one in a small column": lambda x, w: (_with(x * [1e9, 1e-3, 1], 1, 17, 1e20), w),
    "an offset": lambda x, w: (_with(x, 1, slice(17, None), x[17:, 1] + 1e19), w),
    "a constant": lambda x, w: (_with(x, 1, slice(None), 1e20), w),
    "a weight": lambda x, w: (x, _with(w[:, None], 0, 17, 1e20)[:, 0]),
}


def _with(values, column, rows, new):
    values = values.copy()
    values[rows, column] = new
    return values


@pytest.mark.parametrize("kind", SPOILT)
def test_what_hides_the_others_is_named(client, tmp_path, kind):
    values, weights = SPOILT[kind](cloud(1000, d=3), np.random.default_rng(2).random(1000))
    samples = write_samples(tmp_path / "s", values, weights=weights, columns=["a", "b", "c"])
    where = "the weight of row 17" if kind == "a weight" else f"row {0 if kind == 'a constant' else 17}.* column 'b' is"
    if kind == "an offset":
        where = r"row \d+ \(from 0\), column 'b' is 1e\+19"
    with pytest.raises(ValueError, match=f"{samples.path}: {where}"):
        train_som(client, samples, tmp_path / "m", 5, 6)
    assert not (tmp_path / "m").exists()


ORDINARY = {
    "a stand-in that is no larger than that": lambda x: _with(x, 1, 17, -9999),
    "probabilities": lambda x: np.exp(60 * x) / np.exp(60 * x).sum(axis=1, keepdims=True),
    "mostly zero": lambda x: x * (np.random.default_rng(0).random(x.shape) < 0.01),
    "heavy tails": lambda x: np.exp(4 * x),
    "seconds since 1970": lambda x: x + np.array([0, 1.7e9, 0, 0, 0]),
    "one of several": lambda x: (x == x.max(axis=1, keepdims=True)).astype(float),
    "one sample": lambda x: x[:1],
    "the same samples": lambda x: np.ones_like(x) * 1e100,
    "tiny": lambda x: x * 1e-130,
}


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_samples_are_taken(kind):
    """As if there were a million of them."""
    values = ORDINARY[kind](np.random.default_rng(1).normal(size=(10_000, 5)))
    n = len(values)
    job = MapJob(Grid(5, 5), "euclidean", "gaussian", n, 5, tuple(abs(values).max(axis=0)), None, False)
    if n > 1:
        job = replace(job, n=10**6)
    refuse_unresolved(job, lambda start, stop: (values[start % n : (stop - 1) % n + 1], None), "s", range(5))


def test_more_workers_than_samples_and_a_single_unit(three, tmp_path):
    samples = write_samples(tmp_path / "s", np.array([[1.0, 2.0], [3.0, 6.0]]))
    found = train_som(three, samples, tmp_path / "m", 1, 1, epochs=2)
    np.testing.assert_allclose(found.units(), [[2.0, 4.0]])
    assert found.hits().tolist() == [2]
    assert found.topographic_error is None
    placed = map_samples(three, found, samples, tmp_path / "p")
    assert placed.units().tolist() == [[0], [0]]
    assert [*mapping_errors(placed)] == ["quantization_error"]
    line = train_som(three, samples, tmp_path / "line", 1, 3, epochs=3, sigma_end=0.2)
    assert line.hits().tolist() == [1, 0, 1]


def test_a_weight_is_a_repetition(client, tmp_path):
    values = cloud(200)
    times = np.random.default_rng(2).integers(0, 4, 200)
    repeated = write_samples(tmp_path / "r", np.repeat(values, times, axis=0))
    weighted = write_samples(tmp_path / "w", values, weights=times.astype(float))
    first = train_som(client, repeated, tmp_path / "a", 5, 5, epochs=5, tolerance=0)
    options = {"epochs": 5, "tolerance": 0}
    second = train_som(client, weighted, tmp_path / "b", 5, 5, **options)
    # The first codebooks differ by what values are rounded to for the covariance, 2^-20 of their range.
    np.testing.assert_allclose(first.units(0), second.units(0), atol=1e-4)
    again = train_som(client, weighted, tmp_path / "c", 5, 5, initial=first.units(0), **options)
    np.testing.assert_allclose(again.units(), first.units(), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(again.quantization_errors, first.quantization_errors, rtol=1e-11)
    assert again.topographic_error == pytest.approx(first.topographic_error, abs=1e-12)


def test_missing_values_are_left_out(client, tmp_path):
    """Of two columns that tell the same, either may be missing."""
    side = np.random.default_rng(3).integers(0, 2, 400)
    values = np.stack([side * 10.0, side * 10.0], axis=1)
    values[:150, 0] = np.nan
    values[150:300, 1] = np.nan
    samples = write_samples(tmp_path / "s", values, missing=True)
    found = train_som(client, samples, tmp_path / "m", 1, 2, epochs=5, sigma_end=0.1)
    np.testing.assert_allclose(np.sort(found.units()[:, 0]), [0, 10], atol=1e-9)
    assert found.quantization_errors[-1] == pytest.approx(0, abs=1e-9)
    np.testing.assert_array_equal(np.sort(found.hits()), np.sort(np.bincount(side)))


def test_the_plane_is_that_of_the_principal_components(three, tmp_path):
    values = cloud(500, d=3) * [5, 1, 0.2] + [1e4, -7, 0]
    samples = write_samples(tmp_path / "s", values)
    found = train_som(three, samples, tmp_path / "m", 4, 9, epochs=1, sigma=0.1, sigma_end=0.1).units(0)
    variances, components = np.linalg.eigh(np.cov(values.T, bias=True))
    np.testing.assert_allclose(found.mean(axis=0), values.mean(axis=0), rtol=1e-6)
    by_place = found.reshape(4, 9, 3)
    for span, which in ((by_place[0, -1] - by_place[0, 0], -1), (by_place[-1, 0] - by_place[0, 0], -2)):
        want = 2 * np.sqrt(variances[which]) * components[:, which]
        np.testing.assert_allclose(span * np.sign(span @ want), want, atol=1e-4 * abs(want).max())


@pytest.mark.parametrize("weighted", [False, True])
def test_products_are_exact_for_any_pieces(weighted):
    values = cloud(9000, d=7)
    weights = np.random.default_rng(1).random(9000) if weighted else None
    steps = steps_for(9000, values.mean(axis=0), values.min(axis=0), values.max(axis=0), 1.0 if weighted else None)

    def pieces(step):
        return [
            Piece(i, values[i : i + step], None if weights is None else weights[i : i + step])
            for i in range(0, 9000, step)
        ]

    want, got = products_of(pieces(9000), steps), products_of(pieces(77), steps)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(a, b)
    integers = np.rint((values - steps.centres) * (2.0**steps.bits / steps.spans)).astype(np.int64)
    if not weighted:
        np.testing.assert_array_equal(want.products, integers.T @ integers)


def test_training_goes_on_from_a_codebook(client, tmp_path):
    samples = write_samples(tmp_path / "s", cloud(300))
    sigmas = sigma_schedule(4, 3.0, 1.5)
    whole = train_som(client, samples, tmp_path / "whole", 5, 6, epochs=4, sigma=3.0, sigma_end=1.5)
    half = train_som(client, samples, tmp_path / "half", 5, 6, epochs=2, sigma=sigmas[0], sigma_end=sigmas[1])
    rest = train_som(client, samples, tmp_path / "rest", 5, 6, epochs=2, sigma=2.0, sigma_end=1.5, initial=half)
    np.testing.assert_array_equal(rest.units(), whole.units())
    assert rest.quantization_errors == whole.quantization_errors[2:]


def test_training_stops_when_nothing_is_gained(client, tmp_path):
    samples = write_samples(tmp_path / "s", cloud(300))
    options = {"sigma": 1.0, "sigma_end": 1.0, "epochs": 60}
    found = train_som(client, samples, tmp_path / "m", 5, 6, tolerance=1e-3, **options)
    assert 3 < found.epochs < 60
    assert len(found.quantization_errors) == len(found.sigmas) + 1 == found.epochs + 1
    assert found.units(found.epochs).tolist() == found.units().tolist()
    gains = -np.diff(found.quantization_errors) / found.quantization_errors[:-1]
    assert (gains[: found.epochs - 2] >= 1e-3).all()
    assert gains[found.epochs - 2] < 1e-3
    found.verify()


def test_a_tolerance_adds_epochs_in_which_the_map_settles(client, tmp_path):
    """Up to the last reach the training is the one without a tolerance; then it goes on, online training too."""
    values = cloud(300)
    samples = write_samples(tmp_path / "s", values)
    options = {"epochs": 6, "sigma_end": 0.3, "schedule": "linear"}
    for online in False, True:
        plain = train_som(client, samples, tmp_path / f"p{online}", 5, 6, online=online, **options)
        found = train_som(client, samples, tmp_path / f"t{online}", 5, 6, online=online, tolerance=1e-3, **options)
        assert 8 <= found.epochs <= 12
        assert found.sigmas == (*plain.sigmas, *[0.3] * (found.epochs - 6))
        for epoch in range(7):
            np.testing.assert_array_equal(found.units(epoch), plain.units(epoch))
        assert found.quantization_errors[-1] <= 1.01 * plain.quantization_errors[-1]
        found.verify()


def test_the_first_codebook_is_not_judged(client, tmp_path):
    """The plane lies closer to the samples than what the first smoothing makes of it."""
    samples = write_samples(tmp_path / "s", cloud(300))
    found = train_som(client, samples, tmp_path / "m", 5, 6, epochs=30, sigma=3.0, sigma_end=3.0, tolerance=0.01)
    assert found.quantization_errors[1] > found.quantization_errors[0]
    assert found.epochs > 2


def test_what_has_settled_is_not_trained_on_after_a_kill(client, tmp_path, monkeypatch):
    """The end of a run that was killed between its last commit and the record of the end."""
    samples = write_samples(tmp_path / "s", cloud(300))
    options = {"sigma": 1.0, "sigma_end": 1.0, "epochs": 60, "tolerance": 1e-3}
    want = train_som(client, samples, tmp_path / "calm", 5, 6, **options)

    def pull_the_plug(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CodebookWriter, "finish", pull_the_plug)
        with pytest.raises(KeyboardInterrupt):
            train_som(client, samples, tmp_path / "m", 5, 6, **options)
    got = train_som(client, samples, tmp_path / "m", 5, 6, resume=True, **options)
    assert got.quantization_errors == want.quantization_errors
    np.testing.assert_array_equal(got.units(), want.units())


def test_online_training_takes_one_sample_after_another(client, three, tmp_path):
    """Kohonen's rule written out, in the order of the epochs; on other workers and in two runs the same bits."""
    values = cloud(60, d=3)
    samples = write_samples(tmp_path / "s", values, dtype="float64")
    first = np.random.default_rng(1).normal(size=(12, 3))
    options = {"epochs": 3, "sigma": 2.0, "sigma_end": 0.5, "online": True, "initial": first, "seed": 7}
    found = train_som(three, samples, tmp_path / "m", 3, 4, **options)
    units, step = first.copy(), 0
    row, column = np.divmod(np.arange(12), 4)
    for epoch in range(3):
        order = random_rows(60, 60, 7 + epoch)
        assert sorted(order) == list(range(60))
        for i in order:
            part = step / 179
            sigma, rate, step = 2.0 - 1.5 * part, 0.5 - 0.49 * part, step + 1
            best = np.linalg.norm(values[i] - units, axis=1).argmin()
            h = np.exp(-((row - row[best]) ** 2 + (column - column[best]) ** 2) / (2 * sigma**2))
            units += rate * h[:, None] * (values[i] - units)
        np.testing.assert_allclose(found.units(epoch + 1), units, rtol=1e-10, atol=1e-12)
    assert found.quantization_errors[-1] < found.quantization_errors[0]
    again = train_som(client, samples, tmp_path / "again", 3, 4, **options)
    np.testing.assert_array_equal(again.units(), found.units())
    assert again.quantization_errors == found.quantization_errors
    weighted = write_samples(tmp_path / "w", values, weights=np.ones(60))
    with pytest.raises(ValueError, match="has weights"):
        train_som(client, weighted, tmp_path / "n", 3, 4, online=True)
    with pytest.raises(ValueError, match="rate_end is 0"):
        train_som(client, samples, tmp_path / "n", 3, 4, online=True, rate_end=0.0)


def test_maps_of_shapes_are_as_good_as_those_of_others(client, tmp_path):
    """Chainlink on 20 x 20 units: XPySom's map has an error of 0.048 and MiniSom's 0.107; ours lies between."""
    samples = write_cloud(PointCloud(kind="chainlink", n=1000), tmp_path / "s")
    found = train_som(client, samples, tmp_path / "m", 20, 20, sigma=10.0, sigma_end=0.5)
    placed = map_samples(client, found, samples, tmp_path / "p")
    labels, units = samples.labels(), placed.units()[:, 0]
    rings = [set(units[labels == label].tolist()) for label in (0, 1)]
    assert not rings[0] & rings[1]
    errors = mapping_errors(placed)
    assert 0.03 < errors["quantization_error"] < 0.107
    assert errors["topographic_error"] < 0.15


def test_a_mapping_holds_what_a_search_finds(client, three, tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.stores.mapping.CHUNK_BYTES", 1600)
    values = cloud(900)
    samples = write_samples(tmp_path / "s", values, dtype="float64")
    found = train_som(client, samples, tmp_path / "m", 6, 6, epochs=5, hexagonal=True)
    placed = map_samples(three, found, samples, tmp_path / "p")
    distances = np.linalg.norm(values[:, None] - found.units()[None], axis=2)
    units = np.argsort(distances, axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(placed.units(), units)
    np.testing.assert_allclose(placed.distances(), np.take_along_axis(distances, units, axis=1), rtol=1e-12)
    np.testing.assert_array_equal(placed.hits(), found.hits())
    errors = mapping_errors(placed)
    assert errors["quantization_error"] == pytest.approx(quantization_error(placed.distances()), rel=1e-12)
    assert errors["quantization_error"] == pytest.approx(found.quantization_errors[-1], rel=1e-12)
    assert errors["topographic_error"] == pytest.approx(topographic_error(placed.units(), found.grid))
    assert errors["topographic_error"] == pytest.approx(found.topographic_error)
    placed.verify()
    with pytest.raises(StoreError, match="--overwrite"):
        map_samples(client, found, samples, tmp_path / "p")
    assert map_samples(client, found, samples, tmp_path / "p", resume=True).n == 900
    named = write_samples(tmp_path / "named", values, columns="abcd")
    with pytest.raises(ValueError, match=r"named has columns .* \(like, --like .*m\)"):
        map_samples(client, found, named, tmp_path / "q")
    rounded = write_samples(tmp_path / "rounded", values, dtype="float32")
    with pytest.raises(ValueError, match="rounded has dtype float32, the map float64"):
        map_samples(client, found, rounded, tmp_path / "q")


@pytest.mark.parametrize(
    "scaling", [*(pytest.param(name, marks=SLOW) for name in ("none", "minmax")), "zscore", "arcsinh"]
)
def test_new_samples_are_put_on_a_scaled_map(client, three, tmp_path, scaling):
    """Scaled by the record of the map, whatever their own scaling: when they are imported, or when they are mapped."""
    values = cloud(700) * [1, 100, 0.01, 1] + [0, 1e4, 0, 3]
    train, test = values[:500], values[500:] * 0.7  # of another mean and spread
    found = train_som(client, write_samples(tmp_path / "train", train, scaling=scaling), tmp_path / "m", 5, 6, epochs=5)
    exact = write_samples(tmp_path / "like", test, scaling=found.scaling)
    assert exact.scaling == found.scaling
    np.testing.assert_array_equal(exact.values(), found.scaling.apply(test))
    want = map_samples(client, found, exact, tmp_path / "want")
    for own in dict.fromkeys(("none", scaling, "arcsinh")):
        samples = write_samples(tmp_path / own, test, scaling=own, chunk_rows=37)
        got = map_samples(three, found, samples, tmp_path / f"on {own}")
        if own == "none":
            np.testing.assert_array_equal(got.units(), want.units())
            np.testing.assert_array_equal(got.distances(), want.distances())
        np.testing.assert_allclose(got.distances(), want.distances(), rtol=1e-9, atol=1e-9)
        assert got.samples_digest == samples.digest


def test_samples_beyond_the_scale_of_the_map_are_named(client, tmp_path):
    values = cloud(100, d=2)
    samples = write_samples(tmp_path / "s", values * [1, 1e-30], dtype="float32", scaling="minmax")
    found = train_som(client, samples, tmp_path / "m", 2, 2, epochs=1)
    values[70, 1] = 1e30
    far = write_samples(tmp_path / "t", values, dtype="float32", chunk_rows=9)
    with pytest.raises(ValueError, match=rf"{far.path}: a value of column '1' is .*e\+58 once it is scaled"):
        map_samples(client, found, far, tmp_path / "p")
    assert not (tmp_path / "p").exists()
    with pytest.raises(ValueError, match=r"row 70 \(from 0\), column '1' is .*e\+58 once it is scaled"):
        write_samples(tmp_path / "u", values, dtype="float32", scaling=found.scaling)
    with pytest.raises(ValueError, match="the scaling is for 2 columns, not 3"):
        write_samples(tmp_path / "u", cloud(9, d=3), scaling=found.scaling)


@pytest.mark.parametrize("header", [True, False])
def test_train_and_test_sets_by_command(tilepath, tmp_path, header):
    """Columns are found by their names, in whatever order and beside whatever others they come."""
    som = partial(tilepath, "som")
    values = cloud(150, d=3).astype("float32").astype(float) * [1, 64, 4096]  # float32 holds them
    train, test = values[:100], values[100:]
    lines = [f"{a},{b},{c},kind {i % 3}" for i, (a, b, c) in enumerate(train.tolist())]
    (tmp_path / "train.csv").write_text("\n".join(["height,width,depth,kind"] * header + lines))
    (tmp_path / "raw.csv").write_text("\n".join(f"{a},{b},{c}" for a, b, c in test.tolist()))
    if header:
        rows = [f"{c},,{a},{b}" for a, b, c in test.tolist()]
        (tmp_path / "test.csv").write_text("\n".join(["depth,note,height,width", *rows]))
    else:
        os.rename("raw.csv", "test.csv")
    som("import", "train.csv", "train", "--label", "kind" if header else "3", "--scaling", "zscore")
    som("train", "train", "map", "--rows", "4", "--columns", "5", "--epochs", "3", "--device", "cpu")
    for store in "train", "map":
        assert "scaled by zscore" in som("import", "test.csv", f"like-{store}", "--like", store)
        assert open_samples(f"like-{store}").columns == open_samples("train").columns
        assert "units of 50 samples" in som("map", "map", f"like-{store}", f"on-{store}", "--device", "cpu")
    names = ["--columns", "height,width,depth"] if header else []
    som("import", "test.csv", "raw", *names)
    som("map", "map", "raw", "on-raw", "--device", "cpu")
    for other in "on-train", "on-raw":
        np.testing.assert_array_equal(open_mapping(other).units(), open_mapping("on-map").units())
        np.testing.assert_array_equal(open_mapping(other).distances(), open_mapping("on-map").distances())
    som("import", "test.csv", "x", "--like", "map", "--scaling", "zscore", fault="leave out scaling (--scaling)")
    som("import", "test.csv", "x", "--like", "map", "--columns", "1", fault="leave out columns (--columns)")
    som("import", "test.csv", "x", "--like", "on-map", fault="name a samples or a codebook store")
    (tmp_path / "other.csv").write_text("height,width,length\n1,2,3\n")
    fault = "no column 'depth'" if header else "column names differ from those of"
    som("import", "other.csv", "x", "--like", "map", fault=fault)
    assert not (tmp_path / "x").exists()
    holes = "height,width,depth\n" * header + "1,,2\n3,4,5\n5,6,7\n"
    (tmp_path / "holes.csv").write_text(holes)
    som("import", "holes.csv", "holes", "--missing", "--scaling", "zscore")
    assert "values may be missing" in som("import", "holes.csv", "new", "--like", "holes")


def test_a_mapping_resumes_by_chunks(client, tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.stores.mapping.CHUNK_BYTES", 1600)
    monkeypatch.setattr("pipelines.workers.row_chunks.RECORD_SECONDS", 0.0)
    samples = write_samples(tmp_path / "s", cloud(900))
    found = train_som(client, samples, tmp_path / "m", 4, 4, epochs=2)
    write = "pipelines.stores.mapping.MappingWriter.write"

    def fail(run, start, units, distances, *weights):
        if start >= 400:
            while MappingWriter.begun(tmp_path / "p").progress()[0] < 400:  # until what went before is recorded
                time.sleep(0.01)
            raise RuntimeError("the plug is pulled")
        original(run, start, units, distances, *weights)

    original = MappingWriter.write
    with monkeypatch.context() as patch:
        patch.setattr(write, fail)
        with pytest.raises(RuntimeError, match="plug"):
            map_samples(client, found, samples, tmp_path / "p")
        let_tasks_end(client)
    with pytest.raises(StoreError, match="--resume"):
        open_mapping(tmp_path / "p")
    later = []

    def note(run, start, units, distances, *weights):
        later.append(start)
        original(run, start, units, distances, *weights)

    with monkeypatch.context() as patch:
        patch.setattr(write, note)
        placed = map_samples(client, found, samples, tmp_path / "p", resume=True)
    assert min(later) == 400
    placed.verify()
    np.testing.assert_array_equal(placed.hits(), found.hits())


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["between epochs", "within an epoch"])
def test_a_killed_worker_costs_nothing_but_time(client, two_processes, tmp_path, moment):
    """kill -9 of one of two worker processes: the codebooks of an undisturbed run come out."""
    samples = write_samples(tmp_path / "s", cloud(6000, d=10))
    options = {"epochs": 20, "sigma_end": 0.5, "resident": moment == "between epochs", "piece_rows": 500}
    want = train_som(client, samples, tmp_path / "calm", 15, 15, **options)
    out, killed = tmp_path / "killed", []
    two_processes.wait_for_workers(2)

    def murder():
        pid = max(two_processes.run(os.getpid).values())
        while not out.exists() or CodebookWriter.begun(out).progress()[0] < 3:
            time.sleep(0.005)
        if moment == "within an epoch":
            time.sleep(0.03)
        os.kill(pid, signal.SIGKILL)
        killed.append(CodebookWriter.begun(out).progress()[0])

    murderer = threading.Thread(target=murder)
    murderer.start()
    got = train_som(two_processes, samples, out, 15, 15, **options)
    murderer.join()
    assert 3 <= killed[0] < 20
    for epoch in (0, 10, 20):
        np.testing.assert_array_equal(got.units(epoch), want.units(epoch))
    assert got.quantization_errors == want.quantization_errors
    np.testing.assert_array_equal(got.hits(), want.hits())


def _refuse_shared_memory(refuse):
    from pipelines.workers import mapped_memory, rings

    def refused(_count):
        raise mapped_memory.CannotMap("for a test")

    rings.HostMemory = refused if refuse else mapped_memory.HostMemory


@pytest.mark.parametrize(
    ("way", "missing"), one_in(3, [("some through Dask", 0.0), ("straight", 0.2), ("through Dask", 0.2)])
)
def test_sums_go_straight_from_worker_to_worker_or_through_dask(client, two_processes, tmp_path, capsys, way, missing):
    samples = write_samples(tmp_path / "s", cloud(600, missing=missing), missing=bool(missing))
    want = train_som(client, samples, tmp_path / "want", 6, 7, epochs=5)
    members = sorted(two_processes.nthreads())
    refusing = {"straight": [], "some through Dask": members[:1], "through Dask": members}[way]
    if refusing:
        two_processes.run(_refuse_shared_memory, True, workers=refusing)
    capsys.readouterr()
    try:
        got = train_som(two_processes, samples, tmp_path / "got", 6, 7, epochs=5, progress=True)
    finally:
        two_processes.run(_refuse_shared_memory, False)
    said = {
        "straight": "sums go straight from worker to worker, in shared memory",
        "some through Dask": "some sums travel through Dask and host memory (for a test)",
        "through Dask": "sums travel through Dask and host memory (for a test)",
    }
    assert said[way] in capsys.readouterr().err
    assert got.quantization_errors == want.quantization_errors
    for epoch in range(6):
        np.testing.assert_array_equal(got.units(epoch), want.units(epoch))


def test_a_write_of_a_lost_attempt_ends_before_the_next_attempt_begins(client, tmp_path, monkeypatch):
    """Both may change one chunk, by what each of them read of it before."""
    samples, happened, gone = write_samples(tmp_path / "s", cloud(300)), [], threading.Event()
    write, clear, commit = CodebookWriter.write, training.clear_states, training.Training._commit

    def slowly(out, first, codebooks):
        happened.append("write")
        if first:
            gone.wait(60)
            time.sleep(0.2)
        write(out, first, codebooks)
        happened.append("written")

    def cleared():
        clear()
        happened.append("cleared")

    def lost(attempt, write):
        monkeypatch.setattr(training.Training, "_commit", commit)
        while happened[-2:] != ["written", "write"]:
            time.sleep(0.01)
        gone.set()
        raise WorkersChanged("for a test")

    monkeypatch.setattr(CodebookWriter, "write", slowly)
    monkeypatch.setattr(training, "clear_states", cleared)
    monkeypatch.setattr(training.Training, "_commit", lost)
    train_som(client, samples, tmp_path / "m", 5, 6, epochs=2).verify()
    assert happened[:6] == ["cleared", "write", "written", "write", "written", "cleared"]


RUN = """
import sys
from clusters import start
from pipelines import train_som
from pipelines.som import plan, training
training.SECONDS = float(sys.argv[3])
plan.FEW = plan.FEW if training.SECONDS else 0
if __name__ == "__main__":
    with start(device="cpu") as client:
        train_som(client, sys.argv[1], sys.argv[2], 12, 12, epochs=int(sys.argv[4]))
"""


@pytest.mark.parametrize(("seconds", "epochs"), [pytest.param(0, 40, marks=pytest.mark.slow), (0.02, 400)])
def test_a_killed_run_resumes_where_it_was(client, three, tmp_path, seconds, epochs):
    """kill -9 of everything half-way, then --resume, on another number of workers."""
    samples = write_samples(tmp_path / "s", cloud(5000, d=6))
    out = tmp_path / "killed"
    done, total = kill_at(10, CodebookWriter.begun, RUN, samples.path, out, seconds, epochs)
    assert total == epochs
    with pytest.raises(StoreError, match=f"{done} of {epochs} epochs done; repeat"):
        open_codebook(out)
    chunk = out / "codebooks" / "c" / str(done // CodebookWriter.begun(out).together) / "0" / "0"
    written = chunk.stat().st_mtime_ns
    got = train_som(three, samples, out, 12, 12, epochs=epochs, resume=True)
    assert chunk.stat().st_mtime_ns == written  # not done again
    want = train_som(client, samples, tmp_path / "calm", 12, 12, epochs=epochs)
    np.testing.assert_array_equal(got.units(), want.units())
    assert got.quantization_errors == want.quantization_errors
    assert train_som(client, samples, out, 12, 12, epochs=epochs, resume=True).epochs == epochs
    with pytest.raises(StoreError, match="begun with metric euclidean, not taxicab"):
        train_som(client, samples, out, 12, 12, epochs=epochs, metric="taxicab", resume=True)
    with pytest.raises(StoreError, match="--overwrite"):
        train_som(client, samples, out, 12, 12)


def test_epochs_of_a_small_map_are_committed_together(client, tmp_path, monkeypatch):
    """As many as a worker does in some time; the codebooks and the errors of all are there all the same."""
    samples = write_samples(tmp_path / "s", cloud(150))
    commits, commit = [], CodebookWriter.commit
    monkeypatch.setattr(CodebookWriter, "commit", lambda run, *done: (commits.append(done[0]), commit(run, *done)))
    found = {}
    for seconds in 0.0, 60.0:
        monkeypatch.setattr(training, "SECONDS", seconds)
        found[seconds] = train_som(client, samples, tmp_path / f"{seconds}", 5, 6, epochs=30)
        found[seconds].verify()
    assert commits[:31] == [*range(1, 31), 30]  # the end is a commit too
    assert len(commits[31:]) <= training.AHEAD + 2  # short segments at first, as nothing is known of an epoch
    for epoch in range(31):
        np.testing.assert_array_equal(found[60].units(epoch), found[0].units(epoch))
    assert found[60].quantization_errors == found[0].quantization_errors


def test_a_chunk_of_several_codebooks_is_written_whole_where_a_resumed_run_keeps_few(client, tmp_path, monkeypatch):
    """The store was begun without keep_codebooks, so its chunks hold several epochs."""
    monkeypatch.undo()  # few samples are for one worker here
    samples = write_samples(tmp_path / "s", cloud(150))
    want = train_som(client, samples, tmp_path / "want", 5, 6, epochs=100)
    commit = CodebookWriter.commit

    def fail(writer, epochs, errors):
        commit(writer, epochs, errors)
        raise RuntimeError("the plug is pulled")

    with monkeypatch.context() as patch:
        patch.setattr(training, "SECONDS", 0.0)
        patch.setattr(CodebookWriter, "commit", fail)
        with pytest.raises(RuntimeError, match="the plug"):
            train_som(client, samples, tmp_path / "m", 5, 6, epochs=100)
    assert CodebookWriter.begun(tmp_path / "m").together > 1
    found = train_som(client, samples, tmp_path / "m", 5, 6, epochs=100, keep_codebooks=1, resume=True)
    for epoch in range(found.first_kept, 101):
        np.testing.assert_array_equal(found.units(epoch), want.units(epoch))


def test_a_segment_of_a_large_map_is_short(client, tmp_path, monkeypatch):
    commits, commit = [], CodebookWriter.commit
    monkeypatch.setattr(CodebookWriter, "commit", lambda run, *done: (commits.append(done[0]), commit(run, *done)))
    samples = write_samples(tmp_path / "s", cloud(150))
    monkeypatch.setattr(training, "SECONDS", 60.0)
    monkeypatch.setattr(training, "SEGMENT_BYTES", 4 * 30 * samples.d * samples.dtype.itemsize - 1)
    train_som(client, samples, tmp_path / "m", 5, 6, epochs=10)
    assert commits == [1, 2, 5, 8, 10, 10]


def test_the_next_segment_is_under_way_while_one_is_committed(client, tmp_path, monkeypatch, every_epoch):
    samples = write_samples(tmp_path / "s", cloud(150))
    searches, fourth, accumulate = [], threading.Event(), learner.accumulate

    def searched(*arguments):
        searches.append(None)
        if len(searches) == 4:
            fourth.set()
        return accumulate(*arguments)

    commit = CodebookWriter.commit

    def slow(run, epochs, errors):
        assert epochs != 3 or fourth.wait(60), "no worker goes on with the next epoch"
        commit(run, epochs, errors)

    monkeypatch.setattr(learner, "accumulate", searched)
    monkeypatch.setattr(CodebookWriter, "commit", slow)
    found = train_som(client, samples, tmp_path / "m", 5, 6, epochs=12)
    found.verify()


@pytest.mark.parametrize("tolerance", [None, 1e-3])
def test_few_samples_go_to_one_worker(three, tmp_path, monkeypatch, tolerance):
    """Which takes no more from the others than the same bits."""
    samples = write_samples(tmp_path / "s", cloud(300))
    options = {"epochs": 12, "sigma_end": 0.7, "tolerance": tolerance}
    want = train_som(three, samples, tmp_path / "all", 5, 6, **options)
    monkeypatch.setattr("pipelines.som.plan.FEW", 300 * 30 * 4)
    dealt = []
    monkeypatch.setattr(SomPlan, "alone", property(lambda plan: dealt.append(plan.bounds) or True))
    found = train_som(three, samples, tmp_path / "one", 5, 6, **options)
    assert set(dealt) == {(0, 300, 300, 300)}
    assert found.quantization_errors == want.quantization_errors
    np.testing.assert_array_equal(found.units(), want.units())
    np.testing.assert_array_equal(found.hits(), want.hits())


def test_numbers_of_numpy_are_recorded_as_numbers_of_python(client, tmp_path):
    samples = write_samples(tmp_path / "s", cloud(20))
    plain = {"rows": 2, "epochs": 1, "hexagonal": True, "tolerance": 0.5, "online": True, "rate": 0.5}
    numpys = {name: np.array(value)[()] for name, value in plain.items()}
    want, found = (train_som(client, samples, tmp_path / out, **o) for out, o in (("p", plain), ("n", numpys)))
    assert (found.grid, found.options) == (want.grid, want.options)
    np.testing.assert_array_equal(found.units(), want.units())


def test_errors_name_the_cure(client, tmp_path):
    samples = write_samples(tmp_path / "s", cloud(20))

    def refused(match, error=ValueError, rows=5, **options):
        with pytest.raises(error, match=match):
            train_som(client, samples, tmp_path / "m", rows, 5, **options)
        assert not (tmp_path / "m").exists()

    refused("25 units cannot begin with 20 samples", initial="random")
    refused("is 'somewhere', which is not a codebook store", initial="somewhere")
    refused("has the shape", initial=np.zeros((3, 4)))
    refused("metric is 'chebyshev'", metric="chebyshev")
    refused("neighbourhood is 'box'", kernel="box")
    refused("even number of rows", hexagonal=True, toroidal=True)
    refused("rows is 0; give a whole number from 1", rows=0)
    refused("rows is 3.5; give a whole number from 1", rows=3.5)
    refused("epochs is 2.5", epochs=2.5)
    refused("sigma_end is 0", sigma_end=0.0)
    refused("schedule is 'cosine'", schedule="cosine")
    refused("epochs is 0", epochs=0)
    refused("tolerance is 2", tolerance=2)
    refused("piece_rows is 0", piece_rows=0)
    other = train_som(
        client, write_samples(tmp_path / "z", cloud(20), scaling="zscore"), tmp_path / "z2", 5, 5, epochs=1
    )
    refused("scaled in another way", initial=other)
    with pytest.raises(StoreError, match="is a map store .*, but a samples store .*is needed"):
        train_som(client, tmp_path / "z2", tmp_path / "m", 5, 5)


def test_what_does_not_fit_is_streamed_or_refused(tmp_path):
    samples = write_samples(tmp_path / "s", cloud(3000))

    def plan(free, **options):
        facts = [WorkerFacts(f"w{i}", "host", "CPU", False, free, 0.0) for i in range(2)]
        return make_som_plan(samples, 4, facts, disk_bytes=0, piece_rows=100, **options)

    assert plan(10**6).resident
    assert plan(10**6).bounds == (0, 1500, 3000)
    assert not plan(10**5).resident
    with pytest.raises(DoesNotFitError, match="--streamed"):
        plan(10**5, resident=True)
    with pytest.raises(DoesNotFitError, match="smaller pieces"):
        plan(10**4)


def test_stated_memory_has_what_readers_take(client, tmp_path, monkeypatch):
    samples = write_samples(tmp_path / "s", cloud(3000))
    train_som(client, samples, tmp_path / "m", 2, 2, epochs=1)
    runs = {train_som: (samples, tmp_path / "n", 2, 2), map_samples: (tmp_path / "m", samples, tmp_path / "u")}
    most = {run: planned(run, client, *arguments).memory_bytes for run, arguments in runs.items()}
    monkeypatch.setattr("pipelines.som.plan.READ_BYTES", 1000)
    least = {run: planned(run, client, *arguments).memory_bytes for run, arguments in runs.items()}
    values = 3000 * samples.row_bytes
    assert most[train_som] - least[train_som] == 4 * values - 2 * 1000
    assert 4 * values > most[map_samples] - least[map_samples] > 0
    assert least[train_som] > values


@pytest.mark.parametrize("weighted", [False, True])
def test_a_piece_takes_the_memory_that_is_planned(tmp_path, weighted):
    n, grid = 200_000, Grid(4, 5)
    values = np.random.default_rng(1).random((n, 3), np.float32)
    weights = values[:, 0].copy() if weighted else None
    samples = write_samples(tmp_path / "s", values, weights=weights)
    job = MapJob(grid, "euclidean", "gaussian", n, 3, samples.magnitudes, samples.largest_weight, False)
    taken = []
    for evaluate in accumulate, survey:
        evaluate([Piece(0, values[:100], None if weights is None else weights[:100])], values[:20], job)  # compiles
        tracemalloc.start()
        evaluate([Piece(0, values, weights)], values[:20], job)
        taken.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    planned = piece_bytes(samples, grid.units, n, gpu=False)
    assert 0.8 * planned < max(taken) < planned, (planned / n, taken[0] / n, taken[1] / n)


def test_schedules():
    assert sigma_schedule(3, 5.0, 1.0) == [5.0, 3.0, 1.0]
    np.testing.assert_allclose(sigma_schedule(3, 4.0, 1.0, "exponential"), [4.0, 2.0, 1.0])
    assert sigma_schedule(1, 5.0, 1.0) == [5.0]
    assert sigma_schedule(3, 5.0, 1.0, tolerance=0) == [5.0, 3.0, 1.0, 1.0, 1.0, 1.0]


def test_errors_are_judged_where_both_codebooks_were_made_with_the_last_sigma():
    sigmas = sigma_schedule(3, 5.0, 0.3, tolerance=0.01)
    errors = [0.5, 0.9, 0.9, 0.9, 0.9, 0.8, 0.8]  # of the first codebook, and of those with 5, 2.65, 0.3, 0.3, ...
    assert [settled(errors[:known], sigmas, 0.01) for known in range(8)] == [False] * 5 + [True, False, True]
    assert not settled(errors, sigmas, None)


def test_the_command_from_a_file_to_a_picture(tilepath, tmp_path):
    som = partial(tilepath, "som")
    values = cloud(120, d=3)
    lines = [f"{a},{b},{c},kind {i % 3}" for i, (a, b, c) in enumerate(values)]
    (tmp_path / "t.csv").write_text("\n".join(["height,width,depth,kind", *lines]))
    som("import", "t.csv", "s", fault="--label")
    out = som("import", "t.csv", "s", "--label", "kind", "--scaling", "zscore")
    assert "120 x 3 float32 samples; scaled by zscore; with labels; from t.csv" in out
    out = som("train", "s", "m", "--rows", "4", "--columns", "5", "--hexagonal", "--epochs", "3", "--device", "cpu")
    assert "4 x 5 hexagonal map of 3 columns, 3 epochs, quantization error" in out
    som("train", "s", "m", "--rows", "4", "--columns", "5", "--device", "cpu", fault="--overwrite")
    out = som("train", "s", "n", "--rectangular", "--from", "m", "--epochs", "2", "--device", "cpu")
    assert "4 x 5 rectangular map" in out
    refused = invoke("som", "train", "s", "o", "--from", "m", "--initial", "random")
    assert "--initial and --from both choose the first codebook" in refused.output
    assert "units of 120 samples" in som("map", "m", "s", "p", "--device", "cpu")
    for store in "smp":
        assert "checked: " in tilepath("info", store, "--verify")
    som("plot", "m", "u.png")
    som("plot", "m", "u.png", fault="(--overwrite)")
    som("plot", "m", "u.png", "--overwrite", "--title", "Mine")
    som("plot", "m", "l.png", "--kind", "labels", "--mapping", "p")
    som("plot", "m", "k.png", "--kind", "labels", fault="--mapping")
    som("plot", "m", "c.png", "--kind", "planes", "--column", "weight", fault="no column 'weight'")
    assert "500 x 2 float32 samples; with labels" in som("generate", "target", "g", "-n", "500")
    som("generate", "cube", "h", fault="no cloud 'cube'")


def test_grids_are_recorded(client, tmp_path):
    samples = write_samples(tmp_path / "s", cloud(50))
    found = train_som(client, samples, tmp_path / "m", 4, 3, hexagonal=True, toroidal=True, epochs=1)
    assert open_codebook(tmp_path / "m").grid == Grid(4, 3, hexagonal=True, toroidal=True)
    assert found.samples().digest == samples.digest
    os.rename(tmp_path / "s", tmp_path / "moved")
    with pytest.raises(StoreError, match="no longer at"):
        found.samples()
    assert found.samples(tmp_path / "moved").n == 50


@pytest.mark.parametrize("options", [{"initial": "random"}, {"online": True}, {}])
def test_a_seed_that_cannot_be_is_refused(client, tmp_path, options):
    samples = write_samples(tmp_path / "s", cloud(30))
    for seed in (-1, 2**64, 10**30, 1.5, "x", None, True):
        with pytest.raises(ValueError, match="seed is .*; give a whole number from 0 to 18446744073709551615"):
            train_som(client, samples, tmp_path / "m", 3, 3, seed=seed, **options)
    assert not (tmp_path / "m").exists()
    for number, seed in enumerate((2**64 - 1, np.int64(5))):  # online training adds the number of the epoch
        train_som(client, samples, tmp_path / f"{number}", 3, 3, epochs=3, seed=seed, **options)


@pytest.mark.parametrize("dtype", usual(["float32", "float64"]))
def test_errors_of_a_mapping_are_weighted_as_those_of_the_training(client, tmp_path, dtype):
    values = cloud(9000)
    weights = np.exp(values[:, 0] / 3)
    samples = write_samples(tmp_path / "s", values, weights=weights, dtype=dtype)
    found = train_som(client, samples, tmp_path / "m", 4, 4, epochs=4)
    placed = map_samples(client, found, samples, tmp_path / "p")
    errors = mapping_errors(placed)
    assert errors["quantization_error"] == pytest.approx(found.quantization_errors[-1], rel=1e-6)
    assert errors["topographic_error"] == pytest.approx(found.topographic_error, rel=1e-6)
    plain = placed.distances()[:, 0].mean()
    assert abs(errors["quantization_error"] - plain) > 1e-3 * plain  # weights tell
    placed.verify()
    np.testing.assert_array_equal(placed.weights(), weights.astype(dtype))
    others = write_samples(tmp_path / "o", values, dtype=dtype)
    assert not map_samples(client, found, others, tmp_path / "q").weighted


def test_a_map_has_a_size_by_default(client, tmp_path, capsys):
    for n, given, expected in (
        (60, {}, (5, 7)),
        (3, {"initial": "random"}, (2, 1)),
        (60, {"hexagonal": True, "toroidal": True}, (6, 6)),
        (60, {"columns": 4}, (9, 4)),
    ):
        samples = write_samples(tmp_path / "s", cloud(n), overwrite=True)
        grid = train_som(client, samples, tmp_path / "m", epochs=1, overwrite=True, progress=True, **given).grid
        assert (grid.rows, grid.columns) == expected
        told = f"{grid.rows} x {grid.columns} units for {n} samples, by the rule of 5 sqrt(N); choose another size"
        assert told in capsys.readouterr().err


def test_the_grid_of_the_map_to_begin_with_need_not_be_said(client, tmp_path):
    samples = write_samples(tmp_path / "s", cloud(60))
    options = {"hexagonal": True, "toroidal": True, "metric": "taxicab", "epochs": 1}
    train_som(client, samples, tmp_path / "a", 4, 3, **options)
    again = train_som(client, samples, tmp_path / "b", initial=tmp_path / "a", epochs=1)
    assert (again.grid, again.metric) == (Grid(4, 3, hexagonal=True, toroidal=True), "taxicab")
    other = train_som(
        client,
        samples,
        tmp_path / "c",
        initial=open_codebook(tmp_path / "a"),
        epochs=1,
        hexagonal=False,
        metric="cosine",
    )
    assert (other.grid, other.metric) == (Grid(4, 3, toroidal=True), "cosine")
    with pytest.raises(ValueError, match=r"an array \(initial\) does not say the sides of the grid"):
        train_som(client, samples, tmp_path / "d", rows=3, initial=np.zeros((9, 3)))
    arguments = [
        "som",
        "train",
        str(tmp_path / "s"),
        str(tmp_path / "e"),
        "--from",
        str(tmp_path / "a"),
        "--epochs",
        "1",
    ]
    result = invoke(*arguments, "--device", "cpu", "--workers", "1")
    assert "4 x 3 toroidal hexagonal map" in result.output, result


def test_the_mexican_hat_warns_in_batches_alone(client, tmp_path):
    samples = write_samples(tmp_path / "s", cloud(40))
    with pytest.warns(UserWarning, match="in batches, the mexican hat divides by sums .*--online"):
        train_som(client, samples, tmp_path / "a", 3, 3, kernel="mexican_hat", epochs=1)
    train_som(client, samples, tmp_path / "b", 3, 3, kernel="mexican_hat", epochs=1, online=True)


@pytest.mark.parametrize("keep", [1, 3])
def test_only_the_last_codebooks_are_kept(client, tmp_path, monkeypatch, every_epoch, keep):
    samples = write_samples(tmp_path / "s", cloud(80))
    want = train_som(client, samples, tmp_path / "want", 4, 4, epochs=6)
    found = train_som(client, samples, tmp_path / "m", 4, 4, epochs=6, keep_codebooks=keep)
    assert found.first_kept == 7 - keep
    for epoch in range(7 - keep, 7):
        np.testing.assert_array_equal(found.units(epoch), want.units(epoch))
    np.testing.assert_array_equal(found.units(), want.units())
    assert found.quantization_errors == want.quantization_errors
    for epoch in (0, 6 - keep, -keep - 1):
        with pytest.raises(ValueError, match=f"only the codebooks of the epochs from {7 - keep} on were kept"):
            found.units(epoch)
    chunks = list((tmp_path / "m" / "codebooks" / "c").rglob("*"))
    assert sum(chunk.is_file() for chunk in chunks) == keep
    found.verify()
    # A run that fails in between, and one that goes on with it.
    commit = CodebookWriter.commit

    def fail(writer, epochs, errors):
        if epochs == 4:
            raise RuntimeError("the plug is pulled")
        commit(writer, epochs, errors)

    with monkeypatch.context() as patch:
        patch.setattr(CodebookWriter, "commit", fail)
        with pytest.raises(RuntimeError, match="the plug"):
            train_som(client, samples, tmp_path / "r", 4, 4, epochs=6, keep_codebooks=keep)
    CodebookWriter.begun(tmp_path / "r").verify()
    dropped = tmp_path / "r" / "codebooks" / "c" / "0" / "0" / "0"
    dropped.parent.mkdir(parents=True, exist_ok=True)
    dropped.touch()  # a run that is killed after its commit has not removed it
    again = train_som(client, samples, tmp_path / "r", 4, 4, epochs=6, keep_codebooks=keep, resume=True)
    np.testing.assert_array_equal(again.units(), want.units())
    again.verify()
    assert not dropped.exists()
    with pytest.raises(ValueError, match="keep_codebooks is 0"):
        train_som(client, samples, tmp_path / "z", 4, 4, keep_codebooks=0)
