"""Clusters of units, and of samples, as tables in CSV: written for other programs, and read back for pictures."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from pipelines.formats.output_file import check_free, whole_file
from pipelines.som.clusters import cluster_units
from pipelines.som.pictures import learned_rows
from pipelines.stores.codebook import Codebook
from pipelines.stores.mapping import Mapping
from pipelines.stores.samples import Samples

OF_UNITS = ("unit", "unit_row", "unit_column", "cluster")
OF_SAMPLES = ("row", "unit", "cluster")


def cluster_map(
    codebook: Codebook,
    method: str = "agglomerative",
    clusters: int | None = None,
    *,
    linkage: str | None = None,
    adjacent: bool = False,
    samples: Samples | None = None,
    seed: int = 0,
) -> np.ndarray:
    """The cluster of every unit of a map: `pipelines.som.clusters.cluster_units` for a store.

    Parameters
    ----------
    codebook : Codebook
    method : {"agglomerative", "kmeans", "watershed", "immersion"}
    clusters : int, optional
        How many; may be left out for watershed and immersion.
    linkage : {"ward", "average"}, optional
        Of agglomerative; by default "ward" on Euclidean maps, else "average".
    adjacent : bool
        Merge what touches on the grid only (agglomerative).
    samples : Samples, optional
        Those whose density immersion follows; by default those the map was trained with.
    seed : int
        Draws the first means (kmeans).

    Returns
    -------
    (M,) int32 array
        Numbers from 0 in the order of first units.

    Raises
    ------
    ImportError
        Scikit-learn is missing; the message says how to install it.
    pipelines.stores.StoreError
        The samples are no longer where they were.
    ValueError
        There is no such method, an option does not go with it, there cannot be that many clusters, or samples have
        missing values (immersion).
    """
    return cluster_units(
        codebook.units(),
        codebook.grid,
        method,
        clusters,
        metric=codebook.metric,
        linkage=linkage,
        adjacent=adjacent,
        samples=learned_rows(codebook, samples) if method == "immersion" else None,
        seed=seed,
    )


def write_clusters(
    path: str | os.PathLike[str],
    clusters: np.ndarray,
    codebook: Codebook,
    *,
    mapping: Mapping | None = None,
    overwrite: bool = False,
) -> None:
    """Write the cluster of every unit, or with `mapping` that of every sample, to a file of comma-separated values.

    Parameters
    ----------
    path : of the new file
    clusters : (M,) int array
        From `cluster_map`.
    codebook : Codebook
    mapping : Mapping, optional
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    FileExistsError
        `path` exists.
    pipelines.stores.StoreError
        `mapping` is to another map.
    """
    check_free(path, overwrite)
    head: tuple[str, ...]
    rows: Iterable[Iterable[Any]]
    if mapping is None:
        units = np.arange(len(clusters))
        grid = codebook.grid
        head, rows = OF_UNITS, zip(units, units // grid.columns, units % grid.columns, clusters, strict=True)
    else:
        mapping.check_codebook(codebook)
        head, rows = OF_SAMPLES, _of_samples(mapping, clusters)
    with whole_file(path) as partial, partial.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


def read_clusters(path: str | os.PathLike[str], codebook: Codebook) -> np.ndarray:
    """The clusters of units from such a file, or one made by hand: a line with `unit` and `cluster` for every unit.

    Parameters
    ----------
    path : of a file of comma-separated values, whose first line names the columns
    codebook : Codebook

    Returns
    -------
    (M,) int64 array
        -1 for none.

    Raises
    ------
    ValueError
        It is not such a table, or of another map; the message names the line.
    """
    clusters = np.full(codebook.grid.units, -2)
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        if not {"unit", "cluster"} <= {*(reader.fieldnames or ())} or "row" in (reader.fieldnames or ()):
            raise ValueError(f"{path}: not a table of units, whose first line names unit and cluster")
        for row in reader:
            try:
                unit, cluster = int(row["unit"]), int(row["cluster"])
            except (TypeError, ValueError):
                raise ValueError(f"{path}, line {reader.line_num}: unit and cluster are whole numbers") from None
            if not 0 <= unit < len(clusters) or cluster < -1 or clusters[unit] != -2:
                raise ValueError(
                    f"{path}, line {reader.line_num}: unit {unit} is not on the map, appears twice, or its cluster "
                    f"{cluster} is below -1, which is none; name the table of this map"
                )
            clusters[unit] = cluster
    if (clusters == -2).any():
        raise ValueError(f"{path}: unit {(clusters == -2).argmax()} has no line; name the table of this map")
    return clusters


def _of_samples(mapping: Mapping, clusters: np.ndarray) -> Iterable[tuple[int, int, int]]:
    for start, stop in mapping.ranges():
        units = mapping.units(start, stop)[:, 0]
        yield from zip(range(start, stop), units.tolist(), clusters[units].tolist(), strict=True)
