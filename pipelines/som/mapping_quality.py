"""Measures of a map on the samples of a mapping store, read in pieces; formulas stand in `pipelines.som.quality`."""

from __future__ import annotations

import os

import numpy as np

from pipelines.som.quality import kept_neighbours, ranked_rows, refuse_missing
from pipelines.stores.codebook import Codebook, open_codebook
from pipelines.stores.mapping import Mapping, open_mapping
from pipelines.stores.samples import Samples


def mapping_quality(
    mapping: Mapping | str | os.PathLike[str],
    *,
    codebook: Codebook | str | os.PathLike[str] | None = None,
    samples: Samples | str | os.PathLike[str] | None = None,
) -> dict[str, float]:
    """How well a map shows the samples of a mapping, by the names of the measures.

    Parameters
    ----------
    mapping : Mapping or path of a mapping store
    codebook, samples : stores or their paths, if they were moved since

    Returns
    -------
    dict
        The quantization error, in units of the scaled samples, and the topographic error, a share; both by the weights
        of the samples. Explained variance (Euclidean maps), trustworthiness and preservation of neighbourhoods (10
        nearest of up to 2,000 samples, evenly spread), in which each sample counts the same; 1 is perfect. What does
        not go with the map or the samples is left out: the last two if values are missing or samples are few.

    Raises
    ------
    pipelines.stores.StoreError
        A store is missing, foreign or damaged.
    """
    mapping = mapping if isinstance(mapping, Mapping) else open_mapping(mapping)
    codebook = mapping.codebook_path if codebook is None else codebook
    codebook = codebook if isinstance(codebook, Codebook) else open_codebook(codebook)
    mapping.check_codebook(codebook)
    scaled = mapping.samples(samples).in_scaling(codebook.scaling)
    found = {"quantization_error": mapping.quantization_error()}
    if mapping.top > 1:
        found["topographic_error"] = mapping.topographic_error()
    if scaled.missing:
        return found
    units, rows = codebook.units().astype(np.float64), ranked_rows(mapping.n)
    centre = np.array(scaled.means)  # any point among the samples, that sums may stay small
    left = squares = 0.0
    sums = np.zeros(codebook.d)
    ranked = []
    for start, stop in mapping.ranges():
        values, nearest = scaled.values(start, stop), mapping.units(start, stop)[:, 0]
        refuse_missing(values)
        within = rows[(rows >= start) & (rows < stop)] - start
        ranked.append((values[within], nearest[within]))
        apart = values - centre
        left += float(((values - units[nearest]) ** 2).sum())
        squares += float((apart * apart).sum())
        sums += apart.sum(axis=0)
    whole = squares - float((sums * sums).sum()) / mapping.n
    if codebook.metric == "euclidean" and whole > 0:
        found["explained_variance"] = 1 - left / whole
    samples_ranked, units_ranked = (np.concatenate(parts) for parts in zip(*ranked, strict=True))
    return found | kept_neighbours(samples_ranked, units_ranked, codebook.grid, codebook.metric)
