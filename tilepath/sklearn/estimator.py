"""The estimator of scikit-learn that trains a self-organizing map: its parameters, `fit` and `partial_fit`."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, fields
from numbers import Integral, Real
from types import NoneType
from typing import Any, Self

import numpy as np

from gpuops.som.grid import Grid
from pipelines.som import defaults
from pipelines.som.epoch import check_kernel, learn_online
from pipelines.som.resolution import refuse_unresolved
from pipelines.som.schedule import OnlineSteps, check_rates, first_and_last, settled, sigma_schedule
from pipelines.som.shard import Piece
from pipelines.som.start import usual_sides
from tilepath.sklearn.samples import CheckedSamples, checked
from tilepath.sklearn.trained import TrainedMap

# For the annotation of a parameter, the types that it accepts, and their names in messages. Functions that use a
# parameter check its range.
TYPES: dict[Any, tuple[tuple[type, ...], str]] = {
    "int": ((Integral,), "an integer"),
    "int | None": ((Integral, NoneType), "an integer, or None"),
    "float": ((Real,), "a number"),
    "float | None": ((Real, NoneType), "a number, or None"),
    "bool": ((Integral, np.bool_), "True or False"),
    "str": ((str,), "a name"),
    "int | np.random.RandomState | None": (
        (Integral, np.random.RandomState, NoneType),
        "an integer, a RandomState, or None",
    ),
    "Any": ((object,), "anything"),
}


@dataclass(eq=False, repr=False)  # scikit-learn compares estimators by identity, and has a repr of its own
class SelfOrganizingMap(TrainedMap):
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
    scaling_ : object or None
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

    rows: int | None = None
    columns: int | None = None
    _: KW_ONLY
    hexagonal: bool = False
    toroidal: bool = False
    metric: str = defaults.METRIC
    kernel: str = defaults.KERNEL
    epochs: int = defaults.EPOCHS
    sigma: float | None = None
    sigma_end: float = defaults.SIGMA_END
    schedule: str = defaults.SCHEDULE
    initial: Any = defaults.INITIAL
    tolerance: float | None = None
    missing: bool = False
    device: str = "auto"
    online: bool = False
    rate: float = defaults.RATE
    rate_end: float = defaults.RATE_END
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
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
        if self.scaling_ is not None:
            warnings.warn(
                "the loaded map was trained on scaled samples, and fit trains on the values of X as they are; scale X "
                "first, or go on with partial_fit",
                stacklevel=2,
            )
        codebook, errors = samples.first_codebook(self.initial, self._seed), []
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

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
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
        codebook = self.codebook_ if begun else samples.first_codebook(self.initial, self._seed)
        sigma = sigmas[done] if done < len(sigmas) else float(self.sigma_end)
        self.codebook_, error = samples.epoch(codebook, sigma)
        self.grid_, self.n_iter_ = grid, done + 1
        self.quantization_errors_ = [*(self.quantization_errors_[:done] if begun else ()), error]
        self._forget("labels_", "hits_", "topographic_error_", "unit_clusters_")
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Train a map and return the unit of every sample, `labels_`."""
        return self.fit(X, sample_weight=sample_weight).labels_

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

    def _sigmas(self, grid: Grid) -> list[float]:
        """Return the radius of the neighbourhood in every epoch that is planned."""
        radii = first_and_last(grid, self.sigma, self.sigma_end)
        return sigma_schedule(int(self.epochs), *radii, self.schedule, self.tolerance)

    def _past_sigmas(self) -> list[float]:
        """Return the radius of the neighbourhood in every epoch that is done."""
        return [*self._sigmas(self.grid_), *[float(self.sigma_end)] * self.n_iter_][: max(self.n_iter_, 1)]

    def _online_steps(self, samples: CheckedSamples, sigmas: list[float]) -> OnlineSteps:
        if samples.weights is not None:
            raise ValueError("online training cannot use weights; leave them out, or train in batches")
        check_rates(self.rate, self.rate_end)
        radii, rates = (sigmas[0], float(self.sigma_end)), (float(self.rate), float(self.rate_end))
        return OnlineSteps(samples.job.n, int(self.epochs), radii, rates, self.schedule, self._seed())

    def _to_learn(self, X: Any, sample_weight: Any, grid: Grid, reset: bool) -> CheckedSamples:
        """Return the samples, after checking that the integer sums of the epochs resolve every column."""
        samples = checked(self, X, sample_weight, grid, reset)
        refuse_unresolved(samples.job, samples.rows, "X", self._columns())
        return samples

    def _forget(self, *attributes: str) -> None:
        for name in attributes:
            self.__dict__.pop(name, None)

    def _check_types(self) -> None:
        for parameter in fields(self):
            (types, words), value = TYPES[parameter.type], getattr(self, parameter.name)
            if not isinstance(value, types):
                raise TypeError(f"{parameter.name} is {value!r}; give {words}")


def _row_count(X: Any) -> int:
    """Return the number of rows of samples, at least 1; `fit` refuses an `X` that is no matrix of samples."""
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    return max(1, shape[0]) if shape else 1
