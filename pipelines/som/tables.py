"""Write maps and mappings as tables and arrays for other programs: CSV, Parquet, .npy.

========== =================================================================== ==============================
what       a row of the table                                                  array in .npy
========== =================================================================== ==============================
units      a sample: its row, id, origin, best unit with its place on the      not available
           grid and distance, second best unit with its distance, label
codebook   a unit: its place on the grid, its values in units of the source    float (rows, columns, d)
hits       a unit: its place, number of samples whose best unit it is          int64 (rows, columns)
u-matrix   a unit: its place, mean distance to its neighbours                  float64 (rows, columns)
========== =================================================================== ==============================

A file is written whole or not at all. The table of samples is written in pieces, so it may be larger than memory.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gpuops.som.grid import Grid
from pipelines.files.output_file import check_free, whole_file
from pipelines.files.tables import check_output, check_suffix, table_writer, write_table
from pipelines.som.heights import u_matrix
from pipelines.stores.codebook import Codebook
from pipelines.stores.mapping import Mapping
from pipelines.stores.samples import Samples
from pipelines.stores.schema import open_one_of

WHAT = ("codebook", "hits", "u-matrix", "units")
ARRAY = ".npy"


def export_map(
    store: Codebook | Mapping | str | os.PathLike[str],
    path: str | os.PathLike[str],
    what: str | None = None,
    *,
    samples: Samples | str | os.PathLike[str] | None = None,
    scaled: bool = False,
    overwrite: bool = False,
) -> None:
    """Write a table or an array of a map, or of a mapping of samples to a map, to the file `path`.

    Parameters
    ----------
    store : Codebook or Mapping, or path of such a store
    path : .csv, .tsv (or .csv.gz, .tsv.gz), .parquet, or .npy (not for units)
    what : {"codebook", "hits", "u-matrix", "units"}
        By default "codebook" for a map and "units" for a mapping. A map has all but "units"; a mapping has "units" and
        "hits".
    samples : samples of the mapping, if their store was moved
    scaled : write the codebook as it was trained, not in units of the source
    overwrite : replace a file that exists

    Raises
    ------
    ValueError
        The store does not have `what`, or the suffix of `path` does not go with `what`.
    FileExistsError
        `path` exists.
    StoreError
        The store, or the store of the samples, is missing, foreign or damaged.

    Examples
    --------
    >>> tilepath.export_map(book, "codebook.npy")
    >>> np.load("codebook.npy").shape
    (4, 5, 3)
    """
    either = "codebook/1", "mapping/1"
    store = store if isinstance(store, Codebook | Mapping) else open_one_of(store, either, "name a map or a mapping")
    what = what or ("units" if isinstance(store, Mapping) else "codebook")
    if what not in WHAT:
        raise ValueError(f"there is no {what!r} to export; choose {', '.join(WHAT)}")
    if isinstance(store, Mapping) and what in ("codebook", "u-matrix"):
        raise ValueError(f"{store.path} is a mapping, which has units and hits; name its map for the {what}")
    if isinstance(store, Codebook) and what == "units":
        raise ValueError(f"{store.path} is a map; name a mapping of samples to it (tilepath som map)")
    if isinstance(store, Mapping) and what == "units":
        write_units(store, path, samples=samples, overwrite=overwrite)
        return
    if isinstance(store, Codebook) and what == "codebook":
        units = store.units()
        values = units if scaled else store.scaling.undo(units).astype(store.dtype)
        columns = dict(zip(store.columns, values.T, strict=True))
    elif isinstance(store, Codebook) and what == "u-matrix":
        values = u_matrix(store.units(), store.grid, store.metric)
        columns = {"u_matrix": values}
    else:
        values = store.hits()
        columns = {"hits": values}
    _write_grid(store.grid, path, columns, values, overwrite)


def check_export(path: str | os.PathLike[str], overwrite: bool = False, *, array: bool = True) -> None:
    """Raise an error if a table, or with `array` an .npy file, cannot be written to `path`."""
    if Path(path).suffix.lower() != ARRAY:
        check_output(path, overwrite)
    elif not array:
        raise ValueError(f"{path}: units of samples are a table; choose .csv or .parquet")
    else:
        check_free(path, overwrite)


def write_units(
    mapping: Mapping,
    path: str | os.PathLike[str],
    *,
    samples: Samples | str | os.PathLike[str] | None = None,
    of_units: dict[str, pa.Array] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a row for each sample of a mapping.

    Parameters
    ----------
    mapping : Mapping
    path : .csv, .tsv (or .csv.gz, .tsv.gz) or .parquet
    samples : the samples of the mapping or the path of their store, if it was moved
    of_units : arrays (M,) of values of units, by name; each is written as a further column, by the unit of the sample
    overwrite : replace a file that exists
    """
    check_export(path, overwrite, array=False)
    found, more = mapping.samples(samples), of_units or {}
    schema = _units_of(mapping, found, 0, 0, more).schema
    with whole_file(path) as partial, table_writer(partial, schema, check_suffix(path)) as write:
        for rows in mapping.ranges():
            write(_units_of(mapping, found, *rows, more))


def _units_of(mapping: Mapping, samples: Samples, start: int, stop: int, of_units: dict[str, pa.Array]) -> pa.Table:
    """Return the rows of the table of samples from `start` to `stop` (excluded)."""
    units, distances = mapping.units(start, stop), mapping.distances(start, stop)
    columns: dict[str, Any] = {"row": np.arange(start, stop)}
    if samples.identified:
        columns["id"] = pa.array(samples.ids(start, stop), pa.string())
    if len(samples.origins) > 1:
        names = [name for name, _ in samples.origins]
        columns["origin"] = pa.array([names[code] for code in samples.origin_codes(start, stop)], pa.string())
    columns |= places(mapping.grid, units[:, 0]) | {"distance": distances[:, 0]}
    if mapping.top > 1:
        columns |= {"second_unit": units[:, 1], "second_distance": distances[:, 1]}
    if samples.labelled:
        labels = [*samples.label_names(), None]
        columns["label"] = pa.array([labels[code] for code in samples.labels(start, stop)], pa.string())
    columns |= {name: values.take(pa.array(units[:, 0])) for name, values in of_units.items()}
    return pa.table(columns)


def places(grid: Grid, units: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns of a table that say which units its rows are of, and where they are on the grid."""
    return {"unit": units, "unit_row": units // grid.columns, "unit_column": units % grid.columns}


def _write_grid(
    grid: Grid, path: str | os.PathLike[str], columns: dict[str, np.ndarray], values: np.ndarray, overwrite: bool
) -> None:
    """Write a row for each unit, or the array `values` (M, ...) by rows and columns of the grid."""
    check_export(path, overwrite)
    if Path(path).suffix.lower() == ARRAY:
        with whole_file(path) as partial, open(partial, "wb") as file:
            np.save(file, values.reshape(grid.rows, grid.columns, *values.shape[1:]))
        return
    of_units = places(grid, np.arange(grid.units, dtype=np.int32))
    for name in of_units.keys() & columns.keys():
        raise ValueError(f"{path}: the map and the table both have a column {name!r}; write the map as .npy")
    table = of_units | {name: np.ascontiguousarray(column) for name, column in columns.items()}
    write_table(pa.table(table), path, overwrite)
