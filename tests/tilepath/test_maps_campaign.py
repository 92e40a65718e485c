"""Maps on random samples: an epoch of the estimator against plain NumPy, and the command line against the estimator.

The plain epoch is written from the definitions: distances of every sample to every unit, places of units on the plane
or the torus, and weighted means. The commands ``som import``, ``som train`` and ``som map`` run on random tables; their
codebook must be the estimator's bit by bit. The long campaigns:
``pytest -m slow -s tests/tilepath/test_maps_campaign.py``
"""

import contextlib
import shutil

import numpy as np
import pandas as pd
import pytest
from campaigns import campaign, pick, play
from commands import run_command

from gpuops import best_matching_units
from pipelines.stores.codebook import open_codebook
from pipelines.stores.mapping import open_mapping
from pipelines.stores.samples import open_samples
from tilepath.sklearn import SelfOrganizingMap

pytestmark = [
    pytest.mark.filterwarnings("ignore:in batches, the mexican hat"),
    pytest.mark.filterwarnings("ignore:.* constant. it is stored with factor 1"),
]

METRICS, KERNELS = ("euclidean", "taxicab", "cosine"), ("gaussian", "bubble", "mexican_hat", "linear")


def draw_map(rng):
    """Options of a map, as both the estimator and the command line have them."""
    options = {"rows": int(rng.integers(1, 7)), "columns": int(rng.integers(1, 7))}
    options |= {"hexagonal": bool(rng.integers(2)), "toroidal": bool(rng.integers(2))}
    if options["hexagonal"] and options["toroidal"]:
        options["rows"] = 2 * int(rng.integers(1, 4))
    return options | {"metric": pick(rng, METRICS), "kernel": pick(rng, KERNELS), "sigma": pick(rng, [0.4, 1, 2.7])}


def draw_samples(rng, missing):
    n, d = int(pick(rng, [1, 7, 60, 200])), int(pick(rng, [1, 2, 5, 9]))
    values = rng.normal(size=(n, d)) * pick(rng, [1, 1e-3, 1e4]) + pick(rng, [0, 5])
    if missing:
        absent = rng.random((n, d)) < 0.3
        absent[np.arange(n), rng.integers(0, d, n)] = False  # a sample has a value, and so has a column
        absent[rng.integers(0, n, d), np.arange(d)] = False
        values[absent] = np.nan
    return values.astype(pick(rng, ["float32", "float64"]))


def plain_distances(values, codebook, metric):
    x, w = values[:, None].astype(float), codebook[None].astype(float)
    x, w = np.where(np.isnan(x), 0, x), np.where(np.isnan(x), 0, w)
    if metric == "euclidean":
        return np.sqrt(((x - w) ** 2).sum(axis=2))
    if metric == "taxicab":
        return np.abs(x - w).sum(axis=2)
    lengths = np.sqrt((x**2).sum(axis=2) * (w**2).sum(axis=2))
    return np.where(lengths > 0, 1 - (x * w).sum(axis=2) / np.where(lengths > 0, lengths, 1), 1)


def plain_neighbourhood(rows, columns, hexagonal, toroidal, kernel, sigma):
    """(M, M): how much each unit learns from samples of each other one."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    high = np.sqrt(3) / 2 if hexagonal else 1
    x, y = column + (row % 2 / 2 if hexagonal else 0), row * high
    x, y = np.abs(x[:, None] - x), np.abs(y[:, None] - y)
    if toroidal:
        x, y = np.minimum(x, columns - x), np.minimum(y, rows * high - y)
    squares = np.round(x * x + y * y, 9)  # of a hexagonal grid these are quarters
    if kernel in ("gaussian", "mexican_hat"):
        return np.exp(-squares / (2 * sigma**2)) * (1 if kernel == "gaussian" else 1 - squares / sigma**2)
    if hexagonal:
        x, y = np.sqrt(squares), 0 * y
    if kernel == "bubble":
        return ((x < sigma) & (y < sigma)).astype(float)
    return np.maximum(1 - x / sigma, 0) * np.maximum(1 - y / sigma, 0)


def one_epoch(rng):
    options, missing = draw_map(rng), bool(rng.random() < 0.4)
    values = draw_samples(rng, missing)
    n, units = len(values), options["rows"] * options["columns"]
    first = np.nan_to_num(values)[rng.integers(0, n, units)]
    first = (first + rng.normal(size=first.shape) * np.nanstd(values)).astype(values.dtype)
    weights = pick(rng, [None, rng.random(n) + 0.01, rng.integers(0, 3, n) + (np.arange(n) == 0)])
    case = f"{values.shape} {values.dtype}, missing {missing}, weighted {weights is not None}, {options}"
    found = SelfOrganizingMap(**options, epochs=1, initial=first, missing=missing).fit(values, sample_weight=weights)

    distances = plain_distances(values, first, options["metric"])
    nearest, _ = best_matching_units(values, first, options["metric"], missing=missing)
    rounding = 3e-6 if values.dtype == "float32" else 1e-12
    close = rounding * (np.nanmax(np.abs(values)) + np.abs(first).max()) * values.shape[1]
    chosen = distances[np.arange(n), nearest]
    assert (chosen <= distances.min(axis=1) + close).all(), f"{case}: not the nearest unit"

    grid = {name: options[name] for name in ("rows", "columns", "hexagonal", "toroidal", "kernel", "sigma")}
    reach = plain_neighbourhood(**grid)[:, nearest] * (1 if weights is None else weights)  # (M, n)
    present = ~np.isnan(values)
    sums, counts = reach @ np.nan_to_num(values).astype(float), reach @ present.astype(float)
    magnitude = np.abs(reach) @ (present * np.nan_to_num(np.abs(values)).astype(float) + present * close)
    sure = counts > 1e-9 * (np.abs(reach) @ present)  # elsewhere terms of the mexican hat cancel
    means = np.divide(sums, counts, out=first.astype(float), where=sure)
    slack = np.divide(rounding * magnitude, counts, out=np.zeros_like(counts), where=sure) + rounding * np.abs(means)
    wrong = np.abs(found.codebook_ - means) > 10 * slack
    reached = np.abs(reach) @ present > 1e-200
    assert not (wrong & (sure | ~reached)).any(), f"{case}: {found.codebook_[wrong]} instead of {means[wrong]}"

    all_distances = plain_distances(values, found.codebook_, options["metric"])
    at = all_distances[np.arange(n), found.labels_]
    assert (at <= all_distances.min(axis=1) + close).all(), f"{case}: labels"
    error = np.average(chosen, weights=weights), np.average(at, weights=weights)
    np.testing.assert_allclose(found.quantization_errors_, error, rtol=1e-5, atol=close, err_msg=case)
    np.testing.assert_array_equal(found.hits_.ravel(), np.bincount(found.labels_, minlength=units))


@campaign(few=40, many=12_000)
def test_an_epoch_is_that_of_plain_numpy(seeds):
    play(seeds, one_epoch)


def run(*arguments):
    run_command("som", *arguments)


def commands(rng, folder):
    """Tables into a store, into a map, into units of samples: all as the estimator has it."""
    options, missing = draw_map(rng), bool(rng.random() < 0.3)
    tables = [draw_samples(rng, missing).astype(float)] * int(rng.integers(1, 4))
    columns = [pick(rng, ["a", "b b", "č", "x.1"]) + str(i) for i in range(tables[0].shape[1])]
    kind = pick(rng, ["csv", "tsv", "parquet"])
    for number, values in enumerate(tables):
        frame = pd.DataFrame(values, columns=columns)
        path = folder / f"{number}.{kind}"
        if kind == "parquet":
            frame.to_parquet(path)
        else:
            frame.to_csv(path, index=False, sep="," if kind == "csv" else "\t")
    values, scaling = np.concatenate(tables), pick(rng, ["none", "zscore", "minmax"])
    dtype = pick(rng, ["float32", "float64"])
    flags = ["--missing"] * missing + ["--scaling", scaling] * (scaling != "none")
    run("import", *sorted(folder.glob("[0-9].*")), folder / "s", "--dtype", dtype, *flags)
    samples = open_samples(folder / "s")
    stored = samples.values()
    offset, factor = plain_scaling(values, scaling)
    rounding = 1e-6 if dtype == "float32" else 1e-12
    slack = rounding * np.nanmax(np.abs(values)) * np.max(factor)
    np.testing.assert_allclose(stored, (values - offset) * factor, rtol=rounding, atol=slack)

    initial, seed, epochs = pick(rng, ["pca", "random"]), int(rng.integers(100)), int(rng.integers(1, 4))
    if initial == "random" and len(values) < options["rows"] * options["columns"]:
        initial = "pca"
    flags = [f"--{name}" for name in ("hexagonal", "toroidal") if options[name]]
    flags += [f"--{name}={options[name]}" for name in ("rows", "columns", "metric", "kernel", "sigma")]
    run("train", folder / "s", folder / "m", *flags, "--initial", initial, "--seed", seed, "--epochs", epochs)
    options |= {"initial": initial, "epochs": epochs}
    estimator = SelfOrganizingMap(**options, random_state=seed, missing=missing).fit(stored)
    case = f"{stored.shape} {dtype}, missing {missing}, {scaling}, {options}"
    np.testing.assert_array_equal(open_codebook(folder / "m").units(), estimator.codebook_, case)
    run("map", folder / "m", folder / "s", folder / "p")
    np.testing.assert_array_equal(open_mapping(folder / "p").units()[:, 0], estimator.labels_, case)


def plain_scaling(values, scaling):
    """What is subtracted from columns, and what they are multiplied with then."""
    if scaling == "none":
        return 0, 1
    least, largest = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    if scaling == "zscore":
        offset, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    else:
        offset, spread = least, largest - least
    return offset, 1 / np.where(largest > least, spread, 1)


@campaign(few=2, many=400)
def test_the_command_line_makes_the_map_of_the_estimator(client, tmp_path, monkeypatch, seeds):
    monkeypatch.setattr("tilepath.cli.cluster._open_client", lambda *_: contextlib.nullcontext(client))

    def trial(rng):
        folder = tmp_path / "trial"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        commands(rng, folder)

    play(seeds, trial)
