"""`train_som`: check the options, plan the training, and run it (see `pipelines.som`)."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from typing import Any

import numpy as np
from distributed import Client

from gpuops.options import whole
from gpuops.som.grid import Grid
from gpuops.som.metrics import check_metric
from pipelines.som import defaults
from pipelines.som.epoch import MapJob, check_kernel
from pipelines.som.plan import SomPlan, are_few, epochs_together, make_som_plan
from pipelines.som.resolution import refuse_unresolved
from pipelines.som.schedule import OnlineSteps, Recipe, check_rates, first_and_last, sigma_schedule
from pipelines.som.start import given_codebook, random_rows, usual_sides
from pipelines.som.training import AHEAD, SEGMENT_BYTES, Training
from pipelines.stores.codebook import Codebook, CodebookWriter, create_codebook, open_codebook
from pipelines.stores.samples import Samples, open_samples
from pipelines.workers.attempts import Run
from pipelines.workers.capacity import WorkerFacts, measure_members, measure_workers, refuse_disk
from pipelines.workers.clients import takes_client
from pipelines.workers.executors import check_coordination
from pipelines.workers.plans import states_plan, stating
from pipelines.workers.progress import Progress

STARTS = ("pca", "random")

FEWER_EPOCHS = "train in several runs of fewer epochs, each from the map of the last (initial, --from)"


@takes_client
@states_plan
def train_som(
    client: Client,
    samples: Samples | str | os.PathLike[str],
    out: str | os.PathLike[str],
    rows: int | None = None,
    columns: int | None = None,
    *,
    hexagonal: bool | None = None,
    toroidal: bool | None = None,
    metric: str | None = None,
    kernel: str = defaults.KERNEL,
    epochs: int = defaults.EPOCHS,
    sigma: float | None = None,
    sigma_end: float = defaults.SIGMA_END,
    schedule: str = defaults.SCHEDULE,
    initial: str | np.ndarray | Codebook | os.PathLike[str] = defaults.INITIAL,
    seed: int = defaults.SEED,
    tolerance: float | None = None,
    online: bool = False,
    rate: float = defaults.RATE,
    rate_end: float = defaults.RATE_END,
    keep_codebooks: int | None = None,
    resident: bool | None = None,
    piece_rows: int | None = None,
    coordination: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | None = None,
) -> Codebook:
    """Train a map of `rows` x `columns` units with `samples`, and write it to the store `out`.

    Parameters
    ----------
    client : distributed.Client
        Client of any cluster; one task at a time per worker. Workers with the Dask resource ``GPU`` compute on their
        GPU.
    samples : Samples or path of a samples store
        (N, d), with weights if the store has weights. There may be fewer samples than units.
    out : path of the new codebook store
    rows, columns : int
        Sides of the grid. By default the sides of the map `initial`; without such a map, sides in the ratio 3:4 for
        about 5 sqrt(N) units, but at most N units.
    hexagonal, toroidal : bool
        Shape of the grid, see `gpuops.Grid`. By default the shape of the map `initial`; without such a map, rectangular
        and planar.
    metric : {"euclidean", "taxicab", "cosine"}
        Distance between a sample and a unit, for best matching units. By default the metric of the map `initial`;
        without such a map, "euclidean". The codebook is made of means with any metric.
    kernel : {"gaussian", "bubble", "mexican_hat", "linear"}
        Neighbourhood function.
    epochs : int
        Number of epochs, over which the radius of the neighbourhood falls.
    sigma, sigma_end : float
        Radius of the neighbourhood in the first and in the last epoch, in units of the grid. `sigma` is by default half
        of the longer side of the grid.
    schedule : {"linear", "exponential"}
        How the radius falls from `sigma` to `sigma_end`.
    initial : {"pca", "random"}, or (M, d) array, or Codebook, or path of a codebook store
        First codebook: the plane of the two principal components, M random samples, or a given codebook, such as a
        map that is to be trained further. A given codebook must be scaled like the samples.
    seed : int
        Seed of "random" samples, and of the order of online training.
    tolerance : float, optional
        Let the map settle: train on with `sigma_end` until an epoch reduces the quantization error by less than this
        part of the error, for at most `epochs` further epochs. The epochs before are the same as without a tolerance.
    online : bool
        Learn from one sample after another (Kohonen's first rule) instead of from all samples at once. Each epoch takes
        every sample once, in a new random order. Each step moves the whole map and needs the step before, so only the
        first worker trains, on its CPU. Use it for small maps.
    rate, rate_end : float
        Learning rate of the first and of the last step of online training; in between the rate falls like the radius.
    keep_codebooks : int, optional
        How many codebooks stay in the store, counted back from the last; all by default.
    resident : bool, optional
        Whether the samples stay in the memory of the workers. By default they do if they fit.
    piece_rows : int, optional
        Number of samples that a worker reads and searches at a time.
    coordination : {"scheduler", "signals"}, optional
        Who coordinates the epochs of several workers: Dask's scheduler, or counters ("signals") that the workers of one
        host show each other. By default signals, where they are possible. The codebook has the same bits with either.
    overwrite : bool
        Replace a codebook store at `out` once the new store is complete. Until then the new store is written next to
        `out`, with ``.new`` added to its name; `resume` finds it there.
    resume : bool
        Continue an unfinished store `out`; begin if there is no store; return a finished store unchanged.
    progress : bool, optional
        Show progress on standard error. By default, if standard error is a terminal.

    Returns
    -------
    Codebook
        The finished store, opened. Its bits are the same for any number of workers and any `piece_rows`.

    Raises
    ------
    tilepath.DoesNotFitError
        Memory or disk is too small; nothing is written.
    StoreError
        A store is missing, foreign or damaged, `out` exists, or the disk is full.
    ValueError
        An option does not go with the samples or with another option; or a value or a weight is so large that sums
        cannot resolve the other values or weights.

    Examples
    --------
    >>> trained = tilepath.train_som(client, samples, "trained.zarr", 4, 5, epochs=2)
    >>> trained.units().shape
    (20, 3)
    """
    samples = open_samples(samples)
    initial = _opened(initial)
    grid = _grid(initial, samples.n, rows, columns, hexagonal, toroidal)
    metric = metric or (initial.metric if isinstance(initial, Codebook) else defaults.METRIC)
    check_coordination(coordination)
    _check_options(samples, metric, kernel, piece_rows, rate, rate_end, online)
    epochs, seed = whole("epochs", epochs, 1), whole("seed", seed, 0, 2**64 - 1)
    keep_codebooks = None if keep_codebooks is None else whole("keep_codebooks", keep_codebooks, 1, 2**63 - 1)
    radii, rates = first_and_last(grid, sigma, sigma_end), (rate, rate_end)
    sigmas = sigma_schedule(epochs, *radii, schedule, tolerance)
    given, beginning = _first_codebook(initial, samples, grid, seed)
    steps = OnlineSteps(samples.n, epochs, radii, rates, schedule, seed) if online else None
    recipe = Recipe(sigmas, beginning, given, tolerance, steps)
    options = {"grid": vars(grid), "metric": metric, "kernel": kernel, "epochs": epochs, "sigma": list(radii)}
    options |= {"schedule": schedule, "initial": beginning, "tolerance": tolerance}
    options |= {"online": [*rates, seed] if online else None}
    first = [initial.path if isinstance(initial, Codebook) else initial] if given is not None else []
    writer = CodebookWriter.resumed(out, samples, options, inputs=first, resume=resume, overwrite=overwrite)
    if writer is not None and writer.finished:
        return open_codebook(out)

    job = MapJob(
        grid, metric, kernel, samples.n, samples.d, samples.magnitudes, samples.largest_weight, samples.missing
    )
    refuse_unresolved(job, lambda *rows: (samples.values(*rows), samples.weights(*rows)), samples.path, samples.columns)
    disk = _disk_bytes(grid.units * samples.d * samples.dtype.itemsize, len(sigmas), keep_codebooks)
    few = are_few(samples, grid.units) or (writer is not None and writer.together > 1)
    how: dict[str, Any] = {"resident": resident, "piece_rows": piece_rows, "few": few, "online": online}

    def deal(facts: list[WorkerFacts]) -> SomPlan:
        return make_som_plan(samples, grid.units, facts, disk_bytes=disk, metric=metric, **how)

    facts = measure_workers(client, None)
    plan = deal(facts)
    with stating(plan.stated, out, writer) as (stated, place):
        refuse_disk(disk, place, FEWER_EPOCHS)
    if writer is None:
        together = epochs_together(samples, grid.units) if few and keep_codebooks is None else 1
        of_store: dict[str, Any] = {"metric": metric, "sigmas": sigmas, "options": options, "together": together}
        writer = create_codebook(out, samples, grid, **of_store, overwrite=overwrite)
    writer = replace(writer, keep=keep_codebooks)

    def training(run: Run, members: list[str], before: Training | None) -> Training:
        # After a loss there may be fewer workers, or more.
        now = plan if len(members) == len(facts) else deal(measure_members(client, members))
        return Training(run, members, before, samples, now, job, recipe, coordination)

    with Progress(len(sigmas) * samples.n, "samples", progress) as bar:
        if (rows is None or columns is None) and not isinstance(initial, Codebook):
            size = f"{grid.rows} x {grid.columns} units for {samples.n:,} samples"
            bar.note(f"{size}, by the rule of 5 sqrt(N); choose another size with rows and columns")
        bar.note(stated.text)
        Run(client, [fact.address for fact in facts], writer, bar).attempts(training)
    return open_codebook(out)


def _disk_bytes(codebook: int, epochs: int, keep: int | None) -> int:
    """Return the bytes of the store, given the bytes of a codebook and how many codebooks are kept, None for all.

    Codebooks of segments under way are written before older codebooks are removed.
    """
    kept = keep or epochs
    under_way = AHEAD * min(kept, SEGMENT_BYTES // codebook + 1)
    return min(epochs + 1, kept + under_way) * codebook


def _opened(initial: Any) -> Any:
    """Return `initial`, opened if it is the path of a codebook store."""
    if not isinstance(initial, str | os.PathLike) or initial in STARTS:
        return initial
    if isinstance(initial, str) and not os.path.lexists(initial):
        starts = ", ".join(map(repr, STARTS))
        raise ValueError(
            f"initial is {initial!r}, which is not a codebook store; pass {starts}, an array or a codebook store"
        )
    return open_codebook(initial)


def _grid(
    initial: Any, n: int, rows: int | None, columns: int | None, hexagonal: bool | None, toroidal: bool | None
) -> Grid:
    """Return the grid asked for; options that are None come from the map `initial`, or else suit n samples."""
    before = initial.grid if isinstance(initial, Codebook) else None
    known: dict[str, Any] = {"hexagonal": False, "toroidal": False} if before is None else dict(vars(before))
    sides, shape = {"rows": rows, "columns": columns}, {"hexagonal": hexagonal, "toroidal": toroidal}
    known |= {name: whole(name, side, 1) for name, side in sides.items() if side is not None}
    known |= {name: bool(value) for name, value in shape.items() if value is not None}
    if "rows" not in known or "columns" not in known:
        if not isinstance(initial, str):
            raise ValueError(
                "an array (initial) does not say the sides of the grid; pass rows (--rows) and columns (--columns)"
            )
        known |= usual_sides(n, known.get("rows"), known.get("columns"), known["hexagonal"] and known["toroidal"])
    return Grid(**known)


def _first_codebook(initial: Any, samples: Samples, grid: Grid, seed: int) -> tuple[np.ndarray | None, dict[str, Any]]:
    """Return the first codebook, None if it is made of the samples, and a record of where it comes from."""
    if isinstance(initial, str) and initial in STARTS:
        if initial == "pca":
            return None, {"kind": "pca"}
        random_rows(samples.n, grid.units, seed)  # refuses more units than samples
        return None, {"kind": "random", "seed": seed}
    if isinstance(initial, Codebook):
        if initial.scaling != samples.scaling:
            raise ValueError(
                f"{initial.path} was trained with samples that were scaled in another way than {samples.path}; "
                f"import the new samples like the map's (like, --like {initial.path})"
            )
        if (initial.grid.rows, initial.grid.columns) != (grid.rows, grid.columns):
            raise ValueError(
                f"{initial.path} is a map of {initial.grid.rows} x {initial.grid.columns} units, not of "
                f"{grid.rows} x {grid.columns}; give both the same sides"
            )
        initial = initial.units()
    codebook = given_codebook(initial, grid, samples.d, samples.dtype)
    return codebook, {"kind": "given", "digest": hashlib.blake2b(codebook.data, digest_size=16).hexdigest()}


def _check_options(
    samples: Samples, metric: str, kernel: str, piece_rows: int | None, rate: float, rate_end: float, online: bool
) -> None:
    check_metric(metric)
    check_kernel(kernel, online)
    check_rates(rate, rate_end)
    if piece_rows is not None:
        whole("piece_rows", piece_rows, 1)
    if online and samples.largest_weight is not None:
        raise ValueError(f"{samples.path} has weights, which online training cannot use; train in batches")
