"""Write clusters of units, or of samples, to tables for other programs, and read clusters of units for pictures."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa

from pipelines.files.tables import check_output, column_names, read_columns, write_table
from pipelines.som.clusters import cluster_units
from pipelines.som.heights import samples_of_density
from pipelines.som.tables import places, write_units
from pipelines.stores.codebook import Codebook, open_codebook
from pipelines.stores.mapping import Mapping, open_mapping
from pipelines.stores.samples import Samples


def cluster_map(
    codebook: Codebook | str | os.PathLike[str],
    method: str = "agglomerative",
    clusters: int | None = None,
    *,
    linkage: str | None = None,
    adjacent: bool = False,
    samples: Samples | str | os.PathLike[str] | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Return the cluster of every unit of a codebook store.

    Parameters
    ----------
    codebook : Codebook or path of its store
    method : {"agglomerative", "kmeans", "watershed", "immersion"}
        "agglomerative" merges the nearest units. "kmeans" finds units around means; every unit counts the same.
        "watershed" cuts the U-matrix along its walls. "immersion" is U*C, which follows the density of samples, too.
    clusters : int, optional
        Number of clusters; may be left out for watershed and immersion.
    linkage : {"ward", "average"}, optional
        Linkage of the agglomerative method. By default "ward" on Euclidean maps, the only maps it is defined for, else
        "average".
    adjacent : bool
        Merge only clusters that touch on the grid (agglomerative).
    samples : Samples or path of a samples store, optional
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
    StoreError
        The samples are no longer where they were (immersion).
    ValueError
        The method is unknown, an option does not go with the method, the map cannot have that many clusters, as it has
        too few units, different units or basins, or samples have missing values (immersion).

    Examples
    --------
    >>> tilepath.cluster_map(book, clusters=2).shape
    (20,)
    """
    codebook = open_codebook(codebook)
    return cluster_units(
        codebook.units(),
        codebook.grid,
        method,
        clusters,
        metric=codebook.metric,
        linkage=linkage,
        adjacent=adjacent,
        samples=samples_of_density(codebook, samples) if method == "immersion" else None,
        seed=seed,
    )


def write_clusters(
    path: str | os.PathLike[str],
    clusters: np.ndarray,
    codebook: Codebook | str | os.PathLike[str],
    *,
    mapping: Mapping | str | os.PathLike[str] | None = None,
    samples: Samples | str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a table of the clusters of units, or of the samples of `mapping` with their names, labels and units.

    Parameters
    ----------
    path : path of the new .csv, .tsv or .parquet file
    clusters : (M,) int array
        The clusters of units, from `cluster_map`.
    codebook : Codebook or path of its store
    mapping : Mapping or path of its store, optional
        The samples to write; a sample has the cluster of its best matching unit.
    samples : Samples or path of their store, optional
        The samples of the mapping, if their store was moved.
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    FileExistsError
        `path` exists.
    ValueError
        `path` does not end as tables do.
    StoreError
        `mapping` belongs to another map, or its samples are no longer where they were.

    Examples
    --------
    >>> tilepath.write_clusters("clusters.csv", tilepath.cluster_map(book, clusters=2), book)
    """
    check_output(path, overwrite)
    codebook = open_codebook(codebook)
    if mapping is None:
        units = np.arange(len(clusters), dtype=np.int32)
        write_table(pa.table(places(codebook.grid, units) | {"cluster": clusters}), path, overwrite)
        return
    mapping = open_mapping(mapping)
    mapping.check_codebook(codebook)
    write_units(mapping, path, samples=samples, of_units={"cluster": pa.array(clusters)}, overwrite=overwrite)


def read_clusters(path: str | os.PathLike[str], codebook: Codebook | str | os.PathLike[str]) -> np.ndarray:
    """Read the clusters of units from a table that `write_clusters` wrote, or that was made by hand.

    Parameters
    ----------
    path : path of a .csv, .tsv or .parquet file
        It has the columns `unit` and `cluster`, and a row for each unit.
    codebook : Codebook or path of its store

    Returns
    -------
    (M,) int64 array
        -1 for a unit in no cluster.

    Raises
    ------
    ValueError
        The file is not a table of units, or is a table of another map; the message names the line.

    Examples
    --------
    >>> clusters = tilepath.cluster_map(book, clusters=2)
    >>> tilepath.write_clusters("units to read.csv", clusters, book)
    >>> bool((tilepath.read_clusters("units to read.csv", book) == clusters).all())
    True
    """
    codebook = open_codebook(codebook)
    clusters = np.full(codebook.grid.units, -2)
    names = column_names(path)
    if not {"unit", "cluster"} <= {*names} or "row" in names:
        raise ValueError(f"{path}: not a table of units, whose first line names unit and cluster")
    table = read_columns(path, ("unit", "cluster"))
    for line, values in enumerate(zip(*(column.to_pylist() for column in table.columns), strict=True), start=2):
        try:
            unit, cluster = map(int, values)
        except (TypeError, ValueError):
            raise ValueError(f"{path}, line {line}: unit and cluster are whole numbers") from None
        if not 0 <= unit < len(clusters) or cluster < -1 or clusters[unit] != -2:
            raise ValueError(
                f"{path}, line {line}: unit {unit} is not on the map, appears twice, or its cluster {cluster} is below "
                "-1 (no cluster); name the table of this map"
            )
        clusters[unit] = cluster
    if (clusters == -2).any():
        raise ValueError(f"{path}: unit {(clusters == -2).argmax()} has no line; name the table of this map")
    return clusters
