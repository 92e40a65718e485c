"""Save maps to codebook stores, as `tilepath.train_som` writes them, and load them.

Functions import the stores when they are called: most users of the estimators have no stores, and zarr takes long.
"""

from __future__ import annotations

import copy
import hashlib
import os
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pipelines.som.schedule import first_and_last
from pipelines.stores.scaling import Scaling


class StoredMap:
    """The methods of `SelfOrganizingMap` that write a map to a store and read it from a store."""

    def save(self: Any, path: str | os.PathLike[str], X: Any = None, *, overwrite: bool = False) -> None:
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
        StoreError
            `path` exists, or the disk is full.
        """
        check_is_fitted(self)
        judged = self
        if X is not None:
            judged = copy.copy(self)
            judged._finish(self._take(X), self.codebook_, self.quantization_errors_[: self.n_iter_])
        elif not hasattr(self, "hits_"):
            raise ValueError("partial_fit does not count hits; pass samples as X to count them")
        _write(judged, path, overwrite)

    @classmethod
    def load(cls, path: Any, *, device: str = "auto") -> Self:
        """Return the map of a codebook store, as `save` or `tilepath som train` wrote it.

        Methods take samples in the units of the source, and scale them as the samples of the training were scaled
        (`scaling_`). The map has no `labels_`. `initial` is "pca" if the training began from a given array.

        Parameters
        ----------
        path : str, path-like or pipelines.Codebook
        device : {"auto", "cpu", "gpu"}

        Raises
        ------
        StoreError
            The store is missing, damaged, unfinished or of another schema.
        """
        from pipelines.stores.codebook import open_codebook

        stored = open_codebook(path)
        parameters = {"epochs": stored.epochs, **_parameters(stored.options), **vars(stored.grid)}
        parameters |= {"metric": stored.metric, "missing": stored.missing, "device": device}
        som: Any = cls(**parameters)
        som.grid_, som.codebook_, som.n_iter_ = stored.grid, stored.units(), stored.epochs
        som.hits_ = stored.hits().reshape(stored.grid.rows, stored.grid.columns)
        som.quantization_errors_, som.topographic_error_ = [*stored.quantization_errors], stored.topographic_error
        som.n_features_in_ = stored.d
        if stored.columns != tuple(map(str, range(stored.d))):  # columns without names have the names "0", "1", ...
            som.feature_names_in_ = np.array(stored.columns, dtype=object)
        plain = stored.scaling.kind == "none" and not any(stored.scaling.transforms)
        som.scaling_ = None if plain else stored.scaling
        return som


def _parameters(options: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an estimator that `options` of a training record; `_options` is the inverse."""
    names = ("kernel", "epochs", "schedule", "tolerance")
    found: dict[str, Any] = {name: options[name] for name in names if name in options}
    if options.get("sigma"):
        found["sigma"], found["sigma_end"] = options["sigma"]
    if (initial := options.get("initial") or {}).get("kind") == "random":
        found["initial"], found["random_state"] = "random", initial.get("seed")
    if options.get("online"):
        found["online"], (found["rate"], found["rate_end"], found["random_state"]) = True, options["online"]
    return found


def _write(som: Any, path: str | os.PathLike[str], overwrite: bool) -> None:
    """Write the last codebook of a map, its hits and errors, and the votes of a classifier to a codebook store."""
    from pipelines.stores.codebook import SamplesInMemory, create_codebook

    columns, errors = tuple(map(str, som._columns())), som.quantization_errors_
    scaling = som.scaling_ or Scaling("none", (0.0,) * len(columns), (1.0,) * len(columns))
    samples = SamplesInMemory(columns, som.codebook_.dtype, bool(som.missing), scaling)
    epochs, sigmas = len(errors) - 1, som._past_sigmas()
    sigmas += sigmas[-1:] * (epochs - len(sigmas))  # LVQ counts as one more epoch
    writer = create_codebook(
        path,
        samples,
        som.grid_,
        metric=som._metric(),
        sigmas=sigmas[:epochs],
        options=_options(som),
        votes=som._votes(),
        overwrite=overwrite,
    )
    writer = replace(writer, keep=1)
    writer.write(epochs, som.codebook_[None])
    writer.finish(epochs, errors, som.topographic_error_, som.hits_.astype(np.int64).ravel())


def _options(som: Any) -> dict[str, Any]:
    """Return the options of the training as `tilepath.train_som` records them."""
    seed = int(som.random_state) if isinstance(som.random_state, int | np.integer) else 0
    initial: dict[str, Any] = {"kind": som.initial} if isinstance(som.initial, str) else {"kind": "given"}
    if initial["kind"] == "random":
        initial["seed"] = seed
    elif initial["kind"] == "given":
        given = np.ascontiguousarray(som.initial, som.codebook_.dtype)
        initial["digest"] = hashlib.blake2b(given.data, digest_size=16).hexdigest()
    return {
        "grid": vars(som.grid_),
        "metric": som._metric(),
        "kernel": som.kernel,
        "epochs": int(som.epochs),
        "sigma": list(first_and_last(som.grid_, som.sigma, som.sigma_end)),
        "schedule": som.schedule,
        "initial": initial,
        "tolerance": None if som.tolerance is None else float(som.tolerance),
        "online": [float(som.rate), float(som.rate_end), seed] if som.online else None,
        **({"lvq": [int(som.lvq_epochs), float(som.lvq_rate)]} if hasattr(som, "lvq_epochs") else {}),
    }
