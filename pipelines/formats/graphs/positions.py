"""Read the positions of vertices from a separate file: a table of nodes, TNTP's `_node.tntp`, or DIMACS `.co`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.dimacs import read_coordinates
from pipelines.formats.graphs.tntp import read_nodes

if TYPE_CHECKING:
    import pyarrow as pa

INDEX = "__index_level_0__"  # the stored index of a data frame
IDS = ("osmid", "id", "node", "name", "label", INDEX)
AXES = (("x", "y"), ("lon", "lat"))
KNOWN = (*IDS, *AXES[0], *AXES[1])


def is_table_of_nodes(source: object) -> bool:
    """Return True if `source` is the path of a table of nodes, or a data frame of pandas."""
    if not isinstance(source, str | os.PathLike):
        return hasattr(source, "iloc")
    from pipelines.files.tables import is_table  # imports Arrow, which most formats do without

    return is_table(source)


def read_positions(source: str | os.PathLike[str], n: int) -> np.ndarray:
    """Return the positions in TNTP's `_node.tntp` or DIMACS `.co`, float64 (n, 2); NaN for vertices that it lacks."""
    tntp = os.fspath(source).lower().endswith((".tntp", ".tntp.gz"))
    return read_nodes(source, n) if tntp else read_coordinates(source, n)


def frame_positions(frame: Any) -> dict[str, tuple[float, float]]:
    """Return the position of each node in a data frame of pandas, as `table_positions` reads its file."""
    from pipelines.files.tables import pandas_array, pandas_table

    known = [column for column in KNOWN if column in frame.columns]
    table = pandas_table(frame[known]).append_column(INDEX, pandas_array(frame.index))
    try:
        return _positions_in(table, "coordinates", list(map(str, frame.columns)))
    except ValueError as error:
        raise FormatError(str(error)) from error


def table_positions(source: str | os.PathLike[str]) -> dict[str, tuple[float, float]]:
    """Return the position of each node in a table.

    The table has the columns x and y, or lon and lat. The node is in the first of the columns osmid, id, node, name and
    label that the table has, or in the stored index of a data frame.
    """
    from pipelines.files.tables import column_names, read_columns

    name = os.fspath(source)
    try:
        return _positions_in(read_columns(name, KNOWN, KNOWN), name, column_names(name))
    except (ValueError, FileNotFoundError) as error:
        raise FormatError(str(error)) from error


def _positions_in(table: pa.Table, name: str, columns: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the position of each node in the table `name`, whose file or frame has `columns`."""
    from pipelines.files.tables import column_numbers

    ids = next((column for column in IDS if column in table.column_names), None)
    axes = next((axes for axes in AXES if {*axes} <= {*table.column_names}), None)
    if ids is None or axes is None:
        raise FormatError(
            f"{name}: positions are in columns x and y or lon and lat, and nodes in one of {', '.join(IDS[:-1])}; "
            f"columns are {', '.join(columns)}; rename them"
        )
    places = [column_numbers(table, axis, name, optional=True).tolist() for axis in axes]
    return dict(zip(map(str, table[ids].to_pylist()), zip(*places, strict=True), strict=True))
