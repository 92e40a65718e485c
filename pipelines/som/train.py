"""The call `train_som`: options, plan, and the way to the result (see `pipelines.som`)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from distributed import Client

from gpuops.som.grid import Grid
from gpuops.som.metrics import check_metric
from pipelines.generators.synthetic import whole
from pipelines.som.epoch import MapJob, check_kernel
from pipelines.som.plan import SomPlan, are_few, epochs_together, make_som_plan, refuse_disk_of_map
from pipelines.som.resolution import refuse_unresolved
from pipelines.som.schedule import OnlineSteps, Recipe, first_sigma, sigma_schedule
from pipelines.som.start import random_rows
from pipelines.som.stretches import STRETCH_BYTES
from pipelines.som.training import UNDER_WAY, Training
from pipelines.stores.codebook import SCHEMA, Codebook, CodebookWriter, create_codebook, open_codebook, resume_codebook
from pipelines.stores.resuming import resumed
from pipelines.stores.samples import Samples, open_samples
from pipelines.workers.attempts import run_attempts
from pipelines.workers.capacity import WorkerFacts, measure_members, measure_workers
from pipelines.workers.progress import Progress

STARTS = ("pca", "random")


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
    kernel: str = "gaussian",
    epochs: int = 20,
    sigma: float | None = None,
    sigma_end: float = 1.0,
    schedule: str = "linear",
    initial: str | np.ndarray | Codebook | os.PathLike[str] = "pca",
    seed: int = 0,
    tolerance: float | None = None,
    online: bool = False,
    rate: float = 0.5,
    rate_end: float = 0.01,
    keep_codebooks: int | None = None,
    resident: bool | None = None,
    piece_rows: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | None = None,
) -> Codebook:
    """Train a map of `rows` x `columns` units with `samples`, and write it to the store `out`.

    Parameters
    ----------
    client : distributed.Client
        Of any cluster; one task at a time per worker. Workers with the Dask resource ``GPU`` compute on their GPU.
    samples : Samples or path of a samples store
        (N, d), with their weights if they have any. There may be fewer than units.
    out : path of the new codebook store
    rows, columns : int
        By default those of the map to begin with, if `initial` is one.
    hexagonal, toroidal : bool
        The grid, see `gpuops.Grid`; by default as the map to begin with, else rectangular and planar.
    metric : {"euclidean", "taxicab", "cosine"}
        By which best matching units are found; by default as in the map to begin with, else the first. The codebook is
        made of means with any.
    kernel : {"gaussian", "bubble", "mexican_hat", "linear"}
        The neighbourhood.
    epochs : int
        Over which the reach of the neighbourhood falls.
    sigma, sigma_end : float
        Its reach in the first and in the last of them, in units of the grid; the first is half of the longer side by
        default.
    schedule : {"linear", "exponential"}
        From one to the other.
    initial : {"pca", "random"}, or (M, d) array, or Codebook, or path of a codebook store
        What to begin with: the plane of the two principal components, as many samples, or a codebook, such as one
        that is to be trained further. Values are scaled as those of the samples.
    seed : int
        Draws the samples to begin with, and the order of online training.
    tolerance : float, optional
        Let the map settle: train on with `sigma_end` until the quantization error falls by less than this part of
        itself in an epoch, for as many epochs again at most. What comes before is the training without a tolerance.
    online : bool
        Learn from one sample after another instead of from all at once (Kohonen's first rule), each once an epoch in a
        new random order. It is a chain of steps, each of which moves the whole map: the first worker does them, on its
        CPU. For small maps.
    rate, rate_end : float
        The rate of online learning at first and in the end; between them it falls like `sigma`.
    keep_codebooks : int, optional
        How many codebooks stay in the store: the last one, those of the epochs before it; all by default.
    resident : bool, optional
        Whether the samples stay in the memory of the workers; by default if they fit.
    piece_rows : int, optional
        Samples that a worker reads and searches at a time.
    overwrite : bool
        Replace a codebook store at `out`, once the new one is complete. Until then that grows beside it,
        with ``.new`` added to its name; `resume` goes on with it there.
    resume : bool
        Go on with an unfinished `out`; begin if there is none; return a finished one as it is.
    progress : bool, optional
        Show progress on standard error; by default where that is a terminal.

    Returns
    -------
    Codebook
        The finished store, opened. The same bits for any number of workers and any pieces.

    Raises
    ------
    pipelines.workers.capacity.DoesNotFitError
        Memory or disk is too small; nothing is written.
    pipelines.stores.StoreError
        A store is missing, foreign or damaged, `out` exists, or the disk is full.
    ValueError
        An option does not go with the samples or with another; a value or a weight is so large that the sums cannot
        hold the others.
    """
    samples = samples if isinstance(samples, Samples) else open_samples(samples)
    initial = _opened(initial)
    grid, metric = _grid(initial, rows, columns, hexagonal, toroidal), _metric(initial, metric)
    _check_options(samples, metric, kernel, tolerance, piece_rows, rate, rate_end, online)
    whole("seed", seed, 0, 2**64 - 1)
    seed = int(seed)  # as JSON has it
    if keep_codebooks is not None:
        whole("keep_codebooks", keep_codebooks, 1, 2**63 - 1)
    sigma = first_sigma(grid.rows, grid.columns, sigma_end) if sigma is None else float(sigma)
    reaches, rates = (sigma, float(sigma_end)), (rate, rate_end) if online else None
    recipe, recorded = _recipe(samples, grid, initial, epochs, reaches, schedule, tolerance, rates, seed)
    options = {"grid": vars(grid), "metric": metric, "kernel": kernel, **recorded}
    first = [initial.path if isinstance(initial, Codebook) else initial] if recipe.given is not None else []
    again = partial(resume_codebook, samples=samples, options=options)
    writer = resumed(out, SCHEMA, [samples.path, *first], again, resume=resume, overwrite=overwrite)
    if writer is not None and writer.finished:
        return open_codebook(out)

    job = _job(samples, grid, metric, kernel)
    refuse_unresolved(job, lambda *rows: (samples.values(*rows), samples.weights(*rows)), samples.path, samples.columns)
    # Those under way are written before older ones are removed.
    codebook = grid.units * samples.d * samples.dtype.itemsize
    kept = keep_codebooks or len(recipe.sigmas)
    under_way = UNDER_WAY * min(kept, STRETCH_BYTES // codebook + 1)
    disk = min(len(recipe.sigmas) + 1, kept + under_way) * codebook

    few = are_few(samples, grid.units) or (writer is not None and writer.together > 1)

    def deal(facts: list[WorkerFacts]) -> SomPlan:
        return make_som_plan(
            samples, grid.units, facts, disk_bytes=disk, resident=resident, piece_rows=piece_rows, few=few, alone=online
        )

    facts = measure_workers(client, None)
    plan = deal(facts)
    refuse_disk_of_map(plan, out)
    writer = writer or create_codebook(
        out,
        samples,
        grid,
        metric=metric,
        sigmas=recipe.sigmas,
        options=options,
        together=epochs_together(samples, grid.units) if few and keep_codebooks is None else 1,
        overwrite=overwrite,
    )
    writer = replace(writer, keep=keep_codebooks)
    # A store of an earlier version has no place for the epochs that a tolerance adds.
    recipe = recipe._replace(sigmas=recipe.sigmas[: writer.epochs])
    with Progress(len(recipe.sigmas) * samples.n, "samples", progress) as shown:
        _execute(client, samples, facts, plan, deal, job, recipe, writer, shown)
    return open_codebook(out)


def _execute(
    client: Client,
    samples: Samples,
    facts: list[WorkerFacts],
    plan: SomPlan,
    deal: Callable[[list[WorkerFacts]], SomPlan],
    job: MapJob,
    recipe: Recipe,
    writer: CodebookWriter,
    shown: Progress,
) -> None:
    """Train for the epochs that are not done, through the loss of workers."""
    shown.note(plan.describe(samples, job.grid.units, facts))

    def begin(members: list[str], before: Training | None) -> Training:
        # After a loss there may be fewer workers, or more.
        now = plan if len(members) == len(facts) else deal(measure_members(client, members, None))
        return Training(client, members, before, samples, now, job, recipe, writer, shown)

    run_attempts(client, [fact.address for fact in facts], begin, shown)


def _job(samples: Samples, grid: Grid, metric: str, kernel: str) -> MapJob:
    magnitudes, heaviest = samples.magnitudes, samples.largest_weight
    return MapJob(grid, metric, kernel, samples.n, samples.d, magnitudes, heaviest, samples.missing)


def _recipe(
    samples: Samples,
    grid: Grid,
    initial: Any,
    epochs: int,
    reaches: tuple[float, float],
    schedule: str,
    tolerance: float | None,
    rates: tuple[float, float] | None,
    seed: int,
) -> tuple[Recipe, dict[str, Any]]:
    """How the map is trained, and what is recorded of that; `rates` are those of online training."""
    sigmas = sigma_schedule(epochs, *reaches, schedule, tolerance)
    given, beginning = _first_codebook(initial, samples, grid, seed)
    online = None if rates is None else OnlineSteps(samples.n, epochs, reaches, rates, schedule, seed)
    recorded = {
        "epochs": epochs,
        "sigma": list(reaches),
        "schedule": schedule,
        "initial": beginning,
        "tolerance": tolerance,
        "online": None if rates is None else [*rates, seed],
    }
    return Recipe(sigmas, beginning, given, tolerance, online), recorded


def _opened(initial: Any) -> Any:
    """The map to begin with, opened if it is given by its path; anything else as it is."""
    if not isinstance(initial, str | os.PathLike) or initial in STARTS:
        return initial
    if isinstance(initial, str) and not os.path.lexists(initial):
        starts = ", ".join(map(repr, STARTS))
        raise ValueError(
            f"initial is {initial!r}, which is not a codebook store; pass {starts}, an array or a codebook store"
        )
    return open_codebook(initial)


def _grid(initial: Any, rows: int | None, columns: int | None, hexagonal: bool | None, toroidal: bool | None) -> Grid:
    """The grid asked for; what is not said of it is as in the map to begin with."""
    before = initial.grid if isinstance(initial, Codebook) else None
    if before is None and (rows is None or columns is None):
        raise ValueError("say how many rows and columns the map has (--rows, --columns), or begin with a map (--from)")
    asked = {"rows": rows, "columns": columns, "hexagonal": hexagonal, "toroidal": toroidal}
    known = {"hexagonal": False, "toroidal": False} if before is None else vars(before)
    return Grid(**{**known, **{name: value for name, value in asked.items() if value is not None}})


def _metric(initial: Any, metric: str | None) -> str:
    return metric or (initial.metric if isinstance(initial, Codebook) else "euclidean")


def _first_codebook(initial: Any, samples: Samples, grid: Grid, seed: int) -> tuple[np.ndarray | None, dict[str, Any]]:
    """The codebook to begin with if it is given, and what is recorded of the beginning."""
    if isinstance(initial, str) and initial in STARTS:
        if initial == "pca":
            return None, {"kind": "pca"}
        random_rows(samples.n, grid.units, seed)  # refuses more units than samples
        return None, {"kind": "random", "seed": seed}
    if isinstance(initial, Codebook):
        if initial.scaling != samples.scaling:
            raise ValueError(
                f"{initial.path} was trained with samples that were scaled in another way than {samples.path}; "
                f"import these like the others (--like {initial.path})"
            )
        if (initial.grid.rows, initial.grid.columns) != (grid.rows, grid.columns):
            raise ValueError(
                f"{initial.path} is a map of {initial.grid.rows} x {initial.grid.columns} units, not of "
                f"{grid.rows} x {grid.columns}; give both the same sides"
            )
        initial = initial.units()
    codebook = np.ascontiguousarray(initial, samples.dtype)
    if codebook.shape != (grid.units, samples.d) or not np.isfinite(codebook).all():
        raise ValueError(
            f"the codebook to begin with has the shape {codebook.shape}, or values that are not finite; this map has "
            f"{grid.units:,} units of {samples.d} finite values"
        )
    return codebook, {"kind": "given", "digest": hashlib.blake2b(codebook.data, digest_size=16).hexdigest()}


def _check_options(
    samples: Samples,
    metric: str,
    kernel: str,
    tolerance: float | None,
    piece_rows: int | None,
    rate: float,
    rate_end: float,
    online: bool,
) -> None:
    check_metric(metric)
    check_kernel(kernel, online)
    if tolerance is not None and not 0 <= tolerance < 1:
        raise ValueError(f"tolerance is {tolerance}; give a part of the quantization error, such as 0.001")
    if piece_rows is not None and piece_rows < 1:
        raise ValueError(f"piece_rows is {piece_rows}; give one at least")
    for name, value in (("rate", rate), ("rate_end", rate_end)):
        if not 0 < value <= 1:
            raise ValueError(f"{name} is {value}; give a part of the way to a sample, above 0 and up to 1")
    if online and samples.largest_weight is not None:
        raise ValueError(f"{samples.path} has weights, which online training cannot use; train in batches")
