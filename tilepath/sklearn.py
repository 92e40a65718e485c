"""A self-organizing map of samples in memory, as an estimator of scikit-learn.

`pipelines.train_som` trains a map with stores and workers; this estimator trains it with an array on one device. Both
use the same functions for the steps, so the same samples and options yield the same codebook, bit by bit:

1. Extremes and means of the columns, for the units of the integer sums         `stores.scaling.Moments`, `MapJob`
2. The first codebook                                                           `pipelines.som.start`
3. Epochs: search, sums, smoothing                                              `accumulate`, `learn`, `learn_online`
4. Quantization and topographic error of the last codebook                      `survey`

Only the estimators need scikit-learn, the extra `sklearn`.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuops import best_matching_units
from gpuops.arrays import unmasked
from gpuops.devices import array_library
from gpuops.extras import install
from gpuops.som.grid import Grid
from gpuops.som.metrics import ALIASES, METRICS, distances_to_all
from pipelines.som.epoch import MapJob, accumulate, check_kernel, learn, learn_online, survey
from pipelines.som.heights import u_matrix
from pipelines.som.quality import error_with_paths, map_quality
from pipelines.som.resolution import refuse_unresolved
from pipelines.som.schedule import OnlineSteps, check_rates, first_sigma, settled, sigma_schedule
from pipelines.som.shard import PIECE_BYTES, Piece
from pipelines.som.start import given_codebook, pick, principal_plane, products_of, random_rows, steps_for, usual_sides
from pipelines.stores.scaling import LARGEST, Moments, refuse_beyond
from pipelines.workers.device_arrays import to_host
from tilepath.sklearn_annotated import as_table

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(f"the estimator needs scikit-learn 1.6 or newer: {install('sklearn')}") from error

if TYPE_CHECKING:
    from tilepath.sklearn_classifier import SelfOrganizingMapClassifier as SelfOrganizingMapClassifier


def __getattr__(name: str) -> Any:
    if name == "SelfOrganizingMapClassifier":  # a subclass, whose module imports this one
        from tilepath.sklearn_classifier import SelfOrganizingMapClassifier

        return SelfOrganizingMapClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# The types that each parameter accepts, and their names in messages. Functions that use a parameter check its range.
TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "epochs": ((Integral,), "an integer"),
    **dict.fromkeys(("rows", "columns"), ((Integral, type(None)), "an integer, or None")),
    **dict.fromkeys(("sigma_end", "rate", "rate_end"), ((Real,), "a number")),
    **dict.fromkeys(("sigma", "tolerance"), ((Real, type(None)), "a number, or None")),
    **dict.fromkeys(("hexagonal", "toroidal", "missing", "online"), ((Integral, np.bool_), "True or False")),
    **dict.fromkeys(("metric", "kernel", "schedule", "device"), ((str,), "a name")),
    "random_state": ((Integral, np.random.RandomState, type(None)), "an integer, a RandomState, or None"),
}

# Distances that `transform` evaluates at a time: a block that fits in a CPU's cache, and one that keeps a GPU busy.
CPU_BLOCK, GPU_BLOCK = 1 << 16, 1 << 24


class SelfOrganizingMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A self-organizing map of samples in memory, trained by batch learning.

    The map is not a clusterer by scikit-learn's conventions, which require contiguous labels: a unit may have no
    sample. It has `fit_predict` nevertheless.

    Parameters
    ----------
    rows, columns : int, optional
        The sides of the grid. By default `fit` takes about 5 sqrt(N) units, sides in the ratio 3:4. Then weights and
        repeated samples give different maps, as N differs.
    hexagonal, toroidal : bool
        The grid, by default rectangular and planar; see `gpuops.som.grid.Grid`.
    metric : {"euclidean", "taxicab", "manhattan", "cosine"}
        The metric for finding best matching units; "manhattan" is another name of "taxicab". With any metric, units are
        means of samples.
    kernel : {"gaussian", "bubble", "mexican_hat", "linear"}
        The neighbourhood function.
    epochs : int
        The number of epochs; the radius of the neighbourhood falls from epoch to epoch.
    sigma, sigma_end : float
        The radius of the neighbourhood in the first and in the last epoch, in units of the grid; by default `sigma` is
        half of the longer side.
    schedule : {"linear", "exponential"}
        How the radius falls from `sigma` to `sigma_end`.
    initial : {"pca", "random"} or (M, d) array
        The initial codebook: the plane of the two principal components, randomly chosen samples, or the given array.
    tolerance : float, optional
        After `epochs`, `fit` continues with `sigma_end` until the quantization error falls by less than this fraction
        of itself in an epoch, for at most `epochs` more epochs.
    missing : bool
        Take NaN as a missing value, which is left out of distances and of means.
    device : {"auto", "cpu", "gpu"}
        "auto" uses the GPU if there is one and CuPy can use it. The map is the same on any device, bit by bit.
    online : bool
        `fit` learns from one sample after another, on the CPU, in a random order (`random_state`); it takes no weights.
        `partial_fit` learns in batches even then.
    rate, rate_end : float
        The learning rate in the first and in the last step of online learning.
    random_state : int, RandomState or None
        Chooses the samples of `initial="random"` and the order of online learning; an int is the `seed` of `train_som`.

    Attributes
    ----------
    codebook_ : (M, d) array, in the dtype of the training samples
        The units; unit u is in row u // columns and column u % columns of the grid.
    grid_ : gpuops.som.grid.Grid
    n_iter_ : int
        Number of epochs done by `fit` and `partial_fit`.
    quantization_errors_ : list of float
        The error of the codebook before each epoch, on the samples of that epoch; after `fit`, also the error of the
        last codebook.
    topographic_error_ : float or None
        The topographic error of the last codebook; None for a map of one unit. After `fit` only.
    labels_ : (N,) int32 array
        The unit of every sample. After `fit` only.
    hits_ : (rows, columns) int64 array
        The number of samples of each unit. After `fit` only.
    unit_clusters_ : (M,) int32 array
        The cluster of each unit. After `cluster` only.
    scaling_ : pipelines.stores.scaling.Scaling or None
        How `load`'s map scales samples; None without a scaling.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        Names of the columns, if the samples had names.

    Notes
    -----
    Samples are NumPy matrices, AnnData objects, or objects that NumPy converts. `fit` keeps float32 and float64 and
    converts any other dtype to float64; later samples are converted to the dtype of the map. Results are NumPy arrays
    on any device. On a GPU, the samples have to fit into its memory; `train_som` streams samples.

    Examples
    --------
    >>> samples = np.random.default_rng(1).random((100, 3))
    >>> som = SelfOrganizingMap(4, 5, random_state=1).fit(samples)
    >>> som.predict(samples).shape
    (100,)
    """

    piece_bytes = PIECE_BYTES  # bytes of samples that are searched at a time
    cpu_block, gpu_block = CPU_BLOCK, GPU_BLOCK
    _types = TYPES

    def __init__(
        self,
        rows: int | None = None,
        columns: int | None = None,
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
        """Train a map from the beginning.

        Parameters
        ----------
        X : (N, d) array
            Finite numbers; with `missing`, also NaN and masked values. There may be fewer samples than units.
        y : ignored
        sample_weight : (N,) array, optional
            The weight of each sample, 0 or more.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            An option conflicts with the samples or with another option, or samples or weights are not valid.
        """
        grid, sigmas = self._plan(_row_count(X))
        samples = self._to_learn(X, sample_weight, grid, reset=True)
        if getattr(self, "scaling_", None) is not None:
            warnings.warn(
                "the loaded map was trained on scaled samples, and fit trains on the values of X as they are; scale X "
                "first, or go on with partial_fit",
                stacklevel=2,
            )
        codebook, errors = self._first_codebook(samples), []
        steps = self._online_steps(samples, sigmas) if self.online else None
        whole = Piece(0, samples.values, None)
        for number, sigma in enumerate(sigmas):
            if steps is None:
                codebook, error = samples.epoch(codebook, sigma)
            else:
                codebook, error = learn_online(whole, codebook, samples.job, steps, number)
            errors.append(error)
            if settled(errors, sigmas, self.tolerance):
                break
        self._forget("unit_clusters_")  # of the map before
        self.scaling_ = None
        self.grid_, self.n_iter_ = grid, len(errors)
        self._finish(samples, codebook, errors)
        return self

    def _finish(self, samples: _Samples, codebook: np.ndarray, errors: Sequence[float]) -> None:
        """Take `codebook`, which follows codebooks with `errors`, as the map; set the attributes that describe it."""
        judged, unit = samples.survey(codebook).judged, samples.job.distance_unit(codebook)
        self.codebook_ = codebook
        self.quantization_errors_ = [*errors, judged.quantization_error(samples.job, unit)]
        self.topographic_error_ = judged.topographic_error(samples.job)
        self.labels_ = samples.units(codebook)
        hits = np.bincount(self.labels_, minlength=self.grid_.units)
        self.hits_ = hits.reshape(self.grid_.rows, self.grid_.columns)

    def _forget(self, *attributes: str) -> None:
        for name in attributes:
            if hasattr(self, name):
                delattr(self, name)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SelfOrganizingMap:
        """Train the map for one epoch of batch learning, from the given samples alone.

        The radius of the neighbourhood follows the schedule after `n_iter_` epochs, and is `sigma_end` after `epochs`
        epochs; so `epochs` calls with the same samples do the same as `fit`. The first call makes the first codebook
        from its samples, which should resemble the samples of later calls. `tolerance` is ignored.

        See `fit` for parameters and errors.
        """
        begun = hasattr(self, "codebook_")
        grid, sigmas = self._plan(_row_count(X), self.grid_ if begun else None)
        if begun and grid != self.grid_:
            raise ValueError(f"this is a map on {self.grid_}, not on {grid}; fit a new one, or set its grid back")
        samples = self._to_learn(X, sample_weight, grid, reset=not begun)
        done = self.n_iter_ if begun else 0
        codebook = self.codebook_ if begun else self._first_codebook(samples)
        sigma = sigmas[done] if done < len(sigmas) else float(self.sigma_end)
        self.codebook_, error = samples.epoch(codebook, sigma)
        self.grid_, self.n_iter_ = grid, done + 1
        self.quantization_errors_ = [*(self.quantization_errors_[:done] if begun else ()), error]
        self._forget("labels_", "hits_", "topographic_error_", "unit_clusters_")
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Train a map and return the unit of every sample, `labels_`."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: Any) -> np.ndarray:
        """Return the best matching unit of every sample, (N,) int32; of equally near units, the lowest."""
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
            raise ValueError("online training cannot use weights; leave them out, or train in batches")
        check_rates(self.rate, self.rate_end)
        radii = (sigmas[0], float(self.sigma_end))
        rates = (float(self.rate), float(self.rate_end))
        return OnlineSteps(samples.job.n, int(self.epochs), radii, rates, self.schedule, self._seed())

    @property
    def u_matrix_(self) -> np.ndarray:
        """Mean distance of each unit to its neighbours on the grid, float64 (rows, columns)."""
        check_is_fitted(self)
        return u_matrix(self.codebook_, self.grid_, self._metric()).reshape(self.grid_.rows, self.grid_.columns)

    def grid_coordinates(self, X: Any = None) -> np.ndarray:
        """Return the grid row and column of every sample's unit, (N, 2) int64; by default for the samples of `fit`."""
        check_is_fitted(self, "labels_" if X is None else None)
        units = self.labels_ if X is None else self._units(X)
        return np.stack(np.divmod(units.astype(np.int64), self.grid_.columns), axis=1)

    def cluster(
        self,
        clusters: int | None = None,
        method: str = "agglomerative",
        *,
        linkage: str | None = None,
        adjacent: bool = False,
        X: Any = None,
    ) -> np.ndarray:
        """Cluster the units. Returns the cluster of each unit, (M,) int32, and keeps it as `unit_clusters_`.

        For the clusters of samples, write ``som.unit_clusters_[som.predict(X)]``. Parameters and errors are those of
        `pipelines.som.clusters.cluster_units`; `X` are samples for the method "immersion".
        """
        from pipelines.som.clusters import cluster_units  # its messages import zarr

        check_is_fitted(self)
        samples = None if X is None else self._take(X, None, self.grid_).values
        seed = 0 if self.random_state is None else self._seed()
        options: dict[str, Any] = {"linkage": linkage, "adjacent": adjacent, "samples": samples, "seed": seed}
        self.unit_clusters_ = cluster_units(
            self.codebook_, self.grid_, method, clusters, metric=self._metric(), **options
        )
        return self.unit_clusters_

    def plot(
        self,
        kind: str = "umatrix",
        column: int | str | None = None,
        axes: Any = None,
        *,
        X: Any = None,
        y: Any = None,
        text: bool = False,
        title: str | None = None,
        scaled: bool = False,
        size: tuple[float, float] | None = None,
        cmap: str | None = None,
    ) -> Any:
        """Draw the map with matplotlib, as `tilepath som plot` does.

        Parameters
        ----------
        kind : {"umatrix", "pmatrix", "ustar", "hits", "plane", "planes", "clusters", "labels", "pies", "tree", "curve"}
            `pipelines.som.pictures` describes each kind. "clusters" needs a call of `cluster` first. After this call,
            every picture with cells outlines the clusters.
        column : int or str, or for "planes" a list of them, optional
            Number or name of the column that "plane" shows, by default the first; "planes" by default shows all.
        axes : matplotlib.axes.Axes, optional
            Where to draw; by default on a new figure of pyplot. "planes", "tree" and "curve" need a separate figure.
        X : (N, d) array
            "pmatrix" and "ustar" show the density of these samples. "hits", "labels", "pies" and "tree" count these
            samples, by default the samples of `fit`; a loaded map has no samples.
        y : (N,) array
            The label of every sample, for "labels" and "pies", and optionally for "tree". A sample whose label is
            missing, as NaN or None, does not vote. The classifier has labels.
        text : bool
            Write labels or the numbers of clusters into the cells.
        title : str, optional
        scaled : bool
            Show the scaled values ("plane", "planes"), for a map that was trained with scaled samples.
        size : (width, height), optional
            Inches in which the map, each plane, or the picture without cells must fit.
        cmap : str, optional
            Name of a colour map of matplotlib, for pictures of numbers.

        Returns
        -------
        matplotlib.axes.Axes, or for "planes", "tree" and "curve" matplotlib.figure.Figure
        """
        from tilepath.sklearn_pictures import needed, plot

        cure = "call cluster first" if kind == "clusters" else "pass the samples as X"
        check_is_fitted(self)
        check_is_fitted(self, needed(kind, X, y), msg=f"This %(name)s lacks what the picture shows; {cure}")
        return plot(self, kind, column, axes, X, y, text, title, scaled, size, cmap)

    def save(self, path: str | os.PathLike[str], X: Any = None, *, overwrite: bool = False) -> None:
        """Write the map to a codebook store, which commands such as `tilepath som plot` and `tilepath som map` read.

        The store has the last codebook, the hits and the errors, and of a classifier the classes of the units. Clusters
        are written by `tilepath.write_clusters`.

        Parameters
        ----------
        path : str or path-like
        X : (N, d) array
            Samples, to count hits and errors after `partial_fit`; not needed after `fit`.
        overwrite : bool
            Replace a codebook store at `path`.

        Raises
        ------
        ValueError
            `X` is needed.
        pipelines.stores.StoreError
            `path` exists, or the disk is full.
        """
        from tilepath.sklearn_stores import save

        check_is_fitted(self)
        if X is None and not hasattr(self, "hits_"):
            raise ValueError("partial_fit does not count hits; pass samples as X to count them")
        if X is None:
            save(self, path, self.hits_, self.quantization_errors_, overwrite, self._votes())
            return
        judged = copy.copy(self)
        samples = self._take(X, None, self.grid_)
        judged._finish(samples, self.codebook_, self.quantization_errors_[: self.n_iter_])
        save(judged, path, judged.hits_, judged.quantization_errors_, overwrite, self._votes())

    def _votes(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the classes of a classifier, and the samples of each class of each unit; None for a plain map."""
        return None

    @classmethod
    def load(cls, path: Any, *, device: str = "auto") -> SelfOrganizingMap:
        """Return the map of a codebook store, as `save` or `tilepath som train` wrote it.

        Methods take samples in the units of the source, and scale them as the samples of the training were scaled
        (`scaling_`). The map has no `labels_`. `initial` is "pca" if the training began from a given array.

        Parameters
        ----------
        path : str, path-like or pipelines.Codebook
        device : {"auto", "cpu", "gpu"}

        Raises
        ------
        pipelines.stores.StoreError
            The store is missing, damaged, unfinished or of another schema.
        """
        from tilepath.sklearn_stores import load

        loaded: SelfOrganizingMap = load(cls, path, device)
        return loaded

    def annotate(self, adata: Any, key: str = "som") -> None:
        """Write the units of the observations of an AnnData object, and their places on the map, into the object.

        ``.obs`` gets the column ``KEY_unit``; after `cluster` also ``KEY_cluster``; by a classifier also ``KEY_class``.
        ``.obsm["X_KEY"]`` gets the place of the unit on the grid, x and y, so that Scanpy can draw the map
        (``scanpy.pl.embedding(adata, "som")``). The observations are rows of ``.X``, as in ``fit(adata)``.
        """
        from tilepath.sklearn_annotated import annotate

        check_is_fitted(self)
        annotate(self, adata, key)

    def quality(self, X: Any) -> dict[str, float]:
        """Return measures of how well the map shows the samples `X`, by name; `pipelines.som.quality` has the formulas.

        Returns
        -------
        dict
            ``explained_variance`` (Euclidean maps), ``trustworthiness`` and ``neighbourhood_preservation``: 1 is best.
            The last two rank the distances of up to 2,000 evenly spread samples, and are left out for fewer than five
            samples. If values of `X` are missing, only ``quantization_error`` and ``topographic_error``. Of the
            training samples, `quantization_errors_[-1]` and `topographic_error_` are these two errors.
        """
        check_is_fitted(self)
        samples = self._take(X, None, self.grid_)
        if np.isnan(samples.values).any():
            judged, unit = samples.survey(self.codebook_).judged, samples.job.distance_unit(self.codebook_)
            return {
                "quantization_error": judged.quantization_error(samples.job, unit),
                "topographic_error": judged.topographic_error(samples.job),
            }
        return map_quality(samples.values, samples.units(self.codebook_), self.codebook_, self.grid_, self._metric())

    def transform(self, X: Any) -> np.ndarray:
        """Return the distances of every sample to all units, (N, M) in the dtype of the map.

        Only this method makes a matrix of this size. Distances are evaluated in float64, one dimension after the other,
        as `gpuops.som.metrics` defines them, so the least distance in a row is the distance that a search reports.
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

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the values of units, (N, d).

        Parameters
        ----------
        X : (N,) int array of units, as `predict` returns them, or (N, M) distances to all units, as from `transform`
            Of distances, the nearest unit counts.
        """
        check_is_fitted(self)
        X = np.asarray(X)
        if X.ndim == 2 and X.shape[1] == len(self.codebook_):
            X = X.argmin(axis=1)
        if X.ndim != 1 or X.dtype.kind not in "iu" or (X.size and not 0 <= X.min() <= X.max() < len(self.codebook_)):
            raise ValueError(
                f"X is {X.dtype} of the shape {X.shape}; give units from 0 to {len(self.codebook_) - 1}, or a row of "
                f"{len(self.codebook_)} distances for each sample"
            )
        return self._in_units_of_source(self.codebook_[X])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the mean error with paths of Kaski and Lagus; greater is better.

        The error of a sample is its distance to its best matching unit, plus the length of the shortest path on the
        grid from there to its second best unit. The quantization error alone (`quantization_errors_`) would always
        favour the largest map. See `pipelines.som.quality`.
        """
        check_is_fitted(self)
        samples = self._take(X, sample_weight, self.grid_)
        units, distances = samples.nearest(self.codebook_, min(2, self.grid_.units))
        return -error_with_paths(units, distances, self.codebook_, self.grid_, samples.job.metric, samples.weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = bool(self.missing)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        """The number of names that `get_feature_names_out` makes."""
        return len(self.codebook_)

    def _check_types(self) -> None:
        for name, (types, words) in self._types.items():
            if not isinstance(getattr(self, name), types):
                raise TypeError(f"{name} is {getattr(self, name)!r}; give {words}")

    def _plan(self, n: int, begun: Grid | None = None) -> tuple[Grid, list[float]]:
        """Check the options, and return the grid for n samples and the radius of the neighbourhood in every epoch.

        Sides that are not given are taken from the grid that was `begun`, if there is one.
        """
        self._check_types()
        check_kernel(self.kernel)
        rows, columns = (None if side is None else int(side) for side in (self.rows, self.columns))
        if rows is None or columns is None:
            usual = usual_sides(n, rows, columns, bool(self.hexagonal and self.toroidal))
            rows, columns = (usual["rows"], usual["columns"]) if begun is None else (begun.rows, begun.columns)
        grid = Grid(rows, columns, bool(self.hexagonal), bool(self.toroidal))
        return grid, self._sigmas(grid)

    def _radii(self, grid: Grid) -> tuple[float, float]:
        """Return the radius of the neighbourhood in the first and in the last epoch, in units of the grid."""
        last = float(self.sigma_end)
        return (first_sigma(grid.rows, grid.columns, last) if self.sigma is None else float(self.sigma)), last

    def _sigmas(self, grid: Grid) -> list[float]:
        """Return the radius of the neighbourhood in every epoch that is planned."""
        return sigma_schedule(int(self.epochs), *self._radii(grid), self.schedule, self.tolerance)

    def _past_sigmas(self) -> list[float]:
        """Return the radius of the neighbourhood in every epoch that is done."""
        return [*self._sigmas(self.grid_), *[float(self.sigma_end)] * self.n_iter_][: max(self.n_iter_, 1)]

    def _to_learn(self, X: Any, sample_weight: Any, grid: Grid, reset: bool) -> _Samples:
        """Return `_take` of the samples, after checking that the integer sums of the epochs resolve every column."""
        samples = self._take(X, sample_weight, grid, reset)
        values, weights = samples.values, samples.weights

        def read(start: int, stop: int) -> tuple[np.ndarray, np.ndarray | None]:
            return values[start:stop], None if weights is None else weights[start:stop]

        refuse_unresolved(samples.job, read, "X", getattr(self, "feature_names_in_", range(samples.job.d)))
        return samples

    def _take(self, X: Any, sample_weight: Any, grid: Grid, reset: bool = False) -> _Samples:
        """Check samples and weights and put them on the device; with `reset`, their dtype becomes the map's."""
        xp = array_library(self.device)
        metric = self._metric()
        X = as_table(X)
        _refuse_dates(X)
        values = validate_data(
            self,
            unmasked(X),
            reset=reset,
            dtype=[np.float64, np.float32] if reset else self.codebook_.dtype,
            order="C",
            ensure_all_finite="allow-nan",
        )
        if not self.missing and (absent := np.isnan(values)).any():
            row, column = np.unravel_index(absent.argmax(), absent.shape)
            name = getattr(self, "feature_names_in_", range(values.shape[1]))[column]
            raise ValueError(
                f"X is NaN in row {row} (from 0), column {name!r}; if NaN stands for missing values, pass missing=True"
            )
        scaling = None if reset else getattr(self, "scaling_", None)
        if scaling is not None:
            scaled = scaling.apply(values)
            refuse_beyond(scaled, values.dtype, "X", [*getattr(self, "feature_names_in_", range(values.shape[1]))])
            values = scaled.astype(values.dtype)
        greatest, least = (extreme.reduce(values, axis=0, initial=0) for extreme in (np.fmax, np.fmin))
        largest = tuple(np.maximum(greatest, -least).tolist())
        if max(largest) > LARGEST:
            raise ValueError(f"X has a value of magnitude {max(largest):.3g}; a map takes values up to {LARGEST:.3g}")
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
        """Return the initial codebook, (M, d)."""
        job, pieces, dtype = samples.job, samples.pieces, samples.values.dtype
        moments = Moments(job.d)
        moments.add(samples.values)
        moments.finish()
        if not moments.counts.all():
            raise ValueError(f"column {moments.counts.argmin()} of X has no value at all; leave it out")
        if not isinstance(self.initial, str):
            return given_codebook(self.initial, job.grid, job.d, dtype)
        if self.initial == "pca":
            steps = steps_for(job.n, moments.means, moments.minima, moments.maxima, job.largest_weight)
            return principal_plane(products_of(pieces, steps), steps, job.grid, dtype)
        if self.initial == "random":
            codebook = np.empty((job.grid.units, job.d), dtype)
            at, values = pick(pieces, random_rows(job.n, job.grid.units, self._seed()), moments.means)
            codebook[at] = values
            return codebook
        raise ValueError(f"initial is {self.initial!r}; pass 'pca', 'random' or an array")

    def _in_units_of_source(self, values: np.ndarray) -> np.ndarray:
        """Convert values from the scale of the codebook to the scale of `X`."""
        scaling = getattr(self, "scaling_", None)
        return values if scaling is None else scaling.undo(values).astype(values.dtype)

    def _scales(self) -> list[str]:
        """Return the name of the scale of each column of the codebook; empty if `X` has the same scales."""
        scaling = getattr(self, "scaling_", None)
        return [] if scaling is None else [scaling.words(column) for column in range(self.n_features_in_)]

    def _seed(self) -> int:
        if not isinstance(self.random_state, Integral):
            return int(check_random_state(self.random_state).randint(2**31))
        seed = int(self.random_state)
        if not 0 <= seed < 2**64:
            raise ValueError(f"random_state is {seed}; give an integer from 0 to 2^64 - 1")
        return seed


def _row_count(X: Any) -> int:
    """Return the number of rows of samples, at least 1; `fit` refuses an `X` that is no matrix of samples."""
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    return max(1, shape[0]) if shape else 1


def _refuse_dates(X: Any) -> None:
    """Raise TypeError if a column of `X` holds dates or times, which NumPy would silently convert to numbers."""
    framed = hasattr(X, "columns") and hasattr(X, "dtypes")
    for name, dtype in zip(X.columns, X.dtypes, strict=True) if framed else [(0, getattr(X, "dtype", None))]:
        if getattr(dtype, "kind", "") in ("m", "M"):
            raise TypeError(f"column {name!r} of X holds dates or times; turn them into numbers, or leave them out")


class _Samples(NamedTuple):
    """Samples on a device, and the operations on them."""

    values: np.ndarray  # all samples, on the host
    weights: np.ndarray | None
    pieces: list[Piece]
    job: MapJob
    xp: Any

    def epoch(self, codebook: np.ndarray, sigma: float) -> tuple[np.ndarray, float]:
        """Return the codebook after an epoch of batch learning, and the quantization error of `codebook`."""
        on_device, unit = self.xp.asarray(codebook), self.job.distance_unit(codebook)
        total = accumulate(self.pieces, on_device, self.job)
        return to_host(learn(total, on_device, self.job, sigma)), total.judged.quantization_error(self.job, unit)

    def survey(self, codebook: np.ndarray) -> Any:
        return survey(self.pieces, self.xp.asarray(codebook), self.job)

    def units(self, codebook: np.ndarray) -> np.ndarray:
        """Return the best matching units of all samples, (N,)."""
        return self.nearest(codebook, 1)[0][:, 0]

    def nearest(self, codebook: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the `top` nearest units of all samples, (N, top), and the distances to the nearest, (N,)."""
        on_device, job = self.xp.asarray(codebook), self.job
        parts = []
        for piece in self.pieces:
            units, distances = best_matching_units(piece.values, on_device, job.metric, top, job.missing)
            parts.append([to_host(found).reshape(len(piece.values), top) for found in (units, distances)])
        units, distances = map(np.concatenate, zip(*parts, strict=True))
        return units, distances[:, 0]
