"""Read the positions of vertices from a separate file: a table of nodes, TNTP's `_node.tntp`, or DIMACS `.co`."""

from __future__ import annotations

import os

import numpy as np

from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.dimacs import read_coordinates
from pipelines.formats.graphs.tntp import read_nodes

IDS = ("osmid", "id", "node", "name", "label", "__index_level_0__")
AXES = (("x", "y"), ("lon", "lat"))
TABLES = (".parquet", ".pq", ".csv", ".tsv", ".csv.gz", ".tsv.gz")


def is_table(source: object) -> bool:
    """Return True if `source` is the path of a table of nodes."""
    return isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith(TABLES)


def read_positions(source: str | os.PathLike[str], n: int) -> np.ndarray:
    """Return the positions in TNTP's `_node.tntp` or DIMACS `.co`, float64 (n, 2); NaN for vertices that it lacks."""
    tntp = os.fspath(source).lower().endswith((".tntp", ".tntp.gz"))
    return read_nodes(source, n) if tntp else read_coordinates(source, n)


def table_positions(source: str | os.PathLike[str]) -> dict[str, tuple[float, float]]:
    """Return the position of each node in a table.

    The table has the columns x and y, or lon and lat. The node is in the first of the columns osmid, id, node, name and
    label that the table has, or in the stored index of a data frame.
    """
    from pipelines.files.tables import column_names, column_numbers, read_columns

    name = os.fspath(source)
    known = (*IDS, *AXES[0], *AXES[1])
    try:
        table = read_columns(name, known, known)
        ids = next((column for column in IDS if column in table.column_names), None)
        axes = next((axes for axes in AXES if {*axes} <= {*table.column_names}), None)
        if ids is None or axes is None:
            raise FormatError(
                f"{name}: positions are in columns x and y or lon and lat, and nodes in one of {', '.join(IDS[:-1])}; "
                f"columns are {', '.join(column_names(name))}; rename them"
            )
        places = [column_numbers(table, axis, name, optional=True).tolist() for axis in axes]
    except (ValueError, FileNotFoundError) as error:
        raise FormatError(str(error)) from error
    return dict(zip(map(str, table[ids].to_pylist()), zip(*places, strict=True), strict=True))
