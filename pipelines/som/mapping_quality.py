"""Measures of a map on the samples of a mapping store, read in pieces. The formulas are in `pipelines.som.quality`."""

from __future__ import annotations

import os

import numpy as np

from pipelines.som.quality import map_quality
from pipelines.stores.codebook import Codebook, open_codebook
from pipelines.stores.mapping import Mapping, open_mapping
from pipelines.stores.samples import Samples

OF_VALUES = ("explained_variance", "trustworthiness", "neighbourhood_preservation")


def mapping_quality(
    mapping: Mapping | str | os.PathLike[str],
    *,
    codebook: Codebook | str | os.PathLike[str] | None = None,
    samples: Samples | str | os.PathLike[str] | None = None,
) -> dict[str, float]:
    """Return measures of how well a map shows the samples of a mapping, by name.

    Parameters
    ----------
    mapping : Mapping or path of a mapping store
    codebook, samples : stores or their paths, if they were moved since

    Returns
    -------
    dict
        ``quantization_error``, in units of the scaled samples, and ``topographic_error``, a share of the samples; both
        count samples by their weights. ``explained_variance`` (Euclidean maps), ``trustworthiness`` and
        ``neighbourhood_preservation`` (10 nearest of up to 2,000 samples, evenly spread) count all samples the same;
        1 is perfect. Measures that are not defined for the map or the samples are left out; `measured_quality` returns
        the reasons.

    Raises
    ------
    StoreError
        A store is missing, foreign or damaged.

    Examples
    --------
    >>> list(tilepath.mapping_quality(mapping))
    ['quantization_error', 'topographic_error', 'explained_variance', 'trustworthiness', 'neighbourhood_preservation']
    """
    return measured_quality(mapping, codebook=codebook, samples=samples)[0]


def measured_quality(
    mapping: Mapping | str | os.PathLike[str],
    *,
    codebook: Codebook | str | os.PathLike[str] | None = None,
    samples: Samples | str | os.PathLike[str] | None = None,
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the measures of `mapping_quality`, and the reason for each measure that is left out."""
    mapping = open_mapping(mapping)
    codebook = mapping.codebook_path if codebook is None else codebook
    codebook = open_codebook(codebook)
    mapping.check_codebook(codebook)
    scaled = mapping.samples(samples).in_scaling(codebook.scaling)
    found, left_out = mapping_errors(mapping), {}
    if "topographic_error" not in found:
        left_out["topographic_error"] = "the mapping has one unit of each sample, not two"
    if scaled.missing:
        return found, left_out | dict.fromkeys(OF_VALUES, "values of the samples are missing")
    pieces = ((scaled.values(*rows), mapping.units(*rows)[:, 0]) for rows in mapping.ranges())
    found |= map_quality(pieces, mapping.n, codebook.units(), codebook.grid, codebook.metric)
    if "explained_variance" not in found:
        why = "all samples are equal" if codebook.metric == "euclidean" else f"the metric is {codebook.metric}"
        left_out["explained_variance"] = why
    few = [name for name in OF_VALUES[1:] if name not in found]
    return found, left_out | dict.fromkeys(few, "the samples are too few")


def mapping_errors(mapping: Mapping) -> dict[str, float]:
    """Return the quantization error and, unless the map has one unit, the topographic error, by name.

    Samples count by their weights. Only the mapping is read, not the samples.
    """
    sums, of_all = np.zeros(mapping.top), 0.0
    for rows in mapping.ranges():
        units, weights = mapping.units(*rows), mapping.weights(*rows)
        values = [mapping.distances(*rows)[:, 0].astype(np.float64)]
        if mapping.top > 1:
            values.append(~mapping.grid.adjacent(units[:, 0], units[:, 1]))
        sums += [(value * weights).sum() for value in values]
        of_all += weights.sum()
    return dict(zip(("quantization_error", "topographic_error"), (sums / of_all).tolist(), strict=False))


def describe_mapping(mapping: Mapping) -> str:
    """Return a one-line description of the store and its errors, for display."""
    errors = mapping_errors(mapping)
    digits = {"quantization_error": 6, "topographic_error": 4}
    shown = (f"{name.replace('_', ' ')} {error:.{digits[name]}g}" for name, error in errors.items())
    return ", ".join([mapping.describe(), *shown])
