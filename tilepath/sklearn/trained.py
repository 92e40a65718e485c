"""What a trained map answers, whether it was trained here or loaded from a store."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gpuops.som.grid import Grid
from gpuops.som.metrics import ALIASES, METRICS
from pipelines.som.heights import u_matrix
from pipelines.som.quality import error_with_paths, map_quality
from pipelines.som.shard import PIECE_BYTES
from pipelines.stores.scaling import Scaling
from tilepath.sklearn.annotated import annotate
from tilepath.sklearn.samples import CheckedSamples, checked
from tilepath.sklearn.stores import StoredMap

# Distances that `transform` evaluates at a time: a block that fits in a CPU's cache, and one that keeps a GPU busy.
CPU_BLOCK, GPU_BLOCK = 1 << 16, 1 << 24


class TrainedMap(StoredMap, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The methods of `SelfOrganizingMap` that need a trained map; parameters and attributes are described there."""

    piece_bytes = PIECE_BYTES  # bytes of samples that are searched at a time
    cpu_block, gpu_block = CPU_BLOCK, GPU_BLOCK

    # Parameters and attributes that the subclass sets.
    metric: str
    kernel: str
    missing: bool
    device: str
    random_state: Any
    grid_: Grid
    n_iter_: int

    scaling_: Scaling | None = None

    def predict(self, X: Any) -> np.ndarray:
        """Return the best matching unit of every sample, (N,) int32; of equally near units, the lowest."""
        check_is_fitted(self)
        return self._units(X)

    def transform(self, X: Any) -> np.ndarray:
        """Return the distances of every sample to all units, (N, M) in the dtype of the map.

        Only this method makes a matrix of this size. Distances are evaluated in float64, one dimension after the other,
        as `gpuops.som.metrics` defines them, so the least distance in a row is the distance that a search reports.
        """
        check_is_fitted(self)
        samples = self._take(X)
        return samples.distances(self.codebook_, self.cpu_block if samples.xp is np else self.gpu_block)

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

    def grid_coordinates(self, X: Any = None) -> np.ndarray:
        """Return the grid row and column of every sample's unit, (N, 2) int64; by default for the samples of `fit`."""
        check_is_fitted(self, "labels_" if X is None else None)
        units = self.labels_ if X is None else self._units(X)
        return np.stack(np.divmod(units.astype(np.int64), self.grid_.columns), axis=1)

    @property
    def u_matrix_(self) -> np.ndarray:
        """Mean distance of each unit to its neighbours on the grid, float64 (rows, columns)."""
        check_is_fitted(self)
        return u_matrix(self.codebook_, self.grid_, self._metric()).reshape(self.grid_.rows, self.grid_.columns)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the mean error with paths of Kaski and Lagus; greater is better.

        The error of a sample is its distance to its best matching unit, plus the length of the shortest path on the
        grid from there to its second best unit. The quantization error alone (`quantization_errors_`) would always
        favour the largest map. See `pipelines.som.quality`.
        """
        check_is_fitted(self)
        samples = self._take(X, sample_weight)
        units, distances = samples.nearest(self.codebook_, min(2, self.grid_.units))
        return -error_with_paths(units, distances, self.codebook_, self.grid_, samples.job.metric, samples.weights)

    def quality(self, X: Any) -> dict[str, Any]:
        """Return measures of how well the map shows the samples `X`, by name; `pipelines.som.quality` has the formulas.

        Returns
        -------
        dict
            ``explained_variance`` (Euclidean maps, unless all samples are equal), ``trustworthiness`` and
            ``neighbourhood_preservation``: 1 is best. The last two rank the distances of up to 2,000 evenly spread
            samples, and are left out for fewer than five samples. If values of `X` are missing, only
            ``quantization_error`` and ``topographic_error``. Of the training samples, `quantization_errors_[-1]` and
            `topographic_error_` are these two errors.
        """
        check_is_fitted(self)
        samples = self._take(X)
        if np.isnan(samples.values).any():
            names = ("quantization_error", "topographic_error")
            return dict(zip(names, samples.errors(self.codebook_), strict=True))
        units = samples.units(self.codebook_)
        return map_quality([(samples.values, units)], len(units), self.codebook_, self.grid_, self._metric())

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
        `tilepath.cluster_map`; `X` are samples for the method "immersion".
        """
        from pipelines.som.clusters import cluster_units  # its messages import zarr

        check_is_fitted(self)
        samples = None if X is None else self._take(X).values
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
        text, title, scaled, size, cmap
            As for `tilepath.picture_map`; "plane" takes what "planes" takes.

        Returns
        -------
        matplotlib.axes.Axes, or for "planes", "tree" and "curve" matplotlib.figure.Figure
        """
        from tilepath.sklearn.pictures import plot  # which imports zarr

        check_is_fitted(self)
        return plot(self, kind, column, axes, X, y, text, title, scaled, size, cmap)

    def annotate(self, adata: Any, key: str = "som") -> None:
        """Write the units of the observations of an AnnData object, and their places on the map, into the object.

        ``.obs`` gets the column ``KEY_unit``; after `cluster` also ``KEY_cluster``; by a classifier also ``KEY_class``.
        ``.obsm["X_KEY"]`` gets the place of the unit on the grid, x and y, so that Scanpy can draw the map
        (``scanpy.pl.embedding(adata, "som")``). The observations are rows of ``.X``, as in ``fit(adata)``.
        """
        check_is_fitted(self)
        annotate(self, adata, key)

    def _finish(self, samples: CheckedSamples, codebook: np.ndarray, errors: list[float]) -> None:
        """Take `codebook`, which follows codebooks with `errors`, as the map; set the attributes that describe it."""
        error, self.topographic_error_ = samples.errors(codebook)
        self.codebook_, self.quantization_errors_ = codebook, [*errors, error]
        self.labels_ = samples.units(codebook)
        hits = np.bincount(self.labels_, minlength=self.grid_.units)
        self.hits_ = hits.reshape(self.grid_.rows, self.grid_.columns)

    def _take(self, X: Any, sample_weight: Any = None) -> CheckedSamples:
        return checked(self, X, sample_weight, self.grid_)

    def _units(self, X: Any) -> np.ndarray:
        return self._take(X).units(self.codebook_)

    def _metric(self) -> str:
        metric = ALIASES.get(self.metric, self.metric)
        if metric not in METRICS:
            raise ValueError(f"metric is {self.metric!r}; pass one of {', '.join(map(repr, [*METRICS, *ALIASES]))}")
        return metric

    def _columns(self) -> list[Any]:
        """Return the names of the columns of samples, or their numbers if the samples had no names."""
        return list(getattr(self, "feature_names_in_", range(self.n_features_in_)))

    def _in_units_of_source(self, values: np.ndarray) -> np.ndarray:
        """Convert values from the scale of the codebook to the scale of `X`."""
        return values if self.scaling_ is None else self.scaling_.undo(values).astype(values.dtype)

    def _scales(self) -> list[str]:
        """Return the name of the scale of each column of the codebook; empty if `X` has the same scales."""
        return [] if self.scaling_ is None else [self.scaling_.words(k) for k in range(self.n_features_in_)]

    def _seed(self) -> int:
        if not isinstance(self.random_state, Integral):
            return int(check_random_state(self.random_state).randint(2**31))
        seed = int(self.random_state)
        if not 0 <= seed < 2**64:
            raise ValueError(f"random_state is {seed}; give an integer from 0 to 2^64 - 1")
        return seed

    def _votes(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the classes of a classifier, and the samples of each class of each unit; None for a plain map."""
        return None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "codebook_")  # by default a fit counts that failed after it had counted the columns

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = bool(self.missing)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        """The number of names that `get_feature_names_out` makes."""
        return len(self.codebook_)
