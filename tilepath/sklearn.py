"""A self-organizing map of samples in memory, as an estimator of scikit-learn.

Does what `pipelines.train_som` does with stores and workers, but with an array on one device. The steps are the same
functions, so the same samples and options yield the same codebook, bit by bit:

1. Extremes and means of the columns; with them the units of the integer sums   `stores.scaling.Moments`, `MapJob`
2. The codebook to begin with                                                   `pipelines.som.start`
3. Epochs: search, sums, smoothing                                              `accumulate`, `learn`
4. Quantization and topographic error of the last codebook                      `survey`

Scikit-learn is not needed for anything else: ``pip install 'tilepath[sklearn]'``.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from gpuops import best_matching_units, train_online
from gpuops.arrays import unmasked
from gpuops.som.grid import Grid
from gpuops.som.metrics import ALIASES, METRICS, distances_to_all
from pipelines.som.epoch import MapJob, accumulate, check_kernel, learn, survey
from pipelines.som.heights import u_matrix
from pipelines.som.quality import map_quality
from pipelines.som.resolution import refuse_unresolved
from pipelines.som.schedule import OnlineSteps, first_sigma, settled, sigma_schedule
from pipelines.som.shard import PIECE_BYTES, Piece
from pipelines.som.start import pick, principal_plane, products_of, random_rows, steps_for
from pipelines.stores.scaling import LARGEST, Moments
from pipelines.workers.device_arrays import to_host
from tilepath.devices import array_library

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("the estimator needs scikit-learn 1.6 or newer: pip install 'tilepath[sklearn]'") from error

# Number of distances that `transform` evaluates at a time: what fits in a processor's cache, or keeps a GPU busy.
CPU_BLOCK, GPU_BLOCK = 1 << 16, 1 << 24


class SelfOrganizingMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A self-organizing map by batch learning, of samples in memory.

    Not a clusterer by scikit-learn's conventions, whose labels are contiguous: some units may have no sample. There is
    `fit_predict` all the same.

    Parameters
    ----------
    rows, columns : int
    hexagonal, toroidal : bool
        The grid, see `gpuops.som.grid.Grid`; by default rectangular and planar.
    metric : {"euclidean", "taxicab", "manhattan", "cosine"}
        The metric for finding best matching units; "manhattan" is another name of "taxicab". Units are means of
        samples whatever the metric.
    kernel : {"gaussian", "bubble", "mexican_hat", "linear"}
        The neighbourhood.
    epochs : int
        The number of epochs over which the reach of the neighbourhood falls.
    sigma, sigma_end : float
        Its reach in the first and in the last epoch, in units of the grid; by default `sigma` is half of the longer
        side.
    schedule : {"linear", "exponential"}
        How the reach falls from `sigma` to `sigma_end`.
    initial : {"pca", "random"} or (M, d) array
        The initial codebook: the plane of the two principal components, randomly chosen samples, or the given array.
    tolerance : float, optional
        `fit` lets the map settle: it continues with `sigma_end` until the quantization error falls by less than this
        fraction of itself in an epoch, for at most as many epochs again.
    missing : bool
        Declares that NaN stands for a missing value, which is left out of distances and of means.
    device : {"auto", "cpu", "gpu"}
        "auto" uses the GPU if there is one and CuPy can use it. The map is the same on any device, bit by bit.
    online : bool
        `fit` learns from one sample after another, on the CPU, in an order that `random_state` draws; weights cannot
        be given. `partial_fit` learns in batches all the same.
    rate, rate_end : float
        Rate of online learning in its first and in its last step.
    random_state : int, RandomState or None
        Chooses the samples of `initial="random"`; an int is the `seed` of `train_som`.

    Attributes
    ----------
    codebook_ : (M, d) array, in the dtype of the samples it was fitted to
        The units; unit u stands in row u // columns and column u % columns of the grid.
    grid_ : gpuops.som.grid.Grid
    n_iter_ : int
        Number of epochs done, including those of `partial_fit`.
    quantization_errors_ : list of float
        The error of every codebook an epoch began with, on the samples of that epoch; after `fit` also that of the
        last codebook.
    topographic_error_ : float or None
        Of the last codebook; None for a map of one unit. After `fit` only.
    labels_ : (N,) int32 array
        The unit of every sample. After `fit` only.
    u_matrix_ : (rows, columns) float64 array
        Mean distance of each unit to its neighbours on the grid.
    hits_ : (rows, columns) int64 array
        How many samples each unit has. After `fit` only.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        Names of the columns, if the samples had any.

    Notes
    -----
    Samples are NumPy matrices, or anything NumPy converts. They are converted to the dtype of the map, float32 or
    float64; any other dtype becomes float64. Results are NumPy arrays on any device. On a GPU the samples have to fit
    into its memory; `train_som` streams them.
    """

    piece_bytes = PIECE_BYTES  # of samples that are searched at a time
    cpu_block, gpu_block = CPU_BLOCK, GPU_BLOCK

    def __init__(
        self,
        rows: int = 10,
        columns: int = 10,
        *,
        hexagonal: bool = False,
        toroidal: bool = False,
        metric: str = "euclidean",
        kernel: str = "gaussian",
        epochs: int = 20,
        sigma: float | None = None,
        sigma_end: float = 1.0,
        schedule: str = "linear",
        initial: Any = "pca",
        tolerance: float | None = None,
        missing: bool = False,
        device: str = "auto",
        online: bool = False,
        rate: float = 0.5,
        rate_end: float = 0.01,
        random_state: Any = None,
    ):
        self.rows = rows
        self.columns = columns
        self.hexagonal = hexagonal
        self.toroidal = toroidal
        self.metric = metric
        self.kernel = kernel
        self.epochs = epochs
        self.sigma = sigma
        self.sigma_end = sigma_end
        self.schedule = schedule
        self.initial = initial
        self.tolerance = tolerance
        self.missing = missing
        self.device = device
        self.online = online
        self.rate = rate
        self.rate_end = rate_end
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SelfOrganizingMap:
        """Train a map, from the beginning.

        Parameters
        ----------
        X : (N, d) array of finite numbers, or with `missing` NaN and masked values too
            There may be fewer samples than units.
        y : ignored
        sample_weight : (N,) array, optional
            How much each sample counts, 0 or more.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            An option conflicts with the samples or with another option; samples or weights cannot be used.
        """
        grid, sigmas = self._plan()
        samples = self._to_learn(X, sample_weight, grid, reset=True)
        codebook, errors = self._first_codebook(samples), []
        steps = self._online_steps(samples, sigmas) if self.online else None
        for number, sigma in enumerate(sigmas):
            codebook, error = (
                samples.epoch(codebook, sigma) if steps is None else samples.online(codebook, steps, number)
            )
            errors.append(error)
            if settled(errors, sigmas, self.tolerance):
                break
        judged = samples.survey(codebook).judged
        self.codebook_, self.grid_, self.n_iter_ = codebook, grid, len(errors)
        unit = samples.job.distance_unit(codebook)
        self.quantization_errors_ = [*errors, judged.quantization_error(samples.job, unit)]
        self.topographic_error_ = judged.topographic_error() if grid.units > 1 else None
        self.labels_ = samples.units(codebook)
        self.hits_ = np.bincount(self.labels_, minlength=grid.units).reshape(grid.rows, grid.columns)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SelfOrganizingMap:
        """One epoch of batch learning, in which the last codebook learns from the given samples alone.

        The neighbourhood reaches as far as the schedule says after `n_iter_` epochs, and from `epochs` of them on as
        `sigma_end` says: so many calls with the same samples do what `fit` does. The first call makes the first
        codebook from its samples, which should resemble those to come. `tolerance` is ignored.

        Parameters and errors are those of `fit`.
        """
        grid, sigmas = self._plan()
        begun = hasattr(self, "codebook_")
        if begun and grid != self.grid_:
            raise ValueError(f"this is a map on {self.grid_}, not on {grid}; fit a new one, or set its grid back")
        samples = self._to_learn(X, sample_weight, grid, reset=not begun)
        done = self.n_iter_ if begun else 0
        codebook = self.codebook_ if begun else self._first_codebook(samples)
        sigma = sigmas[done] if done < len(sigmas) else float(self.sigma_end)
        self.codebook_, error = samples.epoch(codebook, sigma)
        self.grid_, self.n_iter_ = grid, done + 1
        self.quantization_errors_ = [*(self.quantization_errors_[:done] if begun else ()), error]
        for of_fit in ("labels_", "hits_", "topographic_error_"):
            if hasattr(self, of_fit):
                delattr(self, of_fit)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Train a map and return the units of its samples, `labels_`."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: Any) -> np.ndarray:
        """The best matching unit of every sample, (N,) int32; in case of a tie the lowest."""
        check_is_fitted(self)
        return self._units(X)

    def _units(self, X: Any) -> np.ndarray:
        return self._take(X, None, self.grid_).units(self.codebook_)

    def _metric(self) -> str:
        metric = ALIASES.get(self.metric, self.metric)
        if metric not in METRICS:
            raise ValueError(f"metric is {self.metric!r}; pass one of {', '.join(map(repr, [*METRICS, *ALIASES]))}")
        return metric

    def _online_steps(self, samples: _Samples, sigmas: list[float]) -> OnlineSteps:
        if samples.weights is not None:
            raise ValueError("online training has no use for weights; leave them out, or train in batches")
        for name in ("rate", "rate_end"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; give a number above 0, up to 1")
        reaches = (sigmas[0], float(self.sigma_end))
        rates = (float(self.rate), float(self.rate_end))
        return OnlineSteps(samples.job.n, int(self.epochs), reaches, rates, self.schedule, self._seed())

    @property
    def u_matrix_(self) -> np.ndarray:
        """Mean distance of each unit to its neighbours on the grid, float64 (rows, columns)."""
        check_is_fitted(self)
        return u_matrix(self.codebook_, self.grid_, self._metric()).reshape(self.grid_.rows, self.grid_.columns)

    def grid_coordinates(self, X: Any = None) -> np.ndarray:
        """Row and column on the grid of the unit of every sample, (N, 2) int64; by default of those of `fit`."""
        check_is_fitted(self, "labels_" if X is None else None)
        units = self.labels_ if X is None else self._units(X)
        return np.stack(np.divmod(units.astype(np.int64), self.grid_.columns), axis=1)

    def plot(self, kind: str = "umatrix", column: int | str = 0, axes: Any = None) -> Any:
        """Draw the map with matplotlib.

        Parameters
        ----------
        kind : {"umatrix", "hits", "plane"}
        column : number or name of the one that "plane" shows
        axes : of matplotlib, where to draw; by default those of a new figure, which pyplot shows

        Returns
        -------
        axes : matplotlib.axes.Axes
        """
        check_is_fitted(self, "hits_" if kind == "hits" else None)
        from pipelines.som.cells import draw_cells
        from pipelines.som.overlays import draw_outlines

        if kind not in ("umatrix", "hits", "plane"):
            raise ValueError(f"there is no picture {kind!r}; choose umatrix, hits or plane")
        title, colours = {"umatrix": ("U-matrix", "bone_r"), "hits": ("hits", "viridis")}.get(kind, ("", "viridis"))
        if kind == "umatrix":
            values = self.u_matrix_.ravel()
        elif kind == "hits":
            values = np.where(self.hits_ > 0, self.hits_, np.nan).ravel()
        else:
            names = list(getattr(self, "feature_names_in_", []))
            if column not in (names if isinstance(column, str) else range(self.n_features_in_)):
                raise ValueError(f"there is no column {column!r}; X had {', '.join(names) or self.n_features_in_}")
            number = names.index(column) if isinstance(column, str) else column
            title, values = str(names[number] if names else f"column {number}"), self.codebook_[:, number]
        if axes is None:
            from matplotlib import pyplot

            axes = pyplot.figure().add_subplot()
        cells = draw_cells(axes, self.grid_, values, colours)
        draw_outlines(axes, self.grid_)
        axes.set_aspect("equal")
        axes.set_title(title, parse_math=False)
        axes.figure.colorbar(cells, ax=axes)
        return axes

    def quality(self, X: Any) -> dict[str, float]:
        """Measures of how the map shows these samples, by name; see `pipelines.som.quality` for formulas.

        Trustworthiness and preservation of neighbourhoods rank the distances of up to 2,000 samples, evenly spread.
        """
        check_is_fitted(self)
        samples = self._take(X, None, self.grid_)
        return map_quality(samples.values, samples.units(self.codebook_), self.codebook_, self.grid_, self._metric())

    def transform(self, X: Any) -> np.ndarray:
        """The distances of every sample to all units, (N, M) in the dtype of the map.

        Nothing else here makes a matrix of that size. Distances are evaluated as `gpuops.som.metrics` says, in float64
        and one dimension after the other, so the least of a row is what a search reports.
        """
        check_is_fitted(self)
        samples = self._take(X, None, self.grid_)
        distances = np.empty((samples.job.n, len(self.codebook_)), self.codebook_.dtype)
        codebook = samples.xp.asarray(self.codebook_)
        step = max(1, (self.cpu_block if samples.xp is np else self.gpu_block) // len(codebook))
        for piece in samples.pieces:
            for start in range(0, len(piece.values), step):
                block = distances_to_all(piece.values[start : start + step], codebook, samples.job.metric)
                first = piece.first + start
                distances[first : first + len(block)] = to_host(block.astype(distances.dtype))
        return distances

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the quantization error, the mean distance of the samples to their best matching units."""
        check_is_fitted(self)
        samples = self._take(X, sample_weight, self.grid_)
        unit = samples.job.distance_unit(self.codebook_)
        return -samples.survey(self.codebook_).judged.quantization_error(samples.job, unit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = bool(self.missing)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        """How many names `get_feature_names_out` makes."""
        return len(self.codebook_)

    def _plan(self) -> tuple[Grid, list[float]]:
        """The grid, and the reach of the neighbourhood in every epoch; refuses options that make no sense."""
        for name in ("rows", "columns", "epochs"):
            if not isinstance(getattr(self, name), Integral):
                raise TypeError(f"{name} is {getattr(self, name)!r}; give an integer")
        check_kernel(self.kernel)
        if self.tolerance is not None and not 0 <= self.tolerance < 1:
            raise ValueError(
                f"tolerance is {self.tolerance}; give a fraction of the quantization error, such as 0.001, or None"
            )
        rows, columns, last = int(self.rows), int(self.columns), float(self.sigma_end)
        sigma = first_sigma(rows, columns, last) if self.sigma is None else float(self.sigma)
        grid = Grid(rows, columns, bool(self.hexagonal), bool(self.toroidal))
        return grid, sigma_schedule(int(self.epochs), sigma, last, self.schedule, self.tolerance)

    def _to_learn(self, X: Any, sample_weight: Any, grid: Grid, reset: bool) -> _Samples:
        """The same as `_take`, of samples whose sums are not beyond what they can hold."""
        samples = self._take(X, sample_weight, grid, reset)
        values, weights = samples.values, samples.weights

        def read(start: int, stop: int) -> tuple[np.ndarray, np.ndarray | None]:
            return values[start:stop], None if weights is None else weights[start:stop]

        refuse_unresolved(samples.job, read, "X", getattr(self, "feature_names_in_", range(samples.job.d)))
        return samples

    def _take(self, X: Any, sample_weight: Any, grid: Grid, reset: bool = False) -> _Samples:
        """Checked samples and weights on the device; `reset` at the beginning of a map, whose dtype is then theirs."""
        xp = array_library(self.device)
        metric = self._metric()
        values = validate_data(
            self,
            unmasked(X),
            reset=reset,
            dtype=[np.float64, np.float32] if reset else self.codebook_.dtype,
            order="C",
            ensure_all_finite="allow-nan" if self.missing else True,
        )
        greatest, least = (extreme.reduce(values, axis=0, initial=0) for extreme in (np.fmax, np.fmin))
        largest = tuple(np.maximum(greatest, -least).tolist())
        if max(largest) > LARGEST:
            raise ValueError(f"X has a value of magnitude {max(largest):.3g}; those of a map go up to {LARGEST:.3g}")
        if self.missing and (empty := np.isnan(values).all(axis=1)).any():
            raise ValueError(f"row {empty.argmax()} of X has no value at all; leave it out")
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, values, dtype=values.dtype, ensure_non_negative=True)
            if not weights.any():
                raise ValueError("all weights are zero; give at least one sample a positive weight")
        heaviest = None if weights is None else float(weights.max())
        n, d = values.shape
        job = MapJob(grid, metric, self.kernel, n, d, largest, heaviest, bool(self.missing))
        step = max(1, self.piece_bytes // (d * values.itemsize))
        pieces = [
            Piece(i, xp.asarray(values[i : i + step]), None if weights is None else xp.asarray(weights[i : i + step]))
            for i in range(0, n, step)
        ]
        return _Samples(values, weights, pieces, job, xp)

    def _first_codebook(self, samples: _Samples) -> np.ndarray:
        """The initial codebook (M, d)."""
        job, pieces, dtype = samples.job, samples.pieces, samples.values.dtype
        moments = Moments(job.d)
        moments.add(samples.values)
        moments.finish()
        if not moments.counts.all():
            raise ValueError(f"column {moments.counts.argmin()} of X has no value at all; leave it out")
        if not isinstance(self.initial, str):
            codebook = np.array(self.initial, dtype, order="C")
            if codebook.shape != (job.grid.units, job.d) or not np.isfinite(codebook).all():
                raise ValueError(
                    f"initial has the shape {codebook.shape}, or values that are not finite; this map has "
                    f"{job.grid.units:,} units of {job.d} finite values"
                )
            return codebook
        if self.initial == "pca":
            steps = steps_for(job.n, moments.means, moments.minima, moments.maxima, job.largest_weight)
            return principal_plane(products_of(pieces, steps), steps, job.grid, dtype)
        if self.initial == "random":
            codebook = np.empty((job.grid.units, job.d), dtype)
            at, values = pick(pieces, random_rows(job.n, job.grid.units, self._seed()), moments.means)
            codebook[at] = values
            return codebook
        raise ValueError(f"initial is {self.initial!r}; pass 'pca', 'random' or an array")

    def _seed(self) -> int:
        if not isinstance(self.random_state, Integral):
            return int(check_random_state(self.random_state).randint(2**31))
        seed = int(self.random_state)
        if not 0 <= seed < 2**64:
            raise ValueError(f"random_state is {seed}; give an integer from 0 to 2^64 - 1")
        return seed


class _Samples(NamedTuple):
    """Samples on a device, and the operations on them."""

    values: np.ndarray  # all of them, on the host
    weights: np.ndarray | None
    pieces: list[Piece]
    job: MapJob
    xp: Any

    def epoch(self, codebook: np.ndarray, sigma: float) -> tuple[np.ndarray, float]:
        """The codebook after an epoch, and the quantization error of the one before."""
        on_device, unit = self.xp.asarray(codebook), self.job.distance_unit(codebook)
        total = accumulate(self.pieces, on_device, self.job)
        return to_host(learn(total, on_device, self.job, sigma)), total.judged.quantization_error(self.job, unit)

    def online(self, codebook: np.ndarray, steps: OnlineSteps, number: int) -> tuple[np.ndarray, float]:
        """The same of an epoch of online learning."""
        error = self.survey(codebook).judged.quantization_error(self.job, self.job.distance_unit(codebook))
        order = random_rows(self.job.n, self.job.n, steps.seed + number)
        job = self.job
        kernel, metric, missing = job.kernel, job.metric, job.missing
        return train_online(
            codebook, self.values, order, job.grid, *steps.of_epoch(number), kernel, metric, missing
        ), error

    def survey(self, codebook: np.ndarray) -> Any:
        return survey(self.pieces, self.xp.asarray(codebook), self.job)

    def units(self, codebook: np.ndarray) -> np.ndarray:
        """Best matching units (N)."""
        on_device, job = self.xp.asarray(codebook), self.job
        found = (best_matching_units(piece.values, on_device, job.metric, missing=job.missing) for piece in self.pieces)
        return np.concatenate([to_host(units) for units, _ in found])
