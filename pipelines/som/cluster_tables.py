"""Write clusters of units, or of samples, to CSV tables for other programs, and read them back for pictures."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from pipelines.files.output_file import check_free, whole_file
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
    """Return the cluster of every unit of a codebook store (see `pipelines.som.clusters.cluster_units`).

    Parameters
    ----------
    codebook : Codebook
    method : {"agglomerative", "kmeans", "watershed", "immersion"}
    clusters : int, optional
        Number of clusters; may be left out for watershed and immersion.
    linkage : {"ward", "average"}, optional
        Linkage of the agglomerative method; by default "ward" on Euclidean maps, else "average".
    adjacent : bool
        Merge only clusters that touch on the grid (agglomerative).
    samples : Samples, optional
        Samples whose density immersion follows; by default the samples the map was trained with.
    seed : int
        Seed of the first means (kmeans).

    Returns
    -------
    (M,) int32 array
        Clusters, numbered from 0 in the order of their first units.

    Raises
    ------
    ImportError
        Scikit-learn is missing; the message says how to install it.
    pipelines.stores.StoreError
        The samples are no longer where they were (immersion).
    ValueError
        The method is unknown, an option does not go with the method, the map cannot have that many clusters, or samples
        have missing values (immersion).
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
    """Write the cluster of every unit, or of every sample of `mapping`, to a file of comma-separated values.

    Parameters
    ----------
    path : path of the new file
    clusters : (M,) int array
        The clusters of units, from `cluster_map`.
    codebook : Codebook
    mapping : Mapping, optional
        The samples to write; a sample has the cluster of its best matching unit.
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    FileExistsError
        `path` exists.
    pipelines.stores.StoreError
        `mapping` belongs to another map.
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
    """Read the clusters of units from a file that `write_clusters` wrote, or that was made by hand.

    Parameters
    ----------
    path : path of a file of comma-separated values
        The first line names the columns, `unit` and `cluster` among them; each unit has one further line.
    codebook : Codebook

    Returns
    -------
    (M,) int64 array
        -1 for a unit in no cluster.

    Raises
    ------
    ValueError
        The file is not a table of units, or is a table of another map; the message names the line.
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
                    f"{cluster} is below -1 (no cluster); name the table of this map"
                )
            clusters[unit] = cluster
    if (clusters == -2).any():
        raise ValueError(f"{path}: unit {(clusters == -2).argmax()} has no line; name the table of this map")
    return clusters


def _of_samples(mapping: Mapping, clusters: np.ndarray) -> Iterable[tuple[int, int, int]]:
    for start, stop in mapping.ranges():
        units = mapping.units(start, stop)[:, 0]
        yield from zip(range(start, stop), units.tolist(), clusters[units].tolist(), strict=True)
