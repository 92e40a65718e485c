"""A self-organizing map that learns classes: the samples of a unit vote for its class, and LVQ1 may move the units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pipelines.som.classes import Vote, count_votes, known_labels, nearest_voters, vote_of_shares
from tilepath.sklearn.annotated import as_table
from tilepath.sklearn.estimator import SelfOrganizingMap


@dataclass(eq=False, repr=False, kw_only=True)
class SelfOrganizingMapClassifier(ClassifierMixin, SelfOrganizingMap):
    """A self-organizing map that predicts classes: the class of a sample is the commonest class in its unit.

    A unit without samples takes the class of the nearest unit with samples. After the map is trained, `lvq_epochs`
    epochs of LVQ1 may move its units: the unit of a sample moves towards the sample if both have the same class,
    else away from it, at a rate that falls to 0. The samples then vote again.

    Parameters
    ----------
    lvq_epochs : int
        Number of epochs of LVQ1; 0 does not move the units.
    lvq_rate : float
        The rate of the first step, above 0 and below 1.
    rows, columns, ...
        As for `SelfOrganizingMap`.

    Attributes
    ----------
    classes_ : (L,) array
        The classes.
    unit_classes_ : (M,) int64 array
        The position in `classes_` of the class of every unit.
    vote_ : named tuple
        How the samples of the units voted.
    unit_shares_ : (M, L) float64 array
        The share of each class among the samples of every unit.
    purity_ : (M,) float64 array
        The share of the samples of a unit that have its class; NaN for a unit without samples.
    codebook_, ...
        As for `SelfOrganizingMap`.

    References
    ----------
    T. Kohonen, "Improved versions of learning vector quantization", IJCNN 1990.

    Examples
    --------
    >>> samples = np.array([[0.0, 0.1], [0.1, 0.0], [5.0, 5.1], [5.1, 5.0]])
    >>> classes = ["low", "low", "high", "high"]
    >>> classifier = SelfOrganizingMapClassifier(2, 2, random_state=1).fit(samples, classes)
    >>> classifier.predict([[0.0, 0.0], [5.0, 5.0]]).tolist()
    ['low', 'high']
    """

    lvq_epochs: int = 0
    lvq_rate: float = 0.03

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Train a map, let its samples of the classes y (N) vote, and move the units by LVQ1 if asked for."""
        self._check_types()
        if self.lvq_epochs < 0 or not 0 < self.lvq_rate < 1:
            raise ValueError(
                f"lvq_epochs is {self.lvq_epochs!r} and lvq_rate {self.lvq_rate!r}; give an integer from 0 on, and a "
                "number between 0 and 1"
            )
        if self.lvq_epochs and self._metric() != "euclidean":
            raise ValueError(
                f"LVQ moves units on Euclidean maps only, not with metric {self.metric!r}; set lvq_epochs=0"
            )
        if self.lvq_epochs and self.missing:
            raise ValueError(
                "LVQ does not support missing values; set lvq_epochs=0, or leave out samples that have any"
            )
        X, given = as_table(X), np.asarray(y)
        if given.dtype.kind == "O" and given.ndim == 1 and not (known := known_labels(given)).all():
            raise ValueError(
                f"y has no class in row {int(np.argmin(known))} (from 0); leave out the samples without a class, such "
                "as by keep = y.notna(); fit(X[keep], y[keep])"
            )
        _, y = validate_data(self, X, y, ensure_all_finite=False, dtype=None)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        super().fit(X)
        self._vote(self.labels_, codes)
        if self.lvq_epochs:
            samples = self._take(X)
            self._finish(samples, self._moved(samples.values, codes), self.quantization_errors_)
            self._vote(self.labels_, codes)
        return self

    @classmethod
    def load(cls, path: Any, *, device: str = "auto") -> Self:
        """Return the classifier that `save` wrote to a codebook store.

        Maps of `tilepath som train` have no classes: load a `SelfOrganizingMap`, or predict the labels of samples by
        `tilepath som predict`. For further errors, and for what is not restored, see `SelfOrganizingMap.load`.
        """
        from pipelines.stores.codebook import open_codebook  # which imports zarr

        stored = open_codebook(path)
        votes = stored.votes()
        if votes is None:
            raise TypeError(
                f"{stored.path} holds no classes, since it was not saved by a classifier; load a SelfOrganizingMap, or "
                "predict labels with `tilepath som predict`"
            )
        loaded = super().load(stored, device=device)
        if "lvq" in stored.options:
            loaded.lvq_epochs, loaded.lvq_rate = stored.options["lvq"]
        loaded.classes_ = votes[0]
        loaded._elect(vote_of_shares(votes[1]))
        return loaded

    @property
    def partial_fit(self) -> Any:
        """Not available: samples vote only when `fit` has trained the map."""
        raise AttributeError("classes are learnt by fit; for partial_fit use SelfOrganizingMap")

    def fit_predict(self, X: Any, y: Any) -> np.ndarray:  # type: ignore[override]
        """Train a map and return the class that it predicts for every sample."""
        return self.fit(X, y).predict(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of every sample's unit, (N,)."""
        check_is_fitted(self)
        return self.classes_[self.unit_classes_[self._units(X)]]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the share of each class among the training samples of every sample's unit, float64 (N, L).

        A unit without samples has the shares of the nearest unit with samples.
        """
        check_is_fitted(self)
        return self.unit_shares_[self._units(X)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # type: ignore[override]
        """Return the share of the samples whose class is predicted correctly."""
        return ClassifierMixin.score(self, X, y, sample_weight)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "unit_classes_")

    def _votes(self) -> tuple[np.ndarray, np.ndarray]:
        wide = {"i": np.int64, "u": np.int64, "f": np.float64}.get(self.classes_.dtype.kind)
        return self.classes_ if wide is None else self.classes_.astype(wide), self.vote_.shares(len(self.classes_))

    def _vote(self, units: np.ndarray, codes: np.ndarray) -> None:
        self._elect(count_votes(units, codes, self.grid_.units, len(self.classes_)))

    def _elect(self, vote: Vote) -> None:
        voters = nearest_voters(vote, self.codebook_, self._metric())
        shares = vote.shares(len(self.classes_))[voters]
        self.vote_, self.purity_, self.unit_classes_ = vote, vote.purity, vote.winners[voters]
        self.unit_shares_ = shares / shares.sum(axis=1, keepdims=True)

    def _moved(self, samples: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the codebook after `lvq_epochs` epochs of LVQ1; `random_state` draws the order of the samples."""
        units, total = self.codebook_.astype(np.float64), int(self.lvq_epochs) * len(samples)
        generator = np.random.default_rng(self._seed())
        orders = (generator.permutation(len(samples)) for _ in range(int(self.lvq_epochs)))
        for step, row in enumerate(np.concatenate([*orders]).tolist()):
            apart = samples[row] - units
            unit = int(np.einsum("ij,ij->i", apart, apart).argmin())
            sign = 1 if self.unit_classes_[unit] == codes[row] else -1
            units[unit] += sign * self.lvq_rate * (1 - step / total) * apart[unit]
        return units.astype(self.codebook_.dtype)
