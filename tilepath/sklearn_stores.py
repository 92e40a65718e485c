"""Save estimators of self-organizing maps to codebook stores, as `pipelines.train_som` writes them, and load them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from typing import Any

import numpy as np

from gpuops.som.grid import Grid
from pipelines.stores.codebook import Codebook, SamplesInMemory, create_codebook, open_codebook
from pipelines.stores.scaling import Scaling


def save(
    som: Any,
    path: str | os.PathLike[str],
    hits: np.ndarray,
    errors: list[float],
    overwrite: bool,
    votes: tuple[np.ndarray, np.ndarray] | None = None,
) -> None:
    """Write the last codebook of a fitted map to a codebook store (`tilepath.sklearn.SelfOrganizingMap.save`).

    `votes` are the classes of a classifier, and the samples of each class of each unit.
    """
    columns = [str(name) for name in getattr(som, "feature_names_in_", range(som.n_features_in_))]
    scaling = getattr(som, "scaling_", None) or Scaling("none", (0.0,) * len(columns), (1.0,) * len(columns))
    samples = SamplesInMemory(tuple(columns), som.codebook_.dtype, bool(som.missing), scaling)
    epochs, sigmas = len(errors) - 1, som._past_sigmas()
    sigmas += sigmas[-1:] * (epochs - len(sigmas))  # LVQ counts as one more epoch
    writer = create_codebook(
        path,
        samples,
        som.grid_,
        metric=som._metric(),
        sigmas=sigmas[:epochs],
        options=_options(som),
        votes=votes,
        overwrite=overwrite,
    )
    writer = replace(writer, keep=1)
    writer.write(epochs, som.codebook_[None])
    writer.finish(epochs, errors, som.topographic_error_, hits.astype(np.int64).ravel())


def _options(som: Any) -> dict[str, Any]:
    """Return the options of the training as `pipelines.train_som` records them."""
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
        "sigma": list(som._radii(som.grid_)),
        "schedule": som.schedule,
        "initial": initial,
        "tolerance": None if som.tolerance is None else float(som.tolerance),
        "online": [float(som.rate), float(som.rate_end), seed] if som.online else None,
        **({"lvq": [int(som.lvq_epochs), float(som.lvq_rate)]} if hasattr(som, "lvq_epochs") else {}),
    }


def load(kind: Any, path: Codebook | str | os.PathLike[str], device: str) -> Any:
    """Return an estimator of the class `kind` with the map of a codebook store."""
    stored = path if isinstance(path, Codebook) else open_codebook(path)
    options, grid = stored.options, stored.grid
    initial, online = options.get("initial") or {}, options.get("online")
    sigma, sigma_end = options.get("sigma") or (None, 1.0)
    som = kind(
        **vars(grid),
        metric=stored.metric,
        kernel=options.get("kernel", "gaussian"),
        epochs=options.get("epochs", stored.epochs),
        sigma=sigma,
        sigma_end=sigma_end,
        schedule=options.get("schedule", "linear"),
        initial="random" if initial.get("kind") == "random" else "pca",
        tolerance=options.get("tolerance"),
        missing=stored.missing,
        device=device,
        random_state=online[2] if online else initial.get("seed"),
        **({"online": True, "rate": online[0], "rate_end": online[1]} if online else {}),
    )
    som.grid_, som.codebook_, som.n_iter_ = Grid(**vars(grid)), stored.units(), stored.epochs
    som.hits_ = stored.hits().reshape(grid.rows, grid.columns)
    som.quantization_errors_, som.topographic_error_ = [*stored.quantization_errors], stored.topographic_error
    som.n_features_in_ = stored.d
    if stored.columns != tuple(map(str, range(stored.d))):  # columns without names have the names "0", "1", ...
        som.feature_names_in_ = np.array(stored.columns, dtype=object)
    plain = stored.scaling.kind == "none" and not any(stored.scaling.transforms)
    som.scaling_ = None if plain else stored.scaling
    return som
